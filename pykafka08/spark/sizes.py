"""How large records are, by topic: small ranges of one batch share a task by records and by bytes.

One fetch to each leader, of one range of each topic.  An estimate: where nothing comes of it, the plan goes by records.
Streams do without, since a micro-batch that is run again must have the same tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pykafka08.cluster.client import Client
from pykafka08.driver import library_logger
from pykafka08.errors import KafkaError
from pykafka08.records.reader import first_entry_size, only_partial
from pykafka08.spark.fetching import Asked, Fetched, FetchTerms, Place, RangeFetch
from pykafka08.spark.ranges import Range, ReadSettings
from pykafka08.wire import Buffer

__all__ = ["with_sizes"]

log = library_logger("spark")

MAGIC_AT = 16
"""In every format of an entry."""
SAMPLE_BYTES = 1024 * 1024
"""Asked of a topic: one batch is enough, and by default none is larger."""
MOST_TOPICS = 16
"""Those with most offsets are asked for."""
TIMEOUT_S = 5.0


async def with_sizes(client: Client, ranges: Sequence[Range], settings: ReadSettings) -> list[Range]:
    """The same ranges, with ``average_bytes`` where it was found out."""
    averages: dict[str, float] = {}
    for leader, samples in _by_leader(client, _largest(ranges)).items():
        for each in await _fetched(client, leader, samples, settings):
            size = _average(each)
            if size:
                averages[each.place.range.topic] = size
    log.debug("spark.sizes", averages=averages)
    return [replace(each, average_bytes=averages.get(each.topic, 0.0)) for each in ranges]


def _largest(ranges: Sequence[Range]) -> list[Range]:
    """The largest range of each of the largest topics."""
    totals: dict[str, int] = {}
    largest: dict[str, Range] = {}
    for each in ranges:
        totals[each.topic] = totals.get(each.topic, 0) + each.size
        largest[each.topic] = max(each, largest.get(each.topic, each), key=lambda one: one.size)
    return [largest[topic] for topic in sorted(totals, key=lambda topic: -totals[topic])[:MOST_TOPICS]]


def _by_leader(client: Client, samples: Sequence[Range]) -> dict[int, list[Range]]:
    of_leaders: dict[int, list[Range]] = {}
    for each in samples:
        leader = client.metadata.leader(each.topic, each.partition)
        if leader is not None:
            of_leaders.setdefault(leader, []).append(each)
    return of_leaders


async def _fetched(client: Client, leader: int, samples: Sequence[Range], settings: ReadSettings) -> list[Fetched]:
    snapshot = client.metadata
    asked = [
        Asked(
            Place(each, 0.0),
            each.start,
            min(SAMPLE_BYTES, settings.partition_fetch_bytes or SAMPLE_BYTES),
            snapshot.leader_epoch(each.topic, each.partition),
            each.topic_id or snapshot.topic_id(each.topic),
        )
        for each in samples
    ]
    fetch = RangeFetch(asked, FetchTerms(), max_bytes=settings.fetch_bytes)
    try:
        return fetch.read(await client.request(leader, fetch, timeout=TIMEOUT_S))
    except KafkaError as error:
        log.info("spark.sizes_unknown", cause=str(error))
        return []


def _average(fetched: Fetched) -> float:
    """Bytes of an offset; 0 if nothing came.  An entry that is cut off is taken for one record."""
    if fetched.next_offset is not None and fetched.next_offset > fetched.offset:
        return _whole_bytes(fetched.records) / (fetched.next_offset - _first_offset(fetched))
    return float(fetched.cut_off_size or 0)


def _first_offset(fetched: Fetched) -> int:
    """Where the records begin: the batch with the offset that was asked for may begin before it."""
    if fetched.records[MAGIC_AT] < 2:
        return fetched.offset  # the first number is that of a compressed set's last record
    return min(fetched.offset, int.from_bytes(fetched.records[:8], "big"))


def _whole_bytes(records: Buffer) -> int:
    """Without the last entry where a part of it came alone."""
    rest = memoryview(records)
    while rest and not only_partial(rest):
        rest = rest[first_entry_size(rest) :]
    return len(records) - len(rest)
