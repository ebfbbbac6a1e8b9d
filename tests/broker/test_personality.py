"""Manners of each release: what it does with requests that it does not know."""

from __future__ import annotations

import pytest

from pykafka08.broker.personality import Manners, Personality
from pykafka08.broker.server import EmbeddedCluster
from pykafka08.errors import ConfigError
from pykafka08.protocol.messages import ApiKey
from pykafka08.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka08.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykafka08.protocol.messages.produce import ProduceRequest
from pykafka08.records.compression import Codec
from tests.broker.raw import batch, connect, fetch_request, produce_request


@pytest.mark.parametrize(
    ("version", "release", "magic", "codecs"),
    [
        ("0.8.0", "0.8.0", 0, {Codec.NONE, Codec.GZIP, Codec.SNAPPY}),
        ("0.8.1.1", "0.8.1", 0, {Codec.NONE, Codec.GZIP, Codec.SNAPPY}),
        ("0.8.2.2", "0.8.2", 0, {Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4}),
        ("0.9", "0.9.0", 0, {Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4}),
        ("0.10.2", "0.10.2", 1, {Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4}),
        ("0.11.0.3", "0.11.0", 2, {Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4}),
        ("2.0", "2.0", 2, {Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4}),
        ("2.8.2", "2.8", 2, set(Codec)),
        ("4.3", "4.3", 2, set(Codec)),
    ],
)
def test_a_release_has_its_format_and_codecs(version: str, release: str, magic: int, codecs: set[Codec]) -> None:
    played = Personality(version)
    assert (played.release, played.max_magic, set(played.codecs)) == (release, magic, codecs)


@pytest.mark.parametrize(
    ("stored", "release", "magic"),
    [("0.9.0", "2.8", 0), ("0.10.2-IV0", "2.8", 1), ("2.0-IV1", "2.8", 2), ("0.10.0", "4.0", 2), ("2.8", "0.10.0", 1)],
)
def test_topics_can_be_stored_in_an_older_format_until_kafka_4(stored: str, release: str, magic: int) -> None:
    assert Personality(release).magic_of({"message.format.version": stored}) == magic


@pytest.mark.parametrize("version", ["5.0", "0.7", "", "new"])
def test_an_unknown_release_is_refused(version: str) -> None:
    with pytest.raises(ConfigError, match=f"^version={version!r}.* release"):
        EmbeddedCluster(version=version)


@pytest.mark.parametrize(
    ("release", "key", "version", "manners", "answered_as"),
    [
        ("0.8.0", ApiKey.API_VERSIONS, 0, Manners.CLOSE, 0),
        ("0.8.2", ApiKey.METADATA, 1, Manners.SERVE, 0),
        ("0.8.2", ApiKey.OFFSET_FETCH, 3, Manners.SERVE, 1),
        ("0.8.2", ApiKey.OFFSET_COMMIT, 2, Manners.CLOSE, 1),
        ("0.8.2", ApiKey.LIST_GROUPS, 0, Manners.CLOSE, 0),
        ("0.9.0", ApiKey.API_VERSIONS, 3, Manners.IGNORE, 3),
        ("0.9.0", ApiKey.METADATA, 5, Manners.SERVE, 0),
        ("0.9.0", ApiKey.FETCH, 2, Manners.SERVE, 1),
        ("0.9.0", ApiKey.OFFSET_COMMIT, 3, Manners.IGNORE, 2),
        ("0.9.0", ApiKey.JOIN_GROUP, 1, Manners.IGNORE, 0),
        ("0.10.0", ApiKey.METADATA, 2, Manners.CLOSE, 1),
        ("0.10.0", ApiKey.FETCH, 9, Manners.SERVE, 2),
        ("0.10.1", ApiKey.FETCH, 9, Manners.CLOSE, 9),
        ("0.10.1", ApiKey.CREATE_PARTITIONS, 0, Manners.CLOSE, 0),
        ("0.10.1", ApiKey.API_VERSIONS, 3, Manners.UNSUPPORTED, 0),
        ("4.3", ApiKey.API_VERSIONS, 99, Manners.UNSUPPORTED, 0),
        ("4.0", ApiKey.PRODUCE, 2, Manners.CLOSE, 2),
        ("4.0", ApiKey.PRODUCE, 3, Manners.SERVE, 3),
        ("4.0", ApiKey.FETCH, 3, Manners.CLOSE, 3),
    ],
)
def test_manners(release: str, key: int, version: int, manners: Manners, answered_as: int) -> None:
    played = Personality(release)
    assert played.manners(key, version, played.versions) == (manners, answered_as)


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["0.8.0", "0.8.2"])
async def test_0_8_closes_on_an_unknown_api(release: str) -> None:
    async with EmbeddedCluster(version=release) as cluster, connect(cluster) as raw:
        await raw.send(ApiVersionsRequest(), 0)
        assert await raw.is_closed_by_peer()


