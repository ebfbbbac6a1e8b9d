"""The consumer of old groups on embedded brokers and an embedded ZooKeeper, on asyncio and trio."""

from __future__ import annotations

import re
import sys
import time
from operator import length_hint
from pathlib import Path
from typing import Any

import anyio
import pytest

from pykafka08 import EmbeddedCluster, Producer, TopicPartition
from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.broker.zookeeper_mode.layout import broker_document, to_json
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    ClosedError,
    ConfigError,
    ConsumerRebalanceFailedError,
    ConsumerTimeoutError,
    MalformedNodeError,
    NoNodeError,
    PartitionRevokedError,
)
from pykafka08.zookeeper.legacy.streams import LegacyStream
from pykafka08.zookeeper.legacy_consumer import LegacyConsumer
from tests.zookeeper.old_cluster import DEADLINE_S, GROUP, SHORT_SESSION_MS, OldCluster, old_cluster, until

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)


async def values(stream: LegacyStream | LegacyConsumer, count: int) -> list[str]:
    """The next ones, finished all."""
    one = stream if isinstance(stream, LegacyStream) else stream.streams[0]
    found: list[str] = []
    with anyio.fail_after(DEADLINE_S):
        while len(found) < count:
            found += [(each.value or b"").decode() for each in await one.many(max_records=count - len(found))]
    return found


