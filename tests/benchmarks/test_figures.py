"""Ratios, percentiles, and whether a target counts as met."""

import pytest

from benchmarks.figures import Ratio, Turn, cpu_rates, latencies, percentile, ratio_of
from benchmarks.targets import LATENCY_TARGETS, TARGETS, Played, outcomes


def turn(number, rate, p99=None):
    return Turn(number, 1000, 100_000, 1.0, 1000 / rate, 0, {} if p99 is None else {"p50": p99 / 2, "p99": p99})


def test_a_ratio_is_the_median_of_the_rounds_that_both_played():
    ours, theirs = {1: 10.0, 2: 30.0, 3: 80.0, 5: 1.0}, {1: 10.0, 2: 10.0, 3: 10.0, 4: 1.0}
    assert ratio_of(ours, theirs) == Ratio(3.0, 1.0, 8.0, 3)
    assert ratio_of(ours, {4: 1.0}) is None


@pytest.mark.parametrize(("share", "found"), [(0.5, 50), (0.99, 99), (0.999, 100), (0.0, 1), (1.0, 100)])
def test_percentiles_are_values_that_were_measured(share, found):
    assert percentile(range(1, 101), share) == found


def test_a_single_value_is_every_percentile():
    assert percentile([7], 0.5) == percentile([7], 0.999) == 7
    with pytest.raises(ValueError):
        percentile([], 0.5)


def test_rates_and_latencies_are_by_round():
    turns = [turn(1, 500.0), turn(2, 250.0, p99=8)]
    assert cpu_rates(turns) == {1: 500.0, 2: 250.0}
    assert latencies(turns, "p99") == {2: 8}


USUAL = "100 B, no keys, none, 1 partition, replay"


def test_a_target_is_met_missed_or_not_measured():
    name = f"consume batches, {USUAL}"
    turns = {"pykafka08 pure batches": [turn(1, 130.0)], "aiokafka getmany": [turn(1, 100.0)]}
    turns["confluent consume"] = [turn(1, 200.0)]
    found = {(each.form, each.peer): each for each in outcomes({name: Played(list(turns), turns)})}
    assert found["pure", "aiokafka getmany"].mark == "met"
    assert found["pure", "confluent consume"].mark == "MISSED"
    assert found["pure", "confluent consume"].measured == Ratio(0.65, 0.65, 0.65, 1)
    assert found["compiled", "aiokafka getmany"].mark == "not measured"


def test_a_latency_is_to_be_lower():
    name = f"latency awaited single send, {USUAL}"
    turns = {"pykafka08 pure send_one": [turn(1, 1.0, p99=12)], "aiokafka send_one": [turn(1, 1.0, p99=10)]}
    found = [each for each in outcomes({name: Played(list(turns), turns)}) if each.form == "pure"]
    assert [(each.unit, each.mark) for each in found] == [("p50", "MISSED"), ("p99", "MISSED")]


def test_other_kinds_of_records_are_never_to_be_behind_aiokafka():
    name = "produce enqueue and send_many, 1 KiB, keys, lz4, 1 partition, replay"
    turns = {"pykafka08 pure send_many": [turn(1, 90.0)], "aiokafka send_batch": [turn(1, 100.0)]}
    (found,) = outcomes({name: Played(list(turns), turns)})
    assert (found.mark, found.wanted) == ("MISSED", 1.0)


def test_who_should_have_played_and_did_not_is_told_as_failed():
    name = "consume every way, 1 KiB, keys, lz4, 1 partition, replay"
    players = ["pykafka08 pure values", "pykafka08 pure arrow", "aiokafka getmany"]
    turns = {"aiokafka getmany": [turn(1, 1.0)], "pykafka08 pure arrow": [turn(1, 2.0)]}
    faults = {"pykafka08 pure values": "exit code 1", "pykafka08 pure arrow": "later: counted 1"}
    found = outcomes({name: Played(players, turns, faults)})
    assert [(each.way, each.mark) for each in found] == [("values", "FAILED"), ("arrow", "FAILED")]
    assert found[0].fault == "pykafka08 pure values: exit code 1"
    peer_failed = outcomes({name: Played(players, {}, {"aiokafka getmany": "no"})})
    assert [each.mark for each in peer_failed] == ["FAILED", "FAILED"]
    never_met = outcomes({name: Played(players[1:], {**turns, "aiokafka getmany": [turn(2, 1.0)]})})
    assert [(each.mark, each.fault) for each in never_met] == [("FAILED", "they share no round")]


def test_failures_are_told_of_targets_and_latencies_too():
    name = f"consume batches, {USUAL}"
    players = ["pykafka08 pure batches", "aiokafka getmany", "confluent consume", "kafka_python poll"]
    found = outcomes({name: Played(players, {}, {players[0]: "gone"})})
    assert {(each.form, each.mark) for each in found} == {("pure", "FAILED"), ("compiled", "not measured")}
    name = f"latency awaited single send, {USUAL}"
    players = ["pykafka08 pure send_one", "aiokafka send_one"]
    found = outcomes({name: Played(players, {}, {players[1]: "gone"})})
    assert {(each.form, each.mark) for each in found} == {("pure", "FAILED"), ("compiled", "not measured")}


def test_every_way_is_measured_with_every_kind_of_records():
    from benchmarks.cells import CELLS, CODECS, FORMS, players_of
    from benchmarks.topics import Profile

    wanted = [
        Profile(size=1024),
        Profile(keyed=True),
        Profile(partitions=64),
        *(Profile(codec=codec) for codec in CODECS),
        *(Profile(size=1024, keyed=True, codec=codec) for codec in CODECS),
    ]
    ways = {"batches", "iterate", "values", "arrow", "enqueue", "send_many", "send_arrow"}
    for profile in wanted:
        players = [player for cell in CELLS if cell.profile == profile for player in players_of(cell, FORMS)]
        for form in ("pure", "compiled"):
            played = {player.way for player in players if player.name.startswith(f"pykafka08 {form} ")}
            assert ways <= played, profile
        assert {"aiokafka", "confluent", "kafka_python"} <= {player.client for player in players}
        assert {"aio_consume", "aio_produce"} <= {player.way for player in players}


def test_every_target_has_a_cell_that_plays_it():
    from benchmarks.cells import CELLS, FORMS, players_of

    for target in TARGETS:
        cell = next(cell for cell in CELLS if cell.name == f"{target.what}, {USUAL}")
        names = {player.name for player in players_of(cell, FORMS)}
        assert {f"pykafka08 pure {target.way}", f"pykafka08 compiled {target.way}", target.peer} <= names
    for late in LATENCY_TARGETS:
        cells = [cell for cell in CELLS if late.cell in cell.name]
        assert cells
        for cell in cells:
            names = {player.name for player in players_of(cell, FORMS)}
            assert {f"pykafka08 pure {late.way}", late.peer} <= names
