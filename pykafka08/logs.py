"""The library's loggers: structlog over the standard library's, imported for the first message that is heard.

structlog imports what it can show tracebacks with, 40 to 90 ms; a process that logs nothing need not wait for it, and
Spark starts several for each query.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from functools import cached_property
from typing import Any

from pykafka08.short_names import shortened

__all__ = ["LibraryLogger", "is_prepared", "library_logger", "prepare"]

ROOT = "pykafka08"


def library_logger(name: str) -> LibraryLogger:
    """A structlog logger over the standard library's logger ``pykafka08.<name>``.

    It never prints by itself: records go to :mod:`logging`, which an application may configure, and the package's root
    logger carries a NullHandler.  The text is ``"an.event topic=t partition=0"``; the event and each of its facts are
    attributes of the LogRecord too.
    """
    root = logging.getLogger(ROOT)
    if not root.handlers:
        root.addHandler(logging.NullHandler())
    return LibraryLogger(logging.getLogger(f"{ROOT}.{name}"))


def is_prepared() -> bool:
    """True if no first message would hold up what runs by then: nobody listens, or structlog is imported."""
    handlers = [*logging.getLogger(ROOT).handlers, *logging.getLogger().handlers]
    is_heard = any(not isinstance(handler, logging.NullHandler) for handler in handlers)
    return not is_heard or "structlog" in sys.modules


def prepare() -> None:
    """Import structlog; it may take a tenth of a second, so call it in a thread, where :func:`is_prepared` says no."""
    import structlog  # noqa: F401


class LibraryLogger:
    """What nobody hears is not written out: on the level DEBUG every request speaks."""

    def __init__(self, logger: logging.Logger, facts: Mapping[str, Any] | None = None) -> None:
        self._logger = logger
        self._facts = dict(facts or {})

    def bind(self, **facts: Any) -> LibraryLogger:
        """A logger that adds these facts to each message, for example ``client_id``."""
        return LibraryLogger(self._logger, {**self._facts, **facts})

    @cached_property
    def _structured(self) -> Any:
        import structlog

        bound = structlog.stdlib.BoundLogger
        logger = structlog.wrap_logger(self._logger, processors=[_as_log_arguments], wrapper_class=bound)
        return logger.bind(**self._facts)

    def debug(self, event: str, **facts: Any) -> None:
        """What a developer may want to see."""
        if self._logger.isEnabledFor(logging.DEBUG):
            self._structured.debug(event, **facts)

    def info(self, event: str, **facts: Any) -> None:
        """What happens in the normal course."""
        if self._logger.isEnabledFor(logging.INFO):
            self._structured.info(event, **facts)

    def warning(self, event: str, **facts: Any) -> None:
        """What somebody should look at."""
        if self._logger.isEnabledFor(logging.WARNING):
            self._structured.warning(event, **facts)

    def error(self, event: str, **facts: Any) -> None:
        """What has failed."""
        if self._logger.isEnabledFor(logging.ERROR):
            self._structured.error(event, **facts)


_NAMES = frozenset({"address", "broker", "group", "host", "topic", "topics"})
"""Facts whose values come from brokers and have no length limit."""

_LOGGING_OPTIONS = ("exc_info", "stack_info", "stacklevel")


def _as_log_arguments(_: object, __: str, facts: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of the standard library's call."""
    options = {name: facts.pop(name) for name in _LOGGING_OPTIONS if name in facts}
    shown = " ".join([f"{name}={_shown(name, value)}" for name, value in facts.items() if name != "event"])
    return {"msg": f"{facts['event']} {shown}".rstrip(), "extra": facts, **options}


def _shown(name: str, value: object) -> str:
    text = shortened(str(value)) if name in _NAMES else str(value)
    return text if text.isprintable() and not set(text) & set(" =\"'") and text else repr(text)
