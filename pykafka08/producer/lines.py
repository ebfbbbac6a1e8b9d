"""Where READY queues stand in line for a request to their leader's broker, and how many requests each broker has.

Pure.  Which queue is READY is decided in ``machine``; here is what of a line goes into one request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from pykafka08.producer.batch import Batch
from pykafka08.producer.queues import PartitionQueue, QueueState

__all__ = ["Lines"]


class Lines:
    """``most_requests`` in flight to a broker at a time, each of at most ``request_size`` bytes of batches."""

    def __init__(self, most_requests: int, request_size: int) -> None:
        self._most_requests = most_requests
        self._request_size = request_size
        self._lines: dict[int, deque[PartitionQueue]] = {}
        """One that has left for another line, or has nothing to send, is passed over."""
        self._in_flight: dict[int, int] = {}
        self.requests = 0
        """All that were ever sent."""

    def join(self, node_id: int, queue: PartitionQueue) -> None:
        self._lines.setdefault(node_id, deque()).append(queue)

    def requests_due(self) -> Iterator[tuple[int, list[PartitionQueue], list[Batch]]]:
        """Broker, queues and their batches of each request that may go now; the caller settles the queues."""
        for node_id, line in self._lines.items():
            while line and self._in_flight.get(node_id, 0) < self._most_requests:
                queues, batches = self._take(node_id, line)
                if batches:
                    self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
                    self.requests += 1
                    yield node_id, queues, batches

    def _take(self, node_id: int, line: deque[PartitionQueue]) -> tuple[list[PartitionQueue], list[Batch]]:
        """The next batches of the queues in line, as many as fit into a request."""
        batches: list[Batch] = []
        queues: list[PartitionQueue] = []
        size = 0
        while line:
            queue = line[0]
            batch = queue.next_to_send()
            if queue.state is not QueueState.READY or queue.ready_at != node_id or batch is None:
                line.popleft()
                continue
            if batches and size + batch.size > self._request_size:
                break
            line.popleft()
            if not batch.is_closed:
                queue.close_open()
            queue.in_flight.append(batch)
            queue.sent_to = node_id
            queue.state = QueueState.IN_FLIGHT
            queue.ready_at = None
            size += batch.size
            batches.append(batch)
            queues.append(queue)
        return queues, batches

    def request_ended(self, node_id: int) -> None:
        self._in_flight[node_id] -= 1

    @property
    def is_idle(self) -> bool:
        """No request is in flight."""
        return not any(self._in_flight.values())

    def clear(self) -> None:
        """Nothing is to be sent any more."""
        self._lines.clear()
