"""How options name a group whose offsets Kafka or ZooKeeper keeps.  Pure; what it has committed: ``group_commits``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pykafka08.errors import ConfigError

__all__ = ["CommittedGroup", "parse_group"]


@dataclass(frozen=True)
class CommittedGroup:
    """Which group, and where its offsets are kept; ``zookeeper`` None: in Kafka."""

    name: str
    zookeeper: str | None = None


def parse_group(text: str) -> CommittedGroup:
    """``group``, or ``zookeeper:group@host:2181,host:2181/chroot``; ConfigError for what is neither."""
    if not text.startswith("zookeeper:"):
        if not text:
            raise ConfigError("the group has no name")
        return CommittedGroup(text)
    match = re.fullmatch(r"zookeeper:([^@/]+)@(.+)", text)
    if match is None:
        raise ConfigError(f"the group {text!r} is not of the form zookeeper:GROUP@HOST:PORT[/CHROOT]")
    return CommittedGroup(match[1], match[2])
