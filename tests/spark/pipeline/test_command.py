"""``pykafka08 pipeline``: what it prints, and what it says of settings that mean nothing; nearly all without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka08.cli.main import main
from pykafka08.spark.pipeline import settings
from pykafka08.spark.pipeline.leasing import leased
from pykafka08.spark.pipeline.tables.model import DataFile
from pykafka08.spark.pipeline.tables.table import Table
from tests.spark.pipeline import orders
from tests.spark.pipeline.killing import command
from tests.spark.pipeline.made_tables import commit, made

SOAK = pytest.mark.soak


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    with orders.broker() as address:
        orders.produce(address, range(1, 100))
        yield address


def test_a_plan_tells_what_a_run_would_read(brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = orders.written_config(tmp_path, brokers)
    assert main(["pipeline", "plan", str(config)]) == 0
    ingest, decode, letters, aggregate, publish = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"ingest-shop: 113 offsets in 3 partitions, about 8\.\d kB in Kafka; 1 batches of 1 tasks, up to 113 offsets, "
        r"8\.\d kB each; about 0 s \(at a usual rate; no run has shown it yet\)",
        ingest,
    )
    assert decode == "decode-shop: 0 rows, 0 B in 0 files, 0 tasks, and up to 113 rows to come"
    assert letters == "dead-letters: 0 rows, 0 B in 0 files, 0 tasks, and up to 113 rows to come"
    assert aggregate == "aggregate-hourly: 0 rows, 0 B in 0 files, 0 tasks, and up to 113 rows to come"
    assert publish == "publish-hourly: 0 rows, 0 B in 0 files, 0 tasks, and what comes of the stages before it"
    assert not (tmp_path / "out").exists()  # a plan decides nothing


@pytest.mark.parametrize(
    ("options", "batches"),
    [
        ('minPartitions = "6"', "1 batches of 6 tasks, up to 19 offsets"),
        ('maxRecordsPerPartition = "10"', "1 batches of 12 tasks, up to 10 offsets"),
        ('maxOffsetsPerTrigger = "30"', "4 batches of 1 tasks, up to 29 offsets"),
        ('maxOffsetsPerTrigger = "30", minPartitions = "5"', "4 batches of 6 tasks, up to 5 offsets"),
        ('targetRecordsPerTask = "40"', "1 batches of 3 tasks, up to 38 offsets"),
    ],
)
def test_a_plan_honours_the_options_of_reading(
    brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, batches: str
) -> None:
    config = orders.written_config(tmp_path, brokers)
    config.write_text(config.read_text().replace("max_offsets_per_trigger = 150", f"options = {{ {options} }}"))
    assert main(["pipeline", "plan", str(config)]) == 0
    assert batches in capsys.readouterr().out.splitlines()[0]


def test_status_before_the_first_run(brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "status", str(orders.written_config(tmp_path, brokers))]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "orders: nothing runs",
        "ingest-shop: lag 113 offsets, -, batch -, last rows -",
        "  orders-0: lag 38 offsets, next 0, -",
        "  orders-1: lag 38 offsets, next 0, -",
        "  orders-2: lag 37 offsets, next 0, -",
        "decode-shop: lag 0 rows, -, batch -, last rows -",
        "dead-letters: lag 0 rows, -, batch -, last rows -",
        "aggregate-hourly: lag 0 rows, -, batch -, last rows -",
        "publish-hourly: lag 0 rows, -, batch -, last rows -",
    ]


def test_status_amid_a_run(brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The partition that is most behind comes first; each with its own speed."""
    pipeline = settings.read(orders.written_config(tmp_path, brokers))
    offsets = '{"orders":{"0":38,"1":10,"2":30}}'
    for path, text in {
        "starts/shop.json": '{"orders":{"0":0,"1":0,"2":0}}',
        "checkpoints/ingest-shop/offsets/0": f"v1\n{{}}\n{offsets}\n",
        "checkpoints/ingest-shop/commits/0": "v1",
        "runs/20240301T120000.000000Z/progress.jsonl": json.dumps(
            {
                "name": "ingest-shop",
                "timestamp": "2024-03-01T12:00:00.500Z",
                "numInputRows": 78,
                "durationMs": {"triggerExecution": 2000},
                "stateOperators": [],
                "sources": [{"startOffset": None, "endOffset": offsets}],
            }
        )
        + "\n",
    }.items():
        (pipeline.root / path).write_text(text)
    commit(made(pipeline.bronze("shop")), "batch", query="ingest-shop")
    with leased(pipeline.root, ["ingest-shop", "decode-shop"]):
        assert main(["pipeline", "status", str(tmp_path / "orders.toml")]) == 0
    head, ingest, *partitions = capsys.readouterr().out.splitlines()[:4]
    assert re.fullmatch(r"orders: at work: ingest-shop, decode-shop on \S+, process \d+, lease renewed \d s ago", head)
    assert re.fullmatch(
        r"ingest-shop: lag 35 offsets, 39 rows/s, batch 0, last rows \d+ days, [\d:]+ ago \(2024-03-01T12:00:02Z\)",
        ingest,
    )
    assert partitions == [
        "  orders-1: lag 28 offsets, next 10, 5 rows/s",
        "  orders-2: lag 7 offsets, next 30, 15 rows/s",
    ]
    assert main(["pipeline", "status", "--all", str(tmp_path / "orders.toml")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "orders: nothing runs"
    assert printed[4] == "  orders-0: lag 0 offsets, next 38, 19 rows/s"


@pytest.mark.parametrize("words", [["run"], ["run", "--follow", "--stage", "decode-shop"]])
def test_a_second_run_is_refused_before_spark_starts(
    brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    config = orders.written_config(tmp_path, brokers)
    action, *options = words
    with leased(settings.read(config).root, ["decode-shop"]):
        assert main(["pipeline", action, str(config), *options]) == 2
    told = capsys.readouterr().err
    assert re.search(
        r"folder: \S+/out is in use: decode-shop on \S+, process \d+, lease renewed \d s ago; stop it", told
    )


def test_a_plan_tells_what_lies_between_the_stages(
    brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each stage by its own table and kinds of commits; compactions are nobody's."""
    pipeline = settings.read(orders.written_config(tmp_path, brokers))
    silver, rejects, gold = map(made, (pipeline.silver, pipeline.rejects, pipeline.gold("hourly")))
    commit(silver, "batch", *(DataFile(f"data/{number}", 10, 1_000) for number in range(9)))
    commit(silver, "compaction", DataFile("data/c", 90, 9_000))
    commit(rejects, "batch", DataFile("data/r", 7, 2_500_000))
    for kind in ("batch", "backfill", "compaction"):
        commit(gold, kind, DataFile(f"data/{kind}", 3, 500))
    for folder in (pipeline.silver, pipeline.rejects, pipeline.gold("hourly")):
        for one in Table(folder).live():
            (folder / one.path).write_text("")
    assert main(["pipeline", "plan", str(tmp_path / "orders.toml")]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "dead-letters: 7 rows, 2.5 MB in 1 files, 1 tasks, and up to 113 rows to come",
        "aggregate-hourly: 90 rows, 9.0 kB in 9 files, 2 tasks, and up to 113 rows to come",
        "publish-hourly: 6 rows, 1.0 kB in 2 files, 1 tasks, and what comes of the stages before it",
    ]


def test_a_start_at_a_groups_offsets_needs_such_a_group(
    brokers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = orders.written_config(tmp_path, brokers)
    config.write_text(config.read_text().replace("max_offsets", 'starting = "group:nobody"\nmax_offsets'))
    assert main(["pipeline", "plan", str(config)]) == 2
    assert "sources.shop.starting: group 'nobody' has no offset of what is read" in capsys.readouterr().err


ADDRESS = 'bootstrap_servers = "BROKERS"\ntopics'
BAD = [
    ("max_offsets", 'starting = "yesterday"\nmax_offsets', 2, "sources.shop.starting: 'yesterday' is neither"),
    ("max_offsets", "starting = '{\"orders\": 3}'\nmax_offsets", 2, "sources.shop.starting: Expected e.g. "),
    (
        "max_offsets",
        'starting = \'{"orders": {"0": 3}}\'\nmax_offsets',
        2,
        "sources.shop.starting: Partitions specified",
    ),
    ("max_offsets", 'options = { speed = "x" }\nmax_offsets', 2, "sources.shop.options: Unknown option"),
    (
        "max_offsets",
        'options = { minPartitions = "few" }\nmax_offsets',
        2,
        'sources.shop.options: For input string: "few"',
    ),
    ("max_offsets", 'options = { assign = "x" }\nmax_offsets', 2, "sources.shop.options.assign: topics or pattern"),
    ('topics = ["orders"]', 'pattern = "("', 2, "sources.shop.pattern: '(' cannot be used as a regular expression"),
    (
        '["orders"]',
        '["order"]\noptions = { "fetchOffset.numRetries" = "0" }',
        2,
        "sources.shop.topics: UNKNOWN_TOPIC_OR_PARTITION (3): Unknown topic order",
    ),
    (ADDRESS, 'bootstrap_servers = "127.0.0.1:1"\ntopics', 4, "sources.shop.bootstrap_servers: no bootstrap address"),
    ("[dead_letters]", '[dead_letters]\noptions = { speed = "x" }', 2, "dead_letters.options: Unknown option"),
    (f'"{orders.TOTALS}"', f'"{orders.TOTALS}"\noptions = {{ speed = "x" }}', 2, "aggregates.hourly.options: Unknown"),
    ('folder = "out"', 'folder = "orders.toml"', 2, "folder: "),
    ('folder = "out"', 'folder = "orders.toml/out"', 2, "is no folder"),
    ('format = "json"', 'format = "avro"\navro_schema = "none.avsc"', 2, "decode.avro_schema: "),
    ('window = "1 hour"', 'window = "5 parsecs"', 2, "aggregates.hourly.window: '5 parsecs' is no length of time"),
]


@pytest.mark.parametrize("action", ["plan", "validate", "run"])
@pytest.mark.parametrize(("old", "new", "status", "words"), BAD)
def test_what_would_end_a_run_is_told_before_spark_is_started(
    brokers: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    old: str,
    new: str,
    status: int,
    words: str,
) -> None:
    monkeypatch.setattr("pykafka08.spark.pipeline.running.session", None)
    config = orders.written_config(tmp_path, brokers)
    old = old.replace("BROKERS", brokers)
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new, 1))
    assert main(["pipeline", action, str(config)]) == status
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("amount > 0", "amout > 0", "pykafka08 pipeline: decode.rules.'the amount is positive': "),
        pytest.param('"local[2]"', '"loco[2]"', "pykafka08 pipeline: spark: no session at loco[2]: ", marks=SOAK),
        pytest.param('"700m"', '"lots"', "pykafka08 pipeline: spark: no session at local[2]: ", marks=SOAK),
    ],
)
def test_what_spark_refuses_ends_a_run_before_its_first_stage(
    brokers: str, tmp_path: Path, old: str, new: str, words: str
) -> None:
    config = orders.written_config(tmp_path, brokers)
    config.write_text(config.read_text().replace(old, new))
    done = command("run", str(config))
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "/pykafka08/" not in done.stderr  # no traceback but of Spark's own processes, which end at the same moment
    assert not (tmp_path / "out" / "runs").exists()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("--from 2024-03-02 --to 2024-03-01", "days to make anew: 2024-03-02 is after 2024-03-01"),
        ("--restate daily", "--restate: there is no aggregate 'daily'; aggregates: hourly"),
        ("--from 2024-03-02", "backfill: choose the days with --from and --to, or an aggregate with --restate"),
        (
            "--from 2024-03-02 --to 2024-03-02 --restate hourly",
            "backfill: choose the days with --from and --to, or an aggregate with --restate",
        ),
    ],
)
def test_wrong_options_of_a_backfill_are_reported_before_spark_starts(
    words: str,
    error: str,
    brokers: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pykafka08.spark.pipeline.session.session", None)
    config = str(orders.written_config(tmp_path, brokers))
    assert main(["pipeline", "backfill", config, *words.split()]) == 2
    assert capsys.readouterr().err == f"pykafka08 pipeline: {error}\n"


def test_wrong_settings_end_with_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.toml"
    path.write_text("speed = 1")
    assert main(["pipeline", "plan", str(path)]) == 2
    assert "pykafka08 pipeline: speed: unknown; there are name, folder" in capsys.readouterr().err


def test_a_file_that_is_no_text_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b'name = "\xff"')
    assert main(["pipeline", "plan", str(path)]) == 2
    assert capsys.readouterr().err == f"pykafka08 pipeline: {path}: not UTF-8: invalid start byte at byte 8\n"
