"""``pykafka08 zk tree|brokers|topics|groups|offsets|lag``: reading ZooKeeper, and printing it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from pykafka08.cli.exits import DONE, FAILED, Interrupt
from pykafka08.cli.notes import note
from pykafka08.cli.streams import standard_output
from pykafka08.cli.tables import print_json, print_rows, printable
from pykafka08.errors import KafkaError, MalformedNodeError
from pykafka08.zookeeper import reading
from pykafka08.zookeeper.admin.release import bootstrap_servers
from pykafka08.zookeeper.admin.topics import no_such_topic
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.inspection import group_progress
from pykafka08.zookeeper.nodes.consumers import Registration

__all__ = ["show"]

Settings = dict[str, Any]

_SECRET = re.compile(r"\b(salt|stored_key|server_key)=[^,\"\\]*")
WIDEST = 160
"""Characters of a node's data in a line of the tree; --json has all."""


async def show(options: argparse.Namespace, zookeeper: Settings, client: Settings, interrupt: Interrupt) -> int:
    """The exit status."""
    with interrupt.part():
        async with ZooKeeper(**zookeeper) as zk:
            return await _COMMANDS[options.command](zk, options, client)
    return DONE


def _note_trouble(error: MalformedNodeError) -> None:
    note(f"malformed: {error.path}: {error.why}")


# --- nodes ----------------------------------------------------------------------------------------------------------


async def _tree(zk: ZooKeeper, options: argparse.Namespace, _: Settings) -> int:
    rows = []
    output = standard_output()
    async for node in reading.tree(zk, options.path):
        data = node.data.decode(errors="replace")
        text = data if options.show_secrets else _SECRET.sub(r"\1=(hidden)", data)
        if options.json:
            rows.append(
                {
                    "path": node.path,
                    "kind": node.kind,
                    "data": text,
                    "ephemeral": node.is_ephemeral,
                    "version": node.version,
                    "malformed": node.trouble,
                }
            )
            continue
        await output.write(_line_of_tree(node, text, options.path).encode())
    if options.json:
        await print_json(rows)
    return DONE


def _line_of_tree(node: reading.TreeNode, text: str, top: str) -> str:
    depth = 0 if node.path == top else node.path[len(top.rstrip("/")) :].count("/")
    name = node.path if depth == 0 else node.path.rpartition("/")[2]
    shown = printable(text)
    shown = shown if len(shown) <= WIDEST else f"{shown[:WIDEST]}..."
    marks = [" (ephemeral)" if node.is_ephemeral else "", f"  {shown}" if shown else ""]
    marks += [f"  MALFORMED: {printable(node.trouble)}"] if node.trouble else []
    marks += ["  (not Kafka's)"] if node.kind is None else []
    return "  " * depth + printable(name) + "".join(marks) + "\n"


# --- brokers and topics ---------------------------------------------------------------------------------------------


async def _brokers(zk: ZooKeeper, options: argparse.Namespace, _: Settings) -> int:
    leader = await reading.controller(zk)
    rows = [
        {
            "id": broker_id,
            "controller": broker_id == leader,
            "listeners": [f"{each.listener}://{_host(each.host)}:{each.port}" for each in broker.listeners],
            "rack": broker.rack,
            "version": broker.version,
            "release": _RELEASES.get(broker.version, "2.7 or later"),
        }
        for broker_id, broker in (await reading.brokers(zk, _note_trouble)).items()
    ]
    await print_rows(rows, ("id", "controller", "listeners", "rack", "version", "release"), as_json=options.json)
    if not rows:
        note("no broker is alive")
    return DONE


_RELEASES = {1: "0.8", 2: "0.9", 3: "0.10.0 or 0.10.1", 4: "0.10.2 to 2.6"}
"""What a registration's version tells; one that is pinned to an older inter.broker.protocol.version may tell less."""


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


async def _topics(zk: ZooKeeper, options: argparse.Namespace, _: Settings) -> int:
    if options.topic is not None:
        return await _partitions(zk, options)
    rows = []
    for name in await reading.topic_names(zk):
        view = await reading.topic(zk, name, _note_trouble)
        if view is None:
            continue
        states = view.states
        assignment = view.assignment.partitions
        rows.append(
            {
                "topic": name,
                "partitions": len(assignment),
                "replicas": max(map(len, assignment.values()), default=0),
                "leaderless": sum(1 for each in assignment if each not in states or states[each].leader < 0),
                "under-replicated": sum(
                    1 for each, ids in assignment.items() if each in states and len(states[each].isr) < len(ids)
                ),
                "configs": dict(view.config),
                "deleting": view.is_marked_for_deletion,
            }
        )
    columns = ("topic", "partitions", "replicas", "leaderless", "under-replicated", "configs", "deleting")
    await print_rows(rows, columns, as_json=options.json)
    if not rows:
        note("there is no topic")
    return DONE


