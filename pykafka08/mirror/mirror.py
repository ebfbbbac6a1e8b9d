"""The mirror as applications use it: topics of one cluster copied to another, and groups carried over.

What is copied in one go is in ``copying``, where to go on in ``resume``, offsets of groups in ``groups``, what is kept
in the target in ``checkpoint``.  Here: the two clusters, what is tried again, when it ends.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import anyio

from pykafka08.admin import Admin
from pykafka08.backoff import Backoff
from pykafka08.config import SETTING_NAMES, ClientConfig, ConsumerConfig, ProducerConfig, names_among, setting_fields
from pykafka08.consumer.consumer import Consumer
from pykafka08.driver import library_logger
from pykafka08.errors import (
    AuthorizationError,
    ClosedError,
    ConfigError,
    CorruptRecordError,
    KafkaError,
    LogTruncationError,
    MirrorError,
    ProducerFencedError,
    RecordTooLargeError,
    ResponseTooLargeError,
    SecurityError,
    UnsupportedVersionError,
)
from pykafka08.kafka_properties import PropertiesSource, arguments_from, guarded
from pykafka08.mirror.carrying import GroupCarrier
from pykafka08.mirror.checkpoint import Checkpoint
from pykafka08.mirror.copy_state import CopyState, MirrorReport
from pykafka08.mirror.copying import Copier
from pykafka08.mirror.plan import Selection, TopicPlan, make_topics, plan_topics
from pykafka08.mirror.ranges import Ranges
from pykafka08.mirror.resume import find_place
from pykafka08.mirror.tenure import Tenure
from pykafka08.producer.producer import Producer
from pykafka08.records.record import TopicPartition
from pykafka08.security.settings import protected_copy
from pykafka08.zookeeper.settings import without_secrets

__all__ = ["Mirror"]

log = library_logger("mirror")

FATAL = (
    AuthorizationError,
    ClosedError,
    ConfigError,
    CorruptRecordError,
    LogTruncationError,
    MirrorError,
    RecordTooLargeError,
    ResponseTooLargeError,
    SecurityError,
    UnsupportedVersionError,
)
"""What another attempt does not mend."""

PATIENCE_S = 300.0
"""How long nothing may be copied because of errors that may pass."""
REFUSED_S = 60.0
"""Seconds after which a mirror with ``follow`` tries again the topics that the user had no right to."""
LEADER_S = 3.0
"""The longest time to look up the leader of a partition for an error."""
REVIEW_S = 10.0
"""How often a mirror that follows looks for the ends of logs, new partitions and topics, and offsets of groups."""
CLIENT_SETTINGS = frozenset({*setting_fields(ClientConfig), SETTING_NAMES})
MIB = 1024 * 1024
SOURCE_OWN = {"isolation_level", "auto_offset_reset", "group_id", "enable_auto_commit"}
TARGET_OWN = {"acks", "transactional_id", "enable_idempotence"}
SOURCE = {"max_partition_fetch_bytes": 4 * MIB, "fetch_buffer_bytes": 64 * MIB}
TARGET = {"batch_size": 512 * 1024, "max_request_size": 64 * MIB, "buffer_memory": 96 * MIB, "linger_ms": 100}


class Mirror:
    """Copies topics from one cluster to another, each record once, in its partition, in order.

    ::

        async with Mirror("old:9092", "new:9092", topics=["orders"], groups=["billing"]) as mirror:
            report = await mirror.run()

    Keys, values, headers and timestamps are kept; partition counts are made equal.  ``topics`` or a ``pattern`` (of
    whole names, without those that match ``excluded``) say what is copied; ``rename`` maps names of the source to the
    target's.  ``groups`` are carried over from the source's Kafka, ``zookeeper_groups`` from its ``zookeeper``
    (``zookeeper_settings`` are those of :class:`ZooKeeperConfig`).
    A mirror that ends in any way goes on where it was when it is run again under the same ``name``; one runs at a time.
    ``restart`` forgets that, and copies all that the source has.  ``skip_lost`` goes on where the source deletes
    records before they are copied, which is a MirrorError without.  ``force`` does not ask whether
    ``zookeeper`` is of the source's cluster.  ``source_settings`` and ``target_settings`` are
    for the consumer and the producer.
    """

    def __init__(
        self,
        source: str | Iterable[str],
        target: str | Iterable[str],
        *,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        excluded: str | re.Pattern[str] | None = None,
        rename: Mapping[str, str] | None = None,
        groups: Iterable[str] = (),
        zookeeper: str | None = None,
        zookeeper_groups: Iterable[str] = (),
        zookeeper_settings: Mapping[str, Any] | None = None,
        name: str = "mirror",
        replication_factor: int | None = None,
        restart: bool = False,
        skip_lost: bool = False,
        force: bool = False,
        source_settings: Mapping[str, Any] | None = None,
        target_settings: Mapping[str, Any] | None = None,
    ) -> None:
        zookeeper_settings = without_secrets(zookeeper_settings or {})
        source_settings, target_settings = protected_copy(source_settings), protected_copy(target_settings)
        chosen = [topics] if isinstance(topics, str) else list(dict.fromkeys(topics))
        patterns = _compiled("pattern", pattern), _compiled("excluded", excluded)
        self._selection = Selection(tuple(chosen), *patterns, dict(rename or {}))
        groups = [groups] if isinstance(groups, str) else list(groups)
        zookeeper_groups = [zookeeper_groups] if isinstance(zookeeper_groups, str) else list(zookeeper_groups)
        if set(groups) & set(zookeeper_groups):
            raise ConfigError("groups and zookeeper_groups have a group in common: its offsets come from one of them")
        if bool(zookeeper_groups) != (zookeeper is not None):
            raise ConfigError("zookeeper_groups need the address of the source's zookeeper, and it is for them alone")
        if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9._-]+", name):
            raise ConfigError(f"name={name!r} is not made of letters, digits, dots, dashes and underscores")
        self._carrier = GroupCarrier(groups, zookeeper_groups, zookeeper, zookeeper_settings, is_forced=force)
        self._tenure = Tenure(uuid4().hex[:16])
        self._own_group = f"pykafka08-mirror-{name}"
        self._name = name
        self._replication_factor = replication_factor
        self._restarts = restart
        self._skips_lost = skip_lost
        self._servers = (source, target)
        for settings, own in ((source_settings, SOURCE_OWN), (target_settings, TARGET_OWN)):
            for setting in own & settings.keys():
                name_of = names_among(settings)
                raise ConfigError(f"{name_of[setting]} cannot be changed: the mirror sets it to copy each record once")
        self._settings = ({**SOURCE, **source_settings}, {**TARGET, **target_settings})
        common = [{k: v for k, v in each.items() if k in CLIENT_SETTINGS} for each in self._settings]
        self._common = (common[0], common[1])
        with _errors_about("source"), names_among(source_settings).naming():
            self._source = Admin(source, **common[0])
            Consumer(bootstrap_servers=source, **self._settings[0])  # what is wrong with the settings shows at once
        with _errors_about("target"), names_among(target_settings).naming():
            self._target = Admin(target, **common[1])
            Producer(target, **self._settings[1])
        self._opened = AsyncExitStack()
        self._states: dict[TopicPartition, CopyState] = {}
        self._trouble: str | None = None
        self._refused: dict[str, AuthorizationError] = {}
        self._refused_at = 0.0
        self._on_progress: Callable[[MirrorReport], None] = lambda _: None
        self._is_open = False

    @classmethod
    def from_properties(cls, source: PropertiesSource, target: PropertiesSource, **arguments: Any) -> Mirror:
        """A mirror between the clusters of two properties files, or mappings with the names of Kafka's Java clients.

        ``arguments`` are those of the constructor; its ``source_settings`` and ``target_settings`` override the
        files.
        """
        source, target = guarded(source), guarded(target)
        for name in ("source_settings", "target_settings"):
            arguments[name] = protected_copy(arguments.get(name))
        if "zookeeper_settings" in arguments:
            arguments["zookeeper_settings"] = without_secrets(arguments["zookeeper_settings"] or {})
        given = []
        for properties, name, kind in (
            (source, "source_settings", ConsumerConfig),
            (target, "target_settings", ProducerConfig),
        ):
            with _errors_about(name.removesuffix("_settings")):
                settings = arguments_from(properties, arguments.pop(name), kind)
            given.append((settings.pop("bootstrap_servers"), settings))
        (of_source, source_settings), (of_target, target_settings) = given
        return cls(of_source, of_target, source_settings=source_settings, target_settings=target_settings, **arguments)

    # --- life -------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Mirror:
        if self._is_open:
            raise ClosedError("a mirror cannot be reused; create a new one")
        self._is_open = True
        try:
            await self._opened.enter_async_context(self._source)
            await self._opened.enter_async_context(self._target)
        except BaseException:
            await self._opened.aclose()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections to both clusters; leaving the block does it.  Cancel :meth:`run` first."""
        await self._opened.aclose()

    def report(self) -> MirrorReport:
        """Where it is."""
        return MirrorReport(
            tuple(state.report() for state in self._states.values()), tuple(self._carrier.moves.values()), self._trouble
        )

    async def plan(self) -> list[TopicPlan]:
        """What :meth:`run` would do, and what is in its way; nothing is changed."""
        if not self._is_open:
            raise ClosedError("use the mirror with 'async with'")
        return await self._plan(self._selection)

    async def _plan(self, selection: Selection) -> list[TopicPlan]:
        return await plan_topics(self._source, self._target, selection, replication_factor=self._replication_factor)

    async def group_offsets(self, partitions: Sequence[TopicPartition]) -> dict[str, dict[TopicPartition, int]]:
        """Where the groups that are to be carried over are in the source; MirrorError for one that has no offset."""
        return await self._carrier.offsets(self._source, partitions)

    async def run(
        self, *, follow: bool = False, on_progress: Callable[[MirrorReport], None] | None = None
    ) -> MirrorReport:
        """Copy what the source has, and carry the groups over; with ``follow`` go on until cancelled.

        ``on_progress`` hears of every unit that is safe in the target.  MirrorError where records would be lost,
        doubled or mixed; errors that may pass are tried again, and raised after five minutes without progress.
        If the user lacks a right to some of the topics, the others are copied: AuthorizationError is raised after
        that; with ``follow`` it is the report's ``trouble``, and the topics are tried again every minute.
        """
        self._on_progress = on_progress or self._on_progress
        retries = Retries(PATIENCE_S)
        while True:
            error = await self._attempt(follow=follow)
            if error is None:
                for refused in self._refused.values():
                    raise refused
                return self.report()
            if _first(error, (ProducerFencedError,)) is not None:
                self._tenure.fenced()
            pause = retries.failed(self.report().records, anyio.current_time())
            if pause is None:
                raise error
            self._trouble = str(error)
            log.warning("mirror.again", mirror=self._name, cause=str(error))
            self._on_progress(self.report())
            await anyio.sleep(pause)

    async def _attempt(self, *, follow: bool) -> KafkaError | None:
        """What ended it and may pass, None at its end; raises what does not pass."""
        while True:
            try:
                await self._copy(follow=follow)
            except KafkaError as error:  # noqa: PERF203 - once for each topic that is left out
                cause = _first(error, FATAL)
                if cause is None:
                    return error
                if not self._leave_out(cause, anyio.current_time()):
                    raise cause from error
            else:
                return None

    def _leave_out(self, error: KafkaError, now: float) -> bool:
        """True if it refuses one topic, which is left out from now on."""
        if not isinstance(error, AuthorizationError) or error.resource_type != "topic":
            return False
        name = error.resource_name
        if name is None or name in self._refused:
            return False
        self._refused[name], self._refused_at = error, now
        log.warning("mirror.refused", mirror=self._name, topic=name, cause=str(error))
        return True

    async def _plan_allowed(self) -> list[TopicPlan]:
        """The plans without refused topics; the error of one of them if no other is left."""
        selection = replace(self._selection, refused=frozenset(self._refused))
        if self._refused and not selection.of(self._selection.topics or await self._source.list_topics()):
            raise next(iter(self._refused.values()))
        return await self._plan(selection)

    # --- copying ----------------------------------------------------------------------------------------------------

    async def _copy(self, *, follow: bool) -> None:
        while True:
            plans = await make_topics(self._target, await self._plan_allowed())
            async with self._session(plans) as copier:
                troubles = [error.message for error in self._refused.values()] if follow else []
                self._trouble = "; ".join(troubles) or None
                await self._copy_to_end(copier)
                await self._move_groups(copier)
                self._carrier.is_lenient = follow
                self._on_progress(self.report())
                if not follow:
                    return
                while not await self._has_grown(plans):
                    await copier.look_up_ends()
                    await self._follow(copier)

    @asynccontextmanager
    async def _session(self, plans: list[TopicPlan]) -> AsyncIterator[Copier]:
        """A consumer and a producer that stand where the mirror goes on."""
        async with AsyncExitStack() as opened:
            await self._check_tenure()
            producer, admin = await self._open_producer(opened)
            # From here on no other mirror of this name can commit anything.
            await self._find_places(plans)
            settings = {**self._settings[0], "isolation_level": "read_committed", "auto_offset_reset": "none"}
            consumer = Consumer(bootstrap_servers=self._servers[0], **settings)
            await opened.enter_async_context(consumer)
            consumer.assign(self._states)
            for state in self._states.values():
                await consumer.seek(state.source, state.next)
            copier = Copier(
                consumer,
                producer,
                admin,
                self._list(),
                read_target=lambda: Ranges(self._servers[1], self._common[1]),
                leader_of=self._leader_in_target,
                group_id=self._own_group,
                skips_lost=self._skips_lost,
                on_unit=lambda: self._on_progress(self.report()),
            )
            await copier.renew()  # also what a restart begins with
            self._tenure.marked()
            self._restarts = False
            yield copier

    async def _leader_in_target(self, tp: TopicPartition) -> str | None:
        """``"host:port (id N)"`` of the partition's leader in the target, None if it is not known."""
        try:
            described = await self._target.describe_topics([tp.topic], timeout=LEADER_S)
            broker = (await self._target.list_brokers(timeout=LEADER_S))[
                described[tp.topic].partitions[tp.partition].leader
            ]
        except (KafkaError, LookupError):
            return None
        return broker.name

    async def _check_tenure(self) -> None:
        """MirrorError if it was another mirror that fenced this one's producer."""
        if not self._tenure.is_in_doubt:
            return
        kept = await self._target.list_group_offsets(self._own_group, [state.target for state in self._list()])
        found = [Checkpoint.parse(told.offset, told.metadata, tp) for tp, told in kept.items()]
        if self._tenure.is_over(each.by for each in found if each is not None):
            raise MirrorError(f"another mirror with the name {self._name!r} has taken over; one runs at a time")

    async def _open_producer(self, opened: AsyncExitStack) -> tuple[Producer, Admin | None]:
        """With transactions where the target has them, else with the admin that keeps the word."""
        settings = {**self._settings[1], "acks": "all"}
        try:
            producer = Producer(self._servers[1], **settings, transactional_id=self._own_group)
            return await opened.enter_async_context(producer), None
        except UnsupportedVersionError:
            producer = Producer(self._servers[1], **settings)
            return await opened.enter_async_context(producer), self._target

    async def _find_places(self, plans: list[TopicPlan]) -> None:
        self._carrier.forget_translations()
        cluster = await self._source.cluster_id()
        before = self._states
        mark = self._tenure.mark
        states = [CopyState(plan, source, target, cluster, mark) for plan in plans for source, target in plan.pairs()]
        kept = await self._target.list_group_offsets(self._own_group, [state.target for state in states])
        self._tenure.begins()
        async with self._ranges() as (source, target):
            source_bounds = await source.bounds([state.source for state in states])
            target_bounds = await target.bounds([state.target for state in states])
            for state in states:
                told = kept.get(state.target)
                found = None if told is None else Checkpoint.parse(told.offset, told.metadata, state.target)
                if found is not None:
                    self._tenure.found(found.by)
                (source_start, source_end), (target_start, target_end) = source_bounds, target_bounds
                bounds = (
                    source_start[state.source],
                    source_end[state.source],
                    target_start[state.target],
                    target_end[state.target],
                )
                await find_place(state, found, source, target, bounds=bounds, restarts=self._restarts)
                state.end = source_bounds[1][state.source]
                if (old := before.get(state.source)) is not None:
                    state.copied, state.size, state.lost = old.copied, old.size, old.lost
                    state.duplicates += old.duplicates
        self._states = {state.source: state for state in states}

    @asynccontextmanager
    async def _ranges(self) -> AsyncIterator[tuple[Ranges, Ranges]]:
        async with (
            Ranges(self._servers[0], self._common[0]) as source,
            Ranges(self._servers[1], self._common[1]) as target,
        ):
            yield source, target

    async def _copy_to_end(self, copier: Copier) -> None:
        while any(state.lag for state in self._states.values()):
            await copier.copy_some()

    # --- following --------------------------------------------------------------------------------------------------

    async def _follow(self, copier: Copier) -> None:
        """Copy what comes until the next review, then move the groups."""
        until = anyio.current_time() + REVIEW_S
        while anyio.current_time() < until:
            await copier.copy_some()
        await self._move_groups(copier)
        self._on_progress(self.report())

    async def _has_grown(self, plans: list[TopicPlan]) -> bool:
        """There are topics or partitions that are not copied yet, or others under the same names."""
        if self._refused and anyio.current_time() >= self._refused_at + REFUSED_S:
            self._refused.clear()
            return True
        now = await self._plan_allowed()
        shapes = [(plan.source, plan.partitions, plan.source_id, plan.target_id) for plan in now]
        return shapes != [(plan.source, plan.partitions, plan.source_id, plan.target_id) for plan in plans]

    # --- groups -----------------------------------------------------------------------------------------------------

    async def _move_groups(self, copier: Copier) -> None:
        """Once for every offset that is new; what the groups have read is copied first."""
        changed = await self._carrier.changed(self._source, [state.source for state in self._list()])
        if not changed:
            return
        async with self._ranges() as (source, target):
            _, ends = await source.bounds([state.source for state in self._list()])
            for offsets in changed.values():
                for tp, offset in offsets.items():
                    self._states[tp].end = max(self._states[tp].end, min(offset, ends[tp]))
            await self._copy_to_end(copier)
            for group, offsets in changed.items():
                await self._carrier.carry(
                    group, offsets, self._states, source=source, target=target, admin=self._target
                )

    def _list(self) -> list[CopyState]:
        return list(self._states.values())


class Retries:
    """When to try again: with growing pauses, until nothing was copied for ``patience`` seconds."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._backoff = self._new_backoff()
        self._records = -1
        self._since = 0.0

    def failed(self, records: int, now: float) -> float | None:
        """Seconds to wait, None if it is time to give up; ``records`` were copied in all."""
        if records != self._records:
            self._records, self._since, self._backoff = records, now, self._new_backoff()
        return None if now - self._since > self._patience else self._backoff.failed()

    @staticmethod
    def _new_backoff() -> Backoff:
        return Backoff(0.2, 5.0, lambda: 1.0)


@contextmanager
def _errors_about(side: str) -> Iterator[None]:
    """Both clusters have settings of the same names."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{side}: {error.message}") from None


def _compiled(name: str, pattern: str | re.Pattern[str] | None) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern) if isinstance(pattern, str) else pattern
    except re.error as error:
        raise ConfigError(f"{name}={pattern!r:.300} is not a regular expression: {error}") from error


def _first(error: BaseException | None, kinds: tuple[type[KafkaError], ...]) -> KafkaError | None:
    """The first error of these kinds along the chain of causes."""
    while error is not None:
        if isinstance(error, kinds):
            return error
        error = error.__cause__
    return None
