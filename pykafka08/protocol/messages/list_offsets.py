"""ListOffsets: the first, last or timestamped offset of partitions (API key 2).

timestamp -1 asks for the end of the log (the last stable offset for read committed), -2 for its start.  Version 0
answers from the times of segment files, newest first, up to max_num_offsets; it is exact only for -1 and -2.  Versions
from 1 on give the first record whose timestamp is not older, or offset -1 if there is none.

Versions, the first release with each, and what is new in it:

     0  0.8.0   a list of offsets
     1  0.10.1  one offset and its timestamp (KIP-79)
     2  0.11.0  isolation level (KIP-98)
     3  2.0     the answer comes before the throttling, not after it (KIP-219)
     4  2.1     leader epochs (KIP-320)
     5  2.2     OFFSET_NOT_AVAILABLE may come back (KIP-207)
     6  2.8     compact forms, tagged fields (KIP-482)
     7  3.0     timestamp -3: the record with the highest timestamp (KIP-734)
     8  3.5     timestamp -4: where the local log starts (KIP-405)
     9  3.9     timestamp -5: the end of tiered storage (KIP-1005)
    10  4.0     time-out for brokers that must ask remote storage (KIP-1075)
    11  4.2     timestamp -6: the earliest offset that waits for its upload (KIP-1023)
"""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)

__all__ = [
    "ListOffsetsPartition",
    "ListOffsetsPartitionResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListOffsetsTopic",
    "ListOffsetsTopicResponse",
]


@struct
class ListOffsetsPartition(Struct):
    """The question for one partition."""

    partition_index: int = int32()
    current_leader_epoch: int = int32(versions="4+", default=-1, ignorable=True)  # -1 if unknown: no fencing
    timestamp: int = int64()  # milliseconds, or a negative number with a meaning
    max_num_offsets: int = int32(versions="0", default=1)


@struct
class ListOffsetsTopic(Struct):
    """The questions for one topic."""

    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsRequest(Request["ListOffsetsResponse"]):
    """Timestamps by topic and partition."""

    replica_id: int = int32()  # -1 for clients
    isolation_level: int = int8(versions="2+")  # 0 read uncommitted, 1 read committed
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(versions="10+", ignorable=True)


@struct
class ListOffsetsPartitionResponse(Struct):
    """The answer for one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    old_style_offsets: list[int] = array(int64, versions="0")  # version 0: descending, perhaps empty
    timestamp: int = int64(versions="1+", default=-1)  # of the record found; -1 if there is none
    offset: int = int64(versions="1+", default=-1)  # -1 if there is none
    leader_epoch: int = int32(versions="4+", default=-1)  # -1 if unknown


@struct
class ListOffsetsTopicResponse(Struct):
    """The answers for one topic."""

    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsResponse(Response):
    """Offsets by topic and partition."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
