import pytest

from pykafka08.records.record import TopicPartition
from pykafka08.spark.admission import Delay, prorated


def offsets(*each: int) -> dict[TopicPartition, int]:
    return {TopicPartition("t", number): offset for number, offset in enumerate(each)}


@pytest.mark.parametrize(
    ("starts", "ends", "most", "expected"),
    [
        # As KafkaMicroBatchStream.rateLimit computes them.
        ((0, 0), (100, 300), 40, (10, 30)),
        ((0, 0), (1, 1000), 10, (1, 9)),
        ((0, 0, 0), (1, 1, 1), 1, (1, 1, 1)),
        ((5, 7), (5, 7), 10, (5, 7)),
        ((0,), (5,), 10, (5,)),
        ((0, 0), (3, 3), 5, (2, 2)),
        ((10, 0), (4, 8), 4, (4, 4)),
    ],
)
def test_shared_out_by_lag(
    starts: tuple[int, ...], ends: tuple[int, ...], most: int, expected: tuple[int, ...]
) -> None:
    assert prorated(offsets(*starts), offsets(*ends), most) == offsets(*expected)


def test_a_partition_without_a_start_is_taken_whole() -> None:
    assert prorated(offsets(0), offsets(10, 10), 5) == offsets(5, 10)


def test_every_offset_is_reached() -> None:
    starts, ends = offsets(0, 50, 7), offsets(1000, 51, 900)
    for _ in range(1000):
        following = prorated(starts, ends, 17)
        if following == ends:
            return
        assert all(starts[tp] < following[tp] or starts[tp] == ends[tp] for tp in ends)
        starts = following
    pytest.fail(f"only {starts} were reached")


class TestDelay:
    def test_the_first_batch_does_not_wait(self) -> None:
        assert not Delay(100, 1000).is_waiting(offsets(0), offsets(1), 5000.0)

    def test_until_enough_is_there(self) -> None:
        delay = Delay(10, 1000)
        assert not delay.is_waiting(offsets(0), offsets(10), 0.0)
        assert delay.is_waiting(offsets(10), offsets(19), 1.0)
        assert not delay.is_waiting(offsets(10), offsets(20), 2.0)

    def test_until_the_time_is_over_since_the_last_batch(self) -> None:
        delay = Delay(10, 1000)
        assert not delay.is_waiting(offsets(0), offsets(10), 500.0)
        assert delay.is_waiting(offsets(10), offsets(11), 1499.0)
        assert not delay.is_waiting(offsets(10), offsets(11), 1500.0)
        assert delay.is_waiting(offsets(11), offsets(12), 2499.0)

    def test_a_new_partition_counts_from_its_beginning(self) -> None:
        delay = Delay(10, 1000)
        assert not delay.is_waiting(offsets(0), offsets(10), 0.0)
        assert not delay.is_waiting(offsets(10), offsets(10, 10), 1.0)
