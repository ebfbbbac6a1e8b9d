"""White lists, black lists, and Java's regular expressions as a JVM's ``Pattern.matches`` answered for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykafka08.errors import ConfigError
from pykafka08.zookeeper import java_regex
from pykafka08.zookeeper.java_regex import translate
from pykafka08.zookeeper.topic_filter import TopicFilter

RECORDED = json.loads((Path(__file__).parent / "data" / "java_regex.json").read_text(encoding="utf-8"))
"""Expressions, some of them random, with the names that they match in Java 17; null where Java refuses them."""


@pytest.mark.parametrize("has_atomic", [java_regex.HAS_ATOMIC, False])
def test_expressions_mean_what_they_mean_in_java(monkeypatch: pytest.MonkeyPatch, has_atomic: bool) -> None:
    monkeypatch.setattr(java_regex, "HAS_ATOMIC", has_atomic)
    translate.cache_clear()
    different = []
    for case in RECORDED["cases"]:
        try:
            expression = translate(case["regex"])
        except ConfigError:
            found = None
        else:
            found = [name for name in RECORDED["names"] if expression.fullmatch(name)]
        if found != case["matches"]:
            different.append((case["regex"], found, case["matches"]))
    translate.cache_clear()
    assert different == []
    assert len(RECORDED["cases"]) > 500


@pytest.mark.parametrize(
    "regex", [r"\R", r"\X", r"\G", "(?x) a", "[d-a]", "a(?i)b|c", "(a", "a)", "*", "(?<=a+)b", "a\\"]
)
def test_what_cannot_be_told_is_refused_by_name(regex: str) -> None:
    with pytest.raises(ConfigError) as refused:
        translate(regex)
    assert repr(regex) in str(refused.value)


def test_numbered_references_beside_atomic_groups_need_a_newer_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_regex, "HAS_ATOMIC", False)
    translate.cache_clear()
    with pytest.raises(ConfigError, match=r"need Python 3\.11"):
        translate(r"(a)b++\1")
    translate.cache_clear()


TOPICS = ["__consumer_offsets", "__share_group_state", "__transaction_state", "a.b", "axb", "orders.eu", "orders.us"]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        (r"orders\..*", ["orders.eu", "orders.us"]),
        (r"  orders\.eu, a\.b ", ["a.b", "orders.eu"]),
        ("\"'orders.eu'\"", ["orders.eu"]),
        ("a.b", ["a.b", "axb"]),
        (".*", ["a.b", "axb", "orders.eu", "orders.us"]),
        ("orders", []),
    ],
)
def test_white_list(text: str, chosen: list[str]) -> None:
    assert TopicFilter("white_list", text).choose(TOPICS, excludes_internal=True) == chosen


def test_black_list_takes_the_others() -> None:
    assert TopicFilter("black_list", "orders.*").choose(TOPICS, excludes_internal=True) == ["a.b", "axb"]
    assert TopicFilter("black_list", ".*").choose(TOPICS, excludes_internal=False) == []


def test_internal_topics_are_left_out_only_if_wanted() -> None:
    everything = TopicFilter("white_list", ".*")
    assert everything.choose(TOPICS, excludes_internal=False) == TOPICS
    assert everything.allows("__consumer_offsets", excludes_internal=False)
    assert not everything.allows("__consumer_offsets", excludes_internal=True)


def test_the_expression_is_registered_as_it_is_matched() -> None:
    assert TopicFilter("white_list", " 'a, b' ").regex == "a|b"
