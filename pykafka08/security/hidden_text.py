"""Secrets in the form that other libraries take: text whose ``repr`` is ``***``."""

from __future__ import annotations

from pykafka08.security.secret import Secret

__all__ = ["HiddenText", "hidden"]


class HiddenText(str):
    """A string for every use but ``repr``, which is what ``%r``, named tuples, dataclasses and tracebacks print.

    A library that formats it with ``%s`` prints the secret: its log must be kept off that line.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "***"


def hidden(secret: Secret) -> HiddenText:
    """The secret's text, for a library that keeps it."""
    return HiddenText(secret.reveal())
