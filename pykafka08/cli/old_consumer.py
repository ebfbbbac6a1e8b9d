"""The console consumer with ``--zookeeper``, as Kafka 0.8 to 1.1 had it: a member of an old group.

Without a group it is in one of its own, whose nodes go with it.  What is printed is committed.  Formats, counts and
ends are those of the console consumer that asks brokers.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import anyio

from pykafka08.cli.exits import DONE, Interrupt, run_until
from pykafka08.cli.formats import RecordFormat
from pykafka08.cli.notes import note
from pykafka08.cli.options import client_properties
from pykafka08.cli.printer import Printer
from pykafka08.cli.progress import Progress
from pykafka08.cli.streams import OutputClosedError, standard_output
from pykafka08.cli.zookeeper_options import zookeeper_settings
from pykafka08.errors import AdminRefusedError, ConfigError, KafkaError, NoNodeError
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.legacy.settings import settings_of
from pykafka08.zookeeper.legacy_consumer import LegacyConsumer

__all__ = ["OldPlan", "copy_old_records", "old_plan"]

COMMIT_EVERY_MS = 10_000
"""Of Kafka's own tool."""
WATCH_SECONDS = 0.5

NOT_HERE = {
    "bootstrap_server": "--bootstrap-server",
    "partition": "--partition",
    "offset": "--offset",
    "isolation_level": "--isolation-level",
}


@dataclass(frozen=True, kw_only=True)
class OldPlan:
    """What the options ask for."""

    zookeeper: str
    settings: dict[str, Any]
    topic: str | None
    white_list: str | None
    black_list: str | None
    from_beginning: bool
    deletes_offsets: bool
    is_group_ours: bool
    """Nobody named it: it goes with us."""
    limit: float
    idle_s: float
    record_format: RecordFormat
    skips_errors: bool


def old_plan(options: argparse.Namespace, record_format: RecordFormat) -> OldPlan:
    """The plan; a ConfigError says which options contradict each other."""
    for name, option in NOT_HERE.items():
        if getattr(options, name) is not None:
            raise ConfigError(f"--zookeeper and {option} exclude each other")
    if sum(each is not None for each in (options.topic, options.include, options.blacklist)) != 1:
        raise ConfigError("exactly one of --topic, --whitelist and --blacklist is needed")
    properties = client_properties(options.config, options.properties, "--consumer-property")
    settings, notes = settings_of(properties, ("zookeeper_connect",))
    settings.pop("zookeeper_connect", None)  # the option counts, as in Kafka's tool
    for each in notes:
        note(each)
    if options.group is not None and settings.setdefault("group_id", options.group) != options.group:
        raise ConfigError(f"--group {options.group} and group.id={settings['group_id']} exclude each other")
    is_group_ours = "group_id" not in settings
    if is_group_ours:
        settings["group_id"] = f"console-consumer-{random.randrange(100_000)}"  # noqa: S311 - a name, as Kafka's tool makes it
    settings.setdefault("auto_commit_interval_ms", COMMIT_EVERY_MS)
    settings["zookeeper_settings"] = zookeeper_settings(options)
    if options.from_beginning:
        settings["auto_offset_reset"] = "smallest"
    return OldPlan(
        zookeeper=options.zookeeper,
        settings=settings,
        topic=options.topic,
        white_list=options.include,
        black_list=options.blacklist,
        from_beginning=options.from_beginning,
        deletes_offsets=options.delete_consumer_offsets,
        is_group_ours=is_group_ours,
        limit=math.inf if options.max_messages is None else options.max_messages,
        idle_s=math.inf if options.timeout_ms is None else options.timeout_ms / 1000,
        record_format=record_format,
        skips_errors=options.skip_message_on_error,
    )


async def copy_old_records(plan: OldPlan, interrupt: Interrupt) -> int:
    """Until the plan is carried out, a signal comes, or nobody reads standard output any more."""
    output, progress = standard_output(), Progress.on_terminal(unless_output=True)
    printer, is_read = Printer(plan, output, progress), True
    membership = Membership()
    try:
        with interrupt.part():
            is_read = await run_until(output.wait_closed, partial(_copy, plan, printer, membership)) is not None
    except OutputClosedError:
        is_read = False
    except KafkaError:
        is_read = printer.records > 0  # else the error is all there is to say
        raise
    finally:
        progress.clear()
        if plan.is_group_ours:
            with anyio.CancelScope(shield=True):
                await _forget_group(plan, membership)
        if is_read:
            note(f"Processed a total of {printer.records} messages")
    return DONE


