"""When a batch may go while others of its partition are in flight.  Pure.

The leader takes numbered batches in order or not at all, so that several may be under way; but only a leader that
surely remembers the producer, and no more of them than it compares with.  Without numbers none may follow.
"""

from __future__ import annotations

from pykafka08.producer.queues import PartitionQueue

__all__ = ["Following"]

REMEMBERED_BATCHES = 5
"""How many batches of a producer a broker compares with since 1.0; 0.11 knows the last one."""

PRODUCE_OF_1_0 = 4

FOLLOWER_LINGER_S = 0.02
"""How long a batch that is not full waits for more records at least, or for the end of those before it in flight.

Near brokers answer sooner, so that requests stay as large as with one in flight; far ones do not add their way twice.
"""


class Following:
    """What is known of the brokers."""

    def __init__(self) -> None:
        self._depths: dict[int, int] = {}
        """Batches of a partition that may be in flight to a broker; one while its release is not known."""

    def broker_known(self, node_id: int, produce_version: int) -> None:
        self._depths[node_id] = REMEMBERED_BATCHES if produce_version >= PRODUCE_OF_1_0 else 1

    def is_allowed(self, queue: PartitionQueue, now: float) -> bool:
        """Of a queue with batches in flight, whose batches are numbered."""
        sequences = queue.sequences
        return (
            sequences.proven_until > now
            and queue.leader is not None
            and queue.leader[0] == queue.sent_to
            and len(queue.in_flight) < self._depths.get(queue.sent_to, 1)
            and sequences.may_go_on
        )

    @staticmethod
    def linger(queue: PartitionQueue, linger: float) -> float:
        """Seconds that an open batch of the queue waits for more records."""
        return max(linger, FOLLOWER_LINGER_S) if queue.in_flight else linger
