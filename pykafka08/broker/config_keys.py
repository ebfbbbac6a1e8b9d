"""Config keys: names, types, defaults and checks of configs, by release.

The tables of keys are in ``topic_configs``, ``broker_configs`` and ``group_configs``.  A key whose default or range
changed has one row for each range of releases.  Source: DescribeConfigs and IncrementalAlterConfigs of real
brokers from 0.11.0.3 to 4.3.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from pykafka08.broker.personality import Personality

__all__ = [
    "NEVER",
    "Check",
    "ConfigKey",
    "ConfigSource",
    "ConfigType",
    "accept",
    "at_least",
    "between",
    "items_of",
    "keys_of",
    "list_of",
    "one_of",
    "value_fault",
    "values_fault",
]

Check = Callable[[str], "str | None"]
"""Returns the rule that a value of the right type violates; None if the value is valid."""

NEVER = (99,)
INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
DECIMAL = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")


class ConfigType(IntEnum):
    """Config types, with their numbers in DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


class ConfigSource(IntEnum):
    """Sources of a value, with their numbers in DescribeConfigs."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    STATIC = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


def accept(_: str) -> str | None:
    """Accept every value of the right type."""
    return None


class ConfigKey(NamedTuple):
    """One config in the releases from ``since`` to before ``until``.

    ``fallbacks``: names and factors of the broker configs from which a resource inherits the value.
    """

    name: str
    type: ConfigType
    default: str | None
    check: Check = accept
    fallbacks: tuple[tuple[str, int], ...] = ()
    since: tuple[int, ...] = (0, 8)
    until: tuple[int, ...] = NEVER
    is_read_only: bool = False
    is_per_broker: bool = False


def keys_of(rows: Iterable[ConfigKey], personality: Personality) -> dict[str, ConfigKey]:
    """The keys of a release, by name."""
    return {row.name: row for row in rows if personality >= row.since and personality < row.until}


def items_of(text: str) -> list[str]:
    """The items of a list."""
    return [item for item in map(str.strip, text.split(",")) if item]


# -- checks


def at_least(least: int) -> Check:
    return lambda text: None if int(text) >= least else f"the value must be at least {least}"


def between(least: float, most: float, *others: int) -> Check:
    """A number from ``least`` to ``most``, or one of ``others``."""
    more = "".join(f" or {other}" for other in others)

    def check(text: str) -> str | None:
        number = float(text)
        return None if least <= number <= most or number in others else f"the value must be {least} to {most}{more}"

    return check


def one_of(*choices: str) -> Check:
    return lambda text: None if text in choices else f"the value must be one of {', '.join(choices)}"


def list_of(*choices: str) -> Check:
    def check(text: str) -> str | None:
        is_known = all(item in choices for item in items_of(text))
        return None if is_known else f"each item must be one of {', '.join(choices)}"

    return check


def value_fault(key: ConfigKey, text: str) -> str | None:
    """The fault of a value; None if it is valid."""
    stripped = text.strip()
    reason = _type_fault(key.type, stripped) or key.check(stripped)
    return None if reason is None else f"Invalid value {text!r:.100} for config {key.name}: {reason}"


def _type_fault(kind: ConfigType, text: str) -> str | None:
    if kind is ConfigType.BOOLEAN:
        return None if text.lower() in ("true", "false") else "the value must be true or false"
    if kind is ConfigType.DOUBLE:
        return None if DECIMAL.fullmatch(text) else "not a number of type DOUBLE"
    bits = BITS.get(kind)
    if bits is None:
        return None
    is_number = INTEGER.fullmatch(text) is not None and -(1 << bits - 1) <= int(text) < 1 << bits - 1
    return None if is_number else f"not a number of type {kind.name}"


def values_fault(keys: Mapping[str, ConfigKey], config: Mapping[str, str], kind: str) -> str | None:
    """The fault of the configs of one resource (an unknown name or invalid value); None if they are valid."""
    for name, value in config.items():
        key = keys.get(name)
        if key is None:
            return f"Unknown {kind} config name: {name:.249}"
        fault = value_fault(key, value)
        if fault is not None:
            return fault
    return None
