"""A cluster of logs without brokers, sockets or time: what the consumer's machine is tested against."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType
from uuid import UUID

from pykafka08.cluster.metadata import Broker, Partition, Snapshot, Topic
from pykafka08.config import ClientConfig, ConsumerConfig
from pykafka08.consumer.actions import (
    Aborted,
    Action,
    CutOff,
    EpochEnd,
    FetchedPartition,
    FoundEpoch,
    ListedOffset,
    Note,
    RefreshMetadata,
    SendEpochs,
    SendFetch,
    SendListOffsets,
    StartAnew,
)
from pykafka08.consumer.machine import ConsumerMachine
from pykafka08.consumer.partition import EARLIEST
from pykafka08.error_codes import ErrorCode
from pykafka08.records.batch import patch_crc
from pykafka08.records.batch_packing import encode_batch
from pykafka08.records.compression import Codec
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import TopicPartition


def batch_bytes(
    base: int, offsets: Sequence[int], *, last: int | None = None, size: int = 4, leader_epoch: int = -1
) -> bytes:
    """One batch of magic 2 with records at ``offsets``; ``last`` if compaction removed the last ones."""
    deltas = [offset - base for offset in offsets]
    data = encode_batch(
        Codec.NONE,
        timestamps=[1000 + offset for offset in offsets],
        keys=[None] * len(offsets),
        values=[b"%0*d" % (size, offset) for offset in offsets],
        offset_deltas=deltas,
        base_offset=base,
        leader_epoch=leader_epoch,
    )
    if last is not None:
        data[23:27] = (last - base).to_bytes(4, "big")
        patch_crc(data)
    return bytes(data)


def marker_bytes(offset: int, producer_id: int, *, is_commit: bool) -> bytes:
    """A control batch that ends a transaction."""
    return bytes(
        encode_batch(
            Codec.NONE,
            timestamps=[1],
            keys=[b"\x00\x00\x00" + bytes([is_commit])],
            values=[b"\x00\x00\x00\x00\x00\x00"],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
    )


def transaction_bytes(base: int, count: int, producer_id: int) -> bytes:
    """A batch of a transaction."""
    return bytes(
        encode_batch(
            Codec.NONE,
            timestamps=[1] * count,
            keys=[None] * count,
            values=[b"%d" % (base + index) for index in range(count)],
            base_offset=base,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
    )


Send = SendFetch | SendListOffsets | SendEpochs


class Log:
    """One partition: batches in order, a start that retention moves, a leader."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.leader_epoch = 0
        self.start = 0
        self.end = 0
        self.batches: list[tuple[int, int, bytes]] = []
        self.offsets: list[int] = []
        self.aborted: list[Aborted] = []
        self.followers: set[int] = set()
        self.epochs: list[tuple[int, int]] = []
        """Leader epochs, and the first offset of each."""

    def append(self, count: int, *, gaps: Iterable[int] = (), size: int = 4) -> None:
        """A batch of ``count`` offsets, of which those at the indexes ``gaps`` were compacted away."""
        gone = set(gaps)
        offsets = [self.end + index for index in range(count) if index not in gone]
        if not offsets:
            offsets = [self.end]
        last = self.end + count - 1
        data = batch_bytes(self.end, offsets, last=last, size=size, leader_epoch=self.leader_epoch)
        if not self.epochs or self.epochs[-1][0] != self.leader_epoch:
            self.epochs.append((self.leader_epoch, self.end))
        self.append_bytes(data, last, offsets)

    def append_bytes(self, data: bytes, last: int, offsets: Iterable[int] = ()) -> None:
        self.batches.append((self.end, last, data))
        self.offsets += offsets
        self.end = last + 1

    def read(self, offset: int, max_bytes: int) -> bytes:
        """The batches from the one that holds ``offset``; at least one, whole."""
        data = b""
        for _, last, batch in self.batches:
            if last < offset or last < self.start:
                continue
            if data and len(data) + len(batch) > max_bytes:
                break
            data += batch
        return data

    def truncate(self, end: int) -> None:
        """Lose the batches from ``end`` on."""
        self.batches = [batch for batch in self.batches if batch[1] < end]
        self.offsets = [offset for offset in self.offsets if offset < end]
        self.epochs = [(epoch, start) for epoch, start in self.epochs if start < end]
        self.end = end

    def epoch_end(self, epoch: int) -> EpochEnd:
        """The largest epoch up to that one, and where its records end."""
        found = -1
        for each, start in self.epochs:
            if each > epoch:
                return EpochEnd(found, start) if found >= 0 else EpochEnd(-1, -1)
            found = each
        return EpochEnd(found, self.end) if found >= 0 else EpochEnd(-1, -1)


