"""Creating topics: by request where the release has one (0.10.1); before that by asking for it, or by the tool."""

from __future__ import annotations

import time

from tests.brokers import probe
from tests.brokers.jars import tool_class
from tests.brokers.model import Cluster, ClusterError, Topic
from tests.brokers.processes import run_quietly
from tests.brokers.readiness import wait_topics
from tests.brokers.tools import tool_command

ALREADY_EXISTS = 36
PASSING_ERRORS = {7, 38, 41}
"""REQUEST_TIMED_OUT, INVALID_REPLICATION_FACTOR (not all brokers known yet), NOT_CONTROLLER."""


def parse_topic(text: str, brokers: int) -> Topic:
    """NAME[:PARTITIONS[:REPLICAS[:key=value,...]]]"""
    name, *numbers = text.split(":", 3)
    configs = numbers.pop() if len(numbers) == 3 else ""
    try:
        partitions, replicas = [*(int(number) for number in numbers), 1, 1][:2]
        pairs = dict(pair.split("=", 1) for pair in configs.split(",")) if configs else {}
    except ValueError:
        raise ClusterError(f"--topic is NAME[:PARTITIONS[:REPLICAS[:key=value,...]]], not {text}") from None
    topic = Topic(name, partitions, replicas, pairs)
    if topic.replicas > brokers:
        raise ClusterError(f"topic {name} wants {topic.replicas} replicas of {brokers} brokers")
    return topic


def create_topics(cluster: Cluster, topics: list[Topic]) -> None:
    """Create them and wait until they can be used; one that exists already is left as it is."""
    if not topics:
        return
    if cluster.release >= (0, 10, 1):
        _by_request(cluster, topics)
    else:
        for topic in topics:
            if _is_plain(cluster, topic):
                probe.metadata(cluster.port(1), cluster.release, [topic.name], create=True)
            else:
                _by_tool(cluster, topic)
    wait_topics(cluster, topics, timeout=60 + sum(one.partitions for one in topics) / 5)  # old controllers are slow


def _is_plain(cluster: Cluster, topic: Topic) -> bool:
    """Whether it is what the brokers make by themselves of a topic that a client asks for: no JVM has to start."""
    settings = {one.key: one.value for one in cluster.props}
    return (
        settings.get("auto.create.topics.enable", "true") == "true"
        and topic.partitions == int(settings.get("num.partitions", "1"))
        and topic.replicas == int(settings.get("default.replication.factor", "1"))
        and not topic.configs
    )


def _by_request(cluster: Cluster, topics: list[Topic]) -> None:
    end = time.monotonic() + 60
    while True:
        controller = probe.metadata(cluster.port(1), cluster.release).controller
        errors: dict[str, tuple[int, str | None]] = {}
        if str(controller) in cluster.brokers:
            answer = probe.create_topics(cluster.port(int(str(controller))), topics)
            errors = {name: error for name, error in answer.items() if error[0] not in (0, ALREADY_EXISTS)}
            if not errors:
                return
        if time.monotonic() > end or any(code not in PASSING_ERRORS for code, _ in errors.values()):
            raise ClusterError(f"creating topics failed: {errors or 'no controller'}")
        time.sleep(0.3)


def tool_words(jars: str, where: list[str], topic: Topic) -> list[str]:
    """What the release's own tool, `topics`, wants to be told; `where` says which cluster."""
    where = [*where, "--topic", topic.name]
    if str(tool_class(jars, "topics")).endswith("CreateTopicCommand"):  # 0.8.0
        return [*where, "--partition", str(topic.partitions), "--replica", str(topic.replicas)]
    words = ["--create", *where, "--partitions", str(topic.partitions)]
    words += ["--replication-factor", str(topic.replicas)]
    return words + [word for key, value in topic.configs.items() for word in ("--config", f"{key}={value}")]


def _by_tool(cluster: Cluster, topic: Topic) -> None:
    words = tool_words(cluster.jars, ["--zookeeper", "{zookeeper}"], topic)
    output = run_quietly(tool_command(cluster, "topics", *words), f"creating topic {topic.name}")
    if "already exists" not in output and any(word in output for word in ("Error", "Exception", "failed")):
        raise ClusterError(f"creating topic {topic.name}:\n{output[-2000:]}")
