"""The page and the charts of a run."""

import xml.etree.ElementTree as ElementTree

from benchmarks.charts import bar_chart
from benchmarks.figures import Turn
from benchmarks.report import MARK, charts_of, page_of

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
        "turns": played,
        "missing": {"pykafka08 compiled batches": "a tree"},
    }
    return {"started": "then", "machine": "here", "clients": clients, "cells": [cell], "failures": ["one turn"]}


def test_the_page_has_targets_cells_and_what_failed():
    page = page_of(results(), {NAME: "chart.svg"})
    assert page.startswith(MARK)
    assert (
        "| met | pure | batches | aiokafka getmany | records/CPU-s | >= 1.2x | 2.00x (2.00..2.00, 2 rounds) |" in page
    )
    assert "| MISSED | pure | batches | confluent consume |" in page
    assert "### Behind confluent-kafka" in page
    assert "| pykafka08 pure batches | 2.000 | 2.000..2.000 | 0.001 | 0.50 | 5 | - | 2 |" in page
    assert "await getmany()" in page
    assert "a tree is not there" in page
    assert "![" + NAME + "](chart.svg)" in page
    assert "- one turn" in page


def test_charts_are_whole_svg_with_a_bar_for_each_player():
    (chart,) = charts_of(results()).values()
    root = ElementTree.fromstring(chart)
    widths = [float(bar.get("width")) for bar in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert widths == [420, 210, 105]


def test_labels_are_escaped_and_no_bars_are_no_fault():
    assert "a &lt; b" in bar_chart("a < b", "c & d", [])
    assert ElementTree.fromstring(bar_chart("t", "u", [("<x>", 0.0, True)])) is not None
