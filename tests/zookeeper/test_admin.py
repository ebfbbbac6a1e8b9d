"""Administration through ZooKeeper: what is written, in which order and form, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from pykafka08 import EmbeddedCluster, Producer
from pykafka08.errors import (
    AdminRefusedError,
    ConfigError,
    KafkaError,
    NodeExistsError,
    RequestTimeoutError,
    UnknownTopicError,
)
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.admin.admin import ZooKeeperAdmin
from pykafka08.zookeeper.admin.configs import entity_path
from pykafka08.zookeeper.admin.groups import parse_offset_lines
from pykafka08.zookeeper.admin.partitions import Move
from pykafka08.zookeeper.admin.settings import check_settings
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.nodes.acls import Acl
from pykafka08.zookeeper.nodes.cluster import Migration
from tests.zookeeper.stage import PATIENT, PATIENT_CLIENT, Stage, staged

pytestmark = pytest.mark.anyio

ALICE = Acl(principal="User:alice", operation="Read")


# --- topics ---------------------------------------------------------------------------------------------------------


async def test_a_topic_is_its_settings_and_its_assignment() -> None:
    async with staged(3) as stage:
        made = await stage.admin.create_topic("t", 4, 2, configs={"retention.ms": "1000"}, wait=False)
        assert sorted(made) == [0, 1, 2, 3]
        assert all(len(set(ids)) == 2 and set(ids) <= {1, 2, 3} for ids in made.values())
        written = json.loads(await stage.text("/brokers/topics/t") or "")
        assert written == {"version": 1, "partitions": {str(number): ids for number, ids in made.items()}}
        assert await stage.text("/config/topics/t") == '{"version":1,"config":{"retention.ms":"1000"}}'
        assert await stage.changes() == []
        await stage.admin.create_topic("plain", wait=False)
        assert await stage.text("/config/topics/plain") == '{"version":1,"config":{}}'


async def test_a_topic_is_ready_when_all_its_partitions_are_led() -> None:
    async with staged(1) as stage:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lead_soon, stage)
            await stage.admin.create_topic("t", 2)
        assert await stage.text(paths.partition_state("t", 1)) is not None
        with pytest.raises(RequestTimeoutError, match="is there a controller"):
            await stage.admin.create_topic("u", timeout=0.05)


async def lead_soon(stage: Stage) -> None:
    while await stage.text("/brokers/topics/t") is None:
        await anyio.lowlevel.checkpoint()
    for number in (0, 1):
        await stage.lead("t", number, [1])


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 250])
async def test_a_bad_name_of_a_topic(name: str) -> None:
    async with staged(1) as stage:
        with pytest.raises(ConfigError, match="name"):
            await stage.admin.create_topic(name, wait=False)
        assert await stage.zk.children(paths.TOPICS) == []


async def test_what_keeps_a_topic_from_being_made() -> None:
    async with staged(2) as stage:
        create = stage.admin.create_topic
        await stage.topic("a.b", {0: [1]})
        await stage.put(paths.deleted_topic("old"))
        with pytest.raises(NodeExistsError, match=r"'a\.b' already"):
            await create("a.b")
        with pytest.raises(AdminRefusedError, match=r"metrics with topic 'a\.b'"):
            await create("a_b")
        with pytest.raises(AdminRefusedError, match="marked for deletion"):
            await create("old")
        with pytest.raises(ConfigError, match=r"3 replicas .* alive are 2"):
            await create("t", 1, 3)
        with pytest.raises(ConfigError, match="both are at least 1"):
            await create("t", 0)
        for assignment, why in (
            ({0: [1], 2: [1]}, "numbered from 0 on"),
            ({}, "numbered from 0 on"),
            ({0: [1, 1]}, "a broker twice"),
            ({0: [1, 9]}, "not alive: 9"),
            ({0: [1], 1: [1, 2]}, "same number of replicas"),
            ({0: []}, "has no replica"),
        ):
            with pytest.raises(ConfigError, match=why):
                await create("t", assignment=assignment)
        with pytest.raises(ConfigError, match="did you mean retention"):
            await create("t", configs={"retention.mss": "1"})
        with pytest.raises(ConfigError, match="whole number"):
            await create("t", configs={"retention.ms": "soon"})
        assert await stage.zk.children(paths.TOPICS) == ["a.b"]
        assert await create("t", assignment={0: [2, 1]}, validate_only=True) == {0: [2, 1]}
        assert await stage.zk.children(paths.TOPICS) == ["a.b"]
        assert await stage.zk.children("/config/topics") == []


async def test_of_two_creators_one_has_done_all_of_it() -> None:
    async with staged(1) as stage:
        ended: list[str] = []

        async def create(ms: str) -> None:
            try:
                await stage.admin.create_topic("t", configs={"retention.ms": ms}, wait=False)
                ended.append(ms)
            except NodeExistsError:
                pass

        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(create, str(number))
        assert len(ended) == 1
        assert await stage.text("/config/topics/t") == f'{{"version":1,"config":{{"retention.ms":"{ended[0]}"}}}}'


async def test_settings_that_a_deleted_topic_left_are_replaced() -> None:
    async with staged(1) as stage:
        await stage.put("/config/topics/t", '{"version":1,"config":{"retention.ms":"1"}}')
        await stage.admin.create_topic("t", wait=False)
        assert await stage.text("/config/topics/t") == '{"version":1,"config":{}}'


async def test_partitions_are_added_and_the_old_ones_stay() -> None:
    async with staged(3) as stage:
        await stage.put(paths.topic("t"), '{"version":1,"partitions":{"0":[2,3]},"new":true}')
        added = await stage.admin.add_partitions("t", 3, wait=False)
        assert sorted(added) == [1, 2]
        assert all(len(set(ids)) == 2 for ids in added.values())
        written = json.loads(await stage.text(paths.topic("t")) or "")
        assert written["partitions"]["0"] == [2, 3]
        assert written["new"] is True
        assert await stage.admin.add_partitions("t", 4, assignment={3: [1, 2]}, wait=False) == {3: [1, 2]}
        with pytest.raises(ConfigError, match="never taken away"):
            await stage.admin.add_partitions("t", 4)
        with pytest.raises(ConfigError, match="2 replicas of each partition, not 1"):
            await stage.admin.add_partitions("t", 5, assignment={4: [1]})
        with pytest.raises(ConfigError, match=r"the new partitions are \[4\]"):
            await stage.admin.add_partitions("t", 5, assignment={5: [1, 2]})
        with pytest.raises(UnknownTopicError):
            await stage.admin.add_partitions("nope", 2)
        with pytest.raises(AdminRefusedError, match="for ever"):
            await stage.admin.add_partitions("__consumer_offsets", 60)
        await stage.put(paths.deleted_topic("t"))
        with pytest.raises(AdminRefusedError, match="being deleted"):
            await stage.admin.add_partitions("t", 5)


async def test_a_topic_is_marked_for_deletion() -> None:
    async with staged(1) as stage:
        await stage.topic("t", {0: [1]})
        assert await stage.admin.delete_topic("t", wait=False) is True
        assert await stage.text("/admin/delete_topics/t") == ""
        assert await stage.admin.delete_topic("t", wait=False) is False
        with pytest.raises(RequestTimeoutError, match=r"delete\.topic\.enable may be false"):
            await stage.admin.delete_topic("t", timeout=0.05)
        with pytest.raises(UnknownTopicError):
            await stage.admin.delete_topic("nope")
        with pytest.raises(AdminRefusedError, match="Kafka's own"):
            await stage.admin.delete_topic("__consumer_offsets")


async def test_brokers_that_take_the_mark_away_do_not_delete() -> None:
    async with staged(1) as stage:
        await stage.topic("t", {0: [1]})
        async with anyio.create_task_group() as tasks:

            async def unmark() -> None:
                while await stage.text("/admin/delete_topics/t") is None:
                    await anyio.lowlevel.checkpoint()
                await stage.zk.delete("/admin/delete_topics/t")

            tasks.start_soon(unmark)
            with pytest.raises(AdminRefusedError, match=r"delete\.topic\.enable=false"):
                await stage.admin.delete_topic("t")


async def test_what_0_8_0_cannot() -> None:
    async with staged(1) as stage:
        await stage.topic("t", {0: [1]})
        for path in (paths.DELETE_TOPICS, "/config/topics", "/config/changes"):
            await stage.zk.delete(path)
        await stage.admin.create_topic("u", wait=False)
        assert await stage.text("/config/topics/u") is None
        with pytest.raises(AdminRefusedError, match=r"0\.8\.0, which has no settings"):
            await stage.admin.create_topic("v", configs={"retention.ms": "1"})
        with pytest.raises(AdminRefusedError, match="cannot delete"):
            await stage.admin.delete_topic("t")
        with pytest.raises(AdminRefusedError, match=r"0\.8\.0 have no settings"):
            await stage.admin.alter_configs("topics/t", {"retention.ms": "1"})


# --- partitions -----------------------------------------------------------------------------------------------------


async def test_an_election_is_asked_for_once() -> None:
    async with staged(2) as stage:
        await stage.topic("b", {0: [1]})
        await stage.topic("a", {0: [1], 1: [2]})
        assert await stage.admin.elect_preferred_leaders(wait=False) == [("a", 0), ("a", 1), ("b", 0)]
        written = await stage.text("/admin/preferred_replica_election") or ""
        assert written.startswith('{"version":1,"partitions":[{"topic":"a","partition":0},')
        with pytest.raises(AdminRefusedError, match="another election"):
            await stage.admin.elect_preferred_leaders([("a", 0)])
        assert await stage.text("/admin/preferred_replica_election") == written
        with pytest.raises(ConfigError, match="has no partition 7"):
            await stage.admin.elect_preferred_leaders([("a", 7)])
        with pytest.raises(UnknownTopicError):
            await stage.admin.elect_preferred_leaders([("c", 0)])


async def test_partitions_are_moved_one_plan_at_a_time() -> None:
    async with staged(3) as stage:
        await stage.topic("t", {0: [1], 1: [1]})
        plan = {("t", 0): [2, 3]}
        assert await stage.admin.reassign(plan, wait=False) == {("t", 0): Move.RUNNING}
        assert await stage.text("/admin/reassign_partitions") == (
            '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,3]}]}'
        )
        with pytest.raises(AdminRefusedError, match="another reassignment"):
            await stage.admin.reassign({("t", 1): [2]})
        await stage.zk.delete("/admin/reassign_partitions")
        assert await stage.admin.reassignment(plan) == {("t", 0): Move.FAILED}
        await stage.put(paths.topic("t"), '{"version":1,"partitions":{"0":[2,3],"1":[1]}}')
        assert await stage.admin.reassignment(plan) == {("t", 0): Move.DONE}
        with pytest.raises(ConfigError, match="not alive: 9"):
            await stage.admin.reassign({("t", 0): [9]})
        with pytest.raises(ConfigError, match="twice"):
            await stage.admin.reassign({("t", 0): [1, 1]})
        with pytest.raises(ConfigError, match="no partition to move"):
            await stage.admin.reassign({})


# --- settings -------------------------------------------------------------------------------------------------------


async def test_settings_are_merged_and_the_brokers_are_told() -> None:
    async with staged(2) as stage:
        await stage.topic("t", {0: [1]})
        await stage.put("/config/topics/t", '{"version":1,"config":{"retention.ms":"1","segment.bytes":"100"},"x":1}')
        after = await stage.admin.alter_configs("topics/t", {"flush.ms": "5"}, remove=["segment.bytes"])
        assert after == {"retention.ms": "1", "flush.ms": "5"}
        assert json.loads(await stage.text("/config/topics/t") or "") == {
            "version": 1,
            "config": {"retention.ms": "1", "flush.ms": "5"},
            "x": 1,
        }
        assert await stage.changes() == ['"t"']
        assert await stage.admin.describe_configs("topics/t") == after


@pytest.mark.parametrize(
    ("versions", "notice"),
    [
        ((1, 1), '"t"'),
        ((1, 2), '"t"'),
        ((2, 2), '{"version":1,"entity_type":"topics","entity_name":"t"}'),
        ((2, 3), '{"version":1,"entity_type":"topics","entity_name":"t"}'),
        ((4, 5), '{"version":2,"entity_path":"topics/t"}'),
    ],
)
async def test_the_notice_has_the_form_of_the_oldest_broker(versions: tuple[int, int], notice: str) -> None:
    async with staged(0, force=True) as stage:
        for broker_id, version in enumerate(versions, 1):
            await stage.register({broker_id: "127.0.0.1:1"}, version)
        await stage.topic("t", {0: [1]})
        await stage.admin.alter_configs("topics/t", {"flush.ms": "5"})
        assert await stage.changes() == [notice]


async def test_what_changes_nothing_is_told() -> None:
    async with staged(1) as stage:
        await stage.topic("t", {0: [1]})
        with pytest.raises(UnknownTopicError):
            await stage.admin.describe_configs("topics/nope")
        with pytest.raises(UnknownTopicError):
            await stage.admin.alter_configs("topics/nope", {"flush.ms": "5"})
        with pytest.raises(AdminRefusedError, match=r"no setting retention\.mss to remove; it has none"):
            await stage.admin.alter_configs("topics/t", remove=["retention.mss"])
        with pytest.raises(ConfigError, match="nothing to set"):
            await stage.admin.alter_configs("topics/t")
        with pytest.raises(ConfigError, match="both set and removed"):
            await stage.admin.alter_configs("topics/t", {"flush.ms": "1"}, remove=["flush.ms"])
        with pytest.raises(ConfigError, match=r"begin with Kafka 0\.9\.0"):
            await stage.admin.alter_configs("clients/c", {"producer_byte_rate": "1"})
        with pytest.raises(ConfigError, match="topics only"):
            await ZooKeeperAdmin(stage.zk, force=True, client=PATIENT_CLIENT).alter_configs(
                "clients/c", {"producer_byte_rate": "1"}
            )
        with pytest.raises(ConfigError, match="they are of topics"):
            await stage.admin.alter_configs("changes/c", {"a": "1"})
        assert await stage.text("/config/clients/c") is None
        assert await stage.changes() == []


@pytest.mark.parametrize(("version", "is_taken"), [("0.8.1", False), ("0.8.2", True)])
async def test_what_0_8_2_brought_is_taken_from_brokers_that_show_that_they_know_it(
    version: str, is_taken: bool
) -> None:
    new = {"min.insync.replicas": "1"}
    async with EmbeddedCluster(version=version) as cluster, staged(0) as stage:
        await stage.register({1: cluster.bootstrap_servers})
        await stage.topic("t", {0: [1]})
        assert await stage.admin.alter_configs("topics/t", {"flush.ms": "5"}) == {"flush.ms": "5"}
        if is_taken:
            await stage.admin.create_topic("u", configs=new, wait=False)
            await stage.admin.alter_configs("topics/t", new)
            with pytest.raises(ConfigError, match=r"begins with Kafka 0\.9\.0"):
                await stage.admin.alter_configs("topics/t", {"preallocate": "true"})
            return
        why = r"begins with Kafka 0\.8\.2; the oldest broker is of 0\.8\.1"
        with pytest.raises(ConfigError, match=why):
            await stage.admin.alter_configs("topics/t", new)
        with pytest.raises(ConfigError, match=why):
            await stage.admin.create_topic("u", configs=new, wait=False)
        assert await stage.text("/brokers/topics/u") is None


async def test_without_a_broker_nobody_knows_the_form() -> None:
    async with staged(0) as stage:
        await stage.topic("t", {0: [1]})
        with pytest.raises(AdminRefusedError, match="no broker is alive"):
            await stage.admin.alter_configs("topics/t", {"flush.ms": "5"})
        assert await stage.text("/config/topics/t") is None


async def test_names_of_entities() -> None:
    assert entity_path(topic="t") == "topics/t"
    assert entity_path(user="a b", client="<default>") == "users/a%20b/clients/<default>"
    assert entity_path(broker=1) == "brokers/1"
    assert entity_path(ip="::1") == "ips/::1"
    for wrong in ({}, {"topic": "t", "user": "u"}, {"broker": "one"}):
        with pytest.raises(ConfigError):
            entity_path(**wrong)


# --- where it is refused --------------------------------------------------------------------------------------------


async def test_brokers_that_offer_the_request_do_it_themselves() -> None:
    async with EmbeddedCluster(version="0.11") as cluster, staged(0) as stage:
        await stage.register({1: cluster.bootstrap_servers}, 4)
        for attempt in (stage.admin.create_topic("t"), stage.admin.delete_topic("t")):
            with pytest.raises(AdminRefusedError, match=r"broker 1 does that itself; use pykafka08\.Admin"):
                await attempt
        await stage.topic("t", {0: [1]})
        forced = ZooKeeperAdmin(stage.zk, force=True, client=PATIENT_CLIENT)
        await forced.alter_configs("topics/t", {"flush.ms": "5"})
        assert await stage.changes() == ['{"version":2,"entity_path":"topics/t"}']


async def test_brokers_of_0_10_0_offer_nothing_and_are_told_in_the_first_form() -> None:
    async with EmbeddedCluster(version="0.10.0") as cluster, staged(0) as stage:
        await stage.register({1: cluster.bootstrap_servers}, 3)
        await stage.admin.create_topic("t", wait=False)
        await stage.admin.alter_configs("topics/t", {"flush.ms": "5"})
        await stage.admin.alter_configs("clients/c", {"producer_byte_rate": "5"})
        kinds = [json.loads(each)["entity_type"] for each in await stage.changes()]
        assert kinds == ["topics", "clients"]


async def test_a_broker_that_cannot_be_asked_may_offer_it() -> None:
    async with staged(1, version=4) as stage:
        with pytest.raises(AdminRefusedError, match="could not be asked"):
            await stage.admin.create_topic("t")
        await stage.topic("t", {0: [1]})
        with pytest.raises(AdminRefusedError, match="could not be asked"):
            await stage.admin.alter_configs("topics/t", {"flush.ms": "5"})
        with pytest.raises(AdminRefusedError, match="could not be asked"):
            await stage.admin.reassign({("t", 0): [1]})


async def test_under_kraft_nothing_is_written() -> None:
    async with staged(1) as stage:
        state = Migration(
            kraft_controller_id=3000, kraft_controller_epoch=1, kraft_metadata_offset=1, kraft_metadata_epoch=1
        )
        await stage.put(paths.MIGRATION, state.encode())
        with pytest.raises(AdminRefusedError, match="moved to KRaft"):
            await stage.admin.create_topic("t")
        await stage.put(paths.MIGRATION, replace(state, kraft_controller_id=-1).encode())
        await stage.admin.create_topic("t", wait=False)


# --- rules ----------------------------------------------------------------------------------------------------------


async def test_rules_are_added_and_removed() -> None:
    async with staged(1, version=2) as stage:
        with pytest.raises(AdminRefusedError, match="no broker has an authorizer"):
            await stage.admin.add_acls("Topic", "t", [ALICE])
        await stage.put(paths.ACL_CHANGES)
        bob = Acl(principal="User:bob", permission="Deny", operation="All")
        assert await stage.admin.add_acls("Topic", "t", [ALICE]) == (ALICE,)
        assert await stage.admin.add_acls("Topic", "t", [ALICE, bob]) == (ALICE, bob)
        assert await stage.admin.acls() == {("literal", "Topic", "t"): (ALICE, bob)}
        assert await stage.admin.acls("Group") == {}
        assert await stage.admin.remove_acls("Topic", "t", [ALICE]) == (bob,)
        with pytest.raises(AdminRefusedError, match="no rule Allow User:alice Read"):
            await stage.admin.remove_acls("Topic", "t", [ALICE])
        assert await stage.admin.remove_acls("Topic", "t") == ()
        assert await stage.text("/kafka-acl/Topic/t") is None
        with pytest.raises(AdminRefusedError, match="has no rules"):
            await stage.admin.remove_acls("Topic", "t")
        names = await stage.zk.children(paths.ACL_CHANGES)
        assert [await stage.text(f"{paths.ACL_CHANGES}/{name}") for name in names] == ["Topic:t"] * 4


@pytest.mark.parametrize(
    ("resource", "rule"),
    [
        (("Topics", "t"), ALICE),
        (("Cluster", "mine"), ALICE),
        (("Topic", "t"), Acl(principal="alice", operation="Read")),
        (("Topic", "t"), Acl(principal="User:a", operation="Reed")),
        (("Topic", "t"), Acl(principal="User:a", operation="Read", permission="allow")),
        (("Topic", "t"), Acl(principal="User:a", operation="Read", host="")),
        (("Topic", "t"), Acl(principal="User:a", operation="AlterConfigs")),
    ],
)
async def test_a_rule_that_brokers_cannot_read_is_not_written(resource: tuple[str, str], rule: Acl) -> None:
    async with staged(1, version=2) as stage:
        await stage.put(paths.ACL_CHANGES)
        with pytest.raises(ConfigError):
            await stage.admin.add_acls(*resource, [rule])
        assert await stage.admin.acls() == {}


@pytest.mark.parametrize("kind", ["TransactionalId", "DelegationToken", "User"])
@pytest.mark.parametrize("version", [2, 3, 4])
async def test_a_type_of_resource_that_some_broker_may_not_know_is_not_written_by_force_either(
    version: int, kind: str
) -> None:
    """Brokers of 0.9 and 0.10 end at it when they start."""
    async with staged(1, version) as stage:
        await stage.put(paths.ACL_CHANGES)
        forced = ZooKeeperAdmin(stage.zk, force=True, client=PATIENT_CLIENT)
        for admin in (forced, *([stage.admin] if version < 4 else ())):
            with pytest.raises(ConfigError, match=f"rules with {kind} begin with Kafka"):
                await admin.add_acls(kind, "x", [ALICE])
        assert await stage.zk.exists(f"{paths.ACLS}/{kind}") is None
        assert await stage.zk.children(paths.ACL_CHANGES) == []


async def test_types_and_operations_that_all_brokers_know_are_written_by_force() -> None:
    async with EmbeddedCluster(version="0.11") as cluster, staged(0, force=True) as stage:
        await stage.put(paths.ACL_CHANGES)
        rule = replace(ALICE, operation="IdempotentWrite")
        with pytest.raises(ConfigError, match=r"may be of 0\.9\.0"):
            await stage.admin.add_acls("TransactionalId", "x", [ALICE])
        await stage.register({1: cluster.bootstrap_servers}, 4)
        assert await stage.admin.add_acls("TransactionalId", "x", [ALICE]) == (ALICE,)
        assert await stage.admin.add_acls("Cluster", "kafka-cluster", [rule]) == (rule,)
        with pytest.raises(ConfigError, match=r"DelegationToken begin with Kafka 1\.1; .* of 0\.11\.0"):
            await stage.admin.add_acls("DelegationToken", "x", [ALICE])


# --- groups ---------------------------------------------------------------------------------------------------------


async def test_offsets_are_set_while_nobody_is_alive() -> None:
    async with EmbeddedCluster(version="0.8.2", topics={"t": 2}) as cluster, staged(0) as stage:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for value in (b"a", b"b", b"c"):
                await producer.send("t", value, partition=0)
        await stage.register({1: cluster.bootstrap_servers})
        await stage.topic("t", {0: [1], 1: [1]})
        reset = stage.admin.reset_group_offsets
        assert await reset("g", {("t", 0): 2}) == {("t", 0): None}
        assert await reset("g", {("t", 0): 3, ("t", 1): 0}) == {("t", 0): 2, ("t", 1): None}
        assert await stage.text("/consumers/g/offsets/t/0") == "3"
        with pytest.raises(AdminRefusedError, match=r"offset 4 is outside of the log .* 0 to 3"):
            await reset("g", {("t", 0): 4})
        with pytest.raises(AdminRefusedError, match="has no partition 2"):
            await reset("g", {("t", 2): 0})
        with pytest.raises(AdminRefusedError, match="no topic 'nope'"):
            await reset("g", {("nope", 0): 0})
        for offset in (-1, 1 << 63, True):
            with pytest.raises(ConfigError, match="is no offset"):
                await reset("g", {("t", 0): offset})
        await ZooKeeperAdmin(stage.zk, force=True, client=PATIENT_CLIENT).reset_group_offsets("g", {("t", 0): 99})
        await stage.put("/consumers/g/ids/m", "{}")
        with pytest.raises(AdminRefusedError, match="member that is alive, m"):
            await reset("g", {("t", 0): 1})
        with pytest.raises(AdminRefusedError, match="alive"):
            await ZooKeeperAdmin(stage.zk, force=True, client=PATIENT_CLIENT).reset_group_offsets("g", {("t", 0): 1})
        assert await stage.text("/consumers/g/offsets/t/0") == "99"


async def test_without_brokers_an_offset_cannot_be_compared() -> None:
    async with staged(0) as stage:
        await stage.topic("t", {0: [1]})
        with pytest.raises(AdminRefusedError, match="no broker can be asked"):
            await stage.admin.reset_group_offsets("g", {("t", 0): 1})


async def test_a_group_is_deleted_when_nobody_is_alive() -> None:
    async with staged(1) as stage:
        await stage.put("/consumers/g/ids/m", "{}")
        await stage.put("/consumers/g/offsets/t/0", "7")
        await stage.put("/consumers/g/offsets/u/0", "7")
        await stage.put("/consumers/g/owners/t")
        for attempt in (stage.admin.delete_group("g"), stage.admin.delete_group_offsets("g", "t")):
            with pytest.raises(AdminRefusedError, match="alive"):
                await attempt
        await stage.zk.delete("/consumers/g/ids/m")
        await stage.admin.delete_group_offsets("g", "t")
        assert await stage.admin.group_offsets("g") == {("u", 0): 7}
        with pytest.raises(AdminRefusedError, match="no offsets of 't'"):
            await stage.admin.delete_group_offsets("g", "t")
        await stage.admin.delete_group("g")
        assert await stage.zk.children(paths.CONSUMERS) == []
        with pytest.raises(AdminRefusedError, match="no group 'g'"):
            await stage.admin.delete_group("g")
        with pytest.raises(AdminRefusedError, match="no group 'g'"):
            await stage.admin.group_offsets("g")


@pytest.mark.parametrize("moment", ["/consumers/g", "/consumers/g/offsets/t/0", "/consumers/g/ids"])
async def test_a_member_that_comes_while_its_group_is_deleted_keeps_its_nodes(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes just before a node is deleted, or before the first look: then nothing else is deleted either."""
    own = "/consumers/g/ids/g_m", "/consumers/g/owners/t/0"
    async with staged(1) as stage, ZooKeeper(stage.address, **PATIENT) as member:
        await stage.put("/consumers/g/ids")
        await stage.put("/consumers/g/owners/t")
        await stage.put("/consumers/g/offsets/t/0", "5")

        def joining(real: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
            async def call(path: str, **settings: object) -> object:
                if path == moment and await member.exists(own[0]) is None:
                    for each in own:
                        await member.create(each, b"{}", ephemeral=True, make_parents=True)
                return await real(path, **settings)

            return call

        name = "children" if moment == "/consumers/g" else "delete"
        monkeypatch.setattr(stage.zk, name, joining(getattr(stage.zk, name)))
        with pytest.raises(AdminRefusedError, match="a member of the group"):
            await stage.admin.delete_group("g")
        for each in own:
            assert await member.exists(each) is not None
        assert (await stage.text("/consumers/g/offsets/t/0") == "5") is (moment == "/consumers/g")


async def test_offsets_are_carried_away_and_brought_back() -> None:
    async with staged(1, force=True) as stage:
        await stage.put("/consumers/g/offsets/t/10", "7")
        await stage.put("/consumers/g/offsets/t/9", "8")
        await stage.put("/consumers/h/offsets/u/0", "1")
        text = await stage.admin.export_offsets()
        assert text == "/consumers/g/offsets/t/9:8\n/consumers/g/offsets/t/10:7\n/consumers/h/offsets/u/0:1\n"
        assert await stage.admin.export_offsets(["h"]) == "/consumers/h/offsets/u/0:1\n"
        await stage.admin.delete_group("g")
        await stage.put("/consumers/h/offsets/u/0", "5")
        before = await stage.admin.import_offsets(text)
        assert before == {"g": {("t", 9): None, ("t", 10): None}, "h": {("u", 0): 5}}
        assert await stage.admin.export_offsets() == text
        await stage.put("/consumers/h/ids/m", "{}")
        with pytest.raises(AdminRefusedError, match="alive"):
            await stage.admin.import_offsets(text.replace(":8", ":9"))
        assert await stage.admin.export_offsets() == text


async def test_lines_of_offsets() -> None:
    assert parse_offset_lines("/consumers/g/offsets/t/2-1:5\n\n") == {"g": {("t", 1): 5}}
    for text, why in (
        ("x", "line 1 is not"),
        ("/consumers/g/offsets/t/1:-1", "line 1 is not"),
        ("/consumers/g/offsets/t/1:5\n/consumers/g/offsets/t/1:6", "comes twice"),
    ):
        with pytest.raises(ConfigError, match=why):
            parse_offset_lines(text)


# --- its life -------------------------------------------------------------------------------------------------------


async def test_an_address_is_opened_and_closed() -> None:
    async with staged(1) as stage:
        async with ZooKeeperAdmin(stage.address, session_timeout_ms=50_000) as admin:
            await admin.create_topic("t", wait=False)
        with pytest.raises(KafkaError):
            await admin.create_topic("u", wait=False)
        with pytest.raises(ConfigError, match="takes no settings"):
            ZooKeeperAdmin(stage.zk, session_timeout_ms=5000)
    with pytest.raises(ConfigError):
        ZooKeeperAdmin("localhost", client={"no_such": 1})


SETTINGS = (
    ("0.8.2", {"cleanup.policy": "compact", "retention.ms": "-1", "min.cleanable.dirty.ratio": "0.5"}, None),
    ("0.8.2", {"cleanup.policy": "compact,delete"}, "one of delete, compact"),
    ("0.10.1", {"cleanup.policy": "compact,delete"}, None),
    ("0.8.2", {"compression.type": "gzip"}, "begins with Kafka 0.9.0"),
    ("0.9.0", {"compression.type": "none"}, "one of uncompressed"),
    ("0.8.1", {"min.insync.replicas": "2"}, "begins with Kafka 0.8.2"),
    ("0.8.2", {"min.insync.replicas": "0"}, "a whole number from 1 up"),
    ("0.8.2", {"segment.bytes": "3000000000"}, "at most 32 bits"),
    ("0.8.1", {"segment.index.bytes": "7"}, "a whole number from 8 up"),
    ("0.8.1", {"segment.index.bytes": "8"}, None),
    ("0.8.2", {"min.cleanable.dirty.ratio": "1.5"}, "from 0 to 1"),
    ("0.8.2", {"unclean.leader.election.enable": "yes"}, "one of true, false"),
    ("0.8.2", {"retention.ms": "1_000"}, "a whole number"),
    ("0.8.2", {"retention.ms": " 1"}, "a whole number"),
    ("0.8.2", {"remote.storage.enable": "true"}, "no such setting"),
    ("3.9", {"remote.storage.enable": "true"}, None),
    ("0.10.1", {"leader.replication.throttled.replicas": "0:1,1:2"}, None),
    ("0.10.1", {"leader.replication.throttled.replicas": "all"}, "a list such as"),
)


@pytest.mark.parametrize(("release", "settings", "why"), SETTINGS)
async def test_settings_by_release(release: str, settings: dict[str, str], why: str | None) -> None:
    if why is None:
        check_settings("topics/t", settings, release)
        return
    with pytest.raises(ConfigError, match=why):
        check_settings("topics/t", settings, release)
