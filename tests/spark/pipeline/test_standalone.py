"""The pipeline on a standalone cluster, by a user who has exported nothing: what finds the workers' Python."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.pipeline import orders
from tests.spark.pipeline.killing import COMMAND
from tests.spark.standalone import standalone

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BARE = {name: os.environ[name] for name in ("HOME", "PATH", "JAVA_HOME", "PYTHONPATH") if name in os.environ}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster"), BARE, workers=1) as address:
        yield address


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    with orders.broker() as address:
        orders.produce(address, range(1, 100))
        yield address


def test_settings_that_are_right_are_told_to_be_with_the_workers_python(
    master: str, brokers: str, tmp_path: Path
) -> None:
    config = orders.written_config(tmp_path, brokers)
    config.write_text(config.read_text().replace('"local[2]"', f'"{master}"'))
    command = [*COMMAND, "validate", str(config)]
    done = subprocess.run(command, env=BARE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "sources.shop: 3 partitions of 1 topics",
        "dead_letters: topic orders-refused, 1 brokers",
        "aggregates.hourly: topic orders-hourly, 1 brokers",
        f"workers: Python {platform.python_version()} at {sys.executable}, started as {sys.executable}; "
        "PYSPARK_PYTHON names another",
        "columns: id, kind, amount, at",
        "stages: ingest-shop, decode-shop, dead-letters, aggregate-hourly, publish-hourly",
    ]
    assert not (tmp_path / "out").exists()