def named(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


async def test_it_reads_commits_and_reads_on() -> None:
    async with old_cluster({"t": 2}) as old:
        await old.send("t", named("a", 10), 2)
        async with old.consumer("t", name="one") as consumer:
            assert consumer.assignment() == (T0, TopicPartition("t", 1))
            assert old.owners("t") == {0: "g_one-0", 1: "g_one-0"}
            assert sorted(await values(consumer, 10)) == sorted(named("a", 10))
            assert await consumer.commit() == {}
            assert (old.offset("t", 0), old.offset("t", 1)) == ("5", "5")
            health = consumer.health()
            assert (health.trouble, health.state, health.lag[T0]) == (None, "settled", 0)
        assert old.owners("t") == {}
        assert old.zookeeper.children("/kafka/consumers/g/ids") == []
        await old.send("t", named("b", 4), 2)
        async with old.consumer("t") as consumer:
            assert sorted(await values(consumer, 4)) == named("b", 4)
            assert await consumer.committed([T0]) == {T0: 5}


async def test_what_is_finished_is_committed_at_the_end_and_the_record_in_hand_is_not() -> None:
    async with old_cluster({"t": 1}) as old:
        await old.send("t", named("a", 10))
        async with old.consumer("t") as consumer:
            async for record in consumer:
                if record.offset == 6:
                    break
        assert old.offset("t") == "6"


async def test_two_members_share_and_hand_over() -> None:
    async with old_cluster({"t": 4}) as old:
        await old.send("t", named("a", 40), 4)
        async with old.consumer("t", name="one") as one:
            first = await values(one, 40)
            await one.commit()
            async with old.consumer("t", name="two", streams=2) as two:
                await until(lambda: len(one.assignment()) == 2, "a share for each")
                assert old.owners("t") == {0: "g_one-0", 1: "g_one-0", 2: "g_two-0", 3: "g_two-1"}
                await old.send("t", named("b", 40), 4)
                second = await values(one, 20)
                await one.commit()
                for stream in two.streams:
                    second += await values(stream, 10)
                await two.commit()
                assert sorted(second) == sorted(named("b", 40)), "nothing twice, nothing lost"
            await until(lambda: len(one.assignment()) == 4, "all of it again")
            await old.send("t", named("c", 40), 4)
            assert sorted(await values(one, 40)) == sorted(named("c", 40))
        assert sorted(first) == sorted(named("a", 40))


async def test_a_stream_without_a_partition_is_idle_and_told_of() -> None:
    async with old_cluster({"t": 1}) as old:
        async with old.consumer("t", name="one", streams=3, consumer_timeout_ms=50) as consumer:
            assert consumer.health().idle_threads == ("g_one-1", "g_one-2")
            with pytest.raises(ConsumerTimeoutError, match=r"stream 2 within 0\.05 s"):
                await anext(consumer.streams[2])
            await old.send("t", ["a"])
            with anyio.fail_after(DEADLINE_S):
                while True:
                    try:
                        record = await anext(consumer.streams[0])
                        break
                    except ConsumerTimeoutError:
                        continue
            assert record.value == b"a"
            with pytest.raises(ConfigError, match="3 streams"):
                await consumer.getone()


async def test_batches() -> None:
    async with old_cluster({"t": 1}) as old:
        await old.send("t", named("a", 10))
        async with old.consumer("t") as consumer:
            found: list[str] = []
            with anyio.fail_after(DEADLINE_S):
                async for batch in consumer.batches():
                    found += [(each or b"").decode() for each in batch.values()]
                    if len(found) == 10:
                        break
            assert found == named("a", 10)


async def test_an_expired_session_is_taken_up_anew() -> None:
    async with old_cluster({"t": 2}) as old:
        async with old.consumer("t", name="one") as consumer:
            before = old.session_of("g_one")
            old.zookeeper.expire_session(before)
            await until(lambda: old.owners("t") == {0: "g_one-0", 1: "g_one-0"}, "owners again")
            assert old.session_of("g_one") != before
            await old.send("t", named("a", 4), 2)
            assert sorted(await values(consumer, 4)) == named("a", 4)
            await until(lambda: consumer.health().trouble is None, "recovery")


async def test_nothing_is_handed_out_while_zookeeper_is_away_for_longer_than_the_session() -> None:
    async with old_cluster({"t": 1}) as old:
        async with old.consumer("t", name="one", zookeeper_session_timeout_ms=SHORT_SESSION_MS) as consumer:
            await old.zookeeper.stop()
            await until(lambda: not consumer.assignment(), "the partitions are given up")
            await old.send("t", ["a"])
            with pytest.raises(ConsumerTimeoutError):
                await consumer.getone(timeout=0.3)
            health = consumer.health()
            assert health.state == "disconnected"
            assert "ZooKeeper" in (health.trouble or "")
            refused = await consumer.commit({T0: 1})
            assert isinstance(refused[T0], PartitionRevokedError)
            await old.zookeeper.start()
            assert await values(consumer, 1) == ["a"]
            await until(lambda: old.owners("t") == {0: "g_one-0"}, "its share again")
            await until(lambda: consumer.health().trouble is None, "recovery")


async def test_a_loop_that_stood_still_hands_out_nothing_of_anothers() -> None:
    async with old_cluster({"t": 1}) as old:
        await old.send("t", named("a", 10))
        short = {"zookeeper_session_timeout_ms": SHORT_SESSION_MS}
        async with old.consumer("t", name="one", auto_commit_enable=False, **short) as consumer:
            stream = consumer.streams[0]
            assert (await stream.next(timeout=DEADLINE_S)).value == b"a0"
            number = consumer._reading.session_number
            old.zookeeper.expire_session(old.session_of("g_one"))
            old.zookeeper.create("/kafka/consumers/g/owners/t/0", b"g_two-0", session_id=old.session)
            time.sleep(2 * SHORT_SESSION_MS / 1000)  # noqa: ASYNC251 - that is the fault
            assert consumer._reading.session_number == number, "nothing was heard yet"
            assert length_hint(stream.reader.cursor.records), "records lie there"
            with pytest.raises(ConsumerTimeoutError):
                await stream.next(timeout=1)
            old.zookeeper.delete("/kafka/consumers/g/owners/t/0")
            assert (await stream.next(timeout=DEADLINE_S)).value == b"a0", "nothing was committed"


async def test_without_brokers_it_waits_for_them() -> None:
    async with old_cluster({"t": 1}, registers=False) as old:
        async with old.consumer("t", name="one") as consumer:
            assert old.session_of("g_one")
            assert old.owners("t") == {}
            old.register_brokers()
            await old.send("t", ["a"])
            assert await values(consumer, 1) == ["a"]


async def test_a_topic_that_does_not_exist_is_waited_for_and_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async with old_cluster() as old:
        async with old.consumer("t") as consumer:
            assert "topics that do not exist are waited for: t" in (consumer.health().trouble or "")
            assert len([each for each in caplog.records if "do not exist" in each.getMessage()]) == 1
            old.new_topic("t", 1)
            await old.send("t", ["a"])
            assert await values(consumer, 1) == ["a"]
            await until(lambda: consumer.health().trouble is None, "recovery")


async def test_partitions_that_are_added_and_a_topic_that_goes() -> None:
    async with old_cluster({"t": 1, "u": 1}) as old:
        async with old.consumer("t", "u", name="one", auto_offset_reset="largest") as consumer:
            old.add_partitions("t", 2)
            await old.send("t", ["a", "b"], 2)
            old.register_topic("t", 2)
            assert sorted(await values(consumer, 2)) == ["a", "b"], "what was written before it was known, too"
            old.zookeeper.delete("/kafka/brokers/topics/u")
            await until(lambda: old.owners("u") == {}, "the owner of the topic that went")
            assert {tp.topic for tp in consumer.assignment()} == {"t"}


async def test_white_and_black_lists_follow_topics() -> None:
    async with old_cluster({"a.one": 1, "b.one": 1, "__consumer_offsets": 1}) as old:
        async with (
            old.consumer(white_list=r"a\..*", name="one") as white,
            old.consumer(black_list=r"a\..*", name="two", group_id="h") as black,
        ):
            old.new_topic("a.two", 1)
            await until(lambda: {tp.topic for tp in white.assignment()} == {"a.one", "a.two"}, "the new one")
            assert {tp.topic for tp in black.assignment()} == {"b.one"}
            data = old.zookeeper.read("/kafka/consumers/g/ids/g_one")
            assert b'"subscription":{"a\\\\..*":1},"pattern":"white_list"' in data


async def test_a_malformed_member_is_named_and_nothing_is_given_up() -> None:
    async with old_cluster({"t": 1}) as old:
        async with old.consumer("t", name="one") as consumer:
            old.zookeeper.create("/kafka/consumers/g/ids/g_bad", b"{}", session_id=old.session)
            await until(lambda: "ids/g_bad" in (consumer.health().trouble or ""), "the node's path")
            await old.send("t", ["a"])
            assert await values(consumer, 1) == ["a"]
            old.zookeeper.delete("/kafka/consumers/g/ids/g_bad")
            await until(lambda: consumer.health().trouble is None, "recovery")
            assert old.zookeeper.exists("/kafka/consumers/g/owners/t/0")


async def test_a_share_that_nobody_gives_up_is_an_error_at_the_start() -> None:
    async with old_cluster({"t": 1}) as old:
        old.zookeeper.create("/kafka/consumers/g/owners/t/0", b"g_stubborn-0", session_id=old.session)
        with pytest.raises(ConsumerRebalanceFailedError, match="g_stubborn-0 still owns"):
            async with old.consumer("t", rebalance_max_retries=2, rebalance_backoff_ms=50):
                pass
        assert old.owners("t") == {0: "g_stubborn-0"}, "nothing of others is deleted"
        assert old.zookeeper.children("/kafka/consumers/g/ids") == []


async def test_a_name_that_is_taken_is_an_error_after_the_session_time() -> None:
    async with old_cluster({"t": 1}) as old:
        async with old.consumer("t", name="one"):
            with pytest.raises(ConsumerRebalanceFailedError, match="another session has the name 'g_one'"):
                async with old.consumer("t", name="one", zookeeper_session_timeout_ms=SHORT_SESSION_MS):
                    pass
            assert old.owners("t") == {0: "g_one-0"}


async def test_an_offset_that_is_no_number_is_an_error_of_its_partition() -> None:
    async with old_cluster({"t": 2}) as old:
        old.zookeeper.create("/kafka/consumers/g/offsets/t/0", b"seven")
        await old.send("t", ["a", "b"], 2)
        async with old.consumer("t") as consumer:
            with pytest.raises(MalformedNodeError, match="offsets/t/0"):
                await values(consumer, 2)
            assert await values(consumer, 1) == ["b"]


async def test_an_offset_beyond_the_log_is_reset() -> None:
    async with old_cluster({"t": 1}) as old:
        await old.send("t", named("a", 3))
        old.zookeeper.create("/kafka/consumers/g/offsets/t/0", b"100")
        async with old.consumer("t") as consumer:
            assert await values(consumer, 3) == named("a", 3)


@pytest.mark.parametrize("is_known", [True, False])
async def test_an_offset_beyond_the_log_is_reset_to_the_largest(is_known: bool) -> None:
    """Also by a broker that has just started, and does not know the topic yet."""
    async with old_cluster({"t": 1}) as old:
        await old.send("t", named("a", 3))
        old.zookeeper.create("/kafka/consumers/g/offsets/t/0", b"100")
        if not is_known:
            old.brokers.faults.answer("Fetch", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, times=2)
        async with old.consumer("t", auto_offset_reset="largest") as consumer:
            read: list[str] = []

            async def read_one() -> None:
                read.extend(await values(consumer, 1))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read_one)
                while not read:
                    await old.send("t", ["b"])
                    await anyio.sleep(0.05)
            assert read == ["b"]


