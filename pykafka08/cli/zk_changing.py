"""``pykafka08 zk topic|config|acl|group``: changes through ZooKeeper."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio

from pykafka08.cli.exits import DONE, FAILED, Interrupt
from pykafka08.cli.notes import note
from pykafka08.cli.properties import parse_pairs
from pykafka08.cli.streams import standard_output
from pykafka08.cli.tables import print_json, print_rows
from pykafka08.consumer.consumer import Consumer
from pykafka08.errors import AdminRefusedError, ConfigError
from pykafka08.records.record import TopicPartition
from pykafka08.setting_hints import hint
from pykafka08.zookeeper import paths, reading
from pykafka08.zookeeper.admin.acls import LITERAL, PREFIXED
from pykafka08.zookeeper.admin.admin import ZooKeeperAdmin
from pykafka08.zookeeper.admin.configs import entity_path
from pykafka08.zookeeper.admin.partitions import Move
from pykafka08.zookeeper.admin.release import bootstrap_servers
from pykafka08.zookeeper.admin.topics import no_such_topic
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.nodes.acls import Acl
from pykafka08.zookeeper.nodes.brokers import Topic

__all__ = ["change"]

Settings = dict[str, Any]


async def change(options: argparse.Namespace, zookeeper: Settings, client: Settings, interrupt: Interrupt) -> int:
    """The exit status."""
    with interrupt.part():
        async with ZooKeeper(**zookeeper) as zk:
            admin = ZooKeeperAdmin(zk, force=getattr(options, "force", False), client=client)
            options.client_settings = client
            return await _ACTIONS[options.command, options.action](admin, options)
    return DONE


def _waiting(options: argparse.Namespace) -> dict[str, Any]:
    return {"wait": not options.no_wait, "timeout": float(options.timeout)}


# --- topics ---------------------------------------------------------------------------------------------------------


async def _create_topic(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    made = await admin.create_topic(
        options.topic,
        options.partitions,
        options.replication_factor,
        configs=parse_pairs(options.settings),
        assignment=options.replica_assignment,
        validate_only=options.dry_run,
        **_waiting(options),
    )
    await _print_assignment(options, made)
    note(f"topic {options.topic!r} {'would be' if options.dry_run else 'is'} created")
    return DONE


async def _add_partitions(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    added = await admin.add_partitions(options.topic, options.total, **_waiting(options))
    await _print_assignment(options, added)
    note(f"topic {options.topic!r} has {options.total} partitions")
    return DONE


async def _print_assignment(options: argparse.Namespace, assignment: Mapping[int, Any]) -> None:
    rows = [{"partition": number, "replicas": list(ids)} for number, ids in sorted(assignment.items())]
    await print_rows(rows, ("partition", "replicas"), as_json=options.json)


async def _delete_topic(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    is_new = await admin.delete_topic(options.topic, **_waiting(options))
    what = "is marked for deletion" if options.no_wait else "is deleted"
    note(f"topic {options.topic!r} {what}{'' if is_new else ' (it was marked before)'}")
    return DONE


async def _elect(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    asked = await admin.elect_preferred_leaders(options.partition, **_waiting(options))
    note(f"asked for {len(asked)} partitions; the controller's log says which replicas were not in sync")
    return DONE


async def _reassign(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    moves: dict[TopicPartition, list[int]] = dict(options.moves)
    states = await (admin.reassignment(moves) if options.verify else admin.reassign(moves, **_waiting(options)))
    rows = [{"topic": tp.topic, "partition": tp.partition, "state": state.value} for tp, state in states.items()]
    await print_rows(rows, ("topic", "partition", "state"), as_json=options.json)
    return FAILED if Move.FAILED in states.values() else DONE


# --- settings -------------------------------------------------------------------------------------------------------


def _entity(options: argparse.Namespace) -> str:
    return entity_path(topic=options.topic, client=options.client, user=options.user, broker=options.broker)


async def _show_config(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    await _print_config(options, await admin.describe_configs(_entity(options)))
    return DONE


async def _alter_config(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    entity = _entity(options)
    after = await admin.alter_configs(entity, parse_pairs(options.settings), remove=options.remove)
    await _print_config(options, after)
    note(f"{entity} is altered, and the brokers are told")
    return DONE


async def _print_config(options: argparse.Namespace, config: Mapping[str, str]) -> None:
    if options.json:
        await print_json(dict(config))
        return
    rows = [{"name": name, "value": value} for name, value in sorted(config.items())]
    await print_rows(rows, ("name", "value"), as_json=False)
    if not rows:
        note("nothing is set: the brokers' own settings hold")


# --- rules ----------------------------------------------------------------------------------------------------------


async def _list_acls(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    rows = [
        {"type": kind, "name": name, "pattern": pattern, **_rule_row(rule)}
        for (pattern, kind, name), rules in (await admin.acls()).items()
        for rule in rules
    ]
    columns = ("type", "name", "pattern", "permission", "principal", "operation", "host")
    await print_rows(rows, columns, as_json=options.json)
    return DONE


def _rule_row(rule: Acl) -> dict[str, object]:
    return {
        "permission": rule.permission,
        "principal": rule.principal,
        "operation": rule.operation,
        "host": rule.host,
    }


def _rules(options: argparse.Namespace) -> list[Acl]:
    given = [("Allow", each) for each in options.allow] + [("Deny", each) for each in options.deny]
    return [
        Acl(principal=principal, permission=permission, operation=operation, host=options.host)
        for permission, principal in given
        for operation in options.operation or ["All"]
    ]


def _resource(options: argparse.Namespace) -> tuple[str, str]:
    if options.cluster:
        return "Cluster", "kafka-cluster"
    return ("Topic", options.topic) if options.topic is not None else ("Group", options.group)


async def _add_acls(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    rules = _rules(options)
    if not rules:
        raise ConfigError("give --allow or --deny")
    pattern = PREFIXED if options.prefixed else LITERAL
    after = await admin.add_acls(*_resource(options), rules, pattern=pattern)
    await print_rows(map(_rule_row, after), ("permission", "principal", "operation", "host"), as_json=options.json)
    return DONE


async def _remove_acls(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    pattern = PREFIXED if options.prefixed else LITERAL
    after = await admin.remove_acls(*_resource(options), _rules(options) or None, pattern=pattern)
    await print_rows(map(_rule_row, after), ("permission", "principal", "operation", "host"), as_json=options.json)
    return DONE


# --- groups ---------------------------------------------------------------------------------------------------------


async def _reset_group(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    known = await reading.group_names(admin.zk)
    if options.group not in known and not options.force:
        told = hint(options.group, set(known))
        raise AdminRefusedError(
            f"ZooKeeper has no group {options.group!r}{f' ({told})' if told else ''}; --force makes it",
            path=paths.consumer_group(options.group),
        )
    topic = await reading.node(admin.zk, Topic, paths.topic(options.topic))
    if topic is None:
        raise no_such_topic(options.topic)
    numbers = options.partition or sorted(topic.partitions)
    partitions = [TopicPartition(options.topic, number) for number in numbers]
    offsets = await _targets(admin, options.to, partitions, options.client_settings)
    before = await admin.reset_group_offsets(options.group, offsets)
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "before": before[tp], "now": offset}
        for tp, offset in offsets.items()
    ]
    await print_rows(rows, ("topic", "partition", "before", "now"), as_json=options.json)
    return DONE


async def _targets(
    admin: ZooKeeperAdmin, target: str | int, partitions: list[TopicPartition], client: Settings
) -> dict[TopicPartition, int]:
    if isinstance(target, int):
        return dict.fromkeys(partitions, target)
    protocol = client.get("security_protocol", "PLAINTEXT")
    servers = bootstrap_servers(await reading.brokers(admin.zk), protocol)
    if not servers:
        raise ConfigError(f"--to {target}: no broker is alive to be asked; give a number, with --force")
    async with Consumer(**{**client, "bootstrap_servers": servers}) as consumer:
        asked = consumer.beginning_offsets if target == "earliest" else consumer.end_offsets
        return dict(await asked(partitions))


async def _delete_group(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    if options.topic is None:
        await admin.delete_group(options.group)
        note(f"group {options.group!r} is deleted from ZooKeeper")
    else:
        await admin.delete_group_offsets(options.group, options.topic)
        note(f"the offsets of group {options.group!r} for {options.topic!r} are deleted from ZooKeeper")
    return DONE


async def _export(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    text = await admin.export_offsets(options.group or None)
    if options.json:
        await print_json(text.splitlines())
    else:
        await standard_output().write(text.encode())
    return DONE


async def _import(admin: ZooKeeperAdmin, options: argparse.Namespace) -> int:
    try:
        if options.file == "-":
            text = await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
        else:
            text = await anyio.to_thread.run_sync(Path(options.file).read_text)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{options.file}: {error}") from error
    known = await reading.group_names(admin.zk)
    before = await admin.import_offsets(text)
    count = sum(map(len, before.values()))
    if not count:
        raise ConfigError(f"{options.file} has no line with an offset")
    new = sorted(set(before) - set(known))
    if new:
        note(f"groups that were not there, and are made: {', '.join(new)}")
    note(f"{count} offsets of {len(before)} groups are set")
    return DONE


_ACTIONS: Mapping[tuple[str, str], Callable[[ZooKeeperAdmin, argparse.Namespace], Awaitable[int]]] = {
    ("topic", "create"): _create_topic,
    ("topic", "add-partitions"): _add_partitions,
    ("topic", "delete"): _delete_topic,
    ("topic", "elect"): _elect,
    ("topic", "reassign"): _reassign,
    ("config", "show"): _show_config,
    ("config", "alter"): _alter_config,
    ("acl", "list"): _list_acls,
    ("acl", "add"): _add_acls,
    ("acl", "remove"): _remove_acls,
    ("group", "reset"): _reset_group,
    ("group", "delete"): _delete_group,
    ("group", "export"): _export,
    ("group", "import"): _import,
}
