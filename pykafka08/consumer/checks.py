"""What an application passes to a consumer, checked before anything is done with it; all faults are ConfigErrors.

A value that slipped through would be met by a task that serves others too.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches

from pykafka08.errors import ConfigError
from pykafka08.records.record import TopicPartition
from pykafka08.records.topic_name import LONGEST_OF_OLD_BROKERS, topic_name_fault

__all__ = ["check_count", "check_listener", "check_offset", "check_topic", "checked", "checked_times"]

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
LISTENER_METHODS = ("partitions_assigned", "partitions_revoked", "partitions_lost")
LIKE_THEM = ("partitions_", "on_partitions_")
"""How other clients' names of these methods begin, and most that are misspelt: nobody would call them."""


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def check_topic(topic: object) -> None:
    """A name that some broker's topic may have: one that cannot be written would end all asking for metadata."""
    if not isinstance(topic, str):
        raise ConfigError(f"a topic is a string, not {topic!r:.100}; give several as Consumer('a', 'b', ...)")
    fault = topic_name_fault(topic, LONGEST_OF_OLD_BROKERS)
    if fault is not None:
        raise ConfigError(fault)


def checked(tp: TopicPartition) -> TopicPartition:
    """``tp`` as a TopicPartition, if it is one: a pair of a topic and a number."""
    wrong = ConfigError(f"{tp!r:.300} is not a TopicPartition(topic, partition)")
    if isinstance(tp, (str, bytes)):
        raise wrong
    try:
        topic, partition = tp
    except (TypeError, ValueError):
        raise wrong from None
    if not isinstance(topic, str) or not _is_number(partition, INT32_MAX):
        raise wrong
    check_topic(topic)
    return TopicPartition(topic, partition)


def checked_times(timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Milliseconds since 1970 by partition."""
    if not isinstance(timestamps, Mapping):
        raise ConfigError(f"timestamps are a mapping of partitions to milliseconds, not {timestamps!r:.100}")
    wanted = {checked(tp): timestamp for tp, timestamp in timestamps.items()}
    for tp, timestamp in wanted.items():
        if not _is_number(timestamp, INT64_MAX):
            text = f"timestamp {timestamp!r:.100} is no number of milliseconds since 1970"
            raise ConfigError(text, topic=tp.topic, partition=tp.partition)
    return wanted


def check_offset(tp: TopicPartition, offset: object) -> None:
    if not _is_number(offset, INT64_MAX):
        raise ConfigError(f"offset {offset!r:.100} does not exist", topic=tp.topic, partition=tp.partition)


def check_count(name: str, value: object) -> None:
    if not _is_number(value, INT64_MAX) or value == 0:
        raise ConfigError(f"{name}={value!r:.100} is not a number of records")


def check_listener(listener: object) -> None:
    """The three methods of a RebalanceListener, all of them coroutine functions, and none that is nearly one."""
    if isinstance(listener, type):
        name = listener.__name__
        raise ConfigError(f"listener={name} is a class: give an instance, as listener={name}()")
    wrong = [name for name in LISTENER_METHODS if not callable(getattr(listener, name, None))]
    if wrong:
        raise ConfigError(f"listener={listener!r:.100} has no method {', '.join(wrong)}: see RebalanceListener")
    plain = [
        name
        for name in LISTENER_METHODS
        if inspect.isroutine(method := inspect.unwrap(getattr(listener, name)))
        and not inspect.iscoroutinefunction(method)
    ]
    if plain:
        raise ConfigError(f"listener={listener!r:.100}: {', '.join(plain)} is no coroutine function ('async def')")
    for name in dir(type(listener)):
        if name.startswith(LIKE_THEM) and name not in LISTENER_METHODS and callable(getattr(type(listener), name)):
            meant = get_close_matches(name.removeprefix("on_"), LISTENER_METHODS, 1, 0.8)
            told = f"did you mean {meant[0]}?" if meant else f"the methods are {', '.join(LISTENER_METHODS)}"
            raise ConfigError(f"listener={listener!r:.100}: nobody calls its {name}; {told}")
