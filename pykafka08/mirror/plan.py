"""What is to be copied where, and what is in the way; making the topics of the target as the source has them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from pykafka08.admin import Admin, NewTopic, TopicDescription
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    AuthorizationError,
    BrokerError,
    ConfigError,
    KafkaError,
    MirrorError,
    RequestTimeoutError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from pykafka08.logs import library_logger
from pykafka08.records.record import TopicPartition
from pykafka08.setting_hints import hint
from pykafka08.short_names import only_name, shortened

__all__ = ["Selection", "TopicPlan", "make_topics", "plan_topics"]

log = library_logger("mirror")

COPIED_CONFIGS = (
    "cleanup.policy",
    "delete.retention.ms",
    "max.message.bytes",
    "min.compaction.lag.ms",
    "retention.bytes",
    "retention.ms",
)
"""Settings of a topic that its copy is made with, where the source tells them (0.11)."""
MOST_NAMED = 5
"""The number of topics that one error names."""
MADE_WITHIN_S = 60
PAUSE_S = 0.1


@dataclass(frozen=True)
class Selection:
    """Which topics are copied: those with these names, or those whose whole name matches the pattern.

    ``rename`` maps names in the source to names in the target.  ``refused`` are names in either cluster; their topics
    are left out, because the user has no right to them.
    """

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    excluded: re.Pattern[str] | None = None
    rename: Mapping[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if bool(self.topics) == (self.pattern is not None):
            raise ConfigError("a mirror needs topics, or a pattern, and not both")

    def of(self, names: Iterable[str]) -> list[str]:
        """Those that are to be mirrored, as far as they are there."""
        return [
            name
            for name in sorted(names)
            if (name in self.topics if self.pattern is None else self.pattern.fullmatch(name))
            and not (self.excluded is not None and self.excluded.fullmatch(name))
            and not self.is_refused(name)
        ]

    def is_refused(self, name: str) -> bool:
        """True if the topic, or its copy, is refused."""
        return not self.refused.isdisjoint((name, self.rename.get(name, name)))


@dataclass(frozen=True)
class TopicPlan:
    """One topic: it ``has`` so many partitions in the target, 0 if it is to be made; ``problem``: why it cannot be.

    ``refused``: the problem is a right that the user lacks.
    """

    source: str
    target: str
    partitions: int
    replication_factor: int
    source_id: str | None
    target_id: str | None = None
    has: int = 0
    configs: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
    refused: AuthorizationError | None = field(default=None, compare=False)

    def pairs(self) -> list[tuple[TopicPartition, TopicPartition]]:
        """Each partition in source and target."""
        return [(TopicPartition(self.source, p), TopicPartition(self.target, p)) for p in range(self.partitions)]


async def plan_topics(
    source: Admin, target: Admin, selection: Selection, *, replication_factor: int | None
) -> list[TopicPlan]:
    """What a run would do, checked against both clusters; MirrorError where the selection itself makes no sense."""
    there = await source.list_topics()
    missing = {name for name in selection.topics if not selection.is_refused(name)} - set(there)
    if missing:
        await _check_visible(source, missing)
        there = await source.list_topics()  # the user may have got the right after the first list
    wanted = selection.of(there)
    _check_selection(selection, there, wanted)
    described = await source.describe_topics(wanted)
    at_target = await target.list_topics(internal=True)
    present = await target.describe_topics(set(selection.rename.get(name, name) for name in wanted) & set(at_target))
    configs = await _configs(source, wanted)
    brokers = len(await target.list_brokers())
    plans = []
    for name in wanted:
        made = described[name]
        renamed = selection.rename.get(name, name)
        old = present.get(renamed)
        factor = replication_factor or min(brokers, max(len(each.replicas) for each in made.partitions.values()))
        plan = TopicPlan(
            source=name,
            target=renamed,
            partitions=len(made.partitions),
            replication_factor=max(1, factor),
            source_id=_id(made),
            target_id=None if old is None else _id(old),
            has=0 if old is None else len(old.partitions),
            configs=configs.get(name, {}),
        )
        plans.append(await _checked(plan, source, target))
    return plans


def _id(topic: TopicDescription) -> str | None:
    return None if topic.topic_id is None else topic.topic_id.hex


async def _check_visible(admin: Admin, missing: Collection[str]) -> None:
    """AuthorizationError for a topic that is not listed because the user may not DESCRIBE it (0.11 and later)."""
    with suppress(UnknownTopicError):
        await admin.describe_topics(missing)


def _check_selection(selection: Selection, there: list[str], wanted: list[str]) -> None:
    missing = [name for name in selection.topics if name not in there and not selection.is_refused(name)]
    if missing:
        told = hint(missing[0], set(there))
        raise MirrorError(
            f"the source has no topic {missing[0]!r}{f' ({told})' if told else ''}; it has {len(there)} topics",
            topic=missing[0],
        )
    if not wanted:
        raise MirrorError(f"none of the source's {len(there)} topics matches: there is nothing to copy")
    strangers = [name for name in selection.rename if name not in wanted and not selection.is_refused(name)]
    if strangers:
        told = hint(strangers[0], set(wanted))
        raise MirrorError(f"{strangers[0]!r} is to be renamed but not mirrored{f' ({told})' if told else ''}")
    names = [selection.rename.get(name, name) for name in wanted]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise MirrorError(f"two topics would both be copied to {doubled[0]!r}", topic=doubled[0])


async def _configs(source: Admin, names: list[str]) -> dict[str, dict[str, str]]:
    """The settings that copies get; topics whose settings the source does not tell get the target's defaults."""
    wanted, told = list(names), None
    while told is None and wanted:
        try:
            told = await source.describe_topic_configs(wanted)
        except AuthorizationError as error:  # noqa: PERF203 - the others are asked for again
            if error.topic not in wanted:
                return {}
            log.warning("mirror.configs_refused", topic=error.topic, cause=str(error))
            wanted.remove(error.topic)
        except KafkaError:  # Kafka before 0.11
            return {}
    return {
        name: {
            key: each.value
            for key, each in entries.items()
            if key in COPIED_CONFIGS and each.value is not None and not each.is_default
        }
        for name, entries in (told or {}).items()
    }


