"""What is one member's to read and to commit: partitions, each its stream's, claimed under a session of ZooKeeper.

That they still are is asked at each step that would harm others: handing out a record, sending a commit.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from pykafka08.errors import PartitionRevokedError
from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper.bridge import ZooKeeper

__all__ = ["Claims", "Objection", "revoked"]

Objection = Callable[[TopicPartition], PartitionRevokedError | None]
"""Why an offset of the partition must not be committed now; None if it may be."""


class Claims:
    """The partitions that are this member's, and the session under which they are."""

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk
        self.session_number = 0
        """0 before the first session."""
        self.stream_of: dict[TopicPartition, int] = {}
        self._numbers: dict[TopicPartition, int] = {}
        self._counter = count(1)

    def take(self, tp: TopicPartition, stream: int) -> None:
        self.stream_of[tp] = stream
        self._numbers[tp] = next(self._counter)

    def drop(self, tp: TopicPartition) -> None:
        del self.stream_of[tp], self._numbers[tp]

    def is_sure(self) -> bool:
        """True while what is claimed is surely still this member's, by the session's clock."""
        return self._zk.is_session_sure(self.session_number)

    def objection(self) -> Objection:
        """To be asked before each thing that is sent for a commit that begins now.

        It knows the claims of now: a partition that goes and comes back has been another's meanwhile.
        """
        session_number, numbers = self.session_number, dict(self._numbers)

        def ask(tp: TopicPartition) -> PartitionRevokedError | None:
            if tp not in numbers or self._numbers.get(tp) != numbers[tp]:
                return revoked(tp, "the partition is not this member's")
            if not self._zk.is_session_sure(session_number):
                why = self._zk.trouble or "the session with ZooKeeper may be over"
                return revoked(tp, f"{why}: others may own the partition by now")
            return None

        return ask


def revoked(tp: TopicPartition, why: str) -> PartitionRevokedError:
    return PartitionRevokedError(f"the offset was not committed: {why}", topic=tp.topic, partition=tp.partition)
