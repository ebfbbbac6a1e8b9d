"""Kafka's own bytes: every line of the golden vectors, and that the checker notices what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pykafka08.protocol.messages import REGISTRY
from pykafka08.protocol.messages.produce import ProduceRequest
from tests.conformance.check_vectors import NOT_FOR_CLIENTS, check_lines, read_lines

FOLDER = Path(__file__).parent
FILES = sorted((FOLDER / "data").glob("*.gz"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_vector_passes(path: Path) -> None:
    lines = list(read_lines(path))
    tally = check_lines(lines)
    assert tally.differ == []
    assert tally.undeclared == set()
    assert tally.vectors == len(lines) > 200


def test_no_api_is_both_declared_and_set_aside() -> None:
    assert not NOT_FOR_CLIENTS & set(REGISTRY)
    assert NOT_FOR_CLIENTS | set(REGISTRY) == set(range(93))


def _metadata_line() -> dict[str, Any]:
    lines = read_lines(FOLDER / "data" / "messages-4.3.0.jsonl.gz")
    return next(
        line for line in lines if line["name"] == "Metadata" and line["kind"] == "response" and line["json"]["topics"]
    )


def test_another_value_in_the_json_differs() -> None:
    line = _metadata_line()
    line["json"]["topics"][0]["name"] = "another"
    assert len(check_lines([line]).differ) == 1


def test_a_missing_field_in_the_json_differs() -> None:
    line = _metadata_line()
    del line["json"]["topics"][0]["partitions"]
    assert len(check_lines([line]).differ) == 1


def test_another_byte_differs() -> None:
    line = _metadata_line()
    line["hex"] = line["hex"] + "00"
    assert len(check_lines([line]).differ) == 1


def test_a_record_set_may_be_printed_as_its_size() -> None:
    for line in read_lines(FOLDER / "data" / "messages-4.3.0.jsonl.gz"):
        if line["name"] != "Produce" or line["kind"] != "request":
            continue
        decoded = ProduceRequest.decode(bytes.fromhex(line["hex"]), line["version"])
        for topic, printed in zip(decoded.topic_data, line["json"]["topicData"], strict=True):
            for partition, entry in zip(topic.partition_data, printed["partitionData"], strict=True):
                if partition.records is not None:
                    del entry["records"]
                    entry["recordsSizeInBytes"] = len(partition.records)
        assert check_lines([line]).differ == []


def test_the_header_version_is_checked() -> None:
    line = _metadata_line()
    line["header_version"] += 1
    assert len(check_lines([line]).differ) == 1


@pytest.mark.parametrize(
    ("change", "status", "text"),
    [
        ({}, 0, "1 vectors, 0 differ, 0 not declared"),
        ({"json": {}}, 1, "1 vectors, 1 differ, 0 not declared"),
        ({"api_key": 52, "name": "Vote"}, 0, "1 vectors, 0 differ, 1 not declared"),
        ({"api_key": 4242, "name": "Novel"}, 1, "1 vectors, 0 differ, 1 not declared"),
        ({"version": 99}, 1, "1 vectors, 0 differ, 1 not declared"),
    ],
)
def test_the_command_counts_and_exits(tmp_path: Path, change: dict[str, Any], status: int, text: str) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({**_metadata_line(), **change}) + "\n")
    done = subprocess.run(
        [sys.executable, FOLDER / "check_vectors.py", path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip().splitlines()[-1]) == (status, text)


def test_the_command_refuses_what_is_not_vectors(tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("not JSON\n")
    done = subprocess.run(
        [sys.executable, FOLDER / "check_vectors.py", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "cannot read the vectors" in done.stderr
