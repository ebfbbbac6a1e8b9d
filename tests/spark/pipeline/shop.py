"""Orders from an embedded broker to gold, with the expected rows of each table."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

from pyspark.sql import SparkSession

from pykafka08.spark.pipeline import gold_sql, running, settings, verifying
from tests.spark.pipeline import orders

__all__ = ["Shop"]

PAGE = (Path(__file__).parents[3] / "docs" / "pipeline.md").read_text(encoding="utf-8")


def query_of_page() -> str:
    """The aggregate ``by-kind`` of the section about SQL, which has one more measure than ``hourly``."""
    section = PAGE.partition("\n## Aggregates as SQL\n")[2].partition("\n- ")[0]
    return dedent(section)


class Shop:
    """A broker, the pipeline that reads it, and what was produced.

    ``storage``: the table ``[storage]`` of the settings.
    """

    def __init__(self, spark: SparkSession, brokers: str, folder: Path, storage: str = "") -> None:
        self.spark = spark
        self.brokers = brokers
        config = orders.written_config(folder, brokers, writes_to_kafka=False)
        config.write_text(config.read_text() + query_of_page() + storage)
        self.pipeline = gold_sql.resolved(spark, settings.read(config))
        self.records = 0
        self.numbers: list[int] = []

    def produce(self, numbers: range) -> None:
        self.records += orders.produce(self.brokers, numbers)
        self.numbers += numbers

    def run(self) -> None:
        running.run_once(self.spark, self.pipeline, running.select(self.pipeline, []), print)

    def wrong(self) -> list[verifying.Finding]:
        return [one for one in verifying.verify(self.spark, self.pipeline) if not one.is_right]

    def silver(self) -> list[dict[str, Any]]:
        rows = verifying.silver_of(self.spark, self.pipeline).select("id", "kind", "amount", "at")
        return [row.asDict() for row in rows.orderBy("id").collect()]

    def gold(self) -> list[tuple[Any, ...]]:
        """The windows, which the aggregate that is a query has, too."""
        columns = ["window_start", "window_end", "kind", "orders", "amount"]
        hourly, by_kind = (
            sorted(map(tuple, verifying.gold_of(self.spark, self.pipeline, name).select(columns).collect()))
            for name in ("hourly", "by-kind")
        )
        assert by_kind == hourly
        return hourly

    def check(self) -> None:
        """Each input is there once, and nothing else."""
        assert self.wrong() == []
        accepted = sorted({number for number in self.numbers if orders.is_accepted(number)})
        assert [row["id"] for row in self.silver()] == accepted
        assert sum(row[-2] for row in self.gold()) == len(accepted)
        assert sum(row[-1] for row in self.gold()) == sum(orders.order(number)["amount"] for number in accepted)
        rejected = verifying.rejects_of(self.spark, self.pipeline)
        assert rejected.count() == orders.refused(self.numbers)

    def forget_last_commit(self, stage: str) -> None:
        """Remove Spark's last commit, as if the driver had been killed after the batch and before this commit."""
        commits = Path(self.pipeline.checkpoint(stage), "commits")
        last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
        last.unlink()
        (commits / f".{last.name}.crc").unlink(missing_ok=True)

    def replace_offsets(self, stage: str) -> int:
        """Replace the offsets of a committed batch, as a second run on S3 may do; return the batch."""
        offsets = Path(self.pipeline.checkpoint(stage), "offsets")
        last = max(int(path.name) for path in offsets.iterdir() if path.name.isdigit())
        *lines, end = (offsets / str(last)).read_text().splitlines()
        document = {topic: dict.fromkeys(ends, 1) for topic, ends in json.loads(end).items()}
        (offsets / str(last)).write_text("\n".join([*lines, json.dumps(document)]))
        return last
