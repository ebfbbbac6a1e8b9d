"""What tasks ask brokers for, as the properties of a consumer say it; without Spark, on embedded brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pytest

from pykafka08 import NewRecord, Producer
from pykafka08.protocol.messages.fetch import FetchRequest
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.spark import reading
from pykafka08.spark.data_loss import DataLossError
from pykafka08.spark.fetching import Place, RangeFetch, pick
from pykafka08.spark.locating import resolve
from pykafka08.spark.options import OptionError, read_options
from pykafka08.spark.ranges import Range, ReadTask
from pykafka08.spark.reading import read_ranges
from pykafka08.spark.runtime import client, run
from tests.spark.sinks import ThreadedCluster, embedded


class Asking(RangeFetch):
    """Keeps its requests."""

    __slots__ = ()
    requests: list[FetchRequest]

    def __call__(self, versions: BrokerVersions) -> FetchRequest:
        request = super().__call__(versions)
        self.requests.append(request)
        return request


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[FetchRequest]:
    """Those of tasks, in their order."""
    monkeypatch.setattr(Asking, "requests", [], raising=False)
    monkeypatch.setattr(reading, "RangeFetch", Asking)
    return Asking.requests


def fill(cluster: ThreadedCluster, *values: bytes, partitions: Sequence[int] = (0,), **settings: Any) -> None:
    async def send() -> None:
        async with Producer(bootstrap_servers=cluster.servers, **settings) as producer:
            await producer.send_many("t", [NewRecord(each, partition=n) for n in partitions for each in values])

    run(send())


def read(cluster: ThreadedCluster, **given: str) -> list[tuple[int, int]]:
    """Partition and offset of each row."""
    options = read_options({"kafka.bootstrap.servers": cluster.servers, "subscribe": "t", **given}, streaming=False)
    task = ReadTask(tuple(run(resolve(client(options.client), options))), options.settings)
    rows = pa.Table.from_batches(read_ranges(task, ("partition", "offset")))
    return sorted(zip(rows.column("partition").to_pylist(), rows.column("offset").to_pylist(), strict=True))


def asked_bytes(request: FetchRequest) -> list[int]:
    return [each.partition_max_bytes for topic in request.topics for each in topic.partitions]


def test_what_is_asked_where_the_options_say_nothing(requests: list[FetchRequest]) -> None:
    with embedded(topics={"t": 1}) as cluster:
        fill(cluster, b"v")
        assert read(cluster) == [(0, 0)]
    assert [(each.min_bytes, each.max_wait_ms, each.max_bytes, each.rack_id) for each in requests] == [
        (1, 500, 4 << 20, "")
    ]


def test_waits_and_sizes_are_those_of_the_consumers_properties(requests: list[FetchRequest]) -> None:
    given = {
        "kafka.fetch.min.bytes": "7",
        "kafka.fetch.max.wait.ms": "40",
        "kafka.fetch.max.bytes": "600000",
        "kafka.max.partition.fetch.bytes": "3000",
    }
    with embedded(topics={"t": 3}) as cluster:
        fill(cluster, *[bytes(100)] * 100, partitions=range(3), batch_size=1000)
        assert read(cluster, **given) == [(partition, offset) for partition in range(3) for offset in range(100)]
    assert len(requests) > 3
    assert {(each.min_bytes, each.max_wait_ms, each.max_bytes) for each in requests} == {(7, 40, 600_000)}
    assert {size for each in requests for size in asked_bytes(each)} == {3000}


@pytest.mark.parametrize(
    ("fetch_bytes", "most", "expected"),
    [("5000", "9000", 5000), ("9000", "5000", 5000), ("90000000", None, 90_000_000)],
)
def test_the_smaller_bound_of_an_answer_counts(fetch_bytes: str, most: str | None, expected: int) -> None:
    given = {"kafka.bootstrap.servers": "h", "subscribe": "t", "fetchBytes": fetch_bytes}
    if most is not None:
        given["kafka.fetch.max.bytes"] = most
    assert read_options(given, streaming=True).settings.fetch_bytes == expected


def test_a_batch_larger_than_all_bounds_comes(requests: list[FetchRequest]) -> None:
    given = {"kafka.fetch.max.bytes": "500", "kafka.max.partition.fetch.bytes": "100"}
    for version in ("0.8.2", "4.3"):
        with embedded(version=version, topics={"t": 2}) as cluster:
            fill(cluster, bytes(10_000), bytes(10), partitions=range(2))
            assert read(cluster, **given) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert max(each.max_bytes for each in requests[-2:]) == 500


def test_partitions_are_asked_for_no_more_than_their_most() -> None:
    places = [Place(Range("t", number, 0, 1000), 0.0) for number in range(5)]
    assert [wanted for _, wanted in pick(places, 1000)] == [1000]
    assert [wanted for _, wanted in pick(places, 1000, 400)] == [400, 400, 200]
    assert [wanted for _, wanted in pick(places, 1000, 4000)] == [1000]


# --- racks ------------------------------------------------------------------------------------------------------------


def fetches_of(cluster: ThreadedCluster) -> Counter[int]:
    return Counter(each.broker for each in cluster.call("requests") if each.api == "Fetch")


EVERY_ROW = [(partition, offset) for partition in range(3) for offset in range(100)]


@pytest.mark.parametrize("version", ["2.4", "4.3"])
def test_records_come_from_the_rack_of_the_reader(version: str) -> None:
    with embedded(brokers=3, version=version, topics={"t": 3}, racks=["a", "b", "c"]) as cluster:
        fill(cluster, *[bytes(100)] * 100, partitions=range(3), batch_size=1000)
        assert read(cluster, **{"kafka.client.rack": "b", "fetchBytes": "3000"}) == EVERY_ROW
        fetches = fetches_of(cluster)
    # The leader of each partition is asked once, and then names the replica.
    assert (fetches[0], fetches[2]) == (1, 1)
    assert fetches[1] > 3


def test_the_leader_is_read_where_a_replica_fails() -> None:
    with embedded(brokers=3, topics={"t": 3}, racks=["a", "b", "c"]) as cluster:
        fill(cluster, *[bytes(100)] * 100, partitions=range(3), batch_size=1000)
        options = read_options(
            {
                "kafka.bootstrap.servers": cluster.servers,
                "subscribe": "t",
                "kafka.client.rack": "b",
                "fetchBytes": "3000",
            },
            streaming=False,
        )
        task = ReadTask(tuple(run(resolve(client(options.client), options))), options.settings)
        batches_of = read_ranges(task, ("partition", "offset"))
        batches = [next(batches_of) for _ in range(5)]
        cluster.call("stop_broker", 1)
        rows = pa.Table.from_batches([*batches, *batches_of])
    found = zip(rows.column("partition").to_pylist(), rows.column("offset").to_pylist(), strict=True)
    assert sorted(found) == EVERY_ROW


def test_brokers_that_know_no_racks_are_not_asked_for_them(requests: list[FetchRequest]) -> None:
    with embedded(version="2.3", topics={"t": 1}) as cluster:
        fill(cluster, b"v")
        assert read(cluster, **{"kafka.client.rack": "b"}) == [(0, 0)]
    with embedded(version="1.0", topics={"t": 1}) as cluster:
        fill(cluster, b"v")
        assert read(cluster, **{"kafka.client.rack": "b"}) == [(0, 0)]
    assert [each.rack_id for each in requests] == ["b", ""]


def test_an_old_leader_that_answers_late_doubles_no_row() -> None:
    """The new leader was asked for the same offsets meanwhile."""
    given = {"fetchBytes": "3000", "kafka.metadata.max.age.ms": "50"}
    with embedded(brokers=2, topics={"t": 1}, replication_factor=2) as cluster:
        fill(cluster, *[bytes(100)] * 100, batch_size=1000)
        old = cluster.call("leader", "t", 0)
        cluster.faults.delay("Fetch", 0.6, broker=old)
        cluster.faults.delay("Fetch", 1.5, broker=1 - old, skip=1)  # so that the old one's answer comes amid the range

        def move_when_asked() -> None:
            while not fetches_of(cluster):
                sleep(0.01)
            cluster.call("move_leader", "t", 0, 1 - old)

        mover = Thread(target=move_when_asked, daemon=True)
        mover.start()
        assert read(cluster, **given) == [(0, offset) for offset in range(100)]
        mover.join()


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("poll_timeout", ["1000", "3000"])
def test_an_end_beyond_the_log_is_believed_before_the_time_is_over(poll_timeout: str) -> None:
    """Spark's connector gives the rows that are there, whatever its time-out is."""
    given = {"kafkaConsumer.pollTimeoutMs": poll_timeout, "endingOffsets": '{"t":{"0":50}}'}
    with embedded(topics={"t": 1}) as cluster:
        fill(cluster, b"a", b"b", b"c")
        began = monotonic()
        assert read(cluster, failOnDataLoss="false", **given) == [(0, 0), (0, 1), (0, 2)]
        assert monotonic() - began >= int(poll_timeout) / 2000  # a leader that has just changed may lag
        with pytest.raises(DataLossError, match="offsets 3 to 49 of t-0 cannot be read: t-0 ends at offset 3 now"):
            read(cluster, **given)


def test_a_broker_may_not_wait_longer_than_the_task(requests: list[FetchRequest]) -> None:
    with embedded(topics={"t": 1}) as cluster:
        fill(cluster, b"v")
        given = {"kafka.fetch.max.wait.ms": "60000", "kafka.fetch.min.bytes": "1000", "fetchBytes": "5000"}
        assert read(cluster, **given, **{"kafkaConsumer.pollTimeoutMs": "2000"}) == [(0, 0)]
    assert [(each.min_bytes, each.max_wait_ms) for each in requests] == [(1000, 500)]


def test_fetch_sizes_of_nothing_are_refused() -> None:
    for name in ("fetch.max.bytes", "max.partition.fetch.bytes"):
        with pytest.raises(OptionError, match="whole number from 1"):
            read_options({"kafka.bootstrap.servers": "h", "subscribe": "t", f"kafka.{name}": "0"}, streaming=False)
