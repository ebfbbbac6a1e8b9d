"""``-v`` and ``-vv``: the client's log on standard error, each event with its facts."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["FactsFormatter", "log_shown"]

_OWN = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"asctime", "message", "taskName"}


class FactsFormatter(logging.Formatter):
    """``12:30:01.234 cluster metadata.new generation=2``: what the log's caller added stands behind the event."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(name)s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        facts = [f"{name}={value}" for name, value in record.__dict__.items() if name not in _OWN]
        return " ".join([super().formatMessage(record), *facts])


@contextmanager
def log_shown(verbosity: int) -> Iterator[None]:
    """1: what happens; 2: every step."""
    logger = logging.getLogger("pykafka08")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FactsFormatter())
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
