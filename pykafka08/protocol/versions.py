"""Which versions a broker serves, which one to use with it, and what each release of Kafka served.

The table of releases is for brokers that cannot be asked (0.8, 0.9), for the ``broker_version`` hint, and for the
embedded broker, which plays them.  Whom to ask what, and when, is the connection's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from pykafka08.errors import ConfigError, UnsupportedVersionError
from pykafka08.protocol.messages import ApiKey
from pykafka08.protocol.releases import HISTORY, RELEASES
from pykafka08.protocol.schema import Request, VersionRange

__all__ = ["RELEASES", "BrokerVersions", "release_named", "release_versions"]

_RELEASE = re.compile(r"\d{1,9}(\.\d{1,9}){0,3}\Z")
_OLDEST_THAT_ANSWERS = "0.10.0"
_KAFKA_4_PRODUCE = 12
_OLDEST_PRODUCE_OF_KAFKA_4 = 3

_TELLING = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
)
"""APIs that every broker of a release serves, whatever its configuration, and that tell the releases apart."""

_TELLING_IF_LISTED = (
    ApiKey.CREATE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_RECORDS,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ELECT_LEADERS,
)
"""The same of real brokers, but one that plays a release may lack some of these."""


@dataclass(frozen=True, slots=True)
class BrokerVersions:
    """What one broker serves: API key to range.  ``features`` are the levels that its cluster has agreed on (KIP-584).

    ``release_guess`` is a release of ``RELEASES``, or later; or "0.8" where 0.8.0, 0.8.1 and 0.8.2 were not told apart.
    """

    ranges: Mapping[int, VersionRange]
    release_guess: str
    features: Mapping[str, int] = field(default_factory=dict)
    _picked: dict[type[Request[Any]], int] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of_release(cls, release: str) -> BrokerVersions:
        """What a broker of that release serves; ConfigError for an unknown name."""
        name = release_named(release)
        return cls(release_versions(name), name)

    @classmethod
    def of_answer(cls, api_keys: Iterable[Any], features: Iterable[Any] = ()) -> BrokerVersions:
        """From ``api_keys`` and ``finalized_features`` of an ApiVersionsResponse.

        Kafka 4 lists Produce from version 0 for the sake of old librdkafka, but serves 3 and up (KAFKA-18659).
        """
        ranges = {each.api_key: VersionRange(each.min_version, each.max_version) for each in api_keys}
        produce = ranges.get(ApiKey.PRODUCE)
        if produce and produce.max >= _KAFKA_4_PRODUCE and produce.min < _OLDEST_PRODUCE_OF_KAFKA_4:
            ranges[ApiKey.PRODUCE] = VersionRange(_OLDEST_PRODUCE_OF_KAFKA_4, produce.max)
        levels = {each.name: each.max_version_level for each in features}
        return cls(ranges, _guess(ranges), levels)

    def serves(self, request: type[Request[Any]]) -> bool:
        """True if there is a version that both sides know."""
        theirs = self.ranges.get(request.api_key)
        return theirs is not None and theirs.intersection(request.versions) is not None

    def pick(self, request: type[Request[Any]], *, maximum: int | None = None) -> int:
        """The highest version that both sides know, at most ``maximum``; UnsupportedVersionError if there is none."""
        if maximum is None and (picked := self._picked.get(request)) is not None:
            return picked
        theirs = self.ranges.get(request.api_key)
        if theirs is None:
            raise UnsupportedVersionError(
                f"the broker (Kafka {self.release_guess} by its versions) has no {request.name} API", api=request.name
            )
        ours = request.versions
        highest = min(ours.max, theirs.max) if maximum is None else min(ours.max, theirs.max, maximum)
        if highest < ours.min or highest < theirs.min:
            limit = "" if maximum is None else f", of which at most {maximum} will do here"
            raise UnsupportedVersionError(
                f"the broker (Kafka {self.release_guess} by its versions) serves {request.name} {theirs}; "
                f"pykafka08 knows {ours}{limit}",
                api=request.name,
            )
        if maximum is None:
            self._picked[request] = highest
        return highest


def release_named(text: str) -> str:
    """The row of the table for a version as people write it: ``"0.8.2.2"`` is 0.8.2, ``"3.9.1"`` is 3.9.

    ``"0.8"`` is its last minor release, 0.8.2; what is newer than the table is its newest row.
    """
    if not _RELEASE.match(text.strip()):
        raise ConfigError(f"not a Kafka release: {text!r:.100}; examples are 0.8.2.2, 0.10.2, 3.9 and 4.3.1")
    wanted = _numbers(text)
    if wanted > _numbers(RELEASES[-1]):
        return RELEASES[-1]
    for release in reversed(RELEASES):
        known = _numbers(release)
        shared = min(len(known), len(wanted))
        if known[:shared] == wanted[:shared]:
            return release
    raise ConfigError(f"unknown Kafka release {text!r:.100}; known are {', '.join(RELEASES)}")


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.strip().split(".")]


@cache
def release_versions(release: str) -> Mapping[int, VersionRange]:
    """API key to range, for a name of ``RELEASES``.  Only APIs that clients use."""
    position = RELEASES.index(release)
    ranges: dict[int, VersionRange] = {}
    for key, steps in HISTORY.items():
        for since, versions in steps:
            if RELEASES.index(since) <= position:
                ranges[key] = versions
    return MappingProxyType(ranges)


def _guess(ranges: Mapping[int, VersionRange]) -> str:
    """The newest release whose telling APIs the broker all has; none from before ApiVersions, which it has answered."""
    telling = (*_TELLING, *(key for key in _TELLING_IF_LISTED if key in ranges))
    for release in reversed(RELEASES[RELEASES.index(_OLDEST_THAT_ANSWERS) :]):
        table = release_versions(release)
        if all(key in ranges and ranges[key].max >= table[key].max for key in telling if key in table):
            return release
    return _OLDEST_THAT_ANSWERS
