"""How records become the bytes of a batch in a producer, with no connection around it: one by one, and from a table.

What stands against it is aiokafka's builder alone, as for columns: its ``send`` cannot be had without an event loop.
"""

from __future__ import annotations

import random
import time
from typing import Any

from pykafka08.affinity import Affinity
from pykafka08.cluster.metadata import Snapshot
from pykafka08.config import ProducerConfig
from pykafka08.errors import KafkaError
from pykafka08.producer.accumulator import Accumulator
from pykafka08.producer.batch import Batch
from pykafka08.producer.intake import Intake
from pykafka08.producer.partitioners import chooser_factory
from pykafka08.producer.queues import PartitionQueue, TopicQueues
from pykafka08.producer.room import Room
from pykafka08.protocol.messages import metadata as kafka
from pykafka08.records.compression import Codec
from pykafka08.records.writer import encode_parts

__all__ = ["Enqueuing", "encoded_table", "table_of"]

TOPIC = "t"
LARGEST_BATCH = 4 << 20
"""So that all records of a job are in one."""


class _Nobody:
    """Stands where the machine does, which is told of batches."""

    def batch_opened(self, batch: Batch) -> None:
        pass

    def queue_changed(self, queue: PartitionQueue, now: float) -> None:
        pass

    def metadata_missing(self, topic: TopicQueues, now: float, *, is_new: bool) -> None:
        raise RuntimeError("the topic is known")

    def batch_failed(self, batch: Batch, error: KafkaError) -> None:
        raise error


def _refuse() -> None:
    raise RuntimeError("it is open")


def _snapshot() -> Snapshot:
    """A cluster of one broker, with a topic of one partition."""
    partition = kafka.MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1])
    topic = kafka.MetadataResponseTopic(name=TOPIC, partitions=[partition])
    broker = kafka.MetadataResponseBroker(node_id=1, host="h", port=1)
    answer = kafka.MetadataResponse(brokers=[broker], topics=[topic])
    return Snapshot(0).next(answer, now=0.0, wanted=lambda _: True)


class Enqueuing:
    """``enqueue`` again and again, from the application's call to the bytes of the batch."""

    def __init__(self, values: list[bytes], keys: list[bytes] | None) -> None:
        self._values, self._keys = values, keys
        config = ProducerConfig(batch_size=LARGEST_BATCH, max_request_size=2 * LARGEST_BATCH)
        chooser = chooser_factory(config.partitioner, random.Random(1), config.batch_size)
        self._accumulator = accumulator = Accumulator(config, chooser, _Nobody())
        accumulator.metadata_changed(_snapshot(), 0.0)
        self._intake = Intake(config, accumulator, Room(config.buffer_memory, lambda: 0), _refuse)
        self._intake.now, self._intake.wake = time.monotonic, lambda: None
        self._intake.belongs_to(Affinity())
        self._intake.is_open = True

    def batch(self) -> int:
        """Take all records and encode their batch; how many it has."""
        enqueue = self._intake.add
        if self._keys is None:
            for value in self._values:
                enqueue(TOPIC, value)
        else:
            for value, key in zip(self._values, self._keys, strict=True):
                enqueue(TOPIC, value, key)
        (queue,) = self._accumulator.topics[TOPIC].queues.values()
        queue.close_open()
        batch = queue.batches.popleft()
        batch.pack()
        self._accumulator.released(batch)
        encoded = encode_parts(
            2,
            Codec.NONE,
            timestamps=batch.timestamps,
            keys=batch.keys,
            values=batch.values,
            packed=batch.packed_records(),
        )
        return len(batch) if encoded else 0


def table_of(values: list[bytes], keys: list[bytes] | None) -> Any:
    """A pyarrow RecordBatch of them."""
    import pyarrow

    columns = {"value": pyarrow.array(values, pyarrow.binary())}
    if keys is not None:
        columns["key"] = pyarrow.array(keys, pyarrow.binary())
    return pyarrow.RecordBatch.from_pydict(columns)


def encoded_table(table: Any, stamps: list[int]) -> int:
    """Bytes of a batch of its rows, as ``send_arrow`` makes it in the form that runs; ``stamps`` are all the same."""
    from pykafka08.records.arrow_packing import Rows

    rows = Rows(table.column("value"), table.column("key") if "key" in table.schema.names else None)
    (packed,) = rows.packed(0, [len(stamps)], 0)
    parts = encode_parts(2, Codec.NONE, timestamps=stamps, keys=None, values=[], packed=packed)
    return sum(map(len, parts))
