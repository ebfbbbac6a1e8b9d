"""How far one partition is mirrored, as it is kept in the target: a committed offset, and its metadata.

The offset is that of the next record to copy from the source, committed for the *target's* partition by the mirror's
own group.  The metadata says what that belongs to, and has *points*: pairs of offsets of source and target, each the
next one after the same records.  They are dense near the end and sparse far from it, so that they fit.  Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pykafka08.errors import MirrorError
from pykafka08.records.record import TopicPartition

__all__ = ["MOST_POINTS", "Checkpoint", "Point", "around", "thinned"]

Point = tuple[int, int]
"""Offsets in source and target: all before the one was copied to before the other, all from it on comes after."""

FORM = 1
MOST_POINTS = 40
"""They fit into the 4096 bytes that brokers allow for metadata, whatever the offsets are."""


@dataclass(frozen=True)
class Checkpoint:
    """``offset``: the next one to copy; ``to``: the target's offset after the last copy.  Ids are None before 2.8."""

    offset: int
    to: int
    topic: str
    cluster: str | None
    source_id: str | None
    target_id: str | None
    points: tuple[Point, ...]
    by: str | None = None
    """Which run of a mirror has written it; None by releases that did not tell."""

    def metadata(self) -> str:
        """All but the offset, as compact JSON."""
        kept = {
            "mirror": FORM,
            "by": self.by,
            "topic": self.topic,
            "cluster": self.cluster,
            "from": self.source_id,
            "into": self.target_id,
            "to": self.to,
            "points": [number for point in thinned(self.points) for number in point],
        }
        return json.dumps(kept, separators=(",", ":"))

    @classmethod
    def parse(cls, offset: int, metadata: str, target: TopicPartition | None = None) -> Checkpoint | None:
        """The checkpoint that :meth:`metadata` wrote; None for an empty text, because old brokers keep no metadata.

        Raises MirrorError for any other text; the error names the partition ``target``.
        """
        if not metadata:
            return None
        place: dict[str, Any] = {} if target is None else {"topic": target.topic, "partition": target.partition}
        try:
            kept = json.loads(metadata)
            form, numbers = kept["mirror"], kept["points"]
            points = tuple(zip(numbers[0::2], numbers[1::2], strict=True))
            made = cls(
                offset, kept["to"], kept["topic"], kept["cluster"], kept["from"], kept["into"], points, kept.get("by")
            )
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise MirrorError(
                f"the offset in the target was not committed by a mirror: its metadata is {metadata!r:.100}", **place
            ) from error
        if form != FORM:
            raise MirrorError(
                f"the offset in the target has metadata of format {form!r}; this release reads format {FORM}", **place
            )
        return made


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most so many: those go that leave the smallest gap, as seen from the end.  The first and the last stay."""
    kept = sorted(set(points))
    while len(kept) > most:
        end = kept[-1][0]
        gaps = [(after[0] - before[0]) / (end - before[0] + 1) for before, after in zip(kept, kept[2:], strict=False)]
        del kept[1 + gaps.index(min(gaps))]
    return kept


def around(points: Sequence[Point], offset: int) -> tuple[Point | None, Point | None]:
    """The last point at or before a source's offset, and the first at or after it."""
    ordered = sorted(points)
    before = [point for point in ordered if point[0] <= offset]
    after = [point for point in ordered if point[0] >= offset]
    return (before[-1] if before else None), (after[0] if after else None)
