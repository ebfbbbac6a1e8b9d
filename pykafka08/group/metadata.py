"""For whom offsets are committed in a transaction, and where they come from.  Source: KIP-447.

A consumer gives both to a producer; neither knows the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.records.record import TopicPartition

__all__ = ["GroupMetadata", "OffsetSource"]


class GroupMetadata(NamedTuple):
    """A member of one generation of a group; with the defaults nobody in particular, whose commits are always taken."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class OffsetSource(Protocol):
    """Who has read records as a member of a group: a consumer."""

    def group_offsets(self) -> tuple[GroupMetadata, Mapping[TopicPartition, OffsetAndMetadata]]:
        """Who it is, and where it would read on: behind the last record that it handed out."""

    def offsets_sent(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Callable[[bool], None]:
        """A transaction has these; what is returned is called at its end: True if it was committed."""
