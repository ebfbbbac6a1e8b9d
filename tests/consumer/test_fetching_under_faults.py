"""Sessions, followers, elections and faults all at once: every record once, in order."""

from __future__ import annotations

import random

import anyio
import pytest

from pykafka08 import BrokerError, Consumer, EmbeddedCluster, ErrorCode, NewRecord, Producer

pytestmark = pytest.mark.anyio

PARTITIONS = 6
BATCHES = 12
BATCH = 20
FETCH_CODES = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
)
EPOCH_CODES = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)


def harm(cluster: EmbeddedCluster, rng: random.Random) -> None:
    """One thing that loses no record."""
    partition, broker = rng.randrange(PARTITIONS), rng.randrange(3)
    match rng.randrange(6):
        case 0:
            cluster.move_leader("t", partition, broker)
        case 1:
            cluster.elect_unclean_leader("t", partition, broker, cluster.log_end_offset("t", partition))
        case 2:
            cluster.faults.answer("Fetch", rng.choice(FETCH_CODES))
        case 3:
            cluster.faults.answer("OffsetForLeaderEpoch", rng.choice(EPOCH_CODES))
        case 4:
            cluster.faults.close_before("Fetch")
        case _:
            cluster.faults.close_after("Fetch")


@pytest.mark.parametrize("release", ["1.1", "2.8", "4.3"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_every_record_once_and_in_order(release: str, seed: int) -> None:
    rng = random.Random(seed)
    async with (
        EmbeddedCluster(brokers=3, version=release, topics={"t": PARTITIONS}, racks=["a", "b", "c"]) as cluster,
        Consumer(
            "t",
            bootstrap_servers=cluster.bootstrap_servers,
            auto_offset_reset="earliest",
            client_rack="b",
            fetch_max_wait_ms=30,
            max_partition_fetch_bytes=2000,
            retry_backoff_ms=10,
            retry_backoff_max_ms=100,
            reconnect_backoff_ms=5,
        ) as consumer,
        Producer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0, retry_backoff_ms=10) as producer,
    ):
        expected = [0] * PARTITIONS
        with anyio.fail_after(50):
            for first in range(0, BATCHES * BATCH, BATCH):
                for partition in range(PARTITIONS):
                    records = [NewRecord(b"%d" % (first + n), partition=partition) for n in range(BATCH)]
                    await producer.send_many("t", records)
                while min(expected) < first + BATCH:
                    if rng.random() < 0.05:
                        harm(cluster, rng)
                    try:
                        record = await consumer.getone()
                    except BrokerError:
                        continue  # it was told of, and reading goes on
                    assert record.offset == expected[record.partition] == int(record.value or b"")
                    expected[record.partition] += 1
