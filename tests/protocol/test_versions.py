"""Negotiation, and the table of releases."""

from __future__ import annotations

import pytest

from pykafka08.errors import ConfigError, UnsupportedVersionError
from pykafka08.protocol.messages import ApiKey
from pykafka08.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from pykafka08.protocol.messages.fetch import FetchRequest
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka08.protocol.messages.list_groups import ListGroupsRequest
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.produce import ProduceRequest
from pykafka08.protocol.releases import HISTORY, RELEASES
from pykafka08.protocol.schema import VersionRange
from pykafka08.protocol.versions import BrokerVersions, release_named, release_versions


def answer(**ranges: tuple[int, int]) -> BrokerVersions:
    entries = [
        ApiVersion(api_key=ApiKey[name.upper()], min_version=low, max_version=high)
        for name, (low, high) in ranges.items()
    ]
    return BrokerVersions.of_answer(ApiVersionsResponse(api_keys=entries).api_keys)


def test_the_highest_common_version_is_picked() -> None:
    broker = answer(metadata=(0, 5), fetch=(4, 99))
    assert broker.pick(MetadataRequest) == 5
    assert broker.pick(MetadataRequest, maximum=3) == 3
    assert broker.pick(FetchRequest) == FetchRequest.versions.max
    assert broker.serves(MetadataRequest)
    assert not broker.serves(ProduceRequest)


def test_no_common_version_names_both_ranges() -> None:
    broker = answer(fetch=(50, 60))
    with pytest.raises(UnsupportedVersionError, match=r"serves Fetch 50-60; pykafka08 knows 0-18") as caught:
        broker.pick(FetchRequest)
    assert caught.value.api == "Fetch"
    assert not broker.serves(FetchRequest)
    with pytest.raises(UnsupportedVersionError, match="has no Produce API"):
        broker.pick(ProduceRequest)
    with pytest.raises(UnsupportedVersionError, match=r"serves Fetch 4-18; .* at most 3 will do"):
        answer(fetch=(4, 18)).pick(FetchRequest, maximum=3)


@pytest.mark.parametrize(
    ("advertised", "believed"), [((0, 12), (3, 12)), ((0, 13), (3, 13)), ((0, 11), (0, 11)), ((3, 12), (3, 12))]
)
def test_kafka_4_advertises_more_of_produce_than_it_serves(
    advertised: tuple[int, int], believed: tuple[int, int]
) -> None:
    assert answer(produce=advertised).ranges[ApiKey.PRODUCE] == VersionRange(*believed)


@pytest.mark.parametrize("release", RELEASES[RELEASES.index("0.10.0") :])
def test_a_release_is_guessed_from_its_own_versions(release: str) -> None:
    ranges = release_versions(release)
    entries = [ApiVersion(api_key=key, min_version=each.min, max_version=each.max) for key, each in ranges.items()]
    guess = BrokerVersions.of_answer(entries).release_guess
    assert guess == {"3.3": "3.4"}.get(release, release)  # 3.3 and 3.4 serve the same


@pytest.mark.parametrize("release", ["0.11.0", "1.1", "2.0", "4.3"])
def test_a_broker_that_plays_a_release_without_all_of_its_apis_is_known_by_the_others(release: str) -> None:
    lacking = (ApiKey.DESCRIBE_LOG_DIRS, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_ACLS, ApiKey.ELECT_LEADERS)
    entries = [
        ApiVersion(api_key=key, min_version=each.min, max_version=each.max)
        for key, each in release_versions(release).items()
        if key not in lacking
    ]
    assert BrokerVersions.of_answer(entries).release_guess == release


def test_a_broker_without_groups_is_not_older_than_the_question_it_answers() -> None:
    assert answer(produce=(0, 12)).release_guess == "0.10.0"


