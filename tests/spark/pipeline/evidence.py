"""What a pipeline left behind, held against what was produced: by files and records alone.

Nothing here is the pipeline's: tables are read by deltalake and pyarrow, topics by librdkafka, and what must be in them
is worked out in plain Python from the records that were sent.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from deltalake import DeltaTable

from tests.spark.pipeline import orders

Place = tuple[str, int, int]
"""Source, partition, offset."""
POLL_S = 1.0
HOUR = timedelta(hours=1)


@dataclass
class Sent:
    """What each source's topic holds."""

    values: dict[Place, bytes] = field(default_factory=dict)
    _ends: Counter[tuple[str, int]] = field(default_factory=Counter)

    def produce(self, brokers: str, numbers: range, source: str = "shop") -> None:
        orders.produce(brokers, numbers)
        for position, value in enumerate(orders.values(numbers)):
            partition = position % orders.PARTITIONS
            self.values[source, partition, self._ends[source, partition]] = value
            self._ends[source, partition] += 1

    def forget(self, source: str, partition: int, before: int) -> None:
        """The pipeline begins behind these."""
        for offset in range(before):
            del self.values[source, partition, offset]

    def accepted(self) -> dict[int, dict[str, Any]]:
        """The orders that must be in silver, by id."""
        rows = (json.loads(one) for one in self.values.values() if not one.startswith(b"{broken"))
        return {row["id"]: row for row in rows if row["amount"] > 0}

    def refused(self) -> dict[Place, bytes]:
        return {
            place: one
            for place, one in self.values.items()
            if one.startswith(b"{broken") or json.loads(one)["amount"] <= 0
        }

    def windows(self) -> dict[tuple[str, datetime], tuple[int, int]]:
        """Kind and hour → orders, amount."""
        found: dict[tuple[str, datetime], tuple[int, int]] = {}
        for row in self.accepted().values():
            at = datetime.fromisoformat(row["at"].replace("Z", "+00:00")).replace(minute=0, second=0)
            count, amount = found.get((row["kind"], at), (0, 0))
            found[row["kind"], at] = count + 1, amount + row["amount"]
        return found


def check(out: Path, brokers: str, sent: Sent) -> None:
    """Every input is in bronze, silver, the dead letters and the windows as often as it must be: once or never."""
    bronze = Counter(_bronze(out, {place[0] for place in sent.values}))
    assert bronze == Counter(sent.values.items())
    check_silver(out, sent)
    letters = [_letter(one) for one in records(brokers, orders.LETTERS)]
    assert Counter(letters) == Counter(sent.refused().items())
    totals = records(brokers, orders.TOTALS)
    assert newest(totals) == sent.windows()
    assert len(totals) == brought(out / "gold/hourly")


def check_silver(out: Path, sent: Sent, *, is_interrupted: bool = False) -> None:
    """``is_interrupted``: a backfill has ended amid its work, so that accepted records may be among the refused."""
    rows = live(out / "silver")
    assert Counter(row["id"] for row in rows) == Counter(sent.accepted().keys())
    for row in rows:
        source = json.loads(sent.values[row["_source"], row["_partition"], row["_offset"]])
        assert (row["id"], row["kind"], row["amount"]) == (source["id"], source["kind"], source["amount"])
    places = [((row["_source"], row["_partition"], row["_offset"]), row["value"]) for row in live(out / "rejects")]
    there = Counter(places)
    if is_interrupted:
        there = Counter({place: count for place, count in there.items() if place[0] in sent.refused()})
    assert there == Counter(sent.refused().items())


def live(table: Path) -> list[dict[str, Any]]:
    """The rows of the newest version."""
    rows: list[dict[str, Any]] = DeltaTable(table).to_pyarrow_table().to_pylist()
    return rows


def brought(table: Path) -> int:
    """Rows in all files that came, but for those that others had before."""
    lines = [line for path in sorted((table / "_delta_log").glob("*.json")) for line in path.read_text().splitlines()]
    added = [one["add"] for one in map(json.loads, lines) if "add" in one]
    return sum(json.loads(one["stats"])["numRecords"] for one in added if one["dataChange"])


def _bronze(out: Path, sources: set[str]) -> Iterator[tuple[Place, bytes]]:
    for source in sources:
        for row in live(out / "bronze" / source):
            yield (source, row["partition"], row["offset"]), row["value"]


def records(brokers: str, topic: str) -> list[Message]:
    """All committed records of a topic, each partition's in order."""
    settings = {"bootstrap.servers": brokers, "group.id": "evidence", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
    try:
        partitions = consumer.list_topics(topic).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        read: list[Message] = []
        ended: set[int] = set()
        while len(ended) < len(partitions):
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            error = message.error()
            if error is None:
                read.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                assert error.retriable() or not error.fatal(), error
        return read
    finally:
        consumer.close()


def _letter(message: Message) -> tuple[Place, bytes]:
    told = {name: value.decode() for name, value in message.headers()}
    is_broken = message.value().startswith(b"{broken")
    assert told["dead-letter.reason"] == ("not json of the schema" if is_broken else "rule: the amount is positive")
    assert told["dead-letter.topic"] == orders.TOPIC
    place = told["dead-letter.source"], int(told["dead-letter.partition"]), int(told["dead-letter.offset"])
    return place, message.value()


def newest(totals: list[Message]) -> dict[tuple[str, datetime], tuple[int, int]]:
    """Kind and hour → orders, amount, of the last record of each window."""
    found = {}
    for message in totals:
        row = json.loads(message.value())
        start = datetime.fromisoformat(row["window_start"].replace("Z", "+00:00"))
        assert datetime.fromisoformat(row["window_end"].replace("Z", "+00:00")) - start == HOUR
        found[row["kind"], start] = row["orders"], row["amount"]
    return found
