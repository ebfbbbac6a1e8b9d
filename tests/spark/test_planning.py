import pickle
import random

import pytest

from pykafka08.spark.ranges import Range, plan_tasks


def ranges(*sizes: int, topic: str = "t") -> list[Range]:
    return [Range(topic, number, 100, 100 + size) for number, size in enumerate(sizes)]


def sizes(tasks: list[tuple[Range, ...]]) -> list[list[int]]:
    return [[each.size for each in task] for task in tasks]


def test_small_ranges_share_a_task() -> None:
    tasks = plan_tasks(ranges(10, 20, 0, 30, 5), target_records_per_task=30)
    assert sizes(tasks) == [[10, 20], [30], [5]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([10_000] * 6, [30_000, 30_000]),
        ([5_000] * 10, [50_000]),
        ([5_000] * 11, [30_000, 25_000]),
        ([1, 500_000, 1, 1, 60_000], [500_001, 60_002]),
        ([500_000] * 3, [500_000] * 3),
        ([333] * 500, [41_625] * 4),
    ],
)
def test_tasks_are_as_few_and_as_even_as_may_be(given: list[int], expected: list[int]) -> None:
    assert [sum(task) for task in sizes(plan_tasks(ranges(*given)))] == expected


@pytest.mark.parametrize("most", [1, 7, 100, 10**12])
def test_no_more_tasks_than_full_ones_would_be(most: int) -> None:
    chance = random.Random(most)
    for _ in range(300):
        given = [chance.randrange(1, 300) for _ in range(chance.randrange(1, 40))]
        tasks = sizes(plan_tasks(ranges(*given), target_records_per_task=most))
        assert [size for task in tasks for size in task] == given
        assert all(tasks)
        assert len(tasks) <= -(-sum(given) // most)


def test_a_task_is_full_by_bytes_too() -> None:
    big = [Range("t", number, 0, 10, average_bytes=100) for number in range(4)]
    assert sizes(plan_tasks(big, target_bytes=2000)) == [[10, 10], [10, 10]]


def test_nothing_to_read() -> None:
    assert plan_tasks([]) == []
    assert plan_tasks(ranges(0, -5), min_partitions=3) == []


@pytest.mark.parametrize(
    ("given", "least", "most", "expected"),
    [
        # As KafkaOffsetRangeCalculator computes them.
        ((5,), None, None, [5]),
        ((10, 10), 1, None, [10, 10]),
        ((5,), 2, None, [2, 3]),
        ((100, 1), 3, None, [50, 50, 1]),
        ((4, 3, 1), 4, None, [2, 2, 3, 1]),
        ((10, 4), None, 4, [3, 3, 4, 4]),
        ((5,), 3, 2, [1, 2, 2]),
        ((100,), 3, 50, [25, 25, 25, 25]),
        ((40, 20), 6, 20, [10, 10, 10, 10, 10, 10]),
        ((1,), 5, None, [1]),
    ],
)
def test_splits(given: tuple[int, ...], least: int | None, most: int | None, expected: list[int]) -> None:
    tasks = plan_tasks(ranges(*given), least, most, target_records_per_task=1)
    assert [size for task in sizes(tasks) for size in task] == expected


@pytest.mark.parametrize("seed", range(20))
def test_each_offset_is_read_once_and_the_plan_is_the_same_in_any_order(seed: int) -> None:
    chance = random.Random(seed)
    given = [
        Range(chance.choice("ab"), number, start := chance.randrange(1000), start + chance.randrange(200))
        for number in range(chance.randrange(1, 30))
    ]
    least = chance.choice([None, chance.randrange(1, 60)])
    most = chance.choice([None, chance.randrange(1, 60)])
    tasks = plan_tasks(given, least, most, target_records_per_task=chance.randrange(1, 400))
    read = sorted(
        (each.topic, each.partition, n) for task in tasks for each in task for n in range(each.start, each.end)
    )
    assert read == sorted((each.topic, each.partition, n) for each in given for n in range(each.start, each.end))
    shuffled = chance.sample(given, len(given))
    assert plan_tasks(pickle.loads(pickle.dumps(shuffled)), least, most) == plan_tasks(given, least, most)
    if most is not None:
        assert all(each.size <= most for task in tasks for each in task)
