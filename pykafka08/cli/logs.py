"""``-v`` and ``-vv``: the client's log on standard error, each event with its facts."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["log_shown"]


@contextmanager
def log_shown(verbosity: int) -> Iterator[None]:
    """1: what happens; 2: every step."""
    logger = logging.getLogger("pykafka08")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(name)s %(message)s", "%H:%M:%S"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