async def _checked(plan: TopicPlan, source: Admin, target: Admin) -> TopicPlan:
    """With what the target would say to it."""
    problem: str | AuthorizationError | TopicDescription | None = None
    if await _is_itself(plan, source, target):
        problem = "source and target are one cluster, and the topic is the same: it would be copied behind itself"
    elif plan.has > plan.partitions:
        problem = (
            f"it has {plan.has} partitions in the target and {plan.partitions} in the source; a topic cannot shrink: "
            "delete it there, or copy to another name"
        )
    elif not plan.has:
        problem = await _why_not(target.create_topics([_new(plan)], validate_only=True), plan, "create", target)
    elif plan.has < plan.partitions:
        problem = await _why_not(
            target.create_partitions({plan.target: plan.partitions}, validate_only=True), plan, "alter", target
        )
    if isinstance(problem, TopicDescription):
        return await _checked(_with(plan, target_id=_id(problem), has=len(problem.partitions)), source, target)
    if isinstance(problem, AuthorizationError):
        return _with(plan, problem=problem.message, refused=problem)
    return plan if problem is None else _with(plan, problem=problem)


async def _is_itself(plan: TopicPlan, source: Admin, target: Admin) -> bool:
    """Source and target are one and the same topic, as far as the two clusters tell.

    The topic's id decides where both tell it (2.8), else the cluster's (0.10.1): those of two clusters may be equal,
    where both were set up with an id out of the same example.  Below, a broker that both list does.
    """
    if plan.source != plan.target or not plan.has:
        return False
    if plan.source_id is not None and plan.target_id is not None:
        return plan.source_id == plan.target_id
    ids = await source.cluster_id(), await target.cluster_id()
    if None not in ids:
        return ids[0] == ids[1]
    there, here = [{(each.host, each.port) for each in (await one.list_brokers()).values()} for one in (source, target)]
    return not there.isdisjoint(here)