class Membership:
    """Whether the consumer was entered: before, no word is due of nodes of its group."""

    is_begun = False


async def _copy(plan: OldPlan, printer: Printer, membership: Membership) -> int:
    if not plan.is_group_ours:
        await _look_at_offsets(plan)
    topics = () if plan.topic is None else (plan.topic,)
    lists = {"white_list": plan.white_list, "black_list": plan.black_list}
    consumer = LegacyConsumer(*topics, zookeeper=plan.zookeeper, **lists, **plan.settings)  # type: ignore[arg-type]
    async with consumer:
        membership.is_begun = True
        await run_until(partial(_tell_trouble, consumer), partial(_print_all, plan, consumer, printer))
    return printer.records


async def _print_all(plan: OldPlan, consumer: LegacyConsumer, printer: Printer) -> None:
    """Until the count or the idle time is reached."""
    batches = consumer.batches()
    while not printer.is_done:
        with anyio.move_on_after(plan.idle_s) as idle:
            batch = await anext(batches)
        if idle.cancelled_caught:
            note(f"no record for {plan.idle_s:g} s")
            return
        before = printer.records
        await printer.print(batch)
        printed = printer.records - before
        consumer.acknowledge(batch if printed == len(batch) else next(islice(batch, printed - 1, None)))


async def _tell_trouble(consumer: LegacyConsumer) -> None:
    """A note when something goes wrong, and when it is over; then wait for the caller to end this."""
    watch = TroubleWatch()
    while True:
        said = watch.look(consumer.health().trouble)
        if said is not None:
            note(said)
        await anyio.sleep(WATCH_SECONDS)


class TroubleWatch:
    """What is worth a note: trouble that stands at two looks in a row (at the start metadata may lack a topic for a
    moment), and its end."""

    def __init__(self) -> None:
        self._looks = 0
        self._is_told = False

    def look(self, trouble: str | None) -> str | None:
        """The note, if there is one, to what is wrong now."""
        if trouble is None:
            was_told, self._looks, self._is_told = self._is_told, 0, False
            return "reading goes on" if was_told else None
        self._looks += 1
        if self._looks < 2 or self._is_told:
            return None
        self._is_told = True
        return trouble


async def _look_at_offsets(plan: OldPlan) -> None:
    """Offsets of a group would make --from-beginning begin in the midst: they are deleted where that is asked for."""
    group = plan.settings["group_id"]
    async with ZooKeeper(plan.zookeeper, **plan.settings["zookeeper_settings"]) as zk:
        offsets = paths.group_offsets(group)
        if await zk.exists(offsets) is None:
            return
        if plan.deletes_offsets:
            if await _children(zk, paths.consumer_ids(group)):
                raise AdminRefusedError(f"group {group!r} has members alive: its offsets are not deleted")
            await _delete_all(zk, offsets)
        elif plan.from_beginning:
            raise ConfigError(
                f"group {group!r} has committed offsets, and would go on there: add --delete-consumer-offsets to read "
                "from the beginning, or leave --from-beginning out"
            )


async def _forget_group(plan: OldPlan, membership: Membership) -> None:
    """The nodes of a group that nobody has named."""
    try:
        async with ZooKeeper(plan.zookeeper, **plan.settings["zookeeper_settings"]) as zk:
            await _delete_all(zk, paths.consumer_group(plan.settings["group_id"]))
    except KafkaError as error:
        if membership.is_begun:
            note(f"the nodes of group {plan.settings['group_id']} are left behind: {error}")


async def _children(zk: ZooKeeper, path: str) -> list[str]:
    try:
        return await zk.children(path)
    except NoNodeError:
        return []


async def _delete_all(zk: ZooKeeper, path: str) -> None:
    for name in await _children(zk, path):
        await _delete_all(zk, f"{path}/{name}")
    try:
        await zk.delete(path)
    except NoNodeError:
        return
