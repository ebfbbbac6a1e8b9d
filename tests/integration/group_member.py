"""A member of a group that tells what happens to it; run as a program, one that can be killed and paused.

    python -m tests.integration.group_member BOOTSTRAP TOPIC GROUP NAME

Then each event is a line of JSON on standard output, with its time on the machine's monotonic clock; SIGTERM makes it
leave.  Partitions count as released when the session was over, if that was before the member learned it: a busy machine
may stand still for longer than a session.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import anyio

from pykafka08 import Consumer, KafkaError, RebalanceListener, TopicPartition
from tests.faults.history import Assigned, Committed, Event, Polled, Released
from tests.faults.ownership import owned_until

__all__ = ["STEADY", "GroupMember", "event_of"]

STEADY: dict[str, Any] = {
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 300,
    "max_poll_interval_ms": 30_000,
    "auto_commit_interval_ms": 250,
    "auto_offset_reset": "earliest",
}
MOST = 40


class GroupMember(RebalanceListener):
    """Reads until ``stop`` is set, then leaves; what happens goes to ``tell``."""

    def __init__(
        self, bootstrap: str, topic: str, group: str, name: str, tell: Callable[[float, Event], None], **settings: Any
    ) -> None:
        self.name = name
        self.stop = anyio.Event()
        self.losses = 0
        """How often partitions were lost, not revoked."""
        self.consumer = Consumer(
            topic, bootstrap_servers=bootstrap, group_id=group, listener=self, **{**STEADY, **settings}
        )
        self._group = group
        self._write = tell
        self._told_at = 0.0
        self._next: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        async with self.consumer as consumer:
            while not self.stop.is_set():
                records = await consumer.getmany(max_records=MOST, timeout=0.1)
                for tp in {TopicPartition(record.topic, record.partition) for record in records}:
                    mine = [(each.offset, _text(each.value)) for each in records if each.partition == tp.partition]
                    self._tell(Polled(self._group, self.name, tp, mine))
                    self._next[tp] = mine[-1][0] + 1
            refused = await consumer.commit()
            assert not refused, refused

    def _tell(self, event: Event, at: float | None = None) -> None:
        """What shows that it has its partitions, or until when it had them."""
        self._told_at = time.monotonic() if at is None else at
        self._write(self._told_at, event)

    async def partitions_assigned(self, added: frozenset[TopicPartition]) -> None:
        self._tell(Assigned(self._group, self.name, sorted(added)))

    async def partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        clean = set()
        for tp, committed in (await self.consumer.committed(partitions)).items():
            if committed is not None:
                self._write(time.monotonic(), Committed(self._group, tp, committed.offset))
            if committed is not None and committed.offset == self._next.pop(tp, committed.offset):
                clean.add(tp)
        at = owned_until(self.consumer, self._told_at)
        self._tell(Released(self._group, self.name, sorted(clean), is_clean=True), at)
        self._tell(Released(self._group, self.name, sorted(partitions - clean)), at)

    async def partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self.losses += 1
        for tp in partitions:
            self._next.pop(tp, None)
        self._tell(Released(self._group, self.name, sorted(partitions)), owned_until(self.consumer, self._told_at))


def _text(value: bytes | None) -> str:
    return (value or b"").decode()


def _places(pairs: Iterable[list[Any]]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for topic, partition in pairs]


def event_of(line: str) -> tuple[float, Event]:
    """What :func:`_print` wrote."""
    at, kind, fields = json.loads(line)
    if kind == "Polled":
        group, member, place, records = fields
        return at, Polled(group, member, TopicPartition(*place), [(offset, value) for offset, value in records])
    if kind == "Assigned":
        return at, Assigned(fields[0], fields[1], _places(fields[2]))
    if kind == "Released":
        return at, Released(fields[0], fields[1], _places(fields[2]), fields[3])
    assert kind == "Committed", kind
    return at, Committed(fields[0], TopicPartition(*fields[1]), fields[2])


def _print(at: float, event: Event) -> None:
    sys.stdout.write(json.dumps([at, type(event).__name__, list(event)]) + "\n")
    sys.stdout.flush()


async def _main(bootstrap: str, topic: str, group: str, name: str) -> None:
    member = GroupMember(bootstrap, topic, group, name, _print)
    async with anyio.create_task_group() as tasks:

        async def leave_at_sigterm() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM) as signals:
                async for _ in signals:
                    member.stop.set()
                    return

        tasks.start_soon(leave_at_sigterm)
        try:
            await member.run()
        except KafkaError as error:
            sys.stderr.write(f"{name}: {error!r}\n")
            raise
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(_main, sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4])
