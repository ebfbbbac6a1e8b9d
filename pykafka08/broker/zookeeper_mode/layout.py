"""What brokers of each release write into their nodes, and how they read those that tools write.

Source: the nodes of real brokers, and ZkUtils and ZkData at each release.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from pykafka08.broker.endpoints import Endpoint
from pykafka08.broker.personality import Personality

__all__ = [
    "broker_document",
    "cluster_document",
    "controller_document",
    "parse_assignment",
    "parse_change",
    "parse_config",
    "parse_partitions",
    "state_document",
    "to_json",
    "topic_document",
]

# From which release on a broker makes which nodes at its start.
NODES_AT_START: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("/consumers", (0, 8)),
    ("/brokers/ids", (0, 8)),
    ("/brokers/topics", (0, 8)),
    ("/config/changes", (0, 8, 1)),
    ("/config/topics", (0, 8, 1)),
    ("/admin/delete_topics", (0, 8, 1)),
    ("/brokers/seqid", (0, 9)),
    ("/config/clients", (0, 9)),
    ("/isr_change_notification", (0, 9)),
    ("/latest_producer_id_block", (0, 11)),
    ("/log_dir_event_notification", (1, 0)),
    ("/config/users", (1, 1)),
    ("/config/brokers", (1, 1)),
)


def to_json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _now() -> str:
    return str(time.time_ns() // 1_000_000)


def broker_document(release: Personality, endpoints: Sequence[Endpoint], rack: str | None) -> dict[str, Any]:
    """``/brokers/ids/<id>``; ``host`` and ``port`` in it are those of a plaintext listener, null and -1 without one."""
    plain = next((each for each in endpoints if each.protocol == "PLAINTEXT"), None)
    host, port = (None, -1) if plain is None else (plain.host, plain.port)
    document: dict[str, Any] = {"jmx_port": -1, "timestamp": _now(), "host": host, "version": 1, "port": port}
    if release >= (0, 9):
        document.update(version=2, endpoints=[each.url for each in endpoints])
    if release >= (0, 10):
        document.update(version=3, **({"rack": rack} if rack is not None else {}))
    if release >= (0, 10, 2):
        document.update(version=4, listener_security_protocol_map={each.listener: each.protocol for each in endpoints})
    if release >= (2, 7):
        document.update(version=5, features={})
    return document


def topic_document(release: Personality, replicas: Sequence[Sequence[int]], topic_id: UUID) -> dict[str, Any]:
    """``/brokers/topics/<topic>``."""
    document: dict[str, Any] = {
        "version": 1,
        "partitions": {str(index): list(nodes) for index, nodes in enumerate(replicas)},
    }
    if release >= (2, 4):
        document.update(version=2, adding_replicas={}, removing_replicas={})
    if release >= (2, 8):
        document.update(version=3, topic_id=base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("="))
    return document


def state_document(controller_epoch: int, leader: int, leader_epoch: int, isr: Sequence[int]) -> dict[str, Any]:
    """``/brokers/topics/<topic>/partitions/<partition>/state``."""
    return {
        "controller_epoch": controller_epoch,
        "leader": leader,
        "version": 1,
        "leader_epoch": leader_epoch,
        "isr": list(isr),
    }


def controller_document(release: Personality, node_id: int) -> dict[str, Any]:
    document: dict[str, Any] = {"version": 1, "brokerid": node_id, "timestamp": _now()}
    if release >= (3, 4):
        document.update(version=2, kraftControllerEpoch=-1)
    return document


def cluster_document(cluster_id: str) -> dict[str, Any]:
    return {"version": "1", "id": cluster_id}


def _object(data: bytes) -> dict[str, Any]:
    """ValueError for anything else."""
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("the node holds no JSON object")
    return document


def parse_assignment(data: bytes) -> list[list[int]]:
    """The replicas of a topic's partitions, which are numbered from 0 on; ValueError."""
    partitions = _object(data).get("partitions")
    if not isinstance(partitions, dict):
        raise ValueError("the node names no partitions")
    replicas = {int(index): [int(node) for node in nodes] for index, nodes in partitions.items()}
    if sorted(replicas) != list(range(len(replicas))):
        raise ValueError("the partitions are not numbered from 0 on")
    return [replicas[index] for index in range(len(replicas))]


def parse_partitions(data: bytes) -> list[tuple[str, int, list[int]]]:
    """Topic, partition and new replicas (or none) of what a tool asks for; ValueError."""
    return [
        (str(each["topic"]), int(each["partition"]), [int(node) for node in each.get("replicas", ())])
        for each in _object(data).get("partitions", ())
    ]


def parse_config(data: bytes) -> dict[str, str]:
    config = _object(data).get("config", {})
    return {str(name): str(value) for name, value in config.items()}


def parse_change(release: Personality, data: bytes) -> str | None:
    """The topic whose settings have changed, as this release reads the note; None for what it does not understand."""
    document = json.loads(data)
    if isinstance(document, str):
        return document if release < (0, 9) else None
    if release < (0, 9):
        return None
    if document.get("version") == 1 and document.get("entity_type") == "topics":
        return str(document.get("entity_name"))
    path = str(document.get("entity_path", ""))
    if document.get("version") == 2 and release >= (0, 10, 1) and path.startswith("topics/"):
        return path.removeprefix("topics/")
    return None