def test_a_broker_newer_than_the_table_is_the_newest_of_it() -> None:
    entries = [
        ApiVersion(api_key=key, min_version=each.min, max_version=each.max + 3)
        for key, each in release_versions("4.3").items()
    ]
    assert BrokerVersions.of_answer(entries).release_guess == "4.3"


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("0.8.0", "0.8.0"),
        ("0.8.1.1", "0.8.1"),
        ("0.8.2.2", "0.8.2"),
        ("0.8", "0.8.2"),
        ("0.9", "0.9.0"),
        ("0.9.0.1", "0.9.0"),
        ("0.10.2.2", "0.10.2"),
        ("0.10", "0.10.2"),
        ("0.11.0.3", "0.11.0"),
        ("1.1.1", "1.1"),
        ("2.8.2", "2.8"),
        ("3.9", "3.9"),
        (" 4.3.1 ", "4.3"),
        ("4.4.0", "4.3"),
        ("17.0", "4.3"),
    ],
)
def test_releases_as_people_write_them(text: str, release: str) -> None:
    assert release_named(text) == release
    assert BrokerVersions.of_release(text).release_guess == release


@pytest.mark.parametrize("text", ["", "auto", "0.7", "0.7.2", "1.9", "2.8-SNAPSHOT", "v2.8", "3..1", "1.2.3.4.5"])
def test_what_is_no_release(text: str) -> None:
    with pytest.raises(ConfigError, match="release"):
        release_named(text)


@pytest.mark.parametrize(
    ("release", "produce", "fetch", "metadata"),
    [
        ("0.8.0", (0, 0), (0, 0), (0, 0)),
        ("0.9.0", (0, 1), (0, 1), (0, 0)),
        ("0.10.0", (0, 2), (0, 2), (0, 1)),
        ("0.10.2", (0, 2), (0, 3), (0, 2)),
        ("0.11.0", (0, 3), (0, 5), (0, 4)),
        ("1.1", (0, 5), (0, 7), (0, 5)),
        ("2.8", (0, 9), (0, 12), (0, 11)),
        ("3.9", (0, 11), (0, 17), (0, 12)),
        ("4.3", (3, 13), (4, 18), (0, 13)),
    ],
)
def test_known_rows(release: str, produce: tuple[int, int], fetch: tuple[int, int], metadata: tuple[int, int]) -> None:
    ranges = release_versions(release)
    assert ranges[ApiKey.PRODUCE] == VersionRange(*produce)
    assert ranges[ApiKey.FETCH] == VersionRange(*fetch)
    assert ranges[ApiKey.METADATA] == VersionRange(*metadata)


def test_what_old_releases_lack() -> None:
    assert set(release_versions("0.8.0")) == {0, 1, 2, 3}
    assert set(release_versions("0.8.1")) == {0, 1, 2, 3, 8, 9}
    assert set(release_versions("0.8.2")) == {0, 1, 2, 3, 8, 9, 10}
    assert set(release_versions("0.9.0")) == {0, 1, 2, 3, *range(8, 17)}
    with pytest.raises(UnsupportedVersionError, match=r"Kafka 0\.8\.2 by its versions"):
        BrokerVersions.of_release("0.8.2").pick(ListGroupsRequest)
    assert not BrokerVersions.of_release("0.10.2").serves(InitProducerIdRequest)
    assert ApiKey.API_VERSIONS not in release_versions("0.9.0")


def test_the_table_is_in_order_and_within_what_is_declared() -> None:
    for key, steps in HISTORY.items():
        positions = [RELEASES.index(release) for release, _ in steps]
        assert positions == sorted(set(positions)), key
        highest = [versions.max for _, versions in steps]
        assert highest == sorted(highest), key
    assert set(HISTORY) == set(ApiKey)


def test_features_are_what_the_cluster_has_agreed_on() -> None:
    answer = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=0, min_version=0, max_version=12)],
        finalized_features=[FinalizedFeatureKey(name="transaction.version", min_version_level=1, max_version_level=2)],
    )
    assert BrokerVersions.of_answer(answer.api_keys, answer.finalized_features).features == {"transaction.version": 2}
    assert BrokerVersions.of_answer(answer.api_keys).features == {}
