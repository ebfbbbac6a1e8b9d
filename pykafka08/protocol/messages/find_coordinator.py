"""FindCoordinator: the broker that keeps a group or a transactional id (API key 10).

Called GroupCoordinator before 0.11.  On first use the broker creates the topic behind it and answers
COORDINATOR_NOT_AVAILABLE until that topic has leaders.

Versions, the first release with each, and what is new in it:

     0  0.8.2   groups
     1  0.11.0  transactional ids too (KIP-98)
     2  2.0     the answer comes before the throttling, not after it (KIP-219)
     3  2.4     compact forms, tagged fields (KIP-482)
     4  3.0     several keys (KIP-699)
     5  3.8     TRANSACTION_ABORTABLE may come back (KIP-890)
     6  3.9     share groups (KIP-932)
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
    message,
    string,
    struct,
)

__all__ = ["Coordinator", "FindCoordinatorRequest", "FindCoordinatorResponse"]


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest(Request["FindCoordinatorResponse"]):
    """One key up to version 3, several from 4 on."""

    key: str = string(versions="0-3")
    key_type: int = int8(versions="1+")  # 0 group, 1 transactional id, 2 share group
    coordinator_keys: list[str] = array(string, versions="4+")


@struct
class Coordinator(Struct):
    """The coordinator of one key, from version 4 on."""

    key: str = string(versions="4+")
    node_id: int = int32(versions="4+")  # -1 after an error
    host: str = string(versions="4+")
    port: int = int32(versions="4+")
    error_code: int = int16(versions="4+")
    error_message: str | None = string(versions="4+", nullable="4+", ignorable=True)


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse(Response):
    """One coordinator up to version 3, a list from 4 on."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16(versions="0-3")
    error_message: str | None = string(versions="1-3", nullable="1-3", ignorable=True)
    node_id: int = int32(versions="0-3")
    host: str = string(versions="0-3")
    port: int = int32(versions="0-3")
    coordinators: list[Coordinator] = array(Coordinator, versions="4+")
