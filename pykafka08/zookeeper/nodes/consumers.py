"""Nodes under ``/consumers``: members of old groups, the owner and the offset of each partition.

Kafka's writer: ZookeeperConsumerConnector, TopicCount (0.8.0 to 1.1.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pykafka08.errors import MalformedNodeError
from pykafka08.zookeeper.nodes.document import JsonNode, Key, NumberNode, TextNode, json_object
from pykafka08.zookeeper.nodes.shapes import integer, number_map, scalar, string

__all__ = ["BLACK_LIST", "STATIC", "WHITE_LIST", "Offset", "Owner", "Registration"]

STATIC, WHITE_LIST, BLACK_LIST = "static", "white_list", "black_list"

_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')


def _with_backslashes_doubled(text: str) -> str:
    """What 0.8.0 and 0.8.1 meant by a regex that they wrote unescaped: ``a\\.b`` is no JSON with its one backslash."""
    return _ESCAPE.sub(lambda found: found.group() if len(found.group()) > 1 else "\\\\", text)


@dataclass(frozen=True, kw_only=True)
class Registration(JsonNode):
    """A member of a group.  ``subscription`` maps topics, or of a wildcard its one regex, to the number of streams."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("subscription", "subscription", number_map),
        Key("pattern", "pattern", string),
        Key("timestamp", "timestamp", scalar, False),
    )

    subscription: Mapping[str, int]
    pattern: str = STATIC
    timestamp: str | int | None = None
    """Milliseconds when it registered; Kafka writes them as a string."""

    @classmethod
    def decode(cls, data: bytes, path: str) -> Registration:
        registration = cls._decode_object(json_object(data, path, _with_backslashes_doubled), path)
        for topic, streams in registration.subscription.items():
            if streams < 1:
                raise MalformedNodeError(path, f"the key 'subscription' gives {topic!r} {streams} streams")
        return registration

    @property
    def wildcard(self) -> tuple[str, int] | None:
        """The regex and the number of streams, or None for a member that names its topics.

        Any pattern but the two wildcards, and an empty subscription, read as static.
        """
        if self.pattern not in (WHITE_LIST, BLACK_LIST) or not self.subscription:
            return None
        return next(iter(self.subscription.items()))


class Owner(TextNode):
    """The thread, ``<member id>-<n>``, that reads a partition."""


class Offset(NumberNode):
    """The offset that a group reads next in a partition."""
