"""Which release is that broker: the questions that are asked, and what the answers mean."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pykafka08.connection.handshake import NEWEST_PROBE, Handshake, Probe, Step
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import AuthenticationError, BrokerError, RemoteProtocolError, TransportError
from pykafka08.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from pykafka08.protocol.messages.list_groups import ListGroupsResponse
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykafka08.protocol.messages.produce import ProduceRequest
from pykafka08.protocol.schema import Response
from pykafka08.protocol.versions import BrokerVersions
from tests.connection.answers import api_versions, metadata, topic

LOST = TransportError("the peer closed the connection")


def new(**options: Any) -> Handshake:
    return Handshake("h:9092", "1.0", **options)


def asked(handshake: Handshake) -> tuple[str, int]:
    request, version = handshake.next_request()
    request.encode(version)
    return request.name, version


def answer(handshake: Handshake, response: Response, version: int) -> None:
    handshake.answered(response.encode(version), 0)


def test_a_modern_broker_is_asked_for_its_ranges() -> None:
    handshake = new()
    assert asked(handshake) == ("Metadata", 1)
    assert handshake.next_request()[0] == MetadataRequest(topics=[])
    answer(handshake, metadata(), 1)
    assert asked(handshake) == ("ApiVersions", 3)
    answer(handshake, api_versions("2.8"), 3)
    assert handshake.is_done
    assert handshake.versions is not None
    assert handshake.versions.release_guess == "2.8"


def test_kafka_4_serves_no_produce_below_3() -> None:
    handshake = new()
    answer(handshake, metadata(), 1)
    keys = [*api_versions("4.3").api_keys]
    keys = [ApiVersion(api_key=0, min_version=0, max_version=12) if each.api_key == 0 else each for each in keys]
    answer(handshake, ApiVersionsResponse(api_keys=keys), 3)
    assert handshake.versions is not None
    assert handshake.versions.ranges[ProduceRequest.api_key].min == 3


@pytest.mark.parametrize(
    ("listed", "next_version"), [([], 0), ([(18, 0, 2)], 2), ([(18, 0, 0)], 0), ([(18, 0, 7)], 2), ([(18, -1, -1)], 0)]
)
def test_a_refused_version_of_api_versions_is_asked_lower(
    listed: list[tuple[int, int, int]], next_version: int
) -> None:
    handshake = new()
    answer(handshake, metadata(), 1)
    entries = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in listed]
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=entries)
    answer(handshake, refusal, 0)
    assert asked(handshake) == ("ApiVersions", next_version)
    answer(handshake, api_versions("1.1"), next_version)
    assert handshake.versions is not None
    assert handshake.versions.release_guess == "1.1"


def test_a_broker_that_refuses_every_version_is_an_error() -> None:
    handshake = new()
    answer(handshake, metadata(), 1)
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    answer(handshake, refusal, 0)
    with pytest.raises(BrokerError) as caught:
        answer(handshake, refusal, 0)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert caught.value.broker == "h:9092"


@pytest.mark.parametrize("brokers", [[], [(0, "h", 9092)], [(0, "h", 1), (1, "h", 2)]])
@pytest.mark.parametrize("topics", [[], [topic("a", [0, 1])], [topic("b", error=5), topic("a", [-1])]])
def test_0_9_answers_list_groups_and_is_never_asked_for_api_versions(brokers: list[Any], topics: list[Any]) -> None:
    handshake = new()
    answer(handshake, metadata(brokers, topics), 0)
    assert asked(handshake) == ("ListGroups", 0)
    answer(handshake, ListGroupsResponse(error_code=15), 0)
    assert handshake.is_done
    assert handshake.versions == BrokerVersions.of_release("0.9.0")


def test_0_8_closes_on_list_groups() -> None:
    handshake = new()
    answer(handshake, metadata(), 0)
    handshake.closed(LOST)
    assert handshake.is_done
    assert handshake.versions is not None
    assert handshake.versions.release_guess == "0.8"
    assert {int(key): str(versions) for key, versions in handshake.versions.ranges.items()} == {
        0: "0",
        1: "0",
        2: "0",
        3: "0",
    }


def test_a_close_on_metadata_is_tried_once_with_api_versions() -> None:
    handshake = new()
    handshake.closed(LOST)
    assert asked(handshake) == ("ApiVersions", 0)
    answer(handshake, api_versions("2.8"), 0)
    assert asked(handshake) == ("Metadata", 1)
    answer(handshake, metadata(), 1)
    assert handshake.is_done
    assert handshake.versions is not None
    assert handshake.versions.release_guess == "2.8"


@pytest.mark.parametrize(
    ("uses_tls", "text"),
    [
        (False, "ZooKeeper, TLS or SASL"),
        (True, "SASL port .* or refuses the client's, .*: see ssl_certfile and ssl_keyfile"),
    ],
)
def test_a_peer_that_closes_twice_is_no_kafka_for_these_settings(uses_tls: bool, text: str) -> None:
    handshake = new(uses_tls=uses_tls)
    handshake.closed(LOST)
    with pytest.raises(TransportError, match=text) as caught:
        handshake.closed(LOST)
    assert caught.value.broker == "h:9092"
    assert caught.value.__cause__ is LOST


@pytest.mark.parametrize(("uses_tls", "protocol"), [(False, "SASL_PLAINTEXT"), (True, "SASL_SSL")])
def test_a_listener_that_knows_api_versions_alone_wants_sasl(uses_tls: bool, protocol: str) -> None:
    handshake = new(uses_tls=uses_tls)
    handshake.closed(LOST)
    answer(handshake, api_versions("2.8"), 0)
    with pytest.raises(AuthenticationError, match=f"set security_protocol to {protocol}, and sasl_mechanism"):
        handshake.closed(LOST)


@pytest.mark.parametrize("release", ["0.8.0", "0.8.2", "0.9.0"])
def test_a_broker_known_as_old_is_not_asked_for_api_versions_after_a_close(release: str) -> None:
    handshake = new(previous=BrokerVersions.of_release(release))
    with pytest.raises(TransportError):
        handshake.closed(LOST)


@pytest.mark.parametrize("garbage", [b"", b"\0", b"\0\0\0\0", b"\xff" * 12, b"HTTP/1.1 400", bytes(40)])
def test_an_answer_that_is_no_metadata_is_an_error(garbage: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="neither Metadata v1 nor v0"):
        new().answered(garbage, 0)


def test_bytes_after_the_answer_are_an_error() -> None:
    for version in (0, 1):
        with pytest.raises(RemoteProtocolError):
            new().answered(metadata().encode(version) + b"\0", 0)


@pytest.mark.parametrize("entries", [[], [(0, 0, 3)], [(3, 999, 1000)]])
def test_ranges_without_a_usable_metadata_are_an_error(entries: list[tuple[int, int, int]]) -> None:
    handshake = new()
    answer(handshake, metadata(), 1)
    listed = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in entries]
    with pytest.raises(RemoteProtocolError, match="does not offer Metadata"):
        answer(handshake, ApiVersionsResponse(api_keys=listed), 3)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([(3, 5, 1)], "METADATA in versions 5 to 1"),
        ([(3, 0, 9), (1, -2, 4)], "FETCH in versions -2 to 4"),
        ([(3, 0, 9), (3, 0, 8)], "METADATA twice"),
    ],
)
def test_impossible_ranges_of_apis_in_use_are_refused(entries: list[tuple[int, int, int]], said: str) -> None:
    handshake = new()
    answer(handshake, metadata(), 1)
    listed = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in entries]
    with pytest.raises(RemoteProtocolError, match=said) as caught:
        answer(handshake, ApiVersionsResponse(api_keys=listed), 3)
    assert (caught.value.broker, caught.value.api) == ("h:9092", "ApiVersions")


def test_a_feature_below_level_0_is_refused() -> None:
    handshake = new()
    answer(handshake, metadata(), 1)
    feature = FinalizedFeatureKey(name="transaction.version", max_version_level=-1)
    with pytest.raises(RemoteProtocolError, match=r"feature transaction\.version at level -1"):
        answer(handshake, ApiVersionsResponse(api_keys=api_versions().api_keys, finalized_features=[feature]), 3)


def test_impossible_ranges_of_other_apis_are_left_out() -> None:
    handshake = new()
    answer(handshake, metadata(), 1)
    entries = [*api_versions("2.8").api_keys, ApiVersion(api_key=7777, min_version=4, max_version=1)]
    answer(handshake, ApiVersionsResponse(api_keys=entries), 3)
    assert handshake.versions is not None
    assert 7777 not in handshake.versions.ranges


def test_known_versions_skip_the_probe() -> None:
    known = BrokerVersions.of_release("0.10.0")
    handshake = new(known=known)
    assert handshake.is_done
    assert handshake.versions is known


def test_the_usual_metadata_answers_are_read_in_one_way_only() -> None:
    """A v0 answer never reads as v1, nor the reverse, over many shapes."""
    for count in range(4):
        brokers = [(node_id, "h" * node_id, node_id) for node_id in range(count)]
        for topics in ([], [topic("t", range(count))], [topic("a"), topic("b", error=3)]):
            response = metadata(brokers, topics)
            for version, other in ((0, 1), (1, 0)):
                with pytest.raises(RemoteProtocolError):
                    MetadataResponse.decode(response.encode(version), other)


# --- peers that close the connection on ApiVersions ---


def test_a_close_on_api_versions_v3_is_followed_by_v0_on_a_new_connection() -> None:
    handshake = new()
    answer(handshake, metadata(), 1)
    handshake.closed(LOST)
    assert asked(handshake) == ("ApiVersions", 0)
    answer(handshake, api_versions("2.8"), 0)
    assert handshake.versions is not None
    assert handshake.versions.release_guess == "2.8"
    assert handshake.probe == Probe(api_versions=0)


def test_a_close_on_api_versions_v0_leaves_metadata_only() -> None:
    handshake = new()
    answer(handshake, metadata(), 1)
    handshake.closed(LOST)
    handshake.closed(LOST)
    assert asked(handshake) == ("Metadata", 1)
    answer(handshake, metadata(), 1)
    assert handshake.is_done
    assert handshake.versions == BrokerVersions.of_release("0.10.0")
    assert handshake.probe == Probe(api_versions=None)


def test_a_broker_that_closes_every_connection_is_not_taken_for_an_old_one() -> None:
    handshake = new()
    answer(handshake, metadata(), 1)
    for _ in range(3):
        handshake.closed(LOST)
    assert not handshake.is_done
    with pytest.raises(TransportError):
        handshake.closed(LOST)


def test_a_remembered_probe_sends_the_request_that_was_answered_before() -> None:
    lower = new(probe=Probe(api_versions=0))
    answer(lower, metadata(), 1)
    assert asked(lower) == ("ApiVersions", 0)
    metadata_only = new(probe=Probe(api_versions=None))
    answer(metadata_only, metadata(), 1)
    assert metadata_only.is_done
    first = new(probe=Probe(first=Step.API_VERSIONS_FIRST))
    assert asked(first) == ("ApiVersions", 0)


def test_a_remembered_probe_without_an_answer_is_dropped() -> None:
    handshake = new(probe=Probe(first=Step.API_VERSIONS_FIRST))
    handshake.closed(LOST)
    assert asked(handshake) == ("Metadata", 1)
    assert handshake.probe == NEWEST_PROBE
    handshake.closed(LOST)
    with pytest.raises(TransportError, match="ZooKeeper, TLS or SASL"):
        handshake.closed(LOST)


@pytest.mark.parametrize("release", ["0.8.0", "0.9.0"])
def test_a_remembered_probe_never_sends_api_versions_to_a_broker_known_as_old(release: str) -> None:
    handshake = new(previous=BrokerVersions.of_release(release), probe=Probe(first=Step.API_VERSIONS_FIRST))
    assert asked(handshake) == ("Metadata", 1)


@pytest.mark.parametrize(("served", "asked_version"), [((0, 9), 1), ((4, 9), 4), ((0, 0), 0)])
def test_metadata_after_api_versions_uses_a_supported_version(served: tuple[int, int], asked_version: int) -> None:
    handshake = new()
    handshake.closed(LOST)
    entry = ApiVersion(api_key=3, min_version=served[0], max_version=served[1])
    answer(handshake, ApiVersionsResponse(api_keys=[entry]), 0)
    assert asked(handshake) == ("Metadata", asked_version)
    answer(handshake, metadata(), asked_version)
    assert handshake.is_done


def test_a_handshake_ends_after_a_few_closed_connections() -> None:
    """The peer closes on each request in turn."""
    probes = [Probe(first, version) for first in (Step.METADATA, Step.API_VERSIONS_FIRST) for version in (3, 0, None)]
    for probe, pattern in itertools.product(probes, itertools.product((True, False), repeat=10)):
        handshake = new(probe=probe)
        closes = 0
        for answers in pattern:
            if handshake.is_done:
                break
            name, version = asked(handshake)
            if answers:
                answer(handshake, metadata() if name == "Metadata" else api_versions("2.8"), version)
                continue
            closes += 1
            try:
                handshake.closed(LOST)
            except (TransportError, AuthenticationError):
                break
        else:
            assert handshake.is_done, (probe, pattern)
        assert closes <= 5
