"""Storage folders of KRaft nodes, with a program in place of Kafka's tool: it runs once; each node has its own ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers import storage
from tests.brokers.model import Cluster, ClusterError

CHECKPOINT = b"features and users"


class Tool:
    """Formats the folder of the node whose configuration it gets, as Kafka's tool does."""

    def __init__(self) -> None:
        self.runs: list[list[str]] = []

    def __call__(self, command: list[str], what: str) -> str:
        self.runs.append(command)
        config = Path(command[command.index("-c") + 1])
        home = config.parents[1] / "data" / config.stem
        home.mkdir(parents=True, exist_ok=True)
        (home / "bootstrap.checkpoint").write_bytes(CHECKPOINT)
        ids = {"cluster.id": command[command.index("-t") + 1], "directory.id": "d", "node.id": config.stem}
        lines = ["#", "#Sat Nov 28 05:00:00 UTC 2026", *(f"{key}={value}" for key, value in ids.items()), "version=1"]
        (home / storage.META).write_text("\n".join(lines) + "\n")
        return ""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Tool:
    started = Tool()
    monkeypatch.setenv("KAFKA_BROKERS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(storage, "tool_class", lambda jars, tool: "StorageTool")
    monkeypatch.setattr(storage, "tool_command", lambda cluster, *words: list(words))
    monkeypatch.setattr(storage, "run_quietly", started)
    return started


def cluster_in(folder: Path) -> Cluster:
    return Cluster(
        version="4.3.1", mode="kraft", dir=str(folder), jars="jars", java="java", base_port=1, count=2,
        listeners=["PLAINTEXT"], sasl=[], cluster_id=storage.new_id(),
    )  # fmt: skip


def ids_of(cluster: Cluster, node: int) -> dict[str, str]:
    lines = (cluster.folder / "data" / str(node) / storage.META).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_the_tool_runs_once_for_all_nodes_and_clusters(tool: Tool, tmp_path: Path) -> None:
    clusters = [cluster_in(tmp_path / name) for name in ("one", "two")]
    for cluster in clusters:
        storage.format_storage(cluster, [1, 2, 100], [])
    assert len(tool.runs) == 1
    found = [ids_of(cluster, node) for cluster in clusters for node in (1, 2, 100)]
    assert [one["node.id"] for one in found] == ["1", "2", "100"] * 2
    assert [one["cluster.id"] for one in found] == [one.cluster_id for one in clusters for _ in range(3)]
    assert len({one["directory.id"] for one in found}) == len(found)
    assert {one["version"] for one in found} == {"1"}
    assert {path.read_bytes() for path in tmp_path.glob("*/data/*/bootstrap.checkpoint")} == {CHECKPOINT}


def test_other_users_or_features_are_formatted_anew(tool: Tool, tmp_path: Path) -> None:
    for number, words in enumerate(([], ["--feature", "group.version=0"], [])):
        storage.format_storage(cluster_in(tmp_path / str(number)), [1], words)
    assert len(tool.runs) == 2
    assert tool.runs[1][-2:] == ["--feature", "group.version=0"]


def test_a_release_without_the_tool_is_refused(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "tool_class", lambda jars, tool: None)
    with pytest.raises(ClusterError, match=r"Kafka 4\.3\.1 has no StorageTool"):
        storage.format_storage(cluster_in(tmp_path), [1], [])