async def _partitions(zk: ZooKeeper, options: argparse.Namespace) -> int:
    view = await reading.topic(zk, options.topic, _note_trouble)
    if view is None:
        raise no_such_topic(options.topic)
    rows: list[Mapping[str, object]] = []
    for number, replicas in sorted(view.assignment.partitions.items()):
        state = view.states.get(number)
        rows.append(
            {
                "partition": number,
                "leader": state.leader if state else None,
                "epoch": state.leader_epoch if state else None,
                "replicas": list(replicas),
                "in-sync": list(state.isr) if state else [],
            }
        )
    if options.json:
        await print_json(
            {
                "topic": view.name,
                "partitions": rows,
                "configs": dict(view.config),
                "deleting": view.is_marked_for_deletion,
            }
        )
        return DONE
    await print_rows(rows, ("partition", "leader", "epoch", "replicas", "in-sync"), as_json=False)
    if view.config:
        note("configs: " + ", ".join(f"{name}={value}" for name, value in view.config.items()))
    if view.is_marked_for_deletion:
        note("the topic is marked for deletion")
    return DONE


# --- groups ---------------------------------------------------------------------------------------------------------


async def _groups(zk: ZooKeeper, options: argparse.Namespace, _: Settings) -> int:
    if options.group is not None:
        return await _members(zk, options)
    rows = []
    for name in await reading.group_names(zk):
        group = await reading.group(zk, name, _note_trouble)
        if group is not None:
            topics = sorted({tp.topic for tp in group.offsets} | {tp.topic for tp in group.owners})
            rows.append(
                {
                    "group": name,
                    "members": len(group.members),
                    "owned": len(group.owners),
                    "offsets": len(group.offsets),
                    "topics": topics,
                }
            )
    await print_rows(rows, ("group", "members", "owned", "offsets", "topics"), as_json=options.json)
    if not rows:
        note("ZooKeeper has no group; groups of the new consumer are in Kafka alone")
    return DONE


async def _members(zk: ZooKeeper, options: argparse.Namespace) -> int:
    group = await reading.group(zk, options.group, _note_trouble)
    if group is None:
        raise KafkaError(f"ZooKeeper has no group {options.group!r}")
    rows = [_member(group, name, registration) for name, registration in group.members.items()]
    await print_rows(rows, ("member", "pattern", "subscription", "since", "owns"), as_json=options.json)
    if not rows:
        note(f"nobody of group {group.name!r} is alive")
    return DONE


def _member(group: reading.Group, name: str, registration: Registration | None) -> dict[str, object]:
    owned = sorted(tp for tp, owner in group.owners.items() if owner.rpartition("-")[0] == name)
    return {
        "member": name,
        "pattern": registration.pattern if registration else "MALFORMED",
        "subscription": dict(registration.subscription) if registration else {},
        "since": _time(registration.timestamp) if registration else None,
        "owns": [f"{tp.topic}:{tp.partition}" for tp in owned],
    }


def _time(timestamp: str | int | None) -> str | None:
    """Of milliseconds, in ISO's form; what is no time is shown as it is."""
    try:
        moment = datetime.fromtimestamp(int(timestamp or "") / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None if timestamp is None else str(timestamp)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


async def _offsets(zk: ZooKeeper, options: argparse.Namespace, client: Settings) -> int:
    servers = options.bootstrap_server.split(",") if options.bootstrap_server else None
    if servers is None:
        protocol = client.get("security_protocol", "PLAINTEXT")
        servers = bootstrap_servers(await reading.brokers(zk, _note_trouble), protocol)
    has_ends = options.command == "lag"
    progress = await group_progress(zk, options.group, servers, has_ends=has_ends, client=client)
    if progress is None:
        raise KafkaError(f"neither ZooKeeper nor Kafka has a group {options.group!r}")
    for text in progress.trouble:
        note(text)
    rows = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "zookeeper": each.zookeeper,
            "kafka": each.kafka,
            **({"end": each.end, "lag": each.lag} if has_ends else {}),
            "owner": each.owner,
        }
        for each in progress.partitions
    ]
    columns = ("topic", "partition", "zookeeper", "kafka", *(("end", "lag") if has_ends else ()), "owner")
    await print_rows(rows, columns, as_json=options.json)
    if progress.refusal is not None:
        raise progress.refusal
    return FAILED if progress.trouble and has_ends else DONE


_COMMANDS: Mapping[str, Callable[[ZooKeeper, argparse.Namespace, Settings], Awaitable[int]]] = {
    "tree": _tree,
    "brokers": _brokers,
    "topics": _topics,
    "groups": _groups,
    "offsets": _offsets,
    "lag": _offsets,
}
