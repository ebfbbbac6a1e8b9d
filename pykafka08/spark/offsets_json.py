"""The JSON that Spark's ``kafka`` source keeps in checkpoints and takes in options, both ways.  Pure.

Offsets are ``{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}``: the next offset to read of each partition; in options -2
is the earliest and -1 the latest.  Spark compares offsets as text, so that what is written has its topics and
partitions in order and no blanks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pykafka08.records.record import TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "Document",
    "document",
    "offsets_of",
    "read_offsets",
    "read_partitions",
    "read_timestamps",
    "write_offsets",
    "write_partitions",
]

LATEST = -1
EARLIEST = -2

Document = dict[str, dict[str, int]]
"""Offsets as Spark passes them to and from a Python data source."""

PARTITIONS_FORM = 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got '
OFFSETS_FORM = 'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got '
TIMESTAMPS_FORM = (
    'Expected e.g. {"topicA": {"0": 123456789, "1": 123456789}, "topicB": {"0": 123456789, "1": 123456789}}, got '
)


def document(offsets: Mapping[TopicPartition, int]) -> Document:
    """Topics in order of name, their partitions in order of number."""
    result: Document = {}
    for tp in sorted(offsets):
        result.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return result


def offsets_of(found: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """What :func:`document` made, or Spark read from a checkpoint; ValueError if it is none."""
    return _read(found, json.dumps(found), OFFSETS_FORM, 0)


def write_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """Offsets as Spark's connector writes them into a checkpoint."""
    return json.dumps(document(offsets), separators=(",", ":"))


def write_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Partitions as the option ``assign`` has them."""
    topics: dict[str, list[int]] = {}
    for tp in sorted(partitions):
        topics.setdefault(tp.topic, []).append(tp.partition)
    return json.dumps(topics, separators=(",", ":"))


def read_offsets(text: str) -> dict[TopicPartition, int]:
    """Offsets out of an option, with :data:`EARLIEST` and :data:`LATEST`; ValueError in Spark's words, or for a number
    that does not fit in 64 bits (a partition's: in 32)."""
    return _read(_parsed(text), text, OFFSETS_FORM, EARLIEST)


def read_timestamps(text: str) -> dict[TopicPartition, int]:
    """Milliseconds since 1970 for each partition; ValueError in Spark's words."""
    return _read(_parsed(text), text, TIMESTAMPS_FORM, 0)


def read_partitions(text: str) -> frozenset[TopicPartition]:
    """What the option ``assign`` names; ValueError in Spark's words."""
    found = _parsed(text)
    if not isinstance(found, dict):
        raise ValueError(PARTITIONS_FORM + text)
    result: set[TopicPartition] = set()
    for topic, numbers in found.items():
        if not isinstance(numbers, list) or not all(_is_whole(each, 0) for each in numbers):
            raise ValueError(PARTITIONS_FORM + text)
        result.update(
            TopicPartition(topic, _fitting(number, 32, f"The partition {number} of topic {topic}"))
            for number in numbers
        )
    return frozenset(result)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None  # no mapping, which is what those who asked check


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _fitting(number: int, bits: int, what: str) -> int:
    """``number``, or ValueError; Spark's connector takes another number for it then, without a word."""
    if number >= 1 << bits - 1:
        raise ValueError(f"{what} does not fit in {bits} bits")
    return number


def _read(found: Any, text: str, form: str, least: int) -> dict[TopicPartition, int]:
    result = {}
    if not isinstance(found, Mapping):
        raise ValueError(form + text)
    for topic, numbers in found.items():
        if not isinstance(numbers, Mapping):
            raise ValueError(form + text)
        for number, value in numbers.items():
            if not (number.isascii() and number.isdigit() and _is_whole(value, least)):
                raise ValueError(form + text)
            tp = TopicPartition(topic, _fitting(int(number), 32, f"The partition {number} of topic {topic}"))
            result[tp] = _fitting(value, 64, f"{value} for {topic}-{number}")
    return result
