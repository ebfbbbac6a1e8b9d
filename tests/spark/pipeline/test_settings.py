"""The TOML file: what it gives, and errors that name the key."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.settings import Duplicates, Pipeline, parse, read
from pykafka08.spark.pipeline.starting import read_options_of
from pykafka08.spark.pipeline.stores import local_folder

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
CATALOG = 'folder = "out"\nstorage = { format = "iceberg", catalog = { type = "sql", uri = "sqlite:///c.db" } }'


def test_a_small_file_is_enough(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD)
    pipeline = read(tmp_path / "a.toml")
    assert pipeline.root == local_folder(tmp_path / "out")
    assert pipeline.sources["old"].name == "old"
    assert pipeline.sources["old"].topics == ("orders",)
    assert pipeline.decode.duplicates == Duplicates(("id",))
    assert pipeline.aggregates == {}
    assert pipeline.spark.master == "local[*]"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "orders"', "", "name: missing"),
        ('name = "orders"', 'name = "a/b"', "name: 'a/b' may have"),
        ('name = "orders"', "name = 3", "name: text is wanted, not 3"),
        ('folder = "out"', 'folder = "ftp://x/y"', "folder: ftp: is not one of file:, s3:, s3a:, hdfs:, abfss:, gs:"),
        ('folder = "out"', 'folder = "s3:///y"', r"folder: 's3:///y' is not of the form s3a://BUCKET/PATH"),
        ('folder = "out"', 'folder = "s3://me:s3cret@x/y"', r"folder: the address has credentials; move them to"),
        ('folder = "out"', 'folder = "abfss://x/y"', "folder: 'abfss://x/y' is not of the form abfss://CON"),
        ('folder = "out"', 'folder = "out"\nstorage = { region = "r" }', "storage.region: does not apply to a folder"),
        ('folder = "out"', 'folder = "s3://x"\nstorage = { namenodes = ["n:1"] }', "storage.namenodes: does not apply"),
        ('folder = "out"', 'folder = "s3://x"\nstorage = { access_key = "a" }', "access_key: needs storage.secret_key"),
        ('folder = "out"', 'folder = "s3://x"\nstorage = { secret_key = 1 }', r"storage.secret_key: .* not \*\*\*"),
        ('folder = "out"', 'folder = "s3://x"\nstorage = { path_style = "yes" }', "storage.path_style: true or"),
        ('folder = "out"', 'folder = "s3://x"\nstorage = { bucket = "x" }', "storage.bucket: unknown; there are pro"),
        ('folder = "out"', 'folder = "hdfs://n:1/"\nstorage = { namenodes = ["n:1"] }', "namenodes: the folder names"),
        ('folder = "out"', 'folder = "out"\nstorage = { format = "csv" }', "format: 'csv' is not one of delta,"),
        ('folder = "out"', 'folder = "out"\nstorage = { format = "iceberg" }', "storage.catalog: needed for storage.f"),
        ('folder = "out"', CATALOG.replace('format = "iceberg", ', ""), "storage.catalog: requires storage.format"),
        ('folder = "out"', CATALOG.replace("sql", "hive"), "storage.catalog.type: 'hive' is not one of sql, rest"),
        ('folder = "out"', CATALOG.replace(' }', ', token = "t" }', 1), "catalog.token: applies to type = 'rest'"),
        ('folder = "out"', CATALOG.replace(' }', ', token = 1 }', 1), r"storage.catalog.token: text .* not \*\*\*"),
        ('folder = "out"', CATALOG.replace(', uri = "sqlite:///c.db"', ""), "storage.catalog.uri: missing"),
        ('folder = "out"', 'folder = "out"\nspeed = 3', "speed: unknown; there are name, folder"),
        ('topics = ["orders"]', 'topics = "orders"', r"sources.old.topics: a list is wanted, not 'orders'"),
        ('topics = ["orders"]', 'topics = [1]', r"sources.old.topics: text is wanted, not 1"),
        ('topics = ["orders"]', "", r"sources.old: exactly one of topics and pattern is needed"),
        ('topics = ["orders"]', 'topics = ["a"]\npattern = "b"', "sources.old: exactly one of"),
        ('topics = ["orders"]', 'topics = ["a"]\nzookeeper = "z:2181"', "sources.old.zookeeper: requires startin"),
        ('topics = ["orders"]', 'topics = ["a"]\nmax_offsets_per_trigger = true', "a whole number is wanted, not True"),
        ('format = "json"', 'format = "xml"', "decode.format: 'xml' is not one of json, csv, avro, protobuf, raw"),
        ('format = "json"', 'format = "raw"', "decode.schema: raw has none"),
        ('format = "json"', 'format = "avro"', "decode.avro_schema: needed for avro"),
        ('key = ["id"]', "key = []", "decode.duplicates.key: at least one column"),
        ('key = ["id"]', 'within_days = 2', "decode.duplicates.key: missing"),
        ('key = ["id"]', 'key = ["id"], with = 2', "decode.duplicates.with: unknown; there are key, within_days"),
        ("[sources.old]", "[sources.old", "not TOML"),
        ("[decode]", '[sources.old]\n[decode]', r"not TOML: .*sources.*old.* twice"),
        ('topics = ["orders"]', 'topics = ["a"]\noptions = { StartingOffsets = "-" }', "options.StartingOffsets: star"),
        ('topics = ["orders"]', 'topics = ["a b"]', r"sources.old.topics: 'a b' cannot be a topic"),
        ('topics = ["orders"]', 'topics = ["a"]\nmax_offsets_per_trigger = -1', "old.max_offsets_per_trigger: may"),
        ('topics = ["orders"]', 'topics = ["a"]\ntarget_records_per_task = -1', "old.target_records_per_task: may not"),
        ('format = "json"', 'format = "json"\navro_header_bytes = -1', "decode.avro_header_bytes: may not be negative"),
        ('format = "json"', 'format = "json"\noptions = { Mode = "FAILFAST" }', r"decode.options.Mode: set by the pip"),
        ('key = ["id"]', 'key = ["id"], within_days = -1', "decode.duplicates.within_days: may not be negative"),
        ('folder = "out"', 'folder = "out"\ntrigger = "often"', "trigger: 'often' is no length of time"),
        ('folder = "out"', 'folder = "out"\ncompaction = { target_bytes = -1 }', "compaction.target_bytes: may not be"),
        (
            'folder = "out"',
            'folder = "out"\ncompaction.cluster_by = { bronze = ["key"] }',
            r"compaction\.cluster_by\.bronze: unknown table; the tables are bronze/old, silver, rejects",
        ),
        ('folder = "out"', 'folder = "out"\ncompaction = { min_files = 1 }', "compaction.min_files: 1 is less"),
        ('folder = "out"', 'folder = "out"\nretention = { bronze = "a while" }', "retention.bronze: 'a while' is no"),
        ('folder = "out"', 'folder = "out"\nretention = { silver = "0 days" }', "retention.silver: '0 days' is not"),
        ('folder = "out"', 'folder = "out"\nretention = { gold = "1001 years" }', "retention.gold: '1001 years' is"),
        ('folder = "out"', 'folder = "out"\nretention = { silver = "1 day" }', "retention.silver: '1 day' is less"),
        ('folder = "out"', 'folder = "out"\nretention = { files = "-1 day" }', "retention.files: '-1 day' is not"),
        ('folder = "out"', 'folder = "out"\nmetrics = { port = 70_000 }', "metrics.port: 70000 is not between 0 and"),
        ('folder = "out"', 'folder = "out"\nmetrics = { address = "::" }', "metrics: port, textfile or both are"),
        ('folder = "out"', 'folder = "out"\nlineage = {}', "lineage: url, file or both are needed"),
    ],
)  # fmt: skip
def test_an_error_names_the_key(old: str, new: str, words: str, tmp_path: Path) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError, match=words):
        parse(GOOD.replace(old, new), tmp_path)


def test_every_error_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace('name = "orders"', "speed = 3").replace('format = "json"', 'format = "xml"')
    text = text.replace('topics = ["orders"]', 'topics = ["a b", 3]\nmax_offsets_per_trigger = "many"')
    text += '[sources.new]\nproperties = "none"\n' + _aggregate({"window": "0 hours", "watermark": "late"})
    with pytest.raises(ConfigError) as caught:
        parse(text, tmp_path)
    keys = [line.partition(": ")[0] for line in str(caught.value).splitlines()]
    assert sorted(keys) == [
        "aggregates.hourly.watermark",
        "aggregates.hourly.window",
        "decode.format",
        "name",
        "sources.new",
        "sources.old.max_offsets_per_trigger",
        "sources.old.topics",
        "sources.old.topics",
        "speed",
    ]


def test_every_contradiction_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace('topics = ["orders"]', "").replace('format = "json"', 'format = "raw"')
    with pytest.raises(ConfigError) as caught:
        parse(text.replace('folder = "out"', 'folder = "ftp://a/b"'), tmp_path)
    keys = [line.partition(": ")[0] for line in str(caught.value).splitlines()]
    assert keys == ["folder", "sources.old", "decode.schema"]


def _hints(kind: type) -> Iterator[tuple[str, Any]]:
    for name, hint in get_type_hints(kind, include_extras=True).items():
        yield f"{kind.__name__}.{name}", hint
        for part in (hint, *get_args(hint)):
            if isinstance(part, type) and dataclasses.is_dataclass(part):
                yield from _hints(part)


def test_no_number_or_flag_is_made_of_a_value_of_another_type() -> None:
    """Pydantic would take true for 1 and "3" for 3."""
    hints = dict(_hints(Pipeline))
    assert "Duplicates.within_days" in hints
    assert [name for name, hint in hints.items() if hint in (int, bool, float)] == []


def test_an_aggregate_needs_measures_and_a_whole_address(tmp_path: Path) -> None:
    aggregate = '[aggregates.hourly]\nwindow = "1 hour"\nwatermark = "1 hour"\n'
    with pytest.raises(ConfigError, match=r"aggregates\.hourly\.measures: missing"):
        parse(GOOD + aggregate, tmp_path)
    with pytest.raises(ConfigError, match=r"aggregates\.hourly: topic and bootstrap_servers are needed together"):
        parse(GOOD + aggregate + 'measures = { n = "count(*)" }\ntopic = "t"', tmp_path)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"window": "5 parsecs"}, r"window: '5 parsecs' is no length of time such as '10 minutes'"),
        ({"window": "1 hour and a half"}, "window: .* is no length of time"),
        ({"window": "1.5 hours"}, "window: .* is no length of time"),
        ({"window": ""}, "window: '' is no length of time"),
        ({"window": "1 month"}, "window: '1 month' has months or years"),
        ({"window": "0 hours"}, "window: '0 hours' is not above zero"),
        ({"window": "-1 hour"}, "window: '-1 hour' is not above zero"),
        ({"slide": "2 hours"}, "slide: '2 hours' is longer than the window"),
        ({"watermark": "late"}, "watermark: 'late' is no length of time"),
        ({"watermark": "1 hour -2 hours"}, "watermark: .* is not at least zero"),
    ],
)
def test_a_length_of_time_that_spark_would_not_take_is_named(given: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"aggregates\.hourly\.{words}"):
        parse(GOOD + _aggregate({"window": "1 hour", "watermark": "1 hour", **given}), tmp_path)


@pytest.mark.parametrize("window", ["interval 1 day", "90 minutes 30.5 seconds", "1 WEEK 2 days", "500 milliseconds"])
def test_lengths_of_time_as_spark_writes_them(window: str, tmp_path: Path) -> None:
    parsed = parse(GOOD + _aggregate({"window": window, "watermark": "0 seconds", "slide": "5 milliseconds"}), tmp_path)
    assert parsed.aggregates["hourly"].window == window


def test_a_window_of_gold_is_not_removed_while_it_changes(tmp_path: Path) -> None:
    aggregate = _aggregate({"window": "1 day", "watermark": "2 days"})
    parse(f'{GOOD}{aggregate}[retention]\ngold = "3 days"\nsilver = "1 year"', tmp_path)
    with pytest.raises(ConfigError, match=r"^retention\.gold: '71 hours' is less than window and watermark of aggreg"):
        parse(f'{GOOD}{aggregate}[retention]\ngold = "71 hours"', tmp_path)


def test_a_watermark_may_be_of_months(tmp_path: Path) -> None:
    parse(GOOD + _aggregate({"window": "1 hour", "watermark": "1 year 2 months"}), tmp_path)


def _aggregate(given: dict[str, str]) -> str:
    settings = "\n".join(f'{name} = "{value}"' for name, value in given.items())
    return f'[aggregates.hourly]\n{settings}\nmeasures = {{ n = "count(*)" }}\n'


QUERY = "SELECT window, count(*) AS n FROM silver GROUP BY window(event_time, '1 hour')"


def test_gold_of_sql_stays_for_the_watermark(tmp_path: Path) -> None:
    aggregate = f'{GOOD}[aggregates.hourly]\nwatermark = "2 days"\nsql = """{QUERY}"""\n'
    parse(f'{aggregate}[retention]\ngold = "2 days"', tmp_path)
    with pytest.raises(ConfigError, match=r"^retention\.gold: '47 hours' is less than window and watermark of aggreg"):
        parse(f'{aggregate}[retention]\ngold = "47 hours"', tmp_path)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            'measures = { n = "count(*)" }',
            r"window: missing; set window and measures, or write the aggregate as sql or",
        ),
        ('sql = "{}"\nwindow = "1 hour"', "window: not used with sql; remove it, and write it in the query"),
        ('sql = "{}"\nslide = "1 hour"', "slide: not used with sql"),
        ('sql = "{}"\ngroup_by = ["kind"]', "group_by: not used with sql"),
        ('sql_file = "n.sql"\nmeasures = { n = "count(*)" }', "measures: not used with sql_file; remove it"),
        ('sql = "{}"\nsql_file = "n.sql"', "sql_file: not used with sql; remove one of the two"),
        ('sql_file = "n.sql"', r"sql_file: \S+n\.sql: No such file or directory"),
        ('sql = ["{}"]', "sql: text is wanted, not "),
    ],
)
def test_a_query_takes_the_place_of_keys(given: str, words: str, tmp_path: Path) -> None:
    aggregate = '[aggregates.hourly]\nwatermark = "1 hour"\n'
    with pytest.raises(ConfigError, match=rf"^aggregates\.hourly\.{words}") as caught:
        parse(GOOD + aggregate + given.replace("{}", QUERY), tmp_path)
    assert len(str(caught.value).splitlines()) == 1


def test_a_query_may_be_in_a_file_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "hourly.sql").write_text(QUERY, encoding="utf-8")
    aggregate = '[aggregates.hourly]\nwatermark = "1 hour"\nsql_file = "hourly.sql"\n'
    (tmp_path / "a.toml").write_text(GOOD + aggregate)
    assert read(tmp_path / "a.toml").aggregates["hourly"].sql == QUERY
    (tmp_path / "hourly.sql").write_bytes(b"SELECT \xff")
    with pytest.raises(ConfigError, match=r"aggregates\.hourly\.sql_file: \S+hourly\.sql: not UTF-8: .* at byte 7"):
        read(tmp_path / "a.toml")


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("orders", r"dead_letters\.topic: 'orders' is read by sources\.old"),
        ("totals", r"aggregates\.hourly\.topic: 'totals' is written by dead_letters"),
        ("what else?", r"dead_letters\.topic: 'what else\?' cannot be a topic"),
    ],
)
def test_a_topic_has_one_writer_and_is_not_read_by_it(topic: str, words: str, tmp_path: Path) -> None:
    address = 'bootstrap_servers = "old:9092"'
    letters = f'[dead_letters]\ntopic = "{topic}"\n{address}\n'
    aggregate = _aggregate({"window": "1 hour", "watermark": "1 hour", "topic": "totals"}) + address
    with pytest.raises(ConfigError, match=words):
        parse(f"{GOOD}{letters}{aggregate}", tmp_path)


def test_columns_of_gold_have_names_of_their_own(tmp_path: Path) -> None:
    aggregate = _aggregate({"window": "1 hour", "watermark": "1 hour"}) + 'group_by = ["n"]'
    with pytest.raises(ConfigError, match=r"aggregates\.hourly: two columns of gold would be named 'n'"):
        parse(GOOD + aggregate, tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing.toml: No such file"):
        read(tmp_path / "nothing.toml")


MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_cluster_with_a_properties_file_or_security_settings(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text(
        "bootstrap.servers=new:9093\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nclient.id=flow\n"
        f'sasl.jaas.config={MODULE} required username="u" password="hidden-word";\n'
        "auto.offset.reset=earliest\nacks=1\nmetric.reporters=\n",
        encoding="utf-8",
    )
    security = 'security.protocol = "SSL"\nssl_cafile = "/ca.pem"\noptions = { "kafka.client.id" = "x" }'
    text = GOOD.replace('topics = ["orders"]', f'topics = ["orders"]\n{security}')
    text += '[sources.new]\nproperties = "client.properties"\ntopics = ["a"]\n'
    text += '[dead_letters]\nproperties = "client.properties"\ntopic = "b"\noptions = { "kafka.acks" = "all" }\n'
    (tmp_path / "a.toml").write_text(text)
    pipeline = read(tmp_path / "a.toml")
    old, new, letters = pipeline.sources["old"], pipeline.sources["new"], pipeline.dead_letters
    assert dict(old.options) == {
        "kafka.security.protocol": "SSL", "kafka.ssl.cafile": "/ca.pem", "kafka.client.id": "x",
    }  # fmt: skip
    assert new.bootstrap_servers == "new:9093"
    assert set(new.options) == {
        f"kafka.{name}" for name in ("security.protocol", "sasl.mechanism", "sasl.jaas.config", "client.id")
    }
    assert letters is not None
    assert letters.options["kafka.acks"] == "all"
    assert read_options_of(new).client.security.sasl_plain_username == "u"
    assert read_options_of(old).client.security.ssl_cafile == "/ca.pem"
    assert "hidden-word" not in repr(pipeline)


def test_errors_of_a_cluster_name_file_and_property_and_no_secret(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("bootstrap.servers=h\ninterceptor.classes=a.B\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"c: interceptor\.classes='a\.B': Java classes cannot be used here"):
        parse(GOOD.replace('topics = ["orders"]', 'topics = ["orders"]\nproperties = "c"'), tmp_path)
    with pytest.raises(ConfigError) as caught:
        parse(
            GOOD.replace('topics = ["orders"]', 'topics = ["o"]\noptions = { "kafka.ssl.key.password" = 4711 }'),
            tmp_path,
        )
    assert "ssl.key.password: text is wanted, not ***" in str(caught.value)
