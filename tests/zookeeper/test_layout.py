"""The ZooKeeper of real clusters: every node of it is known, read and written back equal."""

from __future__ import annotations

import json
import os

import pytest

from pykafka08.zookeeper import paths
from tests.integration.clusters import Clusters
from tests.zookeeper.layout import RELEASES, Dump, fill_and_dump, properties_of, recorded

IS_SOAK = os.environ.get("PYKAFKA08_SOAK") == "1"
LIVE = RELEASES if IS_SOAK else ("0.8.2.2",)

EVERYWHERE = {"broker", "topic", "partition_state", "controller", "controller_epoch", "topic_config", "config_change"}
OLD_GROUP = {"consumer_id", "owner", "offset"}
AUTHORIZER = {"acl", "acl_change"}
EXPECTED = {
    "0.8.2.2": {"reassignment", "preferred_election", "deleted_topic"},
    "0.9.0.1": AUTHORIZER | {"reassignment", "preferred_election", "deleted_topic", "client_config"},
    "0.10.2.2": AUTHORIZER | {"reassignment", "preferred_election", "user_config", "user_client_config", "cluster_id"},
    "2.8.2": AUTHORIZER | {"extended_acl", "extended_acl_change", "deleted_topic", "user_config", "features"},
    "3.9.2": AUTHORIZER | {"extended_acl", "user_config", "ip_config", "broker_config", "features"},
}
"""The kinds of node that a dump must have, or it proves less than it says."""


def normalised(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def check(version: str, dump: Dump, *, is_whole: bool = True) -> None:
    kinds = set()
    for path, text in dump.items():
        found = paths.match(path)
        assert found is not None, path
        kinds.add(found.kind.name)
        node = paths.decode(path, text.encode())
        assert normalised(node.encode().decode()) == normalised(text), path
        if isinstance(normalised(text), dict):
            assert getattr(node, "unknown", {}) == {}, f"{path} has keys that are not known: {text}"
    assert (EVERYWHERE | OLD_GROUP | (EXPECTED[version] if is_whole else set())) - kinds == set()


@pytest.mark.parametrize("version", RELEASES)
def test_a_recorded_layout_is_read_and_written_back_equal(version: str) -> None:
    check(version, recorded(version))


@pytest.mark.parametrize("version", LIVE)
def test_the_layout_of_a_live_cluster_is_read_and_written_back_equal(version: str, clusters: Clusters) -> None:
    cluster = clusters.running(version, props=properties_of(version))
    check(version, fill_and_dump(cluster, asks_controller=IS_SOAK), is_whole=IS_SOAK)
