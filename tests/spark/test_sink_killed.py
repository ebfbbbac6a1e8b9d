"""``exactlyOnce`` onto real brokers: tasks that fail, and drivers killed around the second phase; every row once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from pykafka08 import Consumer, TopicPartition
from tests.integration.clusters import Clusters
from tests.spark.sink_driver import BLOWS

BATCHES, LINES, PARTITIONS = 5, 1000, 2
RUNS = 10
"""At most; some may end since Spark gives its own processes ten seconds to begin."""


async def committed(servers: str, topic: str) -> list[bytes | None]:
    """All that readers see who read what is committed."""
    settings = {"bootstrap_servers": servers, "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    found: list[bytes | None] = []
    async with Consumer(topic, **settings) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        ends = await consumer.end_offsets(partitions)
        while any([await consumer.position(tp) < ends[tp] for tp in partitions]):
            found += [record.value for record in await consumer.getmany(timeout=1)]
    return found


def run_driver(words: list[str], log: Path) -> bool:
    """Whether it ended well."""
    command = [sys.executable, "-m", "tests.spark.sink_driver", *words]
    with log.open("ab") as output:
        return (
            subprocess.run(command, stdout=output, stderr=output, start_new_session=True, check=False).returncode == 0
        )


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("release", ["0.11.0.3", "2.8.2", "4.3.1"])
def test_readers_of_what_is_committed_see_each_row_once(clusters: Clusters, release: str, tmp_path: Path) -> None:
    kafka = clusters.running(release)
    topic = kafka.new_topic("struck", PARTITIONS)
    (tmp_path / "input").mkdir()
    lines = [b"%d-%d" % (batch, line) for batch in range(BATCHES) for line in range(LINES)]
    for batch in range(BATCHES):
        text = b"\n".join(lines[batch * LINES : (batch + 1) * LINES])
        (tmp_path / "input" / f"{batch}.txt").write_bytes(text)
    log = tmp_path / "driver.log"
    runs = 1
    while not run_driver([kafka.bootstrap, topic, str(tmp_path)], log):
        runs += 1
        assert runs <= RUNS, log.read_text(errors="replace")
    assert runs >= len(BLOWS)  # the first ends no driver, and one run goes on to the end
    assert all((tmp_path / blow).exists() for blow in BLOWS)
    assert sorted(anyio.run(committed, kafka.bootstrap, topic), key=str) == sorted(lines, key=str)
