"""Settings of the clients as frozen dataclasses: default, unit, range.

Names are Kafka's own property names in snake_case, with their units; users give them as keyword arguments of
``Producer`` and ``Consumer``, which build these objects.  Every value is checked here, once, before anything is sent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal

from pykafka08.errors import ConfigError
from pykafka08.security.settings import PROTOCOLS, SecurityConfig, check_protocol, protect
from pykafka08.setting_hints import hint
from pykafka08.setting_names import AS_ARGUMENTS, SettingNames
from pykafka08.short_names import shortened

__all__ = [
    "SETTING_NAMES",
    "Address",
    "ClientConfig",
    "ConsumerConfig",
    "ProducerConfig",
    "build",
    "check_timeout",
    "client_settings",
    "names_among",
    "parse_bootstrap_servers",
    "setting_fields",
]

Address = tuple[str, int]
"""A host name or IP address, and a TCP port."""

DEFAULT_PORT = 9092
_MOST_SHOWN = 100
_MOST_TOLD = 10
"""Unknown settings in one error."""
MIB = 1024 * 1024
SETTING_NAMES = "setting_names"


def check_timeout(timeout: object) -> None:
    """What a call was given as its ``timeout``: seconds, None for no limit or the default one; else ConfigError."""
    is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if timeout is not None and (not is_number or math.isnan(timeout)):  # type: ignore[arg-type]
        raise ConfigError(f"timeout={timeout!r:.100} is not a number of seconds")


def parse_bootstrap_servers(servers: str | Iterable[str]) -> tuple[Address, ...]:
    """``"h1:9092,h2"``, a list of such, with ``[::1]:9092`` for IPv6; the port defaults to 9092.

    A security protocol may stand before each: ``"SASL_SSL://h1:9093"``.
    """
    addresses = tuple(_parse_address(part) for part in _parts(servers))
    if not addresses:
        raise ConfigError("bootstrap_servers is missing, or names no address")
    return addresses


def _parts(servers: str | Iterable[str]) -> list[str]:
    if isinstance(servers, Mapping):
        raise ConfigError(
            "bootstrap_servers is a mapping: give settings as keyword arguments, or a mapping by Kafka's names to "
            "from_properties(...)"
        )
    items = [servers] if isinstance(servers, str) else servers
    if isinstance(items, (bytes, bytearray, memoryview)) or not isinstance(items, Iterable):
        raise ConfigError(f"bootstrap_servers={servers!r} is neither a string nor a list of strings")
    parts: list[str] = []
    for item in items:
        if not isinstance(item, str):
            raise ConfigError(f"bootstrap_servers: {item!r} is not a string of the form 'host:port'")
        parts.extend(item.split(","))
    return [part.strip() for part in parts if part.strip()]


def _protocol_of(servers: str | Iterable[str]) -> str | None:
    """The security protocol that stands before the addresses; None if none does."""
    found = {
        protocol.upper() for protocol, separator, _ in (part.partition("://") for part in _parts(servers)) if separator
    }
    if len(found) > 1:
        raise ConfigError(f"bootstrap_servers names different security protocols: {', '.join(sorted(found))}")
    return next(iter(found), None)


def _parse_address(text: str) -> Address:
    protocol, separator, rest = text.partition("://")
    if separator:
        if protocol.upper() not in PROTOCOLS:
            raise ConfigError(f"bootstrap server {_shown(text)}: the protocol is not one of {', '.join(PROTOCOLS)}")
        text = rest
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    if "@" in text:
        raise ConfigError("bootstrap_servers: an address has no user or password: give sasl_plain_username and others")
    if not host:
        raise ConfigError(f"bootstrap server {text!r} has no host")
    if port and not (port.isascii() and port.isdigit() and len(port) < 20 and 0 < int(port) < 65536):
        raise ConfigError(f"bootstrap server {_shown(text)} has no valid port")
    return host, int(port) if port else DEFAULT_PORT


def _shown(value: object) -> str:
    """A value for an error text: cut off, and without the digits of a number that is too long for Python to print."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _check(config: object, bounds: dict[str, tuple[float, float]], kinds: type | tuple[type, ...] = int) -> None:
    what = "a whole number" if kinds is int else "a number"
    for name, (least, most) in bounds.items():
        value = getattr(config, name)
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        if not is_number or not least <= value <= most:
            raise ConfigError(f"{name}={_shown(value)} is not {what} from {least} to {most}")


