"""Idempotent producers that share a broker: no request waits for a timer, or for the import of a module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.broker.session import Session
from pykafka08.protocol.headers import encode_request, split_response
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka08.protocol.messages.produce import ProduceResponse
from tests.broker.raw import batch, connect, produce_request

ROOT = Path(__file__).resolve().parents[2]
CLIENTS, IN_FLIGHT, RECORDS = 8, 5, 300
LOADS_NOTHING = """
import sys
import anyio
from pykafka08.broker.server import EmbeddedCluster
from tests.broker.raw import batch, connect, produce

async def main():
    records = batch(*[b"x" * 50] * 300, producer_id=1000, producer_epoch=0, base_sequence=0)
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert (await produce(raw, batch(b"x"), 9)).error_code == 0
        before = set(sys.modules)
        assert (await produce(raw, records, 9)).error_code == 0
        print(*sorted(set(sys.modules) - before))

anyio.run(main)
"""


class Written:
    """The output of a session, write by write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        raise AssertionError("the session closed its connection")

    def pause_reading(self) -> None:
        raise AssertionError("the session stopped reading")

    def resume_reading(self) -> None: ...


def receive(session: Session, data: bytes) -> None:
    """Pass data to the session as a socket does: each read fills the buffer that the session offers."""
    while data:
        room = session.next_buffer(65536)
        size = min(len(room), len(data))
        room[:size] = data[:size]
        session.bytes_received(size)
        data = data[size:]


def answers(written: Written) -> list[int]:
    """The error codes of the Produce answers."""
    data, codes = b"".join(written.writes), []
    while data:
        size = int.from_bytes(data[:4], "big")
        _, offset = split_response(ProduceResponse, 9, data[4 : 4 + size])
        response = ProduceResponse.decode(memoryview(data)[4 + offset : 4 + size], 9)
        codes.append(response.responses[0].partition_responses[0].error_code)
        data = data[4 + size :]
    return codes


@pytest.mark.anyio
async def test_eight_idempotent_producers_are_answered_synchronously() -> None:
    async with EmbeddedCluster(topics={"t": CLIENTS}) as cluster:
        async with connect(cluster) as raw:
            asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
            ids = [(await raw.ask(asked, 4)).producer_id for _ in range(CLIENTS)]
        assert len(set(ids)) == CLIENTS
        timers = list(cluster._state.timers._heap)
        for client, producer_id in enumerate(ids):
            written = Written()
            session = Session(cluster._state, cluster.brokers[0], "127.0.0.1", written)
            frames = [
                encode_request(
                    produce_request(
                        batch(
                            *[b"x"] * RECORDS, producer_id=producer_id, producer_epoch=0, base_sequence=each * RECORDS
                        ),
                        partition=client,
                        acks=-1,
                    ),
                    9,
                    each,
                    "client",
                )
                for each in range(IN_FLIGHT)
            ]
            receive(session, b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))
            # Each request is answered before the next turn of the event loop, without a timer.
            assert answers(written) == [0] * IN_FLIGHT
            assert len(written.writes) <= IN_FLIGHT
            assert cluster.log_end_offset("t", client) == IN_FLIGHT * RECORDS
        assert cluster._state.timers._heap == timers


def test_a_brokers_first_large_batch_loads_no_module() -> None:
    """Importing numpy, pyarrow and pandas delayed all clients of the broker by up to a second."""
    done = subprocess.run(
        [sys.executable, "-c", LOADS_NOTHING], capture_output=True, text=True, timeout=120, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr[-2000:]
