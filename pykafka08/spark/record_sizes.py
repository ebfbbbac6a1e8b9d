"""About how many bytes each batch of a stream had, for ``listener``: an estimate, since tasks cannot tell the driver.

Spark's Python Data Source API gives what reads no way to report anything but rows, and Spark's progress has their
number alone.  So records of each topic are fetched now and then, and their size is taken for all of the topic's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from pykafka08.cluster.client import Client
from pykafka08.driver import library_logger
from pykafka08.errors import KafkaError
from pykafka08.records.record import TopicPartition
from pykafka08.spark.client_properties import consumer_settings
from pykafka08.spark.ranges import Range, ReadSettings
from pykafka08.spark.runtime import runtime
from pykafka08.spark.sizes import SAMPLE_BYTES, with_sizes

__all__ = ["RecordSizes"]

log = library_logger("spark")

RENEWED_S = 60.0
"""How long a topic's average holds; and how long nothing is asked again where nothing was found."""
PATIENCE_S = 5.0
"""How long a listener waits for averages: Spark tells it of the next batch only then."""
TOPICS_AT_ONCE = ReadSettings.fetch_bytes // SAMPLE_BYTES
"""In one fetch, so that there is room for each one's sample."""


class RecordSizes:
    """The average bytes of an offset by topic, as brokers keep it (packed), looked up once a minute.

    ``options`` are those of the source: ``kafka.bootstrap.servers`` and other ``kafka.*`` properties.  ``now`` is a
    monotonic clock in seconds.
    """

    def __init__(self, options: Mapping[str, str], now: Callable[[], float] = time.monotonic) -> None:
        client, consumer = consumer_settings({name.lower(): each for name, each in options.items()}, "spark-sizes")
        self._settings = ReadSettings(client=client, consumer=consumer)
        self._pool = ThreadPoolExecutor(1, "pykafka08-record-sizes")
        self._now = now
        self._averages: dict[str, float] = {}
        self._asked_at: dict[str, float] = {}
        self._looking: Future[None] | None = None

    def estimated_bytes(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], rows: int
    ) -> int | None:
        """Of a batch of so many rows; None where the size of a topic's records is not known.

        Without ``starts``, as in a query's first batch, the bytes are those of ``rows`` records.
        """
        ranges = [
            Range(tp.topic, tp.partition, starts.get(tp, 0), end) for tp, end in ends.items() if end > starts.get(tp, 0)
        ]
        if not ranges or not rows:
            return 0
        self._renew(ranges)
        averages = dict(self._averages)
        if not all(each.topic in averages for each in ranges):
            return None
        size = sum(each.size * averages[each.topic] for each in ranges)
        return round(size if starts else size * rows / sum(each.size for each in ranges))

    def close(self) -> None:
        """Close the connections, when what is looked up has ended."""
        self._pool.submit(lambda: runtime().close())
        self._pool.shutdown()

    def _renew(self, ranges: Sequence[Range]) -> None:
        """Look topics up whose averages are old; what is being looked up already is not waited for."""
        if self._looking is not None and not self._looking.done():
            return
        now = self._now()
        old = [each for each in ranges if now - self._asked_at.get(each.topic, -math.inf) >= RENEWED_S]
        if old:
            self._asked_at.update(dict.fromkeys((each.topic for each in old), now))
            self._looking = self._pool.submit(self._look_up, old)
            wait([self._looking], PATIENCE_S)
            if self._looking.done():
                self._looking.result()  # raises what is no failure of the cluster's

    def _look_up(self, ranges: Sequence[Range]) -> None:
        """In a thread of its own, where the client lives: that a listener is called in is Spark's to choose."""
        present = runtime()
        topics = sorted({each.topic for each in ranges})
        try:
            client = present.client(self._settings.client)
            for first in range(0, len(topics), TOPICS_AT_ONCE):
                some = topics[first : first + TOPICS_AT_ONCE]
                sampled = present.run(_sampled(client, [each for each in ranges if each.topic in some], self._settings))
                self._averages |= {each.topic: each.average_bytes for each in sampled if each.average_bytes}
        except KafkaError as error:
            log.info("spark.sizes_unknown", cause=str(error))


async def _sampled(client: Client, ranges: Sequence[Range], settings: ReadSettings) -> list[Range]:
    await client.wait_for_topics({each.topic for each in ranges}, timeout=PATIENCE_S, needed="READ")
    return await with_sizes(client, ranges, settings)
