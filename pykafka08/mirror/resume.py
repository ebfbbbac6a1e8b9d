"""Where a mirror goes on: at what it has kept in the target, and behind what the target has beyond that.

With transactions nothing lies beyond.  Without (before Kafka 0.11) a mirror that died may have written records that it
kept no word of: they are compared with the source's, one by one, and not copied again.
"""

from __future__ import annotations

from contextlib import aclosing

from pykafka08.mirror.checkpoint import Checkpoint
from pykafka08.mirror.columns import Content, content_of
from pykafka08.mirror.copy_state import CopyState
from pykafka08.mirror.ranges import Ranges
from pykafka08.records.record import Record

__all__ = ["find_place"]

REMEMBERED = 100_000
"""Records before the present one among which a repetition is looked for."""


async def find_place(
    state: CopyState,
    kept: Checkpoint | None,
    source: Ranges,
    target: Ranges,
    *,
    bounds: tuple[int, int, int, int],
    restarts: bool,
) -> None:
    """Set where ``state`` goes on; ``bounds`` are start and end in the source, start and end in the target."""
    source_start, source_end, target_start, target_end = bounds
    state.seen = target_end
    if restarts:
        state.is_at(begin(state, source_start, target_end))
        return
    if kept is None:
        if target_start > 0:
            raise state.error(
                f"its first {target_start} offsets were deleted, and no place of this mirror is kept in the target "
                "(it expires when the mirror does not run): what was copied cannot be known"
            )
        kept = begin(state, source_start, target_start)
    else:
        state.check(kept, source_end, target_end)
    state.is_at(kept)
    if state.to < target_end:
        await _pass_over_copies(state, source, target, source_end, target_end)


def begin(state: CopyState, source_start: int, target_offset: int) -> Checkpoint:
    """Before the first record."""
    state.points = []
    return state.checkpoint(source_start, target_offset)


async def _pass_over_copies(state: CopyState, source: Ranges, target: Ranges, source_end: int, target_end: int) -> None:
    """What the target has beyond the checkpoint are copies of what follows in the source; MirrorError if not."""
    comparison = Comparison()
    async with (
        aclosing(source.records(state.source, state.next, source_end)) as originals,
        aclosing(target.records(state.target, state.to, target_end)) as copies,
    ):
        async for copy in copies:
            content = content_of(copy)
            if comparison.wants_original:
                comparison.original = await anext(originals, None)
            original = comparison.original
            if comparison.is_copy(content):
                assert original is not None
                state.next = original.offset + 1
            elif comparison.is_repetition(content):
                state.duplicates += 1
            else:
                raise state.error(
                    f"the record at offset {copy.offset} is no copy of the source's "
                    f"{'end' if original is None else f'record at offset {original.offset}'}: "
                    "another program writes to it"
                )
            state.to = copy.offset + 1
    if comparison.copies:
        state.points.append((state.next, state.to))


class Comparison:
    """Copies against their originals; a run of them may be there twice."""

    def __init__(self) -> None:
        self.original: Record | None = None
        self.copies = 0
        self._seen: list[Content] = []
        self._again = 0
        """How many of the last ones seen are expected once more."""

    @property
    def wants_original(self) -> bool:
        return self.original is None

    def is_copy(self, content: Content) -> bool:
        """The next original's; then the one after it is awaited."""
        if self._again and self._seen[-self._again] == content:
            return False
        if self.original is None or content_of(self.original) != content:
            return False
        self._seen.append(content)
        if len(self._seen) > 2 * REMEMBERED:
            del self._seen[:REMEMBERED]
        self.original, self._again = None, 0
        self.copies += 1
        return True

    def is_repetition(self, content: Content) -> bool:
        """Of one seen before; those that followed it are expected next."""
        if self._again and self._seen[-self._again] == content:
            self._again -= 1
            return True
        back = next((back for back in range(1, len(self._seen) + 1) if self._seen[-back] == content), None)
        if back is None:
            return False
        self._again = back - 1
        return True
