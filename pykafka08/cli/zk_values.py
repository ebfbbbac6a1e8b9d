"""Values of ``pykafka08 zk`` options that have parts: partitions, moves, replicas, offsets.

Each function is a ``type`` of argparse: any other text is a usage error, before any connection is made.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from pykafka08.cli.options import whole_number

if TYPE_CHECKING:
    from pykafka08.records.record import TopicPartition

__all__ = ["assignment", "broker", "move", "partition", "servers", "target"]

_LARGEST_ID = 2**31 - 1


def partition(text: str) -> TopicPartition:
    """``TOPIC:N``."""
    from pykafka08.records.record import TopicPartition

    topic, _, digits = text.rpartition(":")
    number = whole_number(digits)
    if not topic or number is None or number > _LARGEST_ID:
        raise ArgumentTypeError(f"{text!r:.100} is not of the form TOPIC:N")
    return TopicPartition(topic, number)


def move(text: str) -> tuple[TopicPartition, list[int]]:
    """``TOPIC:N=1,2``."""
    name, equals, ids = text.rpartition("=")
    if not equals:
        raise ArgumentTypeError(f"{text!r:.100} is not of the form TOPIC:N=1,2")
    return partition(name), _ids(ids, ",")


def assignment(text: str) -> dict[int, list[int]]:
    """``1:2,2:3``: the brokers of each partition."""
    return {number: _ids(part, ":") for number, part in enumerate(text.split(","))}


def target(text: str) -> int | str:
    """``earliest``, ``latest`` or an offset."""
    number = whole_number(text)
    if number is None and text not in ("earliest", "latest"):
        raise ArgumentTypeError(f"{text!r:.100} is neither earliest, latest nor a number")
    return text if number is None else number


def broker(text: str) -> str:
    """A broker's id, or ``<default>``."""
    number = whole_number(text)
    if text != "<default>" and (number is None or number > _LARGEST_ID):
        raise ArgumentTypeError(f"{text!r:.100} is neither the id of a broker nor <default>")
    return text


def servers(text: str) -> str:
    """Addresses of brokers."""
    from pykafka08.config import parse_bootstrap_servers
    from pykafka08.errors import ConfigError

    try:
        parse_bootstrap_servers(text)
    except ConfigError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


def _ids(text: str, separator: str) -> list[int]:
    found: list[int] = []
    for word in text.split(separator):
        number = whole_number(word)
        if number is None or number > _LARGEST_ID:
            raise ArgumentTypeError(f"{text!r:.100} is not a list of broker ids")
        found.append(number)
    return found