async def test_a_leader_that_moves_changes_no_owner() -> None:
    async with old_cluster({"t": 1}, brokers=2) as old:
        async with old.consumer("t") as consumer:
            owner = old.zookeeper.ephemeral_owner("/kafka/consumers/g/owners/t/0")
            await old.send("t", ["a"])
            assert await values(consumer, 1) == ["a"]
            old.brokers.move_leader("t", 0, 1 - old.brokers.leader("t", 0))
            await old.send("t", ["b"])
            assert await values(consumer, 1) == ["b"]
            assert old.zookeeper.ephemeral_owner("/kafka/consumers/g/owners/t/0") == owner


async def test_brokers_that_all_listen_elsewhere_are_found_through_zookeeper() -> None:
    async with old_cluster({"t": 1}) as old, EmbeddedCluster(version="0.8.2", topics={"t": 1}) as others:
        await old.send("t", ["a"])
        async with old.consumer("t") as consumer:
            assert await values(consumer, 1) == ["a"]
            await old.brokers.stop_broker(0)
            old.zookeeper.delete("/kafka/brokers/ids/0")
            old.register_brokers(others)
            async with Producer(bootstrap_servers=others.bootstrap_servers) as producer:
                await producer.send_many("t", [b"not read", b"b"])
            assert await values(consumer, 1) == ["b"]


