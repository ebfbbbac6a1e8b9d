"""Topics that the broker finds (KIP-848)."""

from __future__ import annotations

from pykafka08.errors import ConfigError

__all__ = ["SubscriptionPattern"]


LONGEST = 2**15 - 1


class SubscriptionPattern(str):
    """A regular expression of RE2 that whole topic names match; the group's coordinator does the matching.

    Needs Kafka 4.0 and ``group_protocol="consumer"`` (or ``"auto"``, where that is what comes of it).  Topics
    that the client may not describe are left out.  The broker matches its internal topics, too: ``.*`` includes
    ``__consumer_offsets``.
    """

    __slots__ = ()

    def __new__(cls, pattern: str) -> SubscriptionPattern:
        if not isinstance(pattern, str) or not pattern:
            raise ConfigError(f"pattern={pattern!r} is not a regular expression")
        try:
            size = len(pattern.encode())
        except UnicodeEncodeError:
            raise ConfigError(f"pattern={pattern!r:.100} cannot be written as UTF-8") from None
        if size > LONGEST:
            raise ConfigError(f"pattern={pattern!r:.100} has {size} bytes of UTF-8; the most is {LONGEST}")
        return super().__new__(cls, pattern)

    def __repr__(self) -> str:
        return f"SubscriptionPattern({str(self)!r})"
