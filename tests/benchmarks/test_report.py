"""The page and the charts of a run."""

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from benchmarks import report
from benchmarks.charts import bar_chart
from benchmarks.figures import Turn
from benchmarks.report import MARK, README_MARKS, charts_of, page_of, summary_of

NAME = "consume batches, 100 B, no keys, none, 1 partition, replay"


def results():
    def turns(rate):
        return [Turn(number, 1000, 100_000, 1.0, 1000 / rate, 5 << 20, {})._asdict() for number in (1, 2)]

    played = {
        "pykafka08 pure batches": turns(2e6),
        "aiokafka getmany": turns(1e6),
        "confluent consume": turns(4e6),
    }
    clients = {"aiokafka": {"version": "1", "settings": "fast", "ways": {"getmany": "await getmany()"}}}
    cell = {
        "name": NAME,
        "server": "replaying server",
        "load_at_start": 0.25,
        "players": [*played, "kafka_python poll", "confluent aio_consume"],
        "turns": played,
        "missing": {"confluent aio_consume": "confluent_kafka.aio"},
        "failed": {"kafka_python poll": "exit code 1"},
    }
    limit = {"form": "pure", "what": "memory", "unit": "MiB", "allowed": 96.0, "measured": 75.0, "fault": ""}
    return {
        "started": "then",
        "minutes": 3.5,
        "machine": "here",
        "clients": clients,
        "cells": [cell],
        "limits": [limit, {**limit, "measured": 97.0}, {**limit, "measured": None, "fault": "it ended"}],
        "failures": ["one turn"],
    }


def test_the_page_has_targets_cells_and_what_failed():
    page = page_of(results(), {NAME: "chart.svg"})
    assert page.startswith(MARK)
    assert (
        "| met | pure | batches | aiokafka getmany | records/CPU-s | >= 1.2x | 2.00x (2.00..2.00, 2 rounds) |" in page
    )
    assert "| MISSED | pure | batches | confluent consume |" in page
    assert "### Behind confluent-kafka" in page
    assert f"{NAME} | the interpreter makes each record; there it is C |" in page
    assert "| pykafka08 pure batches | 2.000 | 2.000..2.000 | 0.001 | 0.50 | 5 | - | 2 |" in page
    assert "await getmany()" in page
    assert "confluent_kafka.aio is not there" in page
    assert "| kafka_python poll | FAILED | - | - | - | - | - | 0 | exit code 1 |" in page
    assert "| FAILED | pure | batches | kafka_python poll |" in page
    assert "then, 3.5 minutes. here." in page
    assert "| met | pure | memory | 75 MiB, allowed 96 |" in page
    assert "| MISSED | pure | memory | 97 MiB, allowed 96 |" in page
    assert "| FAILED | pure | memory | it ended |" in page
    assert "![" + NAME + "](chart.svg)" in page
    assert "- one turn" in page


def test_charts_are_whole_svg_with_a_bar_for_each_player():
    (chart,) = charts_of(results()).values()
    root = ElementTree.fromstring(chart)
    widths = [float(bar.get("width")) for bar in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths == [420, 210, 105]


def test_charts_of_the_page_before_are_replaced(tmp_path, monkeypatch):
    page, file, other = (
        tmp_path / "docs" / "page.md",
        tmp_path / "results" / "full.json",
        tmp_path / "results" / "x.svg",
    )
    for folder in (page.parent, file.parent):
        folder.mkdir()
    file.write_text(json.dumps(results()))
    other.write_text("not of a page")
    monkeypatch.setattr(sys, "argv", ["report", str(file), str(page)])
    report.main()
    (chart,) = set(file.parent.glob("*.svg")) - {other}
    page.write_text("Prose.\n" + page.read_text().replace(chart.name, "old.svg"))
    chart.rename(file.parent / "old.svg")
    report.main()
    assert set(file.parent.glob("*.svg")) == {chart, other}
    assert page.read_text().startswith("Prose.\n# Performance\n")


def test_latencies_are_charted_by_percentile():
    shown = results()
    for name, turns in shown["cells"][0]["turns"].items():
        late = 50.0 if name.startswith("aio") else 100.0
        for each in turns:
            each["latencies_us"] = {"p50": late, "p99": late * 2, "p99.9": late * 4}
    (chart,) = charts_of(shown).values()
    labels = [text.text for text in ElementTree.fromstring(chart).iter("{http://www.w3.org/2000/svg}text")]
    assert "microseconds" in labels
    shares = [label.split()[0] for label in labels[2::2]]
    assert shares == ["p50"] * 3 + ["p99"] * 3 + ["p99.9"] * 3
    assert labels[2] == "p50 aiokafka getmany"


def test_a_cell_without_turns_has_no_chart():
    empty = results()
    empty["cells"][0]["turns"] = {}
    assert charts_of(empty) == {}
    assert "| FAILED | pure | batches | aiokafka getmany |" in page_of(empty, {})


def test_labels_are_escaped_and_no_bars_are_no_fault():
    assert "a &lt; b" in bar_chart("a < b", "c & d", [])
    assert ElementTree.fromstring(bar_chart("t", "u", [("<x>", 0.0, True)])) is not None


def test_readme_has_the_figures_of_the_recorded_run():
    root = Path(__file__).resolve().parents[2]
    recorded = json.loads((root / "benchmarks" / "results" / "full.json").read_text())
    begin, end = README_MARKS
    written = (root / "README.md").read_text().partition(begin)[2].partition(end)[0]
    assert written == summary_of(recorded)
    assert page_of(recorded, {}).splitlines()[-1]
    rows = [line for line in written.splitlines() if line.endswith(" x |")]
    assert len(rows) == len(report.SUMMARY)


def test_rows_that_come_later_than_confluents_are_listed():
    found = results()
    cell = found["cells"][0]
    cell["name"] = "latency awaited single send, 100 B, no keys, none, 1 partition, replay"

    def turns(p50):
        return [Turn(1, 1000, 100_000, 1.0, 1.0, 5 << 20, {"p50": p50, "p99": 9.0, "p99.9": 10.0})._asdict()]

    cell["players"] = ["pykafka08 pure send_one", "confluent send_one"]
    cell["turns"] = {"pykafka08 pure send_one": turns(200.0), "confluent send_one": turns(100.0)}
    page = page_of(found, {})
    assert "| pykafka08 pure send_one | confluent send_one | p50 | 2.00x (2.00..2.00, 1 rounds) |" in page
    assert "| confluent send_one | p99 |" not in page
