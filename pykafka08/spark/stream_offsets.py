"""What the driver's stream reader asks the brokers between micro-batches.

Apart from ``stream_reader``, which Spark also loads where a stream is only planned or read, without a client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

import anyio

from pykafka08.cluster.client import Client
from pykafka08.records.record import TopicPartition
from pykafka08.spark.locating import find_partitions, locate, offsets_of_limit, present_partitions
from pykafka08.spark.offsets_json import EARLIEST, LATEST
from pykafka08.spark.options import ReadOptions
from pykafka08.spark.runtime import client, run

__all__ = ["Latest", "earliest_offsets", "latest_offsets", "start_offsets"]

Offsets = dict[TopicPartition, int]


class Latest(NamedTuple):
    """The latest offset of each partition that is there, with the id of its topic, and the known ones of those gone.

    ``not_chosen`` are those of the gone that are in the cluster: the options do not choose them any more.
    """

    offsets: Offsets
    gone: Offsets
    topic_ids: Mapping[TopicPartition, UUID | None]
    not_chosen: frozenset[TopicPartition]


def start_offsets(options: ReadOptions) -> Offsets:
    """Where a query without a checkpoint starts."""
    return run(_find_start(client(options.client), options))


def latest_offsets(options: ReadOptions, known: Offsets) -> Latest:
    """What is there now; an offset before the known one is asked for again: a leader that has just changed may lag."""
    return run(_find_latest(client(options.client), options, known))


def earliest_offsets(options: ReadOptions, partitions: Iterable[TopicPartition]) -> Offsets:
    """The first offsets of ``partitions``."""
    return run(locate(client(options.client), dict.fromkeys(partitions, EARLIEST), options))


async def _find_start(present: Client, options: ReadOptions) -> Offsets:
    found = await find_partitions(
        present, options.selection, retries=options.num_retries, interval_ms=options.retry_interval_ms
    )
    return await offsets_of_limit(present, found.partitions, options.starting, options, side="starting")


async def _find_latest(present: Client, options: ReadOptions, known: Offsets) -> Latest:
    retries = options.num_retries
    while True:
        found = await find_partitions(
            present,
            options.selection,
            retries=retries,
            interval_ms=options.retry_interval_ms,
            known_topics={tp.topic for tp in known},
        )
        latest = await locate(present, dict.fromkeys(found.partitions, LATEST), options)
        gone = {tp: offset for tp, offset in known.items() if tp not in latest}
        behind = [tp for tp, end in latest.items() if end < known.get(tp, 0)]
        if retries <= 0 or not (gone or behind):
            return Latest(latest, gone, found.partitions, await _not_chosen(present, options, gone))
        retries -= 1
        await anyio.sleep(options.retry_interval_ms / 1000)


async def _not_chosen(present: Client, options: ReadOptions, gone: Offsets) -> frozenset[TopicPartition]:
    """Those of ``gone`` that are there; one that is chosen has just come again, and was gone."""
    selection = options.selection
    others = frozenset(tp for tp in gone if not selection.chooses(tp))
    return others & await present_partitions(present, {tp.topic for tp in others}) if others else others
