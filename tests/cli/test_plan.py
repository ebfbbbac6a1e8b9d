"""What the options of the console consumer and of ``produce`` ask for, and which contradict each other."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from pykafka08.cli import produce
from pykafka08.cli.plan import Plan, consumer_parser, plan_of, topic_pattern
from pykafka08.config import SETTING_NAMES
from pykafka08.errors import ConfigError, KafkaError

SERVER = ["--bootstrap-server", "h:1"]


def plan(*arguments: str) -> Plan:
    return plan_of(consumer_parser("prog").parse_args([*SERVER, *arguments]))


def chosen(made: Plan | produce.Plan) -> dict[str, Any]:
    """The settings without their names in errors."""
    return {name: value for name, value in made.settings.items() if name != SETTING_NAMES}


KAFKAS = """
blacklist bootstrap-server command-config command-property consumer-property consumer.config csv-reporter-enabled
delete-consumer-offsets enable-systest-events formatter formatter-config formatter-property from-beginning group help
include isolation-level key-deserializer max-messages metrics-dir new-consumer offset partition property
skip-message-on-error timeout-ms topic value-deserializer version whitelist zookeeper
"""
"""What the console consumers of 0.9.0.1, 0.10.2.2, 0.11.0.3, 1.1.1, 2.0.1, 2.8.2, 3.9.2 and 4.3.1 list, together."""


def test_every_option_of_kafkas_tools_is_taken_or_named_as_refused() -> None:
    page = (Path(__file__).parents[2] / "docs" / "console.md").read_text(encoding="utf-8")
    (refused,) = re.findall(r"refused as unknown:(.*?)\. What", page, re.DOTALL)
    ours = {word.removeprefix("--") for word in consumer_parser("prog")._option_string_actions}
    assert set(KAFKAS.split()) - ours == set(re.findall(r"`--([a-z-]+)`", refused))


def test_defaults_start_with_new_records() -> None:
    made = plan("--topic", "t")
    assert chosen(made) == {
        "bootstrap_servers": "h:1",
        "auto_offset_reset": "latest",
        "default_api_timeout_ms": 15_000,
    }
    assert (made.topic, made.partition, made.offset, made.pattern) == ("t", None, None, None)
    assert made.limit == made.idle_s == math.inf


def test_everything_at_once(tmp_path: Path) -> None:
    config = tmp_path / "c.properties"
    config.write_text("fetch.max.wait.ms=1\nfetch.min.bytes=7\n")
    made = plan(
        *("--topic", "t", "--partition", "3", "--offset", "17", "--max-messages", "5", "--timeout-ms", "1500"),
        *("--isolation-level", "read_uncommitted", "--property", "print.key=true", "--skip-message-on-error"),
        *("--formatter-property", "key.separator=:", "--consumer.config", str(config)),
        *(
            "--consumer-property",
            "fetch.max.wait.ms=2",
            "--command-property",
            "client.id=c",
            "--command-property",
            "default.api.timeout.ms=7",
        ),
        *("--value-deserializer", "LongDeserializer"),
    )
    assert (made.partition, made.offset, made.limit, made.idle_s, made.skips_errors) == (3, 17, 5, 1.5, True)
    assert chosen(made) == {
        "bootstrap_servers": "h:1",
        "auto_offset_reset": "latest",
        "isolation_level": "read_uncommitted",
        "fetch_max_wait_ms": 2,
        "fetch_min_bytes": 7,
        "client_id": "c",
        "default_api_timeout_ms": 7,
    }
    assert made.record_format.key
    assert made.record_format.key_separator == b":"
    assert made.record_format.value_deserializer is not None


@pytest.mark.parametrize(
    ("arguments", "reset", "offset"),
    [
        (["--from-beginning"], "earliest", None),
        (["--partition", "0", "--from-beginning"], "earliest", None),
        (["--partition", "0", "--offset", "EARLIEST"], "earliest", None),
        (["--partition", "0", "--offset", "latest"], "latest", None),
        (["--partition", "0", "--offset", "0"], "latest", 0),
        (["--consumer-property", "auto.offset.reset=earliest"], "earliest", None),
        (["--consumer-property", "auto.offset.reset=none", "--partition", "0", "--offset", "9"], "none", 9),
    ],
)
def test_where_to_start(arguments: list[str], reset: str, offset: int | None) -> None:
    made = plan("--topic", "t", *arguments)
    assert (made.settings["auto_offset_reset"], made.offset) == (reset, offset)


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ([], "exactly one of --topic and --include"),
        (["--topic", "t", "--include", "t"], "exactly one of --topic and --include"),
        (["--include", "t", "--partition", "0"], "--partition needs --topic"),
        (["--topic", "t", "--offset", "1"], "--offset needs --partition"),
        (["--topic", "t", "--partition", "0", "--offset", "-1"], "neither a number from 0 to 9223372036854775807"),
        (
            ["--topic", "t", "--partition", "0", "--offset", "9223372036854775808"],
            "neither a number from 0 to 9223372036854775807",
        ),
        (["--topic", "t", "--partition", "0", "--offset", "1", "--from-beginning"], "exclude each other"),
        (["--topic", "t", "--from-beginning", "--consumer-property", "auto.offset.reset=latest"], "exclude each other"),
        (["--topic", "t", "--partition", "0", "--group", "g"], "--group and --partition exclude each other"),
        (["--topic", "t", "--group", "g", "--consumer-property", "group.id=h"], "exclude each other"),
        (["--include", "("], "no regular expression"),
        (["--topic", "t", "--formatter", "com.example.Mine"], "Java classes"),
        (["--topic", "t", "--key-deserializer", "Nope"], "there is no deserializer 'Nope'"),
    ],
)
def test_contradictions(arguments: list[str], cause: str) -> None:
    with pytest.raises(ConfigError, match=cause):
        plan(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--topic", "t", "--max-messages", "0"],
        ["--topic", "t", "--max-messages", "-2"],
        ["--topic", "t", "--timeout-ms", "9" * 400],
        ["--topic", "t", "--timeout-ms", "9" * 5000],
        ["--topic", "t", "--partition", "x"],
        ["--enable-systest-events"],
        ["t"],
    ],
)
def test_wrong_usage_ends_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        plan(*arguments)
    assert end.value.code == 2
    written = capsys.readouterr()
    assert not written.out
    assert "usage:" in written.err


def test_a_pattern_matches_whole_names_and_commas_separate() -> None:
    pattern = topic_pattern("a.*,b{2,3}")
    assert [name for name in ("a", "abc", "bb", "bbb", "b", "xa") if pattern.fullmatch(name)] == [
        "a",
        "abc",
        "bb",
        "bbb",
    ]


def test_a_formatter_that_prints_nothing() -> None:
    made = plan("--topic", "t", "--formatter", "org.apache.kafka.tools.consumer.NoOpMessageFormatter")
    assert made.record_format.compile().batch([], 1) == b""
    assert not made.record_format.value


def send_plan(*arguments: str) -> produce.Plan:
    return produce.plan_of(produce.produce_parser().parse_args([*SERVER, "--topic", "t", *arguments]))


def test_produce_defaults_wait_for_every_replica() -> None:
    assert chosen(send_plan()) == {"bootstrap_servers": "h:1", "acks": "all"}


def test_produce_options() -> None:
    made = send_plan(
        *("-K", r"\t", "-c", "zstd", "--acks", "1", "-p", "2", "-H", "a=b", "-H", "c=", "--null-marker", "-")
    )
    assert chosen(made) == {"bootstrap_servers": "h:1", "acks": 1, "compression_type": "zstd"}
    assert (made.key_delimiter, made.partition, made.null_marker) == (b"\t", 2, b"-")
    assert made.headers == (("a", b"b"), ("c", b""))


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [(":", b":"), (r"\x00\xfF", b"\0\xff"), (r"\\t", b"\\t"), ("é", "é".encode()), (r"a\q", b"a\\q")],
)
def test_escapes_in_a_delimiter(text: str, delimiter: bytes) -> None:
    assert send_plan("-K", text).key_delimiter == delimiter


def test_arguments_that_are_no_utf8_are_taken_as_bytes() -> None:
    made = send_plan("-K", "\udcff", "--null-marker", "\udcfe", "-H", "a=\udcfd")
    assert (made.key_delimiter, made.null_marker, made.headers) == (b"\xff", b"\xfe", (("a", b"\xfd"),))
    shown = plan(
        "--topic", "t", "--property", "key.separator=\udcff", "--property", "null.literal=\udcfe"
    ).record_format
    assert (shown.key_separator, shown.null_literal) == (b"\xff", b"\xfe")


@pytest.mark.parametrize(("given", "patience"), [("0", 5_000), ("9000", 9_000), ("90000", 15_000), ("-1", 15_000)])
def test_a_missing_topic_is_waited_for_no_longer_than_records_are(given: str, patience: int) -> None:
    assert plan("--topic", "t", "--timeout-ms", given).settings["default_api_timeout_ms"] == patience


def test_minus_one_is_no_limit() -> None:
    made = plan("--topic", "t", "--max-messages", "-1", "--timeout-ms", "-7")
    assert made.limit == made.idle_s == math.inf


@pytest.mark.parametrize(
    "arguments",
    [["--acks", "2"], ["-K", ""], ["-K", "\ud800"], ["-H", "novalue"], ["-H", "=x"], ["-H", "\udcff=x"]],
)
def test_produce_contradictions(arguments: list[str]) -> None:
    with pytest.raises(ConfigError):
        send_plan(*arguments)


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [(b"k:v", b"k", b"v"), (b"k:v:w", b"k", b"v:w"), (b":v", b"", b"v"), (b"-:v", None, b"v"), (b"k:-", b"k", None)],
)
def test_lines_with_keys(line: bytes, key: bytes | None, value: bytes | None) -> None:
    assert produce.record_of(line, 1, send_plan("-K", ":", "--null-marker", "-")) == (key, value)


def test_lines_without_keys() -> None:
    assert produce.record_of(b"a:b", 1, send_plan()) == (None, b"a:b")
    assert produce.record_of(b"", 1, send_plan()) == (None, b"")


def test_a_line_without_its_key_is_an_error_that_counts_lines() -> None:
    with pytest.raises(KafkaError, match=r"line 12 has no key delimiter.*topic 't'"):
        produce.record_of(b"v", 12, send_plan("-K", ":"))
