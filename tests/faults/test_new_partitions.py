"""F5: a topic that gets more partitions while records are written to it; the new ones are used without a restart."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import anyio
import pytest

from pykafka08 import EmbeddedCluster, Producer, UnknownTopicError
from tests.faults.stage import PATIENT

pytestmark = pytest.mark.anyio

DEADLINE_S = 60
"""Far above the second, or the age of metadata, that it takes: the figure is noted."""


async def test_the_partitioner_uses_them_within_the_age_of_metadata(
    record_property: Callable[[str, object], None],
) -> None:
    async with (
        EmbeddedCluster(brokers=2, topics={"t": 2}) as cluster,
        Producer(cluster.bootstrap_servers, metadata_max_age_ms=500, linger_ms=0, **PATIENT) as producer,
    ):
        assert (await producer.send("t", b"first")).partition < 2
        cluster.add_partitions("t", 40)
        start = anyio.current_time()
        with anyio.fail_after(DEADLINE_S):
            for number in count():
                if (await producer.send("t", b"more", key=b"%d" % number)).partition >= 2:
                    break
        record_property("figure", f"F5: new partitions used after {anyio.current_time() - start:.2f} s, of age 0.5 s")


@pytest.mark.parametrize("release", ["0.8.2", "4.3"])
async def test_a_record_for_a_new_partition_is_written_before_metadata_is_old(
    release: str, record_property: Callable[[str, object], None]
) -> None:
    async with (
        EmbeddedCluster(brokers=2, version=release, topics={"t": 2}) as cluster,
        Producer(cluster.bootstrap_servers, linger_ms=0, **PATIENT) as producer,
    ):
        await producer.send("t", b"first", partition=1)
        cluster.add_partitions("t", 4)
        start = anyio.current_time()
        with anyio.fail_after(DEADLINE_S):
            for partition in (3, 2):
                sent = await producer.send("t", b"new", partition=partition)
                assert (sent.partition, sent.offset) == (partition, 0)
        record_property("figure", f"F5: new partitions used after {anyio.current_time() - start:.2f} s on {release}")
        with anyio.fail_after(DEADLINE_S), pytest.raises(UnknownTopicError, match="4 partitions, and no partition 4"):
            await producer.send("t", b"none", partition=4)
        assert producer.counters[:3] == (4, 3, 1)