@pytest.mark.anyio
async def test_0_9_never_answers_an_unknown_api_and_goes_on() -> None:
    async with EmbeddedCluster(version="0.9.0.1") as cluster, connect(cluster) as raw:
        await raw.send(ApiVersionsRequest(), 0)
        asked = await raw.send(MetadataRequest(topics=[]), 0)
        answered, response = await raw.receive(MetadataResponse, 0)
        assert answered == asked
        assert [broker.node_id for broker in response.brokers] == [0]


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["0.8.0", "0.8.1", "0.8.2", "0.9.0"])
async def test_before_0_10_metadata_v1_is_answered_as_v0(release: str) -> None:
    async with EmbeddedCluster(version=release, topics={"t": 2}) as cluster, connect(cluster) as raw:
        asked = await raw.send(MetadataRequest(topics=[]), 1)
        answered, response = await raw.receive(MetadataResponse, 0)
        assert answered == asked
        assert [(topic.name, len(topic.partitions)) for topic in response.topics] == [("t", 2)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("release", "entries"), [("0.10.0", []), ("2.3", []), ("2.4", [(18, 0, 3)]), ("4.3", [(18, 0, 4)])]
)
async def test_a_too_new_api_versions_is_answered_in_version_0(release: str, entries: list[object]) -> None:
    async with EmbeddedCluster(version=release) as cluster, connect(cluster) as raw:
        frame = b"\0\x12\0\x63\0\0\0\x07\0\x01x\0\x05whatever"
        await raw.send_frame(frame)
        correlation_id, response = await raw.receive(ApiVersionsResponse, 0)
        assert (correlation_id, response.error_code) == (7, 35)
        assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == entries


@pytest.mark.anyio
async def test_kafka_4_offers_produce_0_and_closes_on_it() -> None:
    async with EmbeddedCluster(version="4.1", topics={"t": 1}) as cluster:
        async with connect(cluster) as raw:
            response = await raw.ask(ApiVersionsRequest(), 0)
            ranges = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
            assert ranges[ApiKey.PRODUCE] == (0, 13)
            assert ranges[ApiKey.FETCH] == (4, 18)
            await raw.send(produce_request(batch(b"x", magic=1)), 2)
            assert await raw.is_closed_by_peer()
        async with connect(cluster) as raw:
            await raw.send(fetch_request(), 3)
            assert await raw.is_closed_by_peer()
        assert cluster.log_end_offset("t", 0) == 0


@pytest.mark.anyio
async def test_0_10_0_reads_any_fetch_as_version_2() -> None:
    async with EmbeddedCluster(version="0.10.0", topics={"t": 1}) as cluster, connect(cluster) as raw:
        frame = fetch_request().encode(2)
        await raw.send_frame(b"\0\x01\0\x09\0\0\0\x05\xff\xff" + frame)
        assert (await raw.receive_frame())[:4] == b"\0\0\0\x05"


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["0.10.0", "2.8", "4.3"])
async def test_since_0_10_what_is_not_known_closes_the_connection(release: str) -> None:
    async with EmbeddedCluster(version=release) as cluster:
        for frame in (b"\x03\xe7\0\0\0\0\0\x01\xff\xff", b"\0\x03\0\x63\0\0\0\x01\xff\xff"):
            async with connect(cluster) as raw:
                await raw.send_frame(frame)
                assert await raw.is_closed_by_peer()


@pytest.mark.anyio
async def test_the_release_limits_the_versions(anyio_backend: str) -> None:
    async with EmbeddedCluster(version="0.10.2") as cluster:
        async with connect(cluster) as raw:
            response = await raw.ask(ListGroupsRequest(), 0)
            assert response == ListGroupsResponse()
        async with connect(cluster) as raw:
            await raw.send(ProduceRequest(), 3)
            assert await raw.is_closed_by_peer()
