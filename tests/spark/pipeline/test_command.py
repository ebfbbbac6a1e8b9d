"""``pykafka08 pipeline``: what needs no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka08.cli.main import main
from tests.spark.pipeline import orders


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    with orders.broker() as address:
        orders.produce(address, range(1, 100))
        yield address


def test_a_plan_tells_what_a_run_would_read(brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = orders.written_config(tmp_path, brokers)
    assert main(["pipeline", "plan", str(config)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("shop: 113 offsets in 3 partitions; 1 batches of 1 tasks, up to 113 offsets each; about ")
    assert not (tmp_path / "out").exists()  # a plan decides nothing


def test_status_before_the_first_run(brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "status", str(orders.written_config(tmp_path, brokers))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ingest-shop: lag 113 offsets, -, batch -, last rows -"
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "decode-shop",
        "dead-letters",
        "aggregate-hourly",
        "publish-hourly",
    ]


def test_a_start_at_a_groups_offsets_needs_such_a_group(
    brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = orders.written_config(tmp_path, brokers)
    config.write_text(config.read_text().replace("max_offsets", 'starting = "group:nobody"\nmax_offsets'))
    assert main(["pipeline", "plan", str(config)]) == 2
    assert "sources.shop.starting: group 'nobody' has no offset of what is read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "status", "words"),
    [
        ("max_offsets", 'starting = "yesterday"\nmax_offsets', 2, "sources.shop.starting: 'yesterday' is neither"),
        ("max_offsets", 'options = { speed = "x" }\nmax_offsets', 2, "sources.shop: Unknown option"),
        ("[dead_letters]", '[dead_letters]\noptions = { speed = "x" }', 2, "dead_letters: Unknown option"),
        (
            f'topic = "{orders.TOTALS}"',
            f'topic = "{orders.TOTALS}"\noptions = {{ speed = "x" }}',
            2,
            "aggregates.hourly: U",
        ),
    ],
)
def test_what_would_end_a_run_is_told_before_spark_is_started(
    brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, status: int, words: str
) -> None:
    config = orders.written_config(tmp_path, brokers)
    config.write_text(config.read_text().replace(old, new))
    assert main(["pipeline", "validate", str(config)]) == status
    assert words in capsys.readouterr().err


def test_wrong_settings_end_with_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.toml"
    path.write_text("speed = 1")
    assert main(["pipeline", "plan", str(path)]) == 2
    assert "pykafka08 pipeline: speed: unknown; there are name, folder" in capsys.readouterr().err


def test_a_topic_that_is_not_there(brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = orders.written_config(tmp_path, brokers)
    config.write_text(config.read_text().replace('["orders"]', '["order"]'))
    assert main(["pipeline", "plan", str(config)]) == 1
    assert "order" in capsys.readouterr().err
