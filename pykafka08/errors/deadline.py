"""Errors of calls whose deadline passes while brokers refuse the client.

A client whose credentials worked before repeats its requests for a while after a refusal, since passwords, tokens and
certificates are replaced while it runs.  A call with a shorter deadline raises the SecurityError that would have come
at the end of that time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import TypeVar

from pykafka08.errors.client import RequestTimeoutError, SecurityError, TransportError
from pykafka08.errors.root import KafkaError

__all__ = ["at_deadline", "passing", "raising_refusals", "refusal_of", "with_refusal"]

E = TypeVar("E", bound=KafkaError)

FACTS = ("api", "topic", "partition", "offset", "group")


def refusal_of(error: BaseException | None) -> SecurityError | None:
    """``error`` itself if it is a SecurityError, else the SecurityError that caused it; None without one."""
    while error is not None and not isinstance(error, SecurityError):
        error = error.__cause__
    return error


def with_refusal(error: E, refusal: SecurityError | None) -> E:
    """``error`` with the refusal as its cause, unless it has one already."""
    if refusal is not None and refusal_of(error) is None:
        error.__cause__ = refusal
    return error


def passing(refusal: SecurityError) -> TransportError:
    """The refusal as an error after which calls are retried."""
    lost = TransportError(f"{refusal.message}; tried again, as it worked before", broker=refusal.broker)
    lost.__cause__ = refusal
    return lost


def at_deadline(error: KafkaError, refusal: SecurityError | None = None) -> KafkaError:
    """The error to raise after a deadline: the refusal that caused ``error``, or ``error`` itself.

    ``refusal`` is the present refusal of the broker that the call waited for, None without one.
    """
    refusal = refusal or refusal_of(error)
    if refusal is None or refusal is error:
        return error
    raised = copy(refusal)
    for fact in FACTS:
        if (value := getattr(error, fact)) is not None:
            setattr(raised, fact, value)
    raised.may_be_written = error.may_be_written
    raised.__cause__ = error
    return raised


@contextmanager
def raising_refusals() -> Iterator[None]:
    """Raise the refusal that caused a RequestTimeoutError or TransportError of the block, if there is one."""
    try:
        yield
    except (RequestTimeoutError, TransportError) as error:
        raised = at_deadline(error)
        if raised is error:
            raise
        raise raised from error
