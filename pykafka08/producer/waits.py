"""What callers of the producer wait for: the outcome of a record, and room for one.

Interpreted in both forms: what mypyc makes of a coroutine meets a DeprecationWarning, from Python 3.12 on, when it is
cancelled while it awaits another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import anyio

from pykafka08.driver import Waiter
from pykafka08.errors import KafkaError
from pykafka08.producer.batch import Batch

if TYPE_CHECKING:
    from pykafka08.producer.room import Room

__all__ = ["RecordMetadata", "metadata_of", "outcome", "wait_for_room", "waiter_of"]


class RecordMetadata(NamedTuple):
    """Where a record was written.

    ``offset`` is -1 with acks=0, where the broker answers nothing.  ``timestamp_ms`` is the one in the log: the
    record's own, the broker's where the topic says so, -1 on brokers before 0.10.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


async def outcome(batch: Batch, index: int) -> RecordMetadata:
    """Of one record, when it has one; raises the error it ended with."""
    while True:
        if batch.is_forwarded:
            batch, index = batch.follow(index)
        if batch.is_done:
            return metadata_of(batch, index)
        await waiter_of(batch)


async def wait_for_room(room: Room, size: int, until: float) -> bool:
    """True when ``size`` bytes are free for the caller, who takes them before it awaits anything else.

    False if that was not so ``until`` a time of the event loop's clock.
    """
    waiter = room.stand_in_line(size)
    try:
        with anyio.CancelScope(deadline=until):
            await waiter
    except BaseException:
        room.leave(size, waiter)
        raise
    if waiter.is_done:
        room.take_promised(size)
        return True
    room.leave(size, waiter)
    return False


def metadata_of(batch: Batch, index: int) -> RecordMetadata:
    """The outcome of one record; raises its error, and KafkaError where the batch has not ended."""
    if not batch.is_done:
        raise KafkaError(
            "the record is under way: await flush() before asking where it was written",
            topic=batch.topic,
            partition=batch.partition if batch.partition >= 0 else None,
        )
    error = batch.error_of(index)
    if error is not None:
        # One error object serves all records of the batch: a fresh traceback keeps it from growing with each await.
        raise error.with_traceback(None)
    return RecordMetadata(batch.topic, batch.partition, batch.offset_of(index), batch.timestamp_of(index))


def waiter_of(batch: Batch) -> Waiter[None]:
    """The one waiter of a batch, made by the first who awaits."""
    waiter = cast("Waiter[None] | None", batch.listener)
    if waiter is None:
        batch.listener = waiter = Waiter()  # Waiter[None]() takes ten times as long
    return waiter
