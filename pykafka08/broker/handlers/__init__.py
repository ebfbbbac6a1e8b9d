"""The embedded broker's answers: one file per API, each registers itself with :func:`handles`.

A handler is a plain function of the call and the request.  It returns the response, or a waiter for a response to come
(a long poll), or None where the protocol wants no answer; it never sleeps and never writes to a socket.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from pykafka08.broker.call import Call, Reply
from pykafka08.protocol.schema import Request

__all__ = ["Handler", "handles", "load_handlers"]

Handler = Callable[[Call, Any], Reply]
H = TypeVar("H", bound=Handler)

_HANDLERS: dict[int, Handler] = {}


def handles(request: type[Request[Any]]) -> Callable[[H], H]:
    """Make the decorated function the answer to an API."""

    def register(handler: H) -> H:
        _HANDLERS[request.api_key] = handler
        return handler

    return register


def load_handlers() -> Mapping[int, Handler]:
    """All handlers, by API key; imports every file of this folder."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return _HANDLERS
