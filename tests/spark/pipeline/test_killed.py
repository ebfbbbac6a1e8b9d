"""The pipeline killed with SIGKILL, driver and JVM at once, and run again: each input is there once.

The place is not left to luck: a run is killed the moment a certain file appears, which each of its stages leaves on its
way.  ``make pipeline-soak`` goes through twenty of them.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from pykafka08 import Consumer, Record
from tests.spark.pipeline import orders

POLL_S = 0.005
COMMAND = [sys.executable, "-m", "pykafka08", "pipeline"]
PLACES = [
    "starts/shop.json",
    "checkpoints/ingest-shop/offsets/0",
    "bronze/shop/topic=orders/**/*.parquet",
    "bronze/shop/_spark_metadata/0",
    "checkpoints/ingest-shop/offsets/1",
    "bronze/shop/_spark_metadata/1",
    "checkpoints/decode-shop/offsets/0",
    "silver/data/decode-shop-000000000000-*",
    "silver/data/decode-shop-000000000000-*/accepted/**/*.parquet",
    "silver/data/decode-shop-000000000000-*/rejected/**/*.parquet",
    "silver/log/00000000000000000000.json",
    "checkpoints/decode-shop/commits/0",
    "checkpoints/dead-letters/offsets/0",
    "checkpoints/dead-letters/commits/0",
    "checkpoints/aggregate-hourly/offsets/0",
    "gold/hourly/data/aggregate-hourly-000000000000-*/rows/**/*.parquet",
    "gold/hourly/log/00000000000000000000.json",
    "checkpoints/aggregate-hourly/commits/0",
    "checkpoints/publish-hourly/offsets/0",
    "checkpoints/publish-hourly/commits/0",
]
"""Files below the pipeline's folder, in the order in which a run makes them."""
IN_SHORT = ["silver/log/00000000000000000000.json", "checkpoints/publish-hourly/offsets/0"]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)


def killed_at(place: str, config: Path, number: int) -> bool:
    """Run, and kill when the file is there; whether it was killed, not done before."""
    log = config.parent / f"killed-{number}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*COMMAND, "run", str(config), "--no-charts"], stdout=output, stderr=output, start_new_session=True
        )
        try:
            while process.poll() is None and next((config.parent / "out").glob(place), None) is None:
                time.sleep(POLL_S)
            is_running = process.poll() is None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # the JVM, too
            process.wait()
    return is_running


def check(folder: Path, places: Sequence[str]) -> None:
    """Killed at each place in turn, each time with new records there, and then left to finish."""
    with orders.broker() as brokers:
        config = orders.written_config(folder, brokers)
        orders.produce(brokers, range(1, 150))
        for number, place in enumerate(places):
            assert killed_at(place, config, number), (folder / f"killed-{number}.log").read_text()
        orders.produce(brokers, range(140, 160))
        done = run("run", str(config), "--no-charts")
        assert done.returncode == 0, done.stdout + done.stderr
        proof = run("verify", str(config))
        assert proof.returncode == 0, proof.stdout + proof.stderr
        assert proof.stdout.count("ok ") == 5, proof.stdout
        check_letters(brokers, [*range(1, 150), *range(140, 160)])


def check_letters(brokers: str, numbers: Sequence[int]) -> None:
    """Each record that was refused is told once, with its reason and where it came from."""
    count = orders.refused(numbers)

    async def letters() -> list[Record]:
        settings: dict[str, Any] = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        async with Consumer(orders.LETTERS, bootstrap_servers=brokers, **settings) as consumer:
            return [await consumer.getone(timeout=60) for _ in range(count)]

    read = anyio.run(letters)
    headers = [{name: value.decode() for name, value in one.headers if value is not None} for one in read]
    for one, told in zip(read, headers, strict=True):
        is_broken = one.value is not None and one.value.startswith(b"{broken")
        assert told["dead-letter.reason"] == ("not json of the schema" if is_broken else "rule: the amount is positive")
        assert (told["dead-letter.source"], told["dead-letter.topic"]) == ("shop", orders.TOPIC)
    assert len({(told["dead-letter.partition"], told["dead-letter.offset"]) for told in headers}) == count


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_each_input_is_there_once_whatever_was_killed(tmp_path: Path) -> None:
    check(tmp_path, IN_SHORT)


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_killed_at_twenty_places(tmp_path: Path) -> None:
    """Five in each life of a pipeline, of twenty; in the order in which a run comes by."""
    for part in range(4):
        folder = tmp_path / str(part)
        folder.mkdir()
        check(folder, sorted(random.Random(part).sample(PLACES, 5), key=PLACES.index))
