"""From which version of each API a client has to hold back by itself when an answer says that it is throttled.

Before, the broker waits and answers then.  Source: KIP-219; ``shouldClientThrottle`` of Kafka's response classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pykafka08.protocol.messages import ApiKey
from pykafka08.protocol.schema import Response

__all__ = ["FIRST_TO_HOLD_BACK", "throttled_for"]

FIRST_TO_HOLD_BACK: Mapping[int, int] = MappingProxyType(
    {
        ApiKey.PRODUCE: 6,
        ApiKey.FETCH: 8,
        ApiKey.LIST_OFFSETS: 3,
        ApiKey.METADATA: 6,
        ApiKey.OFFSET_COMMIT: 4,
        ApiKey.OFFSET_FETCH: 4,
        ApiKey.FIND_COORDINATOR: 2,
        ApiKey.JOIN_GROUP: 3,
        ApiKey.HEARTBEAT: 2,
        ApiKey.LEAVE_GROUP: 2,
        ApiKey.SYNC_GROUP: 2,
        ApiKey.DESCRIBE_GROUPS: 2,
        ApiKey.LIST_GROUPS: 2,
        ApiKey.API_VERSIONS: 2,
        ApiKey.CREATE_TOPICS: 3,
        ApiKey.DELETE_TOPICS: 2,
        ApiKey.DELETE_RECORDS: 1,
        ApiKey.INIT_PRODUCER_ID: 1,
        ApiKey.ADD_PARTITIONS_TO_TXN: 1,
        ApiKey.ADD_OFFSETS_TO_TXN: 1,
        ApiKey.END_TXN: 1,
        ApiKey.TXN_OFFSET_COMMIT: 1,
        ApiKey.DESCRIBE_CONFIGS: 2,
        ApiKey.CREATE_PARTITIONS: 1,
        ApiKey.DELETE_GROUPS: 1,
    }
)


def throttled_for(response: Response, version: int) -> float:
    """Seconds for which nothing may be sent on the connection of this answer."""
    throttle_ms = getattr(response, "throttle_time_ms", 0)
    if throttle_ms <= 0 or version < FIRST_TO_HOLD_BACK.get(response.api_key, version + 1):
        return 0.0
    return float(throttle_ms) / 1000
