"""Sets that were changed at random, with their checksums put right: errors of our own tree and nothing else.

Seeded, so that a failure can be seen again; the count keeps the test short, the seed can be changed to look further.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress

import pytest

from pykafka08.errors import CorruptRecordError, KafkaError, UnsupportedVersionError
from pykafka08.records.reader import first_entry_size, only_partial, read_batches
from pykafka08.records.rewrite import assign_offsets, convert
from tests.records.samples import CODECS, FORMATS, encode, put_right

SEED = 20_261_121
ROUNDS = 4000

#: What a hostile writer puts where a number is expected.
NUMBERS = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x00", b"\xfe\xff\xff\xff\x0f")


def change(data: bytearray, chance: random.Random) -> bytearray:
    """One random change, near the start more often than not: that is where the numbers are."""
    place = chance.randrange(len(data))
    if chance.random() < 0.7:
        place = min(int(chance.expovariate(1 / 60)), len(data) - 1)
    kind = chance.randrange(10)
    if kind < 5:
        data[place] = chance.choice(
            (0, 1, 2, 127, 128, 255, chance.randrange(256), data[place] ^ 1 << chance.randrange(8))
        )
    elif kind == 5:
        del data[place : place + chance.randrange(1, 5)]
    elif kind == 6:
        data[place:place] = chance.randbytes(chance.randrange(1, 6))
    elif kind < 9:
        number = chance.choice(NUMBERS)
        data[place : place + len(number)] = number
    else:
        del data[place:]
    return data or bytearray(1)


def read_everything(data: bytes, fetch_offset: int) -> str:
    """Ask all that a batch can be asked for; how it ended."""
    outcome = "read"
    try:
        for batch in read_batches(data, topic="t", partition=1, fetch_offset=fetch_offset):
            assert batch.next_offset > fetch_offset
            for question in (batch.records, batch.values, batch.keys, batch.control_type):
                try:
                    answer = question()
                except CorruptRecordError as error:
                    outcome = "damaged record"
                    assert (error.topic, error.partition) == ("t", 1)  # noqa: PT017
                    assert error.next_offset is not None  # noqa: PT017
                    continue
                with suppress(CorruptRecordError):  # damaged headers
                    repr(answer)
    except CorruptRecordError as error:
        assert (error.topic, error.partition) == ("t", 1)  # noqa: PT017
        return "damaged batch"
    return outcome


def test_changed_sets_end_in_errors_of_ours() -> None:
    chance = random.Random(SEED)
    samples = [encode(magic, codec, count) for magic, codec in FORMATS for count in (1, 5, 40)]
    samples += [encode(2, codec, 3, producer_id=5, producer_epoch=1, is_transactional=True) for codec in CODECS[2]]
    samples += [first + second for first in samples[:12] for second in samples[-3:]]
    outcomes: Counter[str] = Counter()
    for _ in range(ROUNDS):
        data = bytearray(chance.choice(samples))
        for _ in range(chance.choice((1, 1, 2, 3, 8))):
            data = change(data, chance)
        hostile = bytes(put_right(data))
        outcomes[read_everything(hostile, chance.choice((0, 0, 1, 3)))] += 1
        only_partial(hostile)
        first_entry_size(hostile)
        for rewriting in (lambda: assign_offsets(hostile, 9, log_append_time_ms=7), lambda: convert(hostile, 0)):  # noqa: B023
            with suppress(CorruptRecordError, UnsupportedVersionError):
                rewriting()
    # The changes must reach every depth, or the test proves little.
    assert outcomes["damaged batch"] > ROUNDS / 10
    assert outcomes["damaged record"] > ROUNDS / 100
    assert outcomes["read"] > ROUNDS / 10


@pytest.mark.parametrize("size", [1, 11, 12, 16, 17, 18, 26, 61, 62, 200])
def test_noise_of_any_size(size: int) -> None:
    chance = random.Random(size)
    for _ in range(300):
        with suppress(KafkaError):
            for batch in read_batches(
                put_right(bytearray(chance.randbytes(size))), topic="t", partition=1, fetch_offset=0
            ):
                batch.records()
