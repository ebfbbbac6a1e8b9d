"""Which names a topic may have."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pykafka08.errors import ConfigError

__all__ = ["check_topic_name", "colliding"]

LONGEST = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def check_topic_name(name: str) -> None:
    """ConfigError for a name that some release does not take."""
    if name in (".", "..") or not _LEGAL.fullmatch(name):
        raise ConfigError(f"the topic's name {name!r} is not made of letters, digits, '.', '_' and '-'")
    if len(name) > LONGEST:
        raise ConfigError(f"the topic's name has {len(name)} characters; {LONGEST} is the most")


def colliding(name: str, others: Iterable[str]) -> str | None:
    """A topic whose metrics would have the same name, as '.' and '_' are one there."""
    flat = name.replace(".", "_")
    return next((other for other in others if other != name and other.replace(".", "_") == flat), None)
