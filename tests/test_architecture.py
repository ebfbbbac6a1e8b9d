"""ARCHITECTURE.md stays true: the bytes it shows are the bytes we write, the files it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pykafka08
from pykafka08.protocol.headers import encode_request
from pykafka08.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka08.records.compression import Codec
from pykafka08.records.writer import encode_batch

PACKAGE = Path(pykafka08.__file__).parent
ROOT = PACKAGE.parent
GUIDE = (PACKAGE / "ARCHITECTURE.md").read_text()
LINE_OF_BYTES = re.compile(r"^ +((?:[0-9a-f]{2} +){8,})", re.MULTILINE)


def test_the_bytes_of_the_walk_are_ours() -> None:
    batch = encode_batch(
        2,
        Codec.NONE,
        timestamps=[1_500_000_000_000],
        keys=[b"key"],
        values=[b"hello"],
        producer_id=1000,
        producer_epoch=0,
        base_sequence=0,
    )
    partition = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=27_000, topic_data=[TopicProduceData(name="t", partition_data=[partition])]
    )
    frame = bytes(encode_request(request, 9, 7, "pykafka08"))
    shown = [bytes.fromhex(line) for line in LINE_OF_BYTES.findall(GUIDE)]
    assert b"".join(shown[:4]) == bytes(batch)
    assert frame == b"".join(shown[4:]) + bytes(batch) + b"\0\0\0"


def test_the_files_it_names_exist() -> None:
    named = set(re.findall(r"`((?:\w+/)+|(?:\w+/)*\w+\.py)`", GUIDE))
    assert len(named) > 200
    assert {"driver.py", "producer/transactions/machine.py", "nodes/"} <= named
    there = [f"/{path.relative_to(PACKAGE).as_posix()}" for path in PACKAGE.rglob("*")]
    there += [f"/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "tests").rglob("*.py")]
    missing = [name for name in named if not any(each.endswith("/" + name.rstrip("/")) for each in there)]
    assert missing == []
