"""The Metadata request in every version, and which leader epochs are believed."""

from __future__ import annotations

import pytest

from pykafka08.cluster.requests import MetadataCall
from pykafka08.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykafka08.protocol.schema import VersionRange
from pykafka08.protocol.versions import BrokerVersions


@pytest.mark.parametrize("version", range(14))
def test_every_version(version: int) -> None:
    versions = BrokerVersions({3: VersionRange(0, version)}, "test")
    request = MetadataCall(("a", "b"), allow_auto_topic_creation=False)(versions)
    seen = MetadataRequest.decode(request.encode(version), version)
    assert [topic.name for topic in seen.topics or ()] == ["a", "b"]
    assert seen.allow_auto_topic_creation == (version < 4)
    everything = MetadataCall(None, allow_auto_topic_creation=True)(versions)
    assert MetadataRequest.decode(everything.encode(version), version).topics == ([] if version == 0 else None)


@pytest.mark.parametrize(("version", "epoch"), [(6, -1), (7, -1), (8, -1), (9, 5), (13, 5)])
def test_leader_epochs_before_kafka_2_4_are_not_believed(version: int, epoch: int) -> None:
    call = MetadataCall(("a",), allow_auto_topic_creation=False)
    call(BrokerVersions({3: VersionRange(0, version)}, "test"))
    partition = MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=5)
    answer = MetadataResponse(topics=[MetadataResponseTopic(name="a", partitions=[partition])])
    read = call.read(MetadataResponse.decode(answer.encode(version), version))
    assert [each.leader_epoch for each in read.topics[0].partitions] == [epoch]
