"""Values of options: text in, whole numbers, booleans and times out, or an error with the option's name.  Pure."""

from __future__ import annotations

import re

from pykafka08.errors import ConfigError
from pykafka08.kafka_properties import is_secret

__all__ = ["OptionError", "boolean", "milliseconds", "not_negative", "positive", "positive_int", "whole"]

UNITS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
SHOWN = {
    name.lower(): name
    for name in (
        "minPartitions",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries",
    )
}
"""Names as users know them, by the form that they come in; Spark's words have ``maxrecordsperpartition`` like this."""
DURATION = re.compile(r"([0-9]+)\s*([a-z]*)")
UNITS_SHOWN = (
    "Time must be specified as seconds (s), milliseconds (ms), microseconds (us), minutes (m or min), hour (h), or day "
    "(d). E.g. 50s, 100ms, or 250us."
)
"""Spark's words."""


class OptionError(ConfigError):
    """An option has no possible meaning, or cannot be honoured; ``value`` is None where the option is missing.

    The value of an option that is a secret is not kept.
    """

    def __init__(self, option: str, value: str | None, why: str) -> None:
        if value is not None and is_secret(option):
            value = "***"
        super().__init__(why if value is None else f"{why} [option {option!r}, value {value!r}]")
        self.option = option
        self.value = value
        self.why = why


def whole(option: str, value: str, bits: int = 64) -> int:
    """A whole number of so many bits, as Java reads it."""
    if not re.fullmatch(r"[+-]?[0-9]+", value):
        raise OptionError(option, value, f'For input string: "{value}": not a whole number')
    # By its length first: Python refuses to convert thousands of digits.
    if len(value) > bits or not -(1 << bits - 1) <= int(value) < 1 << bits - 1:
        raise OptionError(option, value, f'For input string: "{value}": does not fit in {bits} bits')
    return int(value)


def positive(option: str, value: str, bits: int = 64) -> int:
    """A whole number above zero."""
    number = whole(option, value, bits)
    if number <= 0:
        raise OptionError(option, value, f"{SHOWN.get(option, option)} must be positive")
    return number


def positive_int(option: str, value: str) -> int:
    """A whole number above zero, of 32 bits."""
    return positive(option, value, 32)


def not_negative(option: str, value: str) -> int:
    """A whole number from zero."""
    number = whole(option, value)
    if number < 0:
        raise OptionError(option, value, f"{SHOWN.get(option, option)} must not be negative")
    return number


def boolean(option: str, value: str) -> bool:
    """``true`` or ``false`` in any case."""
    lower = value.lower()
    if lower not in ("true", "false"):
        raise OptionError(option, value, f'For input string: "{value}": neither true nor false')
    return lower == "true"


def milliseconds(option: str, value: str) -> int:
    """A duration as Spark writes it (``15m``, ``10s``, ``500ms``, ``1h``, ``1d``); milliseconds without a unit."""
    match = DURATION.fullmatch(value.strip().lower())
    if match is None:
        raise OptionError(option, value, f"{UNITS_SHOWN} Failed to parse time string: {value}")
    if match[2] not in {"", *UNITS}:
        raise OptionError(option, value, f'{UNITS_SHOWN} Invalid suffix: "{match[2]}"')
    return int(int(match[1]) * UNITS[match[2] or "ms"])
