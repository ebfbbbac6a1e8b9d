"""What ``--value-deserializer`` and its kin may name: bytes of a record into the text Kafka's own tool prints.

The names are those of Kafka's serialization classes, with or without their package.  Classes whose text is of no use
(``ByteArrayDeserializer`` prints an object's address) and classes of the user's own are not here.
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable
from contextlib import suppress

from pykafka08.errors import ConfigError, KafkaError

__all__ = ["Deserializer", "deserializer"]

Deserializer = Callable[[bytes], bytes]
"""Bytes of a record -> UTF-8 text; raises :class:`KafkaError` where they are not of the type."""

PACKAGE = "org.apache.kafka.common.serialization."


def deserializer(name: str) -> Deserializer:
    """The deserializer called ``name``, e.g. ``"LongDeserializer"`` or its full Java name."""
    short = name.strip().removeprefix(PACKAGE)
    found = _TABLE.get(short)
    if found is None:
        raise ConfigError(f"there is no deserializer {name!r}; there are {', '.join(sorted(_TABLE))}")
    return found


def _text(data: bytes) -> bytes:
    return data.decode("utf-8", "replace").encode()


def _escaped(data: bytes) -> bytes:
    return b"".join(b"%c" % byte if 32 <= byte <= 126 and byte != 92 else b"\\x%02X" % byte for byte in data)


def _fixed(name: str, layout: str, show: Callable[..., str]) -> Deserializer:
    form = struct.Struct(layout)

    def convert(data: bytes) -> bytes:
        if len(data) != form.size:
            raise KafkaError(f"{name} needs {form.size} bytes, the record has {len(data)}")
        return show(*form.unpack(data)).encode()

    return convert


def java_floating(value: float, digits: int) -> str:
    """As ``toString`` of a Double or Float writes it since Java 19: with the fewest digits that tell it apart.

    ``digits`` is the most that may be needed: 17 for a double, 9 for a float.
    """
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    text = _shortest(abs(value), digits, ">f" if digits == 9 else ">d")
    mantissa, _, power = text.partition("e")
    figures, exponent = mantissa.replace(".", "").rstrip("0"), int(power)
    if not -3 <= exponent < 7:
        return f"{sign}{figures[0]}.{figures[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{figures}"
    whole = figures[: exponent + 1].ljust(exponent + 1, "0")
    return f"{sign}{whole}.{figures[exponent + 1 :] or '0'}"


def _shortest(size: float, digits: int, layout: str) -> str:
    """``size`` in e-notation with the fewest digits, two at least, that pack to the same bytes."""
    wanted = struct.pack(layout, size)
    for n in range(1, digits):
        text = f"{size:.{n}e}"
        with suppress(OverflowError):  # rounded up beyond the largest float
            if struct.pack(layout, float(text)) == wanted:
                return text
    return f"{size:.{digits}e}"


def _uuid(data: bytes) -> bytes:
    try:
        return str(uuid.UUID(data.decode("utf-8", "replace"))).encode()
    except ValueError:
        raise KafkaError("UUIDDeserializer: the record is not the text of a UUID") from None


_TABLE: dict[str, Deserializer] = {
    "BooleanDeserializer": _fixed("BooleanDeserializer", ">B", lambda flag: "true" if flag else "false"),
    "BytesDeserializer": _escaped,
    "DoubleDeserializer": _fixed("DoubleDeserializer", ">d", lambda number: java_floating(number, 17)),
    "FloatDeserializer": _fixed("FloatDeserializer", ">f", lambda number: java_floating(number, 9)),
    "IntegerDeserializer": _fixed("IntegerDeserializer", ">i", str),
    "LongDeserializer": _fixed("LongDeserializer", ">q", str),
    "ShortDeserializer": _fixed("ShortDeserializer", ">h", str),
    "StringDeserializer": _text,
    "UUIDDeserializer": _uuid,
}