async def _why_not(
    asked: Any, plan: TopicPlan, verb: str, target: Admin
) -> str | AuthorizationError | TopicDescription | None:
    """Why the target refuses; the topic, if it has appeared in the target meanwhile."""
    try:
        refused = await asked
        if refused and _has_code(refused[plan.target], ErrorCode.TOPIC_ALREADY_EXISTS):
            with suppress(UnknownTopicError):
                return (await target.describe_topics([plan.target]))[plan.target]
    except AuthorizationError as error:
        return error
    except UnsupportedVersionError:
        words = f"add-partitions {plan.target} {plan.partitions}"
        if verb == "create":
            words = (
                f"create {plan.target} --partitions {plan.partitions} --replication-factor {plan.replication_factor}"
            )
        return (
            "the target's brokers are too old to be asked for that; do it through their ZooKeeper: "
            f"pykafka08 zk topic {words} --zookeeper HOST:PORT"
        )
    if not refused:
        return None
    reason = refused[plan.target]
    return reason if isinstance(reason, AuthorizationError) else reason.message


def _has_code(error: KafkaError, code: ErrorCode) -> bool:
    return isinstance(error, BrokerError) and error.code == code


def _new(plan: TopicPlan) -> NewTopic:
    return NewTopic(plan.target, plan.partitions, plan.replication_factor, plan.configs)


def _with(plan: TopicPlan, **changes: Any) -> TopicPlan:
    return TopicPlan(**{**plan.__dict__, **changes})


async def make_topics(target: Admin, plans: list[TopicPlan]) -> list[TopicPlan]:
    """Create and enlarge what the plans want; the plans as they are then.

    MirrorError with the first problem, AuthorizationError if it is a right that the user lacks.
    """
    for plan in plans:
        if plan.refused is not None:
            raise plan.refused
        if plan.problem is not None:
            raise MirrorError(f"topic {plan.target!r} cannot be copied to: {plan.problem}", topic=plan.target)
    new = [_new(plan) for plan in plans if not plan.has]
    grown = {plan.target: plan.partitions for plan in plans if 0 < plan.has < plan.partitions}
    refused: dict[str, KafkaError] = {}
    if new:
        refused.update(await target.create_topics(new))
    if grown:
        refused.update(await target.create_partitions(grown))
    for name, error in refused.items():
        if isinstance(error, AuthorizationError):
            raise error
        raise MirrorError(f"topic {name!r} was not made in the target: {error.message}", topic=name) from error
    described = (
        await _wait_made(target, plans) if new or grown else await target.describe_topics(p.target for p in plans)
    )
    return [
        _with(plan, target_id=_id(described[plan.target]), has=len(described[plan.target].partitions)) for plan in plans
    ]


async def _wait_made(target: Admin, plans: list[TopicPlan]) -> dict[str, TopicDescription]:
    """Until the brokers know all partitions, each with a leader."""
    deadline = anyio.current_time() + MADE_WITHIN_S
    described: dict[str, TopicDescription] = {}
    while (left := deadline - anyio.current_time()) > 0:
        try:
            described = await target.describe_topics([plan.target for plan in plans], timeout=left)
        except UnknownTopicError:
            described = {}
        if all(_has_leaders(plan, described) for plan in plans):
            return described
        await anyio.sleep(PAUSE_S)
    missing = [plan.target for plan in plans if not _has_leaders(plan, described)]
    named = ", ".join(map(shortened, missing[:MOST_NAMED])) + (", ..." if len(missing) > MOST_NAMED else "")
    raise RequestTimeoutError(
        f"topics that were created in the target had no leaders within {MADE_WITHIN_S:g} s: {named}",
        topic=only_name(missing),
    )


def _has_leaders(plan: TopicPlan, described: Mapping[str, TopicDescription]) -> bool:
    topic = described.get(plan.target)
    return topic is not None and sum(each.leader >= 0 for each in topic.partitions.values()) >= plan.partitions