async def test_brokers_with_sasl_that_all_listen_elsewhere_are_found_through_zookeeper() -> None:
    secured: dict[str, Any] = {"version": "1.1", "topics": {"t": 1}, "security": "SASL_PLAINTEXT", "users": {"u": "p"}}
    async with (
        EmbeddedZooKeeper() as zookeeper,
        EmbeddedCluster(**secured, zookeeper=zookeeper) as first,
        EmbeddedCluster(**secured) as others,
    ):
        security = first.client_settings("u")
        old = OldCluster(first, zookeeper, chroot="")
        async with old.consumer("t", **{k: v for k, v in security.items() if k != "bootstrap_servers"}) as consumer:
            async with Producer(**security) as producer:
                await producer.send("t", b"a")
            assert await values(consumer, 1) == ["a"]
            await first.stop_broker(0)
            document = broker_document(others._state.personality, [others.brokers[0].endpoint], None)
            zookeeper.create("/brokers/ids/0", to_json(document), session_id=old.session)
            async with Producer(**others.client_settings("u")) as producer:
                await producer.send_many("t", [b"not read", b"b"])
            assert await values(consumer, 1) == ["b"]


async def test_offsets_in_kafka_in_both_and_the_greater_one() -> None:
    async with old_cluster({"t": 1}) as old:
        await old.send("t", named("a", 10))
        async with old.consumer("t", offsets_storage="kafka") as consumer:
            assert await values(consumer, 4) == named("a", 4)
            assert await consumer.commit() == {}
            assert old.offset("t") == "4", "dual"
        async with old.consumer("t", offsets_storage="kafka", dual_commit_enabled=False) as consumer:
            assert await values(consumer, 2) == ["a4", "a5"]
            assert await consumer.commit() == {}
        assert old.offset("t") == "4"
        async with old.consumer("t") as consumer:
            assert await values(consumer, 1) == ["a4"], "ZooKeeper alone"
        async with old.consumer("t", offsets_storage="kafka") as consumer:
            assert await values(consumer, 1) == ["a6"], "the greater one"
        old.zookeeper.write("/kafka/consumers/g/offsets/t/0", b"9")
        async with old.consumer("t", offsets_storage="kafka") as consumer:
            assert await values(consumer, 1) == ["a9"]


async def test_auto_commit_writes_only_what_has_changed() -> None:
    async with old_cluster({"t": 1}) as old:
        writes: list[str] = []
        old.zookeeper.observe(lambda event, path: writes.append(path) if "/offsets/t/0" in path else None)
        await old.send("t", named("a", 3))
        async with old.consumer("t", auto_commit_interval_ms=20) as consumer:
            assert await values(consumer, 3) == named("a", 3)
            with anyio.move_on_after(0.2):
                await consumer.getone()
            await until(lambda: old.offset("t") == "3", "the commit")
            count = len(writes)
            await anyio.sleep(0.2)
            assert len(writes) == count


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    async def partitions_assigned(self, added: frozenset[TopicPartition]) -> None:
        self.heard.append(("assigned", len(added)))

    async def partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.heard.append(("revoked", len(partitions)))

    async def partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self.heard.append(("lost", len(partitions)))


async def test_a_listener_hears_of_what_comes_and_goes() -> None:
    async with old_cluster({"t": 4}) as old:
        listener = Listener()
        async with old.consumer("t", name="one", listener=listener):
            async with old.consumer("t", name="two"):
                await until(lambda: ("revoked", 2) in listener.heard, "half of it goes")
            await until(lambda: listener.heard[-1] == ("assigned", 2), "and comes back")
            old.zookeeper.expire_session(old.session_of("g_one"))
            await until(lambda: listener.heard[-1] == ("assigned", 4), "the whole, after the loss")
        assert listener.heard == [
            ("assigned", 4),
            ("revoked", 2),
            ("assigned", 2),
            ("lost", 4),
            ("assigned", 4),
            ("revoked", 4),
        ]


