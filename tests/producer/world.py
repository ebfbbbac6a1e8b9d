"""A producer's machine in a world of numbers: its clock, its metadata and its broker's answers are arguments."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pykafka08.cluster.metadata import Broker, Partition, Snapshot, Topic
from pykafka08.config import ClientConfig, ProducerConfig
from pykafka08.errors import KafkaError
from pykafka08.producer.actions import Action, RefreshMetadata, Send, UseTopics
from pykafka08.producer.batch import RECORD_OVERHEAD, Batch, headers_size
from pykafka08.producer.machine import ProducerMachine
from pykafka08.producer.partitioners import chooser_factory
from pykafka08.producer.reactions import Outcome
from pykafka08.records.record import Headers

BROKERS = {node_id: Broker(node_id, f"b{node_id}", 9092) for node_id in range(3)}
OK = 0


def snapshot(generation: int, topics: Mapping[str, Sequence[int] | int], epoch: int = 0) -> Snapshot:
    """``topics`` maps a name to the leaders of its partitions (-1: none), or to an error code."""
    known = {
        name: Topic(name, None, what, False, {})
        if isinstance(what, int)
        else Topic(name, None, 0, False, {i: Partition(leader, epoch, (0,), (0,), 0) for i, leader in enumerate(what)})
        for name, what in topics.items()
    }
    return Snapshot(generation, BROKERS, known)


class World:
    """One machine; ``poll`` remembers what it asked for."""

    def __init__(
        self,
        topics: Mapping[str, Sequence[int] | int] | None = None,
        *,
        partitioner: Any = "murmur2",
        chance: Callable[[], float] = lambda: 0.5,
        is_transactional: bool = False,
        **settings: Any,
    ) -> None:
        client = {name: settings.pop(name) for name in ("retry_backoff_ms", "retry_backoff_max_ms") if name in settings}
        settings.setdefault("enable_idempotence", False)
        self.config = ProducerConfig(**settings)
        self.machine = ProducerMachine(
            self.config,
            ClientConfig(bootstrap_servers=(("b0", 9092),), **client),
            make_chooser=chooser_factory(partitioner, random.Random(7), self.config.batch_size),
            chance=chance,
            is_transactional=is_transactional,
        )
        self.now = 1000.0
        self.generation = 0
        self.topics = dict(topics) if topics is not None else {}
        if topics is not None:
            self.metadata(self.topics)

    # --- inputs -------------------------------------------------------------------------------------------------------

    def metadata(self, topics: Mapping[str, Sequence[int] | int], epoch: int = 0) -> None:
        self.generation += 1
        self.topics = dict(topics)
        self.machine.metadata_changed(snapshot(self.generation, topics, epoch), self.now)

    def add(
        self,
        topic: str = "t",
        value: bytes | None = b"v",
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
    ) -> Handle:
        size = RECORD_OVERHEAD + len(value or b"") + len(key or b"") + headers_size(headers)
        batch = self.machine.accumulator.record_added(topic, value, key, headers, partition, 5, size, self.now)
        return Handle(batch, len(batch) - 1)

    def answer(self, send: Send, *codes: int | Outcome | None) -> None:
        """With one code for each batch, or one for all of them."""
        each = codes * len(send.batches) if len(codes) == 1 else codes
        outcomes = [
            code if code is None or isinstance(code, Outcome) else Outcome(code, 100 if code == OK else -1)
            for code in each
        ]
        self.machine.request_answered(send, outcomes, self.now)

    def fail(self, send: Send, error: KafkaError, *, was_written: bool = True) -> None:
        self.machine.request_failed(send, error, self.now, was_written=was_written)

    # --- outputs ------------------------------------------------------------------------------------------------------

    def poll(self, after: float = 0.0) -> list[Action]:
        """The machine's actions ``after`` so many seconds."""
        self.now += after
        return list(self.machine.poll(self.now))

    def sends(self, after: float = 0.0) -> list[Send]:
        return [action for action in self.poll(after) if isinstance(action, Send)]

    def one(self, after: float = 0.0) -> Send:
        (send,) = self.sends(after)
        return send

    def sleep(self) -> list[Action]:
        """Poll when the machine wants to be woken."""
        if self.machine.wants_poll:
            return self.poll()
        wakeup = self.machine.next_wakeup()
        assert wakeup is not None
        return self.poll(max(0.0, wakeup - self.now))

    def sends_when_due(self) -> list[Send]:
        """Sleep until there is something to send."""
        for _ in range(100):
            sends = [action for action in self.sleep() if isinstance(action, Send)]
            if sends:
                return sends
        raise AssertionError("nothing to send")


class Handle:
    """One record, as a delivery sees it."""

    def __init__(self, batch: Batch, index: int) -> None:
        self.batch = batch
        self.index = index

    @property
    def now(self) -> tuple[Batch, int]:
        return self.batch.follow(self.index)

    @property
    def is_done(self) -> bool:
        return self.now[0].is_done

    @property
    def error(self) -> KafkaError | None:
        batch, index = self.now
        return batch.error_of(index)

    @property
    def offset(self) -> int:
        batch, index = self.now
        return batch.offset_of(index)

    @property
    def is_acknowledged(self) -> bool:
        return self.is_done and self.error is None


def values(batch: Batch) -> list[bytes | None]:
    return list(batch.values)


def refreshes(actions: Sequence[Action]) -> list[RefreshMetadata]:
    return [action for action in actions if isinstance(action, RefreshMetadata)]


def topics_asked(actions: Sequence[Action]) -> list[str]:
    return [name for action in actions if isinstance(action, UseTopics) for name in action.names]
