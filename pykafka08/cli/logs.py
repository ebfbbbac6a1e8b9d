"""The library's log on standard error, each event with its facts: all with ``-v`` and ``-vv``, else warnings."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["log_shown", "warnings_shown"]


@contextmanager
def log_shown(verbosity: int) -> Iterator[None]:
    """1: what happens; 2: every step."""
    with _shown("pykafka08", logging.DEBUG if verbosity > 1 else logging.INFO):
        yield


@contextmanager
def warnings_shown(name: str) -> Iterator[None]:
    """Warnings of one part of the library, for a command that runs without ``-v``."""
    with _shown(f"pykafka08.{name}", logging.WARNING):
        yield


@contextmanager
def _shown(name: str, lowest: int) -> Iterator[None]:
    logger = logging.getLogger(name)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(name)s %(message)s", "%H:%M:%S"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(lowest)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
