"""Errors of a cluster that refuses the pipeline, with the part of the settings that they are about."""

from __future__ import annotations

from copy import copy

from pykafka08.errors import AuthorizationError, SecurityError

__all__ = ["REFUSALS", "refusal_at"]

REFUSALS = (SecurityError, AuthorizationError)


def refusal_at(where: str, error: SecurityError | AuthorizationError) -> SecurityError | AuthorizationError:
    """The same error; its text begins with ``where``, such as "sources.shop"."""
    named = copy(error)
    named.args = (f"{where}: {error.message}", *error.args[1:])
    return named
