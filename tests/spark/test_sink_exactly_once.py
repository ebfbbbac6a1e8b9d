"""Batches in two phases, and processes that stop between them: onto embedded brokers and real ones, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from pykafka08 import Consumer, TopicPartition
from pykafka08.errors import UnsupportedVersionError
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.spark.options import WriteOptions, write_options
from pykafka08.spark.runtime import runtime
from pykafka08.spark.sink import stream_writer
from pykafka08.spark.sink.markers import Decision, Marker, Place, marker_partition
from pykafka08.spark.sink.stream_writer import KafkaStreamWriter, Part, arrow_batches
from pykafka08.spark.sink.totals import Totals
from pykafka08.spark.sink.two_phase import (
    Prepared,
    ReplayDiffersError,
    TransactionLostError,
    abort_batch,
    commit_batch,
    prepare,
)
from pykafka08.spark.sink.writer import Written
from tests.integration.clusters import Clusters
from tests.spark.sinks import embedded


def options_of(servers: str, topic: str | None = "t", **more: str) -> WriteOptions:
    chosen = {} if topic is None else {"topic": topic}
    return write_options({"kafka.bootstrap.servers": servers, "exactlyOnce": "true", **chosen, **more})


def rows(batch_id: int, task: int, count: int = 100) -> list[bytes]:
    return [b"%d/%d/%d" % (batch_id, task, number) for number in range(count)]


def phase_one(options: WriteOptions, batch_id: int, task: int, values: list[bytes] | None = None) -> Prepared:
    values = rows(batch_id, task) if values is None else values
    return prepare(options, Place("p", "query", batch_id, task), [pa.record_batch({"value": values})])


@contextmanager
def restarted() -> Iterator[None]:
    """What follows happens in another process: nothing that was kept is there."""
    runtime().close()
    yield


# --- notes ------------------------------------------------------------------------------------------------------------


def test_notes_are_read_as_they_were_written() -> None:
    assert Marker.of_offset(Marker(7, 3, 40).to_offset()) == Marker(7, 3, 40)
    assert Decision.of_offset(Decision(7, 3).to_offset()) == Decision(7, 3)
    for metadata in (None, "", "{}", "[]", '{"rows": "x", "bytes": 1}'):
        with pytest.raises(ValueError, match="was not committed by this sink"):
            Marker.of_offset(OffsetAndMetadata(7, metadata=metadata))


def test_each_part_of_a_query_has_a_transactional_id_for_good() -> None:
    assert Place("p", "q", 1, 2).transactional_id == Place("p", "q", 9, 2).transactional_id == "p-q-2"
    assert marker_partition("t") == TopicPartition("t", 0)


# --- both phases ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.11.0", "2.4", "2.8", "4.3"])
def test_a_batch_is_visible_when_the_driver_has_committed_it(version: str) -> None:
    with embedded(version=version, topics={"t": 3}) as cluster:
        options = options_of(cluster.servers)
        for batch_id in range(3):
            parts = [phase_one(options, batch_id, task) for task in range(2)]
            assert parts[0].totals == Totals(100, sum(map(len, rows(batch_id, 0))))
            assert len(cluster.values("t", committed=True)) == 200 * batch_id
            commit_batch(options, parts, batch_id)
        expected = sorted(value for batch_id in range(3) for task in range(2) for value in rows(batch_id, task))
        assert cluster.values("t", committed=True) == expected


def test_a_batch_that_stopped_before_the_decision_is_written_anew() -> None:
    with embedded(topics={"t": 2}) as cluster:
        options = options_of(cluster.servers)
        phase_one(options, 0, 0)
        phase_one(options, 0, 1)
        with restarted():
            parts = [phase_one(options, 0, task) for task in range(2)]
            assert all(part.transaction is not None for part in parts)
            commit_batch(options, parts, 0)
        assert cluster.values("t", committed=True) == sorted(rows(0, 0) + rows(0, 1))


@pytest.mark.parametrize("version", ["0.11.0", "4.3"])
def test_a_batch_that_stopped_between_two_commits_is_completed(version: str) -> None:
    with embedded(version=version, topics={"t": 2}) as cluster:
        options = options_of(cluster.servers)
        stop_between(options)
        assert cluster.values("t", committed=True) == sorted(rows(0, 0))
        with restarted():
            complete(options)
        assert cluster.values("t", committed=True) == sorted(rows(0, 0) + rows(0, 1))


def stop_between(options: WriteOptions) -> None:
    """The driver has decided, and committed the first of two transactions."""
    parts = [phase_one(options, 0, task) for task in range(2)]
    whole = [parts[0], Prepared(parts[1].place, parts[1].totals, None)]
    commit_batch(options, whole, 0)


def complete(options: WriteOptions) -> None:
    parts = [phase_one(options, 0, task) for task in range(2)]
    assert [part.transaction is None for part in parts] == [True, False]
    assert [part.totals.rows for part in parts] == [100, 100]
    commit_batch(options, parts, 0)


def test_a_batch_that_was_committed_is_not_written_again() -> None:
    with embedded(topics={"t": 2}) as cluster:
        options = options_of(cluster.servers)
        commit_batch(options, [phase_one(options, 0, task) for task in range(2)], 0)
        with restarted():
            parts = [phase_one(options, 0, task) for task in range(2)]
            assert all(part.transaction is None for part in parts)
            commit_batch(options, parts, 0)
            commit_batch(options, [phase_one(options, 1, task) for task in range(2)], 1)
        expected = [value for batch_id in range(2) for task in range(2) for value in rows(batch_id, task)]
        assert cluster.values("t", committed=True) == sorted(expected)


def test_a_batch_that_fails_is_aborted() -> None:
    with embedded(topics={"t": 2}) as cluster:
        options = options_of(cluster.servers)
        part = phase_one(options, 0, 0)
        abort_batch(options, [part])
        assert set(cluster.call("transactions").values()) == {"CompleteAbort"}
        broken = pa.record_batch({"value": ["a"], "partition": pa.array([-1], pa.int32())})
        with pytest.raises(ValueError, match="Invalid partition"):
            prepare(options, Place("p", "query", 0, 1), [pa.record_batch({"value": ["a"]}), broken])
        assert cluster.values("t", committed=True) == []
        commit_batch(options, [phase_one(options, 0, 0)], 0)
        assert cluster.values("t", committed=True) == sorted(rows(0, 0))


def test_tasks_without_rows_write_nothing() -> None:
    with embedded(topics={"t": 1}) as cluster:
        options = options_of(cluster.servers)
        empty = prepare(options, Place("p", "query", 0, 0), [pa.record_batch({"value": pa.array([], pa.binary())})])
        assert empty.totals == Totals()
        assert empty.transaction is None
        commit_batch(options, [empty], 0)
        commit_batch(options, [empty, phase_one(options, 0, 1)], 0)
        assert cluster.values("t", committed=True) == sorted(rows(0, 1))


def test_rows_with_topics_of_their_own() -> None:
    with embedded(topics={"t": 1, "u": 2}) as cluster:
        options = options_of(cluster.servers, None)
        for _ in range(2):
            batch = pa.record_batch({"value": ["a", "b", "c"], "topic": ["t", "u", "t"]})
            part = prepare(options, Place("p", "query", 4, 0), [batch])
            commit_batch(options, [part], 4)
        assert cluster.values("t", committed=True) == [b"a", b"c"]
        assert cluster.values("u", committed=True) == [b"b"]


# --- what is not the same ---------------------------------------------------------------------------------------------


def test_a_replay_with_other_rows_is_an_error() -> None:
    with embedded(topics={"t": 1}) as cluster:
        options = options_of(cluster.servers)
        commit_batch(options, [phase_one(options, 0, 0)], 0)
        with pytest.raises(ReplayDiffersError, match=r"100 rows of .* has 99 rows"):
            phase_one(options, 0, 0, rows(0, 0, 99))
        with pytest.raises(ReplayDiffersError, match="has 0 rows"):
            phase_one(options, 0, 0, [])


def test_a_replay_with_another_number_of_tasks_is_an_error() -> None:
    with embedded(topics={"t": 1}) as cluster:
        options = options_of(cluster.servers)
        stop_between(options)
        parts = [phase_one(options, 0, task) for task in range(3)]
        with pytest.raises(ReplayDiffersError, match="with 2 tasks, in part or whole, and has 3 now"):
            commit_batch(options, parts, 0)
        with pytest.raises(ReplayDiffersError, match="and has 1 now"):
            commit_batch(options, [phase_one(options, 0, 0)], 0)
        assert cluster.values("t", committed=True) == sorted(rows(0, 0))
        assert "Ongoing" not in cluster.call("transactions").values()


def test_a_checkpoint_that_is_older_than_what_was_written_is_an_error() -> None:
    with embedded(topics={"t": 1}) as cluster:
        options = options_of(cluster.servers)
        commit_batch(options, [phase_one(options, 5, 0)], 5)
        with pytest.raises(ReplayDiffersError, match="holds batch 5"):
            phase_one(options, 4, 0)


def test_a_transaction_that_took_too_long_is_said_and_written_anew() -> None:
    with embedded(topics={"t": 1}) as cluster:
        options = options_of(cluster.servers)
        part = phase_one(options, 0, 0)
        cluster.call("expire_transaction", part.place.transactional_id)
        with pytest.raises(TransactionLostError, match=r"kafka\.transaction\.timeout\.ms, 900000"):
            commit_batch(options, [part], 0)
        assert cluster.values("t", committed=True) == []
        with restarted():
            commit_batch(options, [phase_one(options, 0, 0)], 0)
        assert cluster.values("t", committed=True) == sorted(rows(0, 0))


def test_two_attempts_of_one_task_cannot_both_count() -> None:
    with embedded(topics={"t": 1}) as cluster:
        options = options_of(cluster.servers)
        first, second = phase_one(options, 0, 0), phase_one(options, 0, 0)
        with pytest.raises(TransactionLostError, match="another producer"):
            commit_batch(options, [first], 0)
        commit_batch(options, [second], 0)
        assert cluster.values("t", committed=True) == sorted(rows(0, 0))


# --- the writer -------------------------------------------------------------------------------------------------------

SCHEMA = StructType([StructField("value", StringType())])


def test_older_brokers_get_the_rows_at_least_once_and_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stream_writer, "_said", [])
    monkeypatch.setattr(KafkaStreamWriter, "_place", lambda _: Place("p", "query", 0, 0))
    with embedded(version="0.8.2", topics={"t": 1}) as cluster:
        options = options_of(cluster.servers)
        with pytest.raises(UnsupportedVersionError):
            phase_one(options, 0, 0)
        writer = KafkaStreamWriter(options, SCHEMA)
        messages = [writer.write(iter([pa.record_batch({"value": ["a", "b"]})])) for _ in range(2)]
        assert all(isinstance(message, Written) for message in messages)
        writer.commit(messages, 0)
        assert cluster.values("t") == [b"a", b"a", b"b", b"b"]
    said = [record for record in caplog.records if "spark.at_least_once" in record.getMessage()]
    assert len(said) == 1


def test_the_writer_hands_its_parts_to_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaStreamWriter, "_place", lambda _: Place("p", "query", 0, 0))
    with embedded(topics={"t": 1}) as cluster:
        writer = KafkaStreamWriter(options_of(cluster.servers), SCHEMA)
        message = writer.write(iter([pa.record_batch({"value": ["a"]})]))
        assert isinstance(message, Part)
        writer.abort([None, message], 0)
        writer.commit([writer.write(iter([pa.record_batch({"value": ["b"]})]))], 0)
        assert cluster.values("t", committed=True) == [b"b"]


def test_rows_become_arrow_where_spark_gives_no_other() -> None:
    schema = pa.schema([("value", pa.string()), ("partition", pa.int32())])
    (first, second) = arrow_batches([("a", 1), (None, None)] * 5001, schema)
    assert first.num_rows == 10_000
    assert second.to_pydict() == {"value": ["a", None], "partition": [1, None]}


# --- real brokers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["0.11.0.3", "4.3.1"])
def test_real_brokers_complete_a_batch_that_stopped_between_two_commits(release: str, clusters: Clusters) -> None:
    cluster = clusters.running(release)
    topic = cluster.new_topic("exactly-once", 2)
    options = options_of(cluster.bootstrap, topic)
    try:
        stop_between(options)
        with restarted():
            complete(options)
        with restarted():
            complete_again = [phase_one(options, 0, task) for task in range(2)]
            assert all(part.transaction is None for part in complete_again)
            commit_batch(options, [phase_one(options, 1, 0)], 1)
        expected = rows(0, 0) + rows(0, 1) + rows(1, 0)
        assert sorted(anyio.run(_committed, cluster.bootstrap, topic, len(expected))) == sorted(expected)
    finally:
        runtime().close()


async def _committed(servers: str, topic: str, count: int) -> list[bytes | None]:
    """Values as readers see them who read what is committed, up to one more than there should be."""
    found: list[bytes | None] = []
    async with Consumer(
        topic, bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        while len(found) < count:
            found.append((await consumer.getone(timeout=60)).value)
        ends = await consumer.end_offsets([TopicPartition(topic, number) for number in range(2)])
        for tp, end in ends.items():
            assert await consumer.position(tp) <= end
    return found
