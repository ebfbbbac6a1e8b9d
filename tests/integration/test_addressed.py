"""`--brokers=HOST:PORT`: the broker's release is found out, one broker of it is given, and nothing is done to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.addressed import AddressedClusters, stands_for
from tests.integration.clusters import RELEASES, Clusters


@pytest.mark.parametrize(
    ("told", "ours"),
    [
        ("0.8.0", "0.8.0"),
        ("0.8.2", "0.8.2.2"),
        ("0.10.1", "0.10.0.1"),
        ("2.8", "2.8.2"),
        ("3.7", "2.8.2"),
        ("4.4", "4.3.1"),
    ],
)
def test_the_newest_of_our_releases_that_is_not_newer_stands_for_a_broker(told: str, ours: str) -> None:
    assert ours in RELEASES
    assert stands_for(told) == ours


@pytest.mark.parametrize("version", ["0.8.0", "0.8.1.1", "0.8.2.2", "0.9.0.1", "2.8.2", "4.3.1"])
def test_a_broker_is_known_by_its_address(clusters: Clusters, version: str, tmp_path: Path) -> None:
    started = clusters.running(version)
    given = AddressedClusters(tmp_path, started.bootstrap, started.zookeeper)
    kafka = given.running(version)
    assert kafka.version == version
    assert kafka.bootstrap == started.bootstrap
    topic = kafka.new_topic("addressed", partitions=2)
    assert all(started.leader(topic, partition, asked=1) == 1 for partition in range(2))
    for beyond in (
        lambda: given.running("0.10.2.2"),
        lambda: given.running(version, brokers=3),
        lambda: given.running(version, props=["num.partitions=2"]),
        lambda: kafka.kill(1),
        lambda: kafka.log(1),
        lambda: kafka.start(1),
    ):
        with pytest.raises(pytest.skip.Exception, match="is not ours"):
            beyond()
    given.take_down()
    assert started.is_whole()
