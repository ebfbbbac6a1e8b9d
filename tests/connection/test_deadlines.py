"""Deadlines come due in order, whatever the order in which calls were made and answered."""

from __future__ import annotations

import random

from pykafka08.connection.call import Call
from pykafka08.connection.deadlines import Deadlines


class Told:
    def set_result(self, result: object) -> None: ...

    def set_exception(self, error: BaseException) -> None: ...


def call(deadline: float) -> Call:
    return Call(lambda versions: None, 0, Told(), deadline)  # type: ignore[arg-type, return-value]


def test_calls_come_due_in_the_order_of_their_deadlines_and_of_their_making() -> None:
    numbers = random.Random(1)
    deadlines, made = Deadlines(), []
    for number in range(500):
        deadline = float(numbers.randrange(number, number + 60))
        made.append((deadline, number, call(deadline)))
        deadlines.add(deadline, made[-1][2], number + 1)
    wanted = [each[2] for each in sorted(made, key=lambda each: each[:2])]
    found = []
    for now in range(600):
        first = deadlines.first
        assert first is None or first >= now
        while (due := deadlines.pop_due(now)) is not None:
            assert due.deadline <= now
            found.append(due)
    assert found == wanted
    assert deadlines.first is None


def test_answered_calls_are_not_kept() -> None:
    deadlines = Deadlines()
    for number in range(10_000):
        answered = call(30.0 + number)
        deadlines.add(answered.deadline, answered, 1)
        answered.end(None)
    assert len(deadlines) == 1


def test_neither_are_those_behind_a_call_that_stays_open() -> None:
    deadlines = Deadlines()
    patient = call(1000.0)
    deadlines.add(patient.deadline, patient, 1)
    for number in range(10_000):
        answered = call(30.0 + number / 100)
        deadlines.add(answered.deadline, answered, 2)
        answered.end(None)
    assert len(deadlines) < 200
    assert patient in [deadlines.pop_due(2000.0) for _ in range(len(deadlines))]
