"""The same topic through Kafka's own console consumer and through ours: the same bytes.

Both read from the embedded broker, partition by partition, so that the order is the same too.
"""

from __future__ import annotations

import os
import subprocess

import anyio
import pytest

from pykafka08 import EmbeddedCluster, NewRecord, Producer
from tests.brokers.tools import release_tool_command
from tests.cli.console import console_here

pytestmark = [pytest.mark.anyio, pytest.mark.brokers, pytest.mark.timeout(420)]

EVERYTHING = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key")
JAVA = "org.apache.kafka.common.serialization."

RECORDS = [
    NewRecord(b"value", b"key"),
    NewRecord(b"", b""),
    NewRecord(None, b"tombstone"),
    NewRecord(b"no key"),
    NewRecord(b"one header", b"k", (("name", b"value"),)),
    NewRecord(b"headers", b"k", (("a", b"1"), ("b", None), ("a", b""), ("\u00e9", "\u00e8".encode()))),
    NewRecord(b"\x00\xff\xfe binary \r\n two lines \t", b"\xc3\x28"),
    NewRecord("text \u20ac \U0001f600".encode(), "cl\u00e9".encode(), (), 0),
    NewRecord(b"x" * 5000, b"long", (), 2**40),
]
NUMBERS = [NewRecord(b"\x00\x00\x00\x2a", b"\x00\x07"), NewRecord(b"\xff\xff\xff\xfe", b"\x80\x00")]
DOUBLES = [NewRecord(b"\x3f\xf8" + bytes(6), b"\x01"), NewRecord(b"\x41\x97\xd7\x84\x00\x00\x00\x00", b"\x00")]


@pytest.fixture
def anyio_backend() -> str:
    """Both tools have loops of their own: the loop of the test changes nothing in them, and a JVM takes seconds."""
    return "asyncio"


async def java(release: str, *words: str) -> bytes:
    command = release_tool_command(release, "console-consumer", *words)
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    ran = await anyio.run_process(command, stderr=subprocess.PIPE, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


CASES = {
    "plain": ("mixed", {}),
    "everything": ("mixed", {f"print.{name}": "true" for name in EVERYTHING}),
    "everything, appended": ("appended", {f"print.{name}": "true" for name in EVERYTHING}),
    "separators": (
        "mixed",
        {
            **{f"print.{name}": "true" for name in EVERYTHING},
            "key.separator": " :: ",
            "line.separator": "|\n",
            "headers.separator": "; ",
            "null.literal": "<null>",
        },
    ),
    "no value": ("mixed", {"print.value": "false", "print.offset": "true"}),
    "text": (
        "mixed",
        {"print.key": "true", **{f"{of}.deserializer": f"{JAVA}StringDeserializer" for of in ("key", "value")}},
    ),
    "numbers": (
        "numbers",
        {
            "print.key": "true",
            "key.deserializer": f"{JAVA}ShortDeserializer",
            "value.deserializer": f"{JAVA}IntegerDeserializer",
        },
    ),
    "doubles": (
        "doubles",
        {
            "print.key": "true",
            "key.deserializer": f"{JAVA}BytesDeserializer",
            "value.deserializer": f"{JAVA}DoubleDeserializer",
        },
    ),
}
ON_OLD_TOOLS = ("everything", "everything, appended", "separators", "text")
TOPICS = {"mixed": RECORDS, "appended": RECORDS, "numbers": NUMBERS, "doubles": DOUBLES}


@pytest.mark.parametrize(("release", "plays"), [("4.3.1", "4.3"), ("2.8.2", "2.8")])
async def test_the_output_is_the_same_byte_for_byte(release: str, plays: str) -> None:
    async with EmbeddedCluster(version=plays) as cluster:
        cluster.create_topic("appended", 1, config={"message.timestamp.type": "LogAppendTime"})
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for topic, records in TOPICS.items():
                await producer.send_many(topic, records)
        for name in CASES if release == "4.3.1" else ON_OLD_TOOLS:
            topic, properties = CASES[name]
            if release == "2.8.2":  # these two came with 4.0
                properties = {
                    key: text for key, text in properties.items() if key not in ("print.delivery", "print.epoch")
                }
            option = "--formatter-property" if release == "4.3.1" else "--property"
            words = [
                *("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic, "--partition", "0"),
                *("--offset", "earliest", "--max-messages", str(len(TOPICS[topic]))),
                *(word for key, text in properties.items() for word in (option, f"{key}={text}")),
            ]
            theirs = await java(release, *words)
            ours = await console_here("consume", *words)
            assert ours.status == 0, ours.err
            assert ours.out == theirs, name
            assert ours.out.count(b"\n") >= len(TOPICS[topic])
            assert ours.err == f"Processed a total of {len(TOPICS[topic])} messages\n"