def _check_choice(config: object, name: str, choices: tuple[object, ...]) -> None:
    value = getattr(config, name)
    # By type too: True and 1.0 are equal to 1.
    if isinstance(value, bool) or not any(isinstance(value, type(each)) and value == each for each in choices):
        raise ConfigError(f"{name}={_shown(value)} is not one of {', '.join(map(repr, choices))}")


def _check_type(config: object, name: str, kind: type, what: str, *, is_optional: bool = False) -> None:
    value = getattr(config, name)
    if not (isinstance(value, kind) or (is_optional and value is None)):
        raise ConfigError(f"{name}={_shown(value)} is not {what}")


def _check_text(config: object, name: str, *, is_optional: bool = False) -> None:
    """Text that Kafka's protocol can carry."""
    _check_type(config, name, str, "a string", is_optional=is_optional)
    value = getattr(config, name)
    try:
        size = len((value or "").encode())
    except UnicodeEncodeError:
        raise ConfigError(f"{name}={value!r} cannot be written as UTF-8") from None
    if size > INT16_MAX:
        raise ConfigError(f"{name} has {size} bytes of UTF-8; the most is {INT16_MAX}")


INT16_MAX = 2**15 - 1
INT32_MAX = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class ClientConfig:
    """What every client needs; times in milliseconds, sizes in bytes."""

    bootstrap_servers: tuple[Address, ...]
    client_id: str = "pykafka08"
    broker_version: str | None = None
    """Optional hint such as ``"0.8.2"``; without it each broker is asked."""
    request_timeout_ms: int = 30_000
    """Time one request may take from its first byte to the last byte of its answer."""
    default_api_timeout_ms: int = 60_000
    """Deadline of a public call that was given no ``timeout``."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    """Time for making a connection, for all addresses together.  It limits each step of a SASL session's renewal, too.

    If a broker that worked before refuses the credentials, calls raise SecurityError after this time, or at their own
    deadline if that is earlier.
    """
    connections_max_idle_ms: int = 540_000
    metadata_max_age_ms: int = 300_000
    receive_message_max_bytes: int = 100 * MIB
    """Largest frame taken from a broker; checked before a byte of its body is kept."""
    security: SecurityConfig = field(default_factory=SecurityConfig)
    """TLS and SASL.  Users give the fields of :class:`SecurityConfig` beside the other settings."""
    setting_names: SettingNames = field(default=AS_ARGUMENTS, compare=False, repr=False)
    """Names of the settings in errors and log lines."""

    def __post_init__(self) -> None:
        _check_text(self, "client_id")
        _check_type(self, "broker_version", str, "a string such as '0.8.2'", is_optional=True)
        if self.broker_version is not None and not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})+", self.broker_version):
            raise ConfigError(f"broker_version={_shown(self.broker_version)} is not a release such as '0.8.2'")
        if self.broker_version is not None and tuple(map(int, self.broker_version.split(".")[:2])) < (0, 8):
            raise ConfigError(
                f"broker_version={self.broker_version!r} is older than 0.8, which is the first release served"
            )
        _check(
            self,
            {
                "request_timeout_ms": (1, INT32_MAX),
                "default_api_timeout_ms": (1, INT32_MAX),
                "retry_backoff_ms": (0, INT32_MAX),
                "retry_backoff_max_ms": (0, INT32_MAX),
                "reconnect_backoff_ms": (0, INT32_MAX),
                "reconnect_backoff_max_ms": (0, INT32_MAX),
                "socket_connection_setup_timeout_ms": (1, INT32_MAX),
                "connections_max_idle_ms": (1, INT32_MAX),
                "metadata_max_age_ms": (1, INT32_MAX),
                "receive_message_max_bytes": (1024, INT32_MAX),
            },
        )


Partitioner = Callable[[bytes | None, "tuple[int, ...]", "tuple[int, ...]"], int]
"""``(key, all partitions, partitions with a leader) -> partition``."""


@dataclass(frozen=True, kw_only=True)
class ProducerConfig:
    """Settings of :class:`pykafka08.Producer`; times in milliseconds, sizes in bytes."""

    acks: int | Literal["all"] = "all"
    enable_idempotence: bool | None = None
    """Retries write no record twice.  None: where the brokers have it (0.11) and ``acks`` is "all"."""
    transactional_id: str | None = None
    """Write in transactions; a new producer with the same id fences the one before (Kafka 0.11)."""
    transaction_timeout_ms: int = 60_000
    """When the cluster aborts a transaction that has no end."""
    linger_ms: float = 5
    """How long a batch may wait for more records."""
    batch_size: int = 131_072
    """A batch is closed when its records reach this size, before compression."""
    compression_type: str | None = "none"
    """None is ``"none"``, as in other clients."""
    compression_level: int | None = None
    partitioner: str | Partitioner = field(default="murmur2", hash=False)
    delivery_timeout_ms: int = 120_000
    """From the call to the outcome of a record, over metadata, waiting, wire and retries."""
    buffer_memory: int = 32 * MIB
    max_block_ms: int = 60_000
    """How long ``send`` waits for room or metadata before it raises."""
    max_request_size: int = MIB
    """Largest record, and largest batch before compression."""
    max_in_flight_requests_per_connection: int = 5
    setting_names: SettingNames = field(default=AS_ARGUMENTS, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_choice(self, "acks", ("all", -1, 0, 1))
        _check_type(self, "enable_idempotence", bool, "True, False or None", is_optional=True)
        if self.enable_idempotence and self.required_acks != -1:
            raise ConfigError(f"enable_idempotence=True needs acks='all', not acks={self.acks!r}")
        _check_text(self, "transactional_id", is_optional=True)
        if self.transactional_id is not None:
            if not self.transactional_id:
                raise ConfigError("transactional_id='' names no producer")
            if self.enable_idempotence is False or self.required_acks != -1:
                raise ConfigError("a transactional_id needs acks='all' and idempotence")
        _check_type(self, "compression_type", str, "a string or None", is_optional=True)
        _check_type(self, "compression_level", int, "a whole number", is_optional=True)
        if isinstance(self.compression_level, bool):
            raise ConfigError(f"compression_level={self.compression_level!r} is not a whole number")
        if not isinstance(self.partitioner, str) and not callable(self.partitioner):
            raise ConfigError(f"partitioner={self.partitioner!r} is neither a name nor a function")
        _check(self, {"linger_ms": (0, INT32_MAX)}, (int, float))
        _check(
            self,
            {
                "batch_size": (0, INT32_MAX),
                "transaction_timeout_ms": (1, INT32_MAX),
                "delivery_timeout_ms": (1, INT32_MAX),
                "buffer_memory": (1, 2**63 - 1),
                "max_block_ms": (0, INT32_MAX),
                "max_request_size": (1, INT32_MAX),
                "max_in_flight_requests_per_connection": (1, 1000),
            },
        )

    @property
    def is_idempotent(self) -> bool | None:
        """Demanded, not wanted, or None: used where the brokers have it."""
        if self.transactional_id is not None:
            return True
        if self.enable_idempotence is None and self.required_acks != -1:
            return False
        return self.enable_idempotence

    @property
    def required_acks(self) -> int:
        """``acks`` as the wire has it: -1, 0 or 1."""
        return -1 if self.acks == "all" else int(self.acks)


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig:
    """Settings of :class:`pykafka08.Consumer`; times in milliseconds, sizes in bytes."""

    group_id: str | None = None
    auto_offset_reset: Literal["earliest", "latest", "none"] = "latest"
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 50 * MIB
    max_partition_fetch_bytes: int = MIB
    """Asked of each partition; grows by itself for one larger record on brokers before 0.10.1."""
    fetch_buffer_bytes: int = 64 * MIB
    """Fetched bytes that may wait to be read before fetching pauses."""
    check_crcs: bool = True
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    max_unpacked_bytes: int = 64 * MIB
    """Largest record in a compressed batch, and largest unpacked batch if it cannot be unpacked in pieces."""
    client_rack: str | None = None
    """Where this consumer runs, as the brokers' ``broker.rack``: it is sent to a replica there."""
    setting_names: SettingNames = field(default=AS_ARGUMENTS, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_text(self, "group_id", is_optional=True)
        _check_type(self, "enable_auto_commit", bool, "True or False")
        _check_type(self, "check_crcs", bool, "True or False")
        _check_text(self, "client_rack", is_optional=True)
        _check_choice(self, "auto_offset_reset", ("earliest", "latest", "none"))
        _check_choice(self, "isolation_level", ("read_uncommitted", "read_committed"))
        _check(
            self,
            {
                "auto_commit_interval_ms": (1, INT32_MAX),
                "fetch_min_bytes": (0, INT32_MAX),
                "fetch_max_wait_ms": (0, INT32_MAX),
                "fetch_max_bytes": (1, INT32_MAX),
                "max_partition_fetch_bytes": (1, INT32_MAX),
                "fetch_buffer_bytes": (1, 2**63 - 1),
                "max_unpacked_bytes": (1, 2**63 - 1),
            },
        )


def setting_fields(*kinds: type) -> dict[str, Field[Any]]:
    """The settings of these dataclasses by name; those of :class:`SecurityConfig` stand beside ClientConfig's."""
    found = {each.name: each for kind in kinds for each in fields(kind)}
    if found.pop("security", None) is not None:
        found.update({each.name: each for each in fields(SecurityConfig)})
    found.pop(SETTING_NAMES, None)
    return found


def build(
    settings: dict[str, Any], *kinds: type, elsewhere: Iterable[str] = (), page: str = "docs/settings.md"
) -> list[Any]:
    """Objects of the dataclasses ``kinds`` out of one set of keyword arguments; an unknown name is a ConfigError.

    ``elsewhere`` are names that the caller takes itself: the error may propose them.  ``page`` lists the settings.
    """
    protect(settings)
    with names_among(settings).naming():
        return _built_from(settings, *kinds, elsewhere=elsewhere, page=page)


def names_among(settings: Mapping[str, Any]) -> SettingNames:
    """The names of settings among keyword arguments that were converted from properties (``Converted.arguments``)."""
    names = settings.get(SETTING_NAMES, AS_ARGUMENTS)
    if not isinstance(names, SettingNames):
        raise ConfigError(f"{SETTING_NAMES} is of type {type(names).__name__}, not SettingNames")
    return names


def _built_from(settings: dict[str, Any], *kinds: type, elsewhere: Iterable[str], page: str) -> list[Any]:
    known = setting_fields(*kinds)
    unknown = sorted(set(settings) - set(known) - {SETTING_NAMES})
    if unknown:
        names = {*known, *elsewhere}
        hints = {name: hint(name, names) for name in unknown}
        told = [shortened(name) + (f" ({text})" if text else "") for name, text in hints.items()]
        more = f", and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
        listed = "" if all(hints.values()) else f"; {page} lists the settings"
        raise ConfigError(f"unknown setting {', '.join(told[:_MOST_TOLD])}{more}{listed}")
    if "bootstrap_servers" in settings:
        settings = _with_protocol(settings)
        settings["bootstrap_servers"] = parse_bootstrap_servers(settings["bootstrap_servers"])
    check_protocol(settings)
    return [_built(kind, settings) for kind in kinds]


def _built(kind: type, settings: dict[str, Any]) -> Any:
    own = {name: settings[name] for name in settings.keys() & {each.name for each in fields(kind)}}
    if "security" in (each.name for each in fields(kind)):
        own["security"] = _built(SecurityConfig, settings)
    built = kind(**own)
    if kind is SecurityConfig:
        _check_login(built, own)
    return built


def _check_login(security: SecurityConfig, given: Mapping[str, Any]) -> None:
    """ConfigError if a setting is given with its default value, and the login module has another."""
    for each in fields(security):
        default = each.default
        if default is not None and given.get(each.name) == default and getattr(security, each.name) != default:
            raise ConfigError(f"{each.name} and sasl.jaas.config disagree: give one of them")


def client_settings(config: ClientConfig) -> dict[str, Any]:
    """The keyword arguments of a client with this configuration."""
    settings = {each.name: getattr(config, each.name) for each in fields(config)}
    security = settings.pop("security")
    settings.update({name: getattr(security, name) for name in SecurityConfig.names()})
    settings["bootstrap_servers"] = ",".join(f"[{host}]:{port}" for host, port in config.bootstrap_servers)
    return settings


def _with_protocol(settings: dict[str, Any]) -> dict[str, Any]:
    """A copy of the settings with the security protocol that the addresses name."""
    named = _protocol_of(settings["bootstrap_servers"])
    given = settings.get("security_protocol")
    if named is None:
        return dict(settings)
    if given is not None and (not isinstance(given, str) or given.upper() != named):
        raise ConfigError(f"security_protocol={_shown(given)} and bootstrap_servers, which names {named}, disagree")
    return {**settings, "security_protocol": named}