async def test_closing_ends_iterators_and_calls() -> None:
    async with old_cluster({"t": 1}) as old:
        consumer = old.consumer("t")
        async with consumer, anyio.create_task_group() as tasks:

            async def iterate() -> None:
                async for _ in consumer:
                    pass

            async def get() -> None:
                with pytest.raises(ClosedError):
                    await consumer.streams[0].next()

            tasks.start_soon(iterate)
            await anyio.sleep(0.05)
            await consumer.aclose()
        with pytest.raises(ClosedError):
            await consumer.commit()
        with pytest.raises(ClosedError):
            async with consumer:
                pass


async def test_a_chroot_that_is_not_there_is_one_clear_error() -> None:
    async with old_cluster({"t": 1}) as old:
        with pytest.raises(NoNodeError, match="/nope"):
            async with old.consumer("t", zookeeper=f"{old.zookeeper.address}/nope"):
                pass


@pytest.mark.parametrize(
    ("topics", "settings", "said"),
    [
        (("t",), {"group_id": None}, "give group_id="),
        (("t",), {"zookeeper": None}, "zookeeper='host:2181/chroot' is needed"),
        ((), {}, "give topics, or a white_list"),
        (("t",), {"white_list": "t"}, "one of them only"),
        ((), {"white_list": "("}, "regular expression"),
        (("t",), {"streams": 0}, "streams=0"),
        (("t",), {"auto_offset_reset": "first"}, "auto_offset_reset='first'"),
        (("t",), {"offsets_storage": "file"}, "offsets_storage='file'"),
        (("t",), {"rebalance_max_retry": 3}, "did you mean rebalance_max_retries"),
        (("t",), {"group_id": "a b"}, "letters, digits"),
        (("t",), {"socket_timeout_ms": 50}, "no fetch would be answered"),
        (("t",), {"properties": 7}, "neither a file nor a mapping"),
    ],
)
def test_settings_without_a_meaning_are_refused(
    topics: tuple[str, ...], settings: dict[str, object], said: str
) -> None:
    given = {"zookeeper": "localhost:2181", "group_id": GROUP, **settings}
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")):
        LegacyConsumer(*topics, **given)  # type: ignore[arg-type]


def test_time_outs_among_the_settings_of_the_session_replace_those_of_the_old_consumer() -> None:
    settings = {"session_timeout_ms": 500, "connection_timeout_ms": 700}
    consumer = LegacyConsumer(
        "t", zookeeper="h:1", group_id="g", zookeeper_session_timeout_ms=9000, zookeeper_settings=settings
    )
    session = consumer._zk._config
    assert (session.session_timeout_ms, session.connection_timeout_ms) == (500, 700)
    assert consumer._machine._session_timeout == 0.5


def test_properties_of_the_old_consumer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "consumer.properties"
    file.write_text(
        "zookeeper.connect=localhost:2181/kafka\ngroup.id = planes\nauto.commit.enable=false\n"
        "rebalance.max.retries=9\noffsets.storage=kafka\nauto.comit.interval.ms=5\n"
    )
    consumer = LegacyConsumer(["t", "u"], properties=str(file), rebalance_max_retries=3)
    config = consumer._config
    assert (config.group_id, config.auto_commit_enable, config.rebalance_max_retries) == ("planes", False, 3)
    assert config.offsets_storage == "kafka"
    assert consumer.member_id.startswith("planes_")
    assert "auto.comit.interval.ms means nothing" in caplog.text
    assert "did you mean auto_commit_interval_ms?" in caplog.text
    with pytest.raises(ConfigError, match=r"auto\.commit\.enable='yes'"):
        LegacyConsumer("t", properties={"group.id": "g", "zookeeper.connect": "h", "auto.commit.enable": "yes"})


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the program has a loop of its own
async def test_the_program_of_the_page_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "zookeeper.md").read_text(encoding="utf-8")
    (code,) = [each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "LegacyConsumer" in each]
    async with (
        EmbeddedZooKeeper() as zookeeper,
        EmbeddedCluster(version="0.8.2", zookeeper=zookeeper, topics={"events": 1}) as cluster,
    ):
        code = code.replace("localhost:9092", cluster.bootstrap_servers).replace("localhost:2181", zookeeper.address)
        with anyio.fail_after(4 * DEADLINE_S):
            ran = await anyio.run_process([sys.executable, "-W", "error", "-c", code], check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout == b"events 0 0 b'hello'\n"
