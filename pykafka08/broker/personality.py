"""Which release the embedded broker plays: its versions, its message format, and its manners.

``protocol.versions`` has the table of versions; here is what a table cannot say: what each release does with requests
that it does not know, which formats it stores, and where its answers differ.  Source: Kafka's sources at each tag, and
real brokers of each release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import cached_property

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import ConfigError
from pykafka08.protocol.messages import ApiKey
from pykafka08.protocol.schema import VersionRange
from pykafka08.protocol.versions import release_named, release_versions
from pykafka08.records.compression import Codec

__all__ = ["Manners", "Personality"]

KAFKA_4_OLDEST_PRODUCE = 3

_CODECS: tuple[tuple[tuple[int, ...], frozenset[Codec]], ...] = (
    ((0, 8, 0), frozenset({Codec.NONE, Codec.GZIP, Codec.SNAPPY})),
    ((0, 8, 2), frozenset({Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4})),
    ((2, 1), frozenset(Codec)),
)
# In 0.9 only these take any version as the newest they know; the rest die on it as on an unknown key.
_PARSED_ANYHOW_IN_0_9 = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_FETCH)


class Manners(Enum):
    """What is done with a request."""

    SERVE = "serve"
    CLOSE = "close the connection"
    IGNORE = "never answer, and keep the connection open"
    UNSUPPORTED = "answer ApiVersions in version 0 with error 35"


class Personality:
    """One release, named as users name it: ``"0.8.2"``, ``"2.8.2"``, ``"4.3"``."""

    def __init__(self, version: str) -> None:
        if not isinstance(version, str):
            raise ConfigError(f"version={version!r} is not the name of a Kafka release")
        try:
            self.release = release_named(version)
        except ConfigError as error:
            raise ConfigError(f"version={version!r:.100}: {error.message}") from None
        self.numbers = _numbers(self.release)
        if any(ours != asked for ours, asked in zip(self.numbers, _numbers(version), strict=False)):
            raise ConfigError(
                f"version={version!r:.100} is newer than {self.release}, the newest release that can be played"
            )

    def __repr__(self) -> str:
        return f"Personality({self.release!r})"

    def __ge__(self, other: tuple[int, ...]) -> bool:
        return self.numbers >= other

    def __lt__(self, other: tuple[int, ...]) -> bool:
        return self.numbers < other

    @cached_property
    def versions(self) -> Mapping[int, VersionRange]:
        """What a broker of this release serves, by API key."""
        versions = dict(release_versions(self.release))
        if self >= (4, 0):
            # Said for the sake of old librdkafka, not served (KAFKA-18659).
            versions[ApiKey.PRODUCE] = VersionRange(0, versions[ApiKey.PRODUCE].max)
        return versions

    @property
    def max_magic(self) -> int:
        """The newest message format that it knows."""
        return 0 if self < (0, 10) else 1 if self < (0, 11) else 2

    def magic_of(self, topic_config: Mapping[str, str]) -> int:
        """The format in which a topic is stored; ``message.format.version`` counted until 3.9."""
        chosen = topic_config.get("message.format.version")
        if chosen is None or self >= (4, 0):
            return self.max_magic
        return min(self.max_magic, Personality(re.split(r"-|-IV", chosen)[0]).max_magic)

    @property
    def codecs(self) -> frozenset[Codec]:
        return next(codecs for since, codecs in reversed(_CODECS) if self >= since)

    @property
    def group_max_session_timeout_ms(self) -> int:
        """The default of ``group.max.session.timeout.ms``."""
        return 30_000 if self < (0, 10) else 300_000 if self < (2, 3) else 1_800_000

    @property
    def invalid_record_code(self) -> ErrorCode:
        """INVALID_RECORD came with 2.4."""
        return ErrorCode.CORRUPT_MESSAGE if self < (2, 4) else ErrorCode.INVALID_RECORD

    @property
    def has_topic_ids(self) -> bool:
        return self >= (2, 8)

    @property
    def has_zookeeper(self) -> bool:
        """Before 4.0; brokers without it answer differently while a topic is being made."""
        return self < (4, 0)

    @property
    def verifies_transactions(self) -> bool:
        """Leaders ask the coordinator whether a partition is part of the transaction that a batch names (KIP-890)."""
        return self >= (3, 6)

    @property
    def always_tells_stable_offset(self) -> bool:
        """Readers of uncommitted records learn the last stable offset too: 2.8 does so, 1.1 did not."""
        return self >= (2, 0)

    @property
    def features(self) -> Mapping[str, int]:
        """Name and finalized level of the features that clients act upon."""
        return {} if self < (4, 0) else {"group.version": 1, "transaction.version": 2}

    @property
    def converts_down(self) -> bool:
        """Fetches of old versions get an old format; 4.0 dropped it."""
        return self < (4, 0)

    def fetch_magic(self, version: int) -> int:
        """The newest format that the reader of a Fetch answer knows."""
        return 0 if version < 2 else 1 if version < 4 else 2

    def manners(self, key: int, version: int, served: Mapping[int, VersionRange]) -> tuple[Manners, int]:
        """What to do with a request, and the version to read and answer it in.  ``served`` has what is advertised."""
        known = served.get(key)
        if known is None:
            return (Manners.IGNORE if self._dies_on_unknown else Manners.CLOSE), version
        if version in known:
            if key == ApiKey.PRODUCE and self >= (4, 0) and version < KAFKA_4_OLDEST_PRODUCE:
                return Manners.CLOSE, version
            return Manners.SERVE, version
        if key == ApiKey.API_VERSIONS:
            return Manners.UNSUPPORTED, 0
        if version < known.min or self >= (0, 10, 1):
            return Manners.CLOSE, version
        return self._too_high(key, known)

    @property
    def _dies_on_unknown(self) -> bool:
        return (0, 9) <= self.numbers < (0, 10)

    def _too_high(self, key: int, known: VersionRange) -> tuple[Manners, int]:
        if self >= (0, 10):
            return (Manners.SERVE if key == ApiKey.FETCH else Manners.CLOSE), known.max
        if self >= (0, 9):
            return (Manners.SERVE if key in _PARSED_ANYHOW_IN_0_9 else Manners.IGNORE), known.max
        is_strict = key == ApiKey.OFFSET_COMMIT and self >= (0, 8, 2)
        return (Manners.CLOSE if is_strict else Manners.SERVE), known.max


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.strip().split("."))