class World:
    """Logs, the metadata about them, a machine, and what it has in flight."""

    def __init__(self, logs: dict[TopicPartition, int], *, with_ids: bool = False, **settings: object) -> None:
        self.logs = {tp: Log(leader) for tp, leader in logs.items()}
        self.ids = {tp.topic: UUID(int=index + 1) for index, tp in enumerate(logs)} if with_ids else {}
        self.generation = 0
        self.now = 100.0
        self.client = ClientConfig(bootstrap_servers=(("h", 1),))
        self.config = ConsumerConfig(**{"auto_offset_reset": "earliest", **settings})  # type: ignore[arg-type]
        self.machine = ConsumerMachine(self.config, self.client, lambda: 0.5)
        self.flights: list[Send] = []
        self.notes: list[Note] = []
        self.started_anew: list[TopicPartition] = []
        self.cut_off: list[CutOff] = []
        self.refreshes: list[int] = []

    # Metadata

    def snapshot(self, *, errors: dict[str, int] | None = None) -> Snapshot:
        self.generation += 1
        errors = errors or {}
        topics: dict[str, dict[int, Partition]] = {}
        for tp, log in self.logs.items():
            topics.setdefault(tp.topic, {})[tp.partition] = Partition(log.leader, log.leader_epoch, (), (), 0)
        nodes = {log.leader for log in self.logs.values()}
        return Snapshot(
            self.generation,
            brokers=MappingProxyType({node: Broker(node, f"b{node}", 9092) for node in nodes if node >= 0}),
            topics=MappingProxyType(
                {
                    name: Topic(
                        name, self.ids.get(name), errors.get(name, 0), False, {} if name in errors else partitions
                    )
                    for name, partitions in topics.items()
                }
            ),
        )

    def refresh(self, **options: dict[str, int]) -> None:
        self.machine.metadata_changed(self.snapshot(**options))

    def move_leader(self, tp: TopicPartition, leader: int) -> None:
        self.logs[tp].leader = leader
        self.logs[tp].leader_epoch += 1

    # The machine's driver

    def start(self) -> None:
        """Assign everything, find the positions, send the first fetches."""
        self.refresh()
        self.machine.assignment.assign(self.logs)
        self.poll()
        self.answer_all(SendListOffsets)

    def poll(self) -> list[Action]:
        """What the machine sends now."""
        actions = self.machine.poll(self.now)
        for action in actions:
            if isinstance(action, (SendFetch, SendListOffsets, SendEpochs)):
                self.flights.append(action)
            elif isinstance(action, RefreshMetadata):
                self.refreshes.append(action.generation)
            elif isinstance(action, StartAnew):
                self.started_anew.append(action.tp)
            elif isinstance(action, CutOff):
                self.cut_off.append(action)
            else:
                self.notes.append(action)
        return actions

    def wait(self, seconds: float) -> list[Action]:
        self.now += seconds
        return self.poll()

    def answer(self, flight: Send, *, is_capped: bool = True, is_partial: bool = False, **codes: int) -> None:
        """Answer one flight as the brokers would; ``code`` instead for every partition.

        ``is_partial`` leaves out what is no news.
        """
        self.flights.remove(flight)
        code = codes.get("code", 0)
        if isinstance(flight, SendListOffsets):
            listed = [self.listed(flight.node_id, ask.tp, ask.timestamp, code) for ask in flight.asks]
            self.machine.offsets_listed(flight, listed, self.now)
        elif isinstance(flight, SendEpochs):
            found = [self.found(flight.node_id, ask.tp, ask.last_epoch, code) for ask in flight.asks]
            self.machine.epochs_answered(flight, found, self.now)
        else:
            fetched = [
                self.fetched(flight.node_id, ask.tp, ask.offset, ask.max_bytes, code, ask.last_epoch)
                for ask in flight.asks
            ]
            if is_partial:
                fetched = [each for each in fetched if each.error_code or each.records or each.diverging]
            self.machine.fetch_answered(flight, fetched, self.now, is_capped=is_capped, is_partial=is_partial)
        self.poll()

    def redirect(self, flight: SendFetch, node_id: int) -> None:
        """Send the reader of each partition to that replica."""
        self.flights.remove(flight)
        fetched = []
        for ask in flight.asks:
            self.logs[ask.tp].followers.add(node_id)
            answer = self.fetched(flight.node_id, ask.tp, ask.offset, 0)
            is_leader = not answer.error_code and self.logs[ask.tp].leader == flight.node_id
            fetched.append(FetchedPartition(ask.tp, 0, b"", preferred_replica=node_id) if is_leader else answer)
        self.machine.fetch_answered(flight, fetched, self.now, is_capped=True)
        self.poll()

    def answer_all(self, kind: type = object) -> None:
        """Answer what is in flight now."""
        for flight in [flight for flight in self.flights if isinstance(flight, kind)]:
            self.answer(flight)

    def listed(self, node_id: int, tp: TopicPartition, timestamp: int, code: int = 0) -> ListedOffset:
        log = self.logs[tp]
        code = code or (0 if log.leader == node_id else int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return ListedOffset(tp, code, -1 if code else log.start if timestamp == EARLIEST else log.end)

    def fetched(
        self,
        node_id: int,
        tp: TopicPartition,
        offset: int,
        max_bytes: int = 1 << 20,
        code: int = 0,
        last_epoch: int = -1,
    ) -> FetchedPartition:
        log = self.logs[tp]
        if not code and node_id not in (log.leader, *log.followers):
            code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if not code and not log.start <= offset <= log.end:
            code = int(ErrorCode.OFFSET_OUT_OF_RANGE)
        if code:
            return FetchedPartition(tp, code)
        end = log.epoch_end(last_epoch)
        if last_epoch >= 0 and (end.leader_epoch < last_epoch or end.end_offset < offset):
            return FetchedPartition(tp, 0, diverging=end)
        return FetchedPartition(tp, 0, memoryview(log.read(offset, max_bytes)), tuple(log.aborted))

    def found(self, node_id: int, tp: TopicPartition, epoch: int, code: int = 0) -> FoundEpoch:
        log = self.logs[tp]
        code = code or (0 if log.leader == node_id else int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return FoundEpoch(tp, code, EpochEnd(-1, -1) if code else log.epoch_end(epoch))

    # The application

    def next_batch(self) -> FetchedBatch | None:
        handed_out = self.machine.next_batch(self.now)
        self.poll()
        return None if handed_out is None else handed_out.batch

    def read_offsets(self) -> dict[TopicPartition, list[int]]:
        """Offsets of everything that can be read without another answer."""
        offsets: dict[TopicPartition, list[int]] = {}
        while (batch := self.next_batch()) is not None:
            offsets.setdefault(TopicPartition(batch.topic, batch.partition), []).extend(
                record.offset for record in batch
            )
        return offsets

    def fetches(self) -> list[SendFetch]:
        return [flight for flight in self.flights if isinstance(flight, SendFetch)]

    def fetch(self) -> SendFetch:
        """The one fetch in flight."""
        (fetch,) = self.fetches()
        return fetch
