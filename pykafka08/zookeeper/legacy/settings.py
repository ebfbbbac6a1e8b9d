"""Settings of the old consumer as a frozen dataclass: the names and defaults of Kafka 0.8.2's ``ConsumerConfig``.

Names are its property names in snake_case; times in milliseconds, sizes in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pykafka08.config import SETTING_NAMES, Address, ClientConfig, ConsumerConfig
from pykafka08.errors import ConfigError
from pykafka08.group.settings import GroupConfig
from pykafka08.kafka_properties import settings_of as client_settings_of
from pykafka08.kafka_properties import written_names
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig
from pykafka08.setting_hints import hint
from pykafka08.setting_names import AS_ARGUMENTS, SettingNames
from pykafka08.zookeeper.assignment import STRATEGIES
from pykafka08.zookeeper.settings import without_secrets

__all__ = ["LegacyConfig", "settings_of"]

INT32_MAX = 2**31 - 1
RESETS = {"smallest": "earliest", "largest": "latest", "earliest": "earliest", "latest": "latest"}
SECURITY = ("security.", "ssl.", "sasl.", "config.providers")
ID = re.compile(r"[a-zA-Z0-9._-]*")
NUMBERS: Mapping[str, int] = {
    "zookeeper_session_timeout_ms": 1,
    "zookeeper_sync_time_ms": 1,
    "rebalance_max_retries": 1,
    "auto_commit_interval_ms": 1,
    "offsets_channel_backoff_ms": 1,
    "offsets_channel_socket_timeout_ms": 1,
    "offsets_commit_max_retries": 0,
    "consumer_timeout_ms": -1,
    "fetch_message_max_bytes": 1,
    "fetch_min_bytes": 0,
    "fetch_wait_max_ms": 0,
    "socket_timeout_ms": 1,
    "socket_receive_buffer_bytes": -1,
    "queued_max_message_chunks": 1,
    "num_consumer_fetchers": 1,
    "refresh_leader_backoff_ms": 1,
}
"""The least value of each."""


@dataclass(frozen=True, kw_only=True)
class LegacyConfig:
    """Settings of :class:`pykafka08.LegacyConsumer`."""

    group_id: str
    consumer_id: str | None = None
    """Instead of host name, time and a random number; no two members may have the same."""
    client_id: str | None = None
    """None for the group's id."""
    zookeeper_session_timeout_ms: int = 6_000
    zookeeper_connection_timeout_ms: int | None = None
    """None for the session's."""
    zookeeper_sync_time_ms: int = 2_000
    zookeeper_settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What else :class:`ZooKeeper` takes: ``auth``, ``acl``, ``sasl_..``, ``tls_..``."""
    rebalance_max_retries: int = 4
    rebalance_backoff_ms: int | None = None
    """None for ``zookeeper_sync_time_ms``."""
    rebalance_on_broker_change: bool = True
    """Look at the group when brokers come or go; what does not change goes on being read."""
    partition_assignment_strategy: str = "range"
    roundrobin_order: str = "brackets"
    """"brackets" in a group with JVM members of 0.8.2 to 0.11, "dash" with those of 1.0 and 1.1."""
    exclude_internal_topics: bool = True
    auto_commit_enable: bool = True
    auto_commit_interval_ms: int = 60_000
    auto_offset_reset: str = "largest"
    offsets_storage: str = "zookeeper"
    dual_commit_enabled: bool | None = None
    """Commit to ZooKeeper too while ``offsets_storage`` is "kafka"; None for yes."""
    offsets_channel_backoff_ms: int = 1_000
    offsets_channel_socket_timeout_ms: int = 10_000
    """Taken, and without meaning here, as the next one is: a commit has a deadline, the last one of 5 s."""
    offsets_commit_max_retries: int = 5
    consumer_timeout_ms: int = -1
    """How long a stream waits for a record before it raises ConsumerTimeoutError; -1 for ever."""
    fetch_message_max_bytes: int = 1_048_576
    fetch_min_bytes: int = 1
    fetch_wait_max_ms: int = 100
    socket_timeout_ms: int = 30_000
    refresh_leader_backoff_ms: int = 200
    queued_max_message_chunks: int = 2
    """Taken, and without meaning here, as the next two are: what waits to be read is bounded in bytes."""
    num_consumer_fetchers: int = 1
    socket_receive_buffer_bytes: int = 65_536
    security: SecurityConfig = field(default_factory=SecurityConfig)
    """TLS and SASL of connections to brokers.  Users give the fields of :class:`SecurityConfig` beside the others."""
    setting_names: SettingNames = field(default=AS_ARGUMENTS, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "zookeeper_settings", without_secrets(self.zookeeper_settings))
        if not isinstance(self.group_id, str) or not self.group_id:
            raise ConfigError("a LegacyConsumer is a member of a group: give group_id='...'")
        for name in ("group_id", "client_id", "consumer_id"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not ID.fullmatch(value)):
                raise ConfigError(f"{name}={value!r} may have letters, digits, '.', '_' and '-' only")
        for name, least in NUMBERS.items():
            self._check_number(name, least)
        for name in ("rebalance_backoff_ms", "zookeeper_connection_timeout_ms"):
            if getattr(self, name) is not None:
                self._check_number(name, 1)
        for name in ("auto_commit_enable", "exclude_internal_topics", "rebalance_on_broker_change"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name}={getattr(self, name)!r} is neither True nor False")
        if self.dual_commit_enabled is not None and not isinstance(self.dual_commit_enabled, bool):
            raise ConfigError(f"dual_commit_enabled={self.dual_commit_enabled!r} is not True, False or None")
        self._check_choice("partition_assignment_strategy", STRATEGIES)
        self._check_choice("roundrobin_order", ("brackets", "dash"))
        self._check_choice("offsets_storage", ("zookeeper", "kafka"))
        self._check_choice("auto_offset_reset", tuple(RESETS))
        if self.socket_timeout_ms < self.fetch_wait_max_ms:
            raise ConfigError(
                f"socket_timeout_ms={self.socket_timeout_ms} is less than fetch_wait_max_ms={self.fetch_wait_max_ms}: "
                "no fetch would be answered in time"
            )

    def _check_number(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= INT32_MAX:
            raise ConfigError(f"{name}={value!r} is not a whole number from {least} to {INT32_MAX}")

    def _check_choice(self, name: str, choices: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in choices:
            raise ConfigError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}")

    @property
    def backoff(self) -> float:
        """Seconds between two tries of a rebalance."""
        return (self.rebalance_backoff_ms or self.zookeeper_sync_time_ms) / 1000

    @property
    def commits_to_zookeeper(self) -> bool:
        return self.offsets_storage == "zookeeper" or self.dual_commit_enabled is not False

    @property
    def consumer(self) -> ConsumerConfig:
        """For fetching."""
        return ConsumerConfig(
            auto_offset_reset=RESETS[self.auto_offset_reset],  # type: ignore[arg-type]
            fetch_min_bytes=self.fetch_min_bytes,
            fetch_max_wait_ms=self.fetch_wait_max_ms,
            max_partition_fetch_bytes=self.fetch_message_max_bytes,
            setting_names=self.setting_names,
        )

    def client(self, addresses: tuple[Address, ...]) -> ClientConfig:
        """For connections to the brokers at these addresses."""
        return ClientConfig(
            bootstrap_servers=addresses,
            client_id=self.client_id or self.group_id,
            request_timeout_ms=self.socket_timeout_ms,
            retry_backoff_ms=self.refresh_leader_backoff_ms,
            security=self.security,
            setting_names=self.setting_names,
        )

    @property
    def group(self) -> GroupConfig:
        """For offsets that Kafka keeps."""
        return GroupConfig(group_id=self.group_id, setting_names=self.setting_names)


_TYPE_OF = {each.name: str(each.type) for each in fields(LegacyConfig)}
_OBJECTS = ("zookeeper_settings", "security", SETTING_NAMES)
"""Settings that cannot be given as properties."""


def settings_of(
    properties: Mapping[str, str | Secret], elsewhere: tuple[str, ...] = ()
) -> tuple[dict[str, Any], list[str]]:
    """Keyword arguments from Java's properties, with ``setting_names``, and notes on unknown names.

    Security settings have the names of later clients: those of 0.8 to 1.1 had none.
    """
    security = {name: value for name, value in properties.items() if _is_of_security(name)}
    converted = client_settings_of(security)
    settings, written, notes = converted.settings, converted.names, []
    for name, value in properties.items():
        if name in security:
            continue
        text = value.reveal() if isinstance(value, Secret) else value
        setting = name.strip().lower().replace(".", "_").replace("-", "_")
        written[setting] = name
        if setting in elsewhere:
            settings[setting] = text.strip()
        elif setting not in _TYPE_OF or setting in _OBJECTS:
            meant = hint(setting, (*_TYPE_OF, *elsewhere))
            notes.append(f"the property {name} means nothing to this consumer" + (f" ({meant})" if meant else ""))
        else:
            settings[setting] = _value(name, text.strip(), _TYPE_OF[setting])
    settings[SETTING_NAMES] = written_names(written, LegacyConfig)
    return settings, notes


def _is_of_security(name: str) -> bool:
    return name.strip().lower().replace("_", ".").replace("-", ".").startswith(SECURITY)


def _value(name: str, text: str, kind: str) -> Any:
    if "bool" in kind:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{name}={text!r} is neither true nor false")
        return text.lower() == "true"
    if "int" in kind:
        if not re.fullmatch(r"[+-]?[0-9]{1,40}", text):
            raise ConfigError(f"{name}={text!r:.100} is not a number")
        return int(text)
    return text
