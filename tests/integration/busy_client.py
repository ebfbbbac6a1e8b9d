"""A second client of a 0.9 broker, on plain sockets: several connections, each always with a Produce v0 in flight.

It shares nothing with `pykafka08`: what it counts as acknowledged, the broker said.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
import zlib
from typing import BinaryIO

from tests.brokers.model import HOST
from tests.brokers.probe import string

ANSWER_TIMEOUT_S = 60


def message_set(value: bytes) -> bytes:
    """One uncompressed message of magic 0 without a key."""
    body = struct.pack(">bbi", 0, 0, -1) + struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def produce_request(correlation: int, topic: str, value: bytes) -> bytes:
    """Produce v0 with acks=1 to partition 0, with its size in front."""
    records = message_set(value)
    body = struct.pack(">hhi", 0, 0, correlation) + string("neighbour")  # 0.9 fails without a client id
    body += struct.pack(">hii", 1, 5_000, 1) + string(topic)
    body += struct.pack(">iii", 1, 0, len(records)) + records
    return struct.pack(">i", len(body)) + body


class BusyClient:
    """Runs from entry to exit. `acknowledged` has every value by connection, `failures` what went wrong."""

    def __init__(self, port: int, topic: str, connections: int = 12) -> None:
        self.acknowledged: list[list[bytes]] = [[] for _ in range(connections)]
        self.failures: list[str] = []
        self._port = port
        self._topic = topic
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._guarded, args=(number,)) for number in range(connections)]

    def __enter__(self) -> BusyClient:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    @property
    def total(self) -> int:
        return sum(map(len, self.acknowledged))

    def wait_for(self, more: int, timeout: float = 90) -> None:
        """Until this many more values are acknowledged, on each connection at least one of them."""
        before = [len(values) for values in self.acknowledged]
        end = time.monotonic() + timeout
        while True:
            gains = [len(values) - start for values, start in zip(self.acknowledged, before, strict=True)]
            if sum(gains) >= more and min(gains) > 0:
                return
            assert not self.failures, self.failures
            assert time.monotonic() < end, f"acknowledged on each connection within {timeout} s: {gains}"
            time.sleep(0.01)

    def _guarded(self, number: int) -> None:
        try:
            self._run(number)
        except (OSError, AssertionError) as error:
            self.failures.append(f"connection {number}: {error!r}")

    def _run(self, number: int) -> None:
        with (
            socket.create_connection((HOST, self._port), timeout=ANSWER_TIMEOUT_S) as connection,
            connection.makefile("rb") as answers,
        ):
            correlation = 0
            while not self._stopping.is_set():
                correlation += 1
                value = b"%d:%d" % (number, correlation)
                connection.sendall(produce_request(correlation, self._topic, value))
                self._check_answer(answers, correlation)
                self.acknowledged[number].append(value)

    def _check_answer(self, answers: BinaryIO, correlation: int) -> None:
        size = answers.read(4)
        assert len(size) == 4, "the broker closed the connection"
        answer = answers.read(struct.unpack(">i", size)[0])
        assert struct.unpack(">i", answer[:4]) == (correlation,), "an answer to another request"
        _partition, error, offset = struct.unpack(">ihq", answer[-14:])
        assert error == 0, f"error code {error}"
        assert offset >= 0
