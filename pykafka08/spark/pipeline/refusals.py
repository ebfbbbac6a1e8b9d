"""Errors of a cluster that refuses the pipeline, with the key of the cluster's settings."""

from __future__ import annotations

from copy import copy

from pykafka08.errors import AuthorizationError, SecurityError

__all__ = ["REFUSALS", "refusal_at"]

REFUSALS = (SecurityError, AuthorizationError)


def refusal_at(where: str, error: SecurityError | AuthorizationError) -> SecurityError | AuthorizationError:
    """A copy of the error whose text begins with ``where``, such as "sources.shop"."""
    named = copy(error)
    named.args = (f"{where}: {error.message}", *error.args[1:])
    return named
