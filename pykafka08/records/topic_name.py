"""Which names a topic can have, for all who take one from an application or a client.

Kafka's rule: 1 to 249 letters, digits, dots, underscores and hyphens.  Brokers before 0.10 allowed 255.
"""

from __future__ import annotations

import re

__all__ = ["INTERNAL_TOPICS", "LONGEST_OF_OLD_BROKERS", "topic_name_fault"]

#: Internal topics, which no pattern matches.  Metadata of brokers before 0.10 does not mark them.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_CHARACTERS = re.compile(r"[a-zA-Z0-9._-]+\Z")
LONGEST = 249
LONGEST_OF_OLD_BROKERS = 255


def topic_name_fault(name: str, longest: int = LONGEST) -> str | None:
    """What is wrong with the name; None if a topic can be called so."""
    if _CHARACTERS.match(name) and len(name) <= longest and name not in (".", ".."):
        return None
    if name in (".", ".."):
        return f"no topic can have the name {name!r}"
    return f"topic name {name!r:.300} is not 1 to {longest} of the characters a-z, A-Z, 0-9, '.', '_' and '-'"
