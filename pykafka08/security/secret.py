"""Text that must not be printed."""

from __future__ import annotations

import hmac

__all__ = ["HiddenValue", "Secret", "kind_of"]


class Secret:
    """A password, key or token; prints as ``***``.  :meth:`reveal` returns the text.

    A pickle of it contains the text: treat pickles of settings as secrets.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str | Secret) -> None:
        self._text: str = text._text if isinstance(text, Secret) else text

    def reveal(self) -> str:
        """The text itself.  Pass it on at once and keep no variable of it: tracebacks may show local variables."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode("utf-8", "replace"), other._text.encode("utf-8", "replace"))

    def __hash__(self) -> int:
        return hash(self._text)

    def __bool__(self) -> bool:
        return bool(self._text)


class HiddenValue:
    """A value of the wrong type in the place of a secret, such as a password as bytes; only its type is kept."""

    __slots__ = ("kind",)

    def __init__(self, value: object) -> None:
        self.kind = type(value).__name__

    def __repr__(self) -> str:
        return "***"


def kind_of(value: object) -> str:
    """The name of a value's type, for an error."""
    return value.kind if isinstance(value, HiddenValue) else type(value).__name__
