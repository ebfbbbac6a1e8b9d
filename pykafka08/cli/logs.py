"""``-v`` and ``-vv``: the client's log on standard error, each event with its facts."""

from __future__ import annotations

import logging
import sys

__all__ = ["FactsFormatter", "show_log"]

_OWN = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"asctime", "message", "taskName"}


class FactsFormatter(logging.Formatter):
    """``12:30:01.234 cluster metadata.new generation=2``: what the log's caller added stands behind the event."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(name)s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        facts = [f"{name}={value}" for name, value in record.__dict__.items() if name not in _OWN]
        return " ".join([super().formatMessage(record), *facts])


def show_log(verbosity: int) -> None:
    """1: what happens; 2: every step."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FactsFormatter())
    logger = logging.getLogger("pykafka08")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)
