"""The TOML file: what it gives, and errors that name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.settings import Duplicates, parse, read

GOOD = """
name = "orders"
folder = "out"

[sources.old]
bootstrap_servers = "old:9092"
topics = ["orders"]

[decode]
format = "json"
schema = "id BIGINT, at TIMESTAMP"
event_time = "at"
duplicates = { key = ["id"] }
"""


def test_a_small_file_is_enough(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD)
    pipeline = read(tmp_path / "a.toml")
    assert pipeline.root == tmp_path / "out"
    assert pipeline.sources["old"].name == "old"
    assert pipeline.sources["old"].topics == ("orders",)
    assert pipeline.decode.duplicates == Duplicates(("id",))
    assert pipeline.aggregates == {}
    assert pipeline.spark.master == "local[*]"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "orders"', "", "name: missing"),
        ('name = "orders"', 'name = "a/b"', "name: 'a/b' may hold"),
        ('name = "orders"', "name = 3", "name: text is wanted, not 3"),
        ('folder = "out"', 'folder = "s3://x/y"', "folder: 's3://x/y' must be a path"),
        ('folder = "out"', 'folder = "out"\nspeed = 3', "speed: unknown; there are name, folder"),
        ('topics = ["orders"]', 'topics = "orders"', r"sources.old.topics: a list is wanted, not 'orders'"),
        ('topics = ["orders"]', 'topics = [1]', r"sources.old.topics: text is wanted, not 1"),
        ('topics = ["orders"]', "", r"sources.old: exactly one of topics and pattern is needed"),
        ('topics = ["orders"]', 'topics = ["a"]\npattern = "b"', "sources.old: exactly one of"),
        ('topics = ["orders"]', 'topics = ["a"]\nzookeeper = "z:2181"', "sources.old.zookeeper: means something"),
        ('topics = ["orders"]', 'topics = ["a"]\nmax_offsets_per_trigger = true', "a whole number is wanted, not True"),
        ('format = "json"', 'format = "xml"', "decode.format: 'xml' is none of json, csv, avro, raw"),
        ('format = "json"', 'format = "raw"', "decode.schema: raw has none"),
        ('format = "json"', 'format = "avro"', "decode.avro_schema: needed for avro"),
        ('key = ["id"]', "key = []", "decode.duplicates.key: at least one column"),
        ('key = ["id"]', 'within_days = 2', "decode.duplicates.key: missing"),
        ('key = ["id"]', 'key = ["id"], with = 2', "decode.duplicates.with: unknown; there are key, within_days"),
        ("[sources.old]", "[sources.old", "not TOML"),
    ],
)  # fmt: skip
def test_an_error_names_the_key(old: str, new: str, words: str, tmp_path: Path) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError, match=words):
        parse(GOOD.replace(old, new), tmp_path)


def test_an_aggregate_needs_measures_and_a_whole_address(tmp_path: Path) -> None:
    aggregate = '[aggregates.hourly]\nwindow = "1 hour"\nwatermark = "1 hour"\n'
    with pytest.raises(ConfigError, match=r"aggregates\.hourly\.measures: missing"):
        parse(GOOD + aggregate, tmp_path)
    with pytest.raises(ConfigError, match=r"aggregates\.hourly: topic and bootstrap_servers go together"):
        parse(GOOD + aggregate + 'measures = { n = "count(*)" }\ntopic = "t"', tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing.toml: No such file"):
        read(tmp_path / "nothing.toml")
