"""Bytes that are no requests end one connection and nothing else."""

from __future__ import annotations

import random
from contextlib import suppress

import anyio
import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.protocol.headers import encode_request
from pykafka08.protocol.messages import REGISTRY, ApiKey
from pykafka08.protocol.messages.metadata import MetadataRequest
from tests.broker.raw import Raw, batch, connect, fetch_request, produce_request

pytestmark = pytest.mark.anyio


MALFORMED = {
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32),
    "empty": b"\0\0\0\0",
    "negative": b"\xff\xff\xff\xff",
    "huge": b"\x7f\xff\xff\xff\0\x03",
    "one-byte": b"\0\0\0\x01\0",
    "half-a-header": b"\0\0\0\x07" + bytes(7),
    "client-id-past-the-end": b"\0\0\0\x0a\0\x03\0\0\0\0\0\x01\0\x64",
    "array-past-the-end": b"\0\0\0\x0e\0\x03\0\0\0\0\0\x01\xff\xff\x7f\xff\xff\xff",
    "element-missing": b"\0\0\0\x0e\0\x03\0\0\0\0\0\x01\xff\xff\0\0\0\x02",
}


async def serves(cluster: EmbeddedCluster) -> bool:
    version = min(1, cluster.served_versions[ApiKey.METADATA].max)
    async with connect(cluster) as raw:
        await raw.ask(MetadataRequest(topics=[]), version)
    return True


@pytest.mark.parametrize("release", ["0.8.2", "0.9.0", "2.8", "4.3"])
@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED)
async def test_malformed_frames_close_the_connection(sent: bytes, release: str) -> None:
    async with EmbeddedCluster(version=release) as cluster:
        async with connect(cluster) as raw:
            await raw.stream.send(sent)
            assert await raw.is_closed_by_peer()
        assert await serves(cluster)


async def test_requests_before_a_bad_frame_are_answered() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        frame = encode_request(MetadataRequest(topics=[]), 1, 5, None)
        await raw.stream.send(len(frame).to_bytes(4, "big") + frame + b"\xff\xff\xff\xff")
        assert (await raw.receive_frame())[:4] == b"\0\0\0\x05"
        assert await raw.is_closed_by_peer()


async def test_half_a_frame_and_gone() -> None:
    async with EmbeddedCluster() as cluster:
        for size in (1, 3, 4, 9, 20):
            async with connect(cluster) as raw:
                frame = encode_request(MetadataRequest(topics=[]), 1, 5, "client")
                await raw.stream.send((len(frame).to_bytes(4, "big") + frame)[:size])
        assert await serves(cluster)


async def test_one_byte_at_a_time() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        frame = encode_request(MetadataRequest(topics=[]), 1, 5, "client")
        for byte in len(frame).to_bytes(4, "big") + frame:
            await raw.stream.send(bytes([byte]))
        assert (await raw.receive_frame())[:4] == b"\0\0\0\x05"


def mutated(frame: bytes, chance: random.Random) -> bytes:
    changed = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        what = chance.randrange(3)
        at = chance.randrange(8, len(changed))
        if what == 0:
            changed[at] = chance.randrange(256)
        elif what == 1:
            del changed[at : at + chance.randint(1, 8)]
        else:
            changed[at:at] = chance.randbytes(chance.randint(1, 8))
        if len(changed) < 12:
            break
    return bytes(changed)


async def hand_over(raw: Raw, frame: bytes) -> None:
    """Send a frame and the end of the stream: the broker closes once it has taken both."""
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        await raw.send_frame(frame)
        await raw.stream.send_eof()
        while True:
            await raw.stream.receive()


@pytest.mark.parametrize("release", ["0.9.0", "2.8", "4.3"])
async def test_mutated_requests_never_break_the_broker(release: str) -> None:
    """Every kind of request that the release serves, with bytes changed: the cluster's end raises what went wrong."""
    chance = random.Random(f"mutated {release}")
    async with EmbeddedCluster(version=release, topics={"t": 1}) as cluster:
        await mutate_all(cluster, chance)
        assert await serves(cluster)


async def mutate_all(cluster: EmbeddedCluster, chance: random.Random) -> None:
    magic = 2 if cluster.served_versions[ApiKey.PRODUCE].max >= 3 else 0
    for key, versions in cluster.served_versions.items():
        oldest = 3 if key == ApiKey.PRODUCE and magic == 2 else versions.min
        for version in {oldest, versions.max}:
            request = REGISTRY[key].load()[0]()
            if key == ApiKey.PRODUCE:
                request = produce_request(batch(b"value", magic=magic))
            elif key == ApiKey.FETCH:
                request = fetch_request()
            frame = encode_request(request, version, 7, "client")
            for _ in range(20):
                async with connect(cluster) as raw:
                    await hand_over(raw, mutated(frame, chance))
