"""How options are written, for what is said of them: Spark passes their names in lower case.  Pure."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

__all__ = ["SPELLINGS", "shown", "suggestion"]

SPELLINGS = {
    name.lower(): name
    for name in (
        "subscribe",
        "subscribePattern",
        "assign",
        "startingOffsets",
        "startingOffsetsByTimestamp",
        "startingTimestamp",
        "endingOffsets",
        "endingOffsetsByTimestamp",
        "endingTimestamp",
        "startingOffsetsByTimestampStrategy",
        "failOnDataLoss",
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
        "minPartitions",
        "maxRecordsPerPartition",
        "groupIdPrefix",
        "includeHeaders",
        "startingGroup",
        "columns",
        "pushFilters",
        "targetRecordsPerTask",
        "fetchBytes",
        "segmentGranularTimestamps",
        "commitGroup",
        "topic",
        "exactlyOnce",
        "transactionalIdPrefix",
        "checkpointLocation",
        "queryName",
    )
}
"""By the name in lower case: as users write it."""


def shown(option: str) -> str:
    """The option as users write it; unchanged what is in no table, as ``kafka.*`` properties are."""
    return SPELLINGS.get(option, option)


def suggestion(option: str, known: Collection[str], properties: Collection[str], prefix: str) -> str:
    """What may have been meant by ``option``, in brackets; empty if nobody can guess.

    ``known`` are options in lower case, ``properties`` those of a Kafka client, which are written with ``prefix``.
    """
    if option in properties:
        return f" (did you mean {prefix}{option}?)"
    near = get_close_matches(option, [*known, *(prefix + each for each in sorted(properties))], 1, 0.7)
    return f" (did you mean {shown(near[0])}?)" if near else ""
