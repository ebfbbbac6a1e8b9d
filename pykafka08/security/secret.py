"""Text that must not be printed."""

from __future__ import annotations

import hmac

__all__ = ["Secret"]


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
