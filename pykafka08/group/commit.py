"""One call to commit offsets: what is still to be committed, and what was refused.  Pure.

Sending and trying again are ``offsets``'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from pykafka08.driver import Waiter
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import BrokerError, KafkaError, PartitionRevokedError
from pykafka08.group.actions import Membership
from pykafka08.group.contract import MemberMachine
from pykafka08.group.reactions import Api, Reaction, group_error, reaction_to
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.records.record import TopicPartition

__all__ = ["LOSSES", "Commit", "Objection"]

Objection = Callable[[TopicPartition], KafkaError | None]
"""Why a partition's offset must not be sent now; None if it may be."""
LOSSES = frozenset({Reaction.LOSE_GENERATION, Reaction.LOSE_MEMBERSHIP})
UNCERTAIN = frozenset({Reaction.FIND_COORDINATOR, Reaction.FAIL})
"""Brokers answer so, too, when the offset was written and others were slow to copy it."""
UNCERTAIN_CODES = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND})
"""So are these, though the same is asked again."""


class Commit:
    """``pending`` has no outcome yet; ``doubtful`` was sent, and may be written whatever became of it since.

    A partition counts in the tenure in which the call began: one that was given up and came back has been another's,
    who may have committed more.  So does a topic by the id that it had then.
    """

    def __init__(
        self,
        machine: MemberMachine,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        is_member: bool,
        topic_id: Callable[[str], UUID | None],
        now: Callable[[], float],
        objection: Objection | None = None,
    ) -> None:
        self.pending = dict(offsets)
        self.doubtful: dict[TopicPartition, OffsetAndMetadata] = {}
        self._unclear: dict[TopicPartition, int] = {}
        """How many attempts of a doubtful partition are on their way, or had no clear answer."""
        self.refused: dict[TopicPartition, KafkaError] = {}
        self.trouble: KafkaError | None = None
        """The error in the newest answer."""
        self.ended: Waiter[None] = Waiter()
        self._machine = machine
        self._is_member = is_member
        self._topic_id = topic_id
        self._now = now
        self._objection = objection
        self._ids = {tp.topic: topic_id(tp.topic) for tp in offsets}
        self._tenures = {tp: machine.tenure(tp) for tp in offsets}

    def membership(self) -> Membership:
        return self._machine.membership if self._is_member else Membership()

    def refuse_strangers(self) -> None:
        """Partitions that are not this member's, or not any more."""
        for tp in list(self.pending):
            tenure = self._machine.tenure(tp)
            if self._is_member and (tenure is None or tenure != self._tenures[tp]):
                self._refuse(tp, _revoked(tp, None))
            elif self._was_made_again(tp.topic):
                text = "the offset was not committed: it is of a topic that was deleted and made again"
                self._refuse(tp, PartitionRevokedError(text, topic=tp.topic, partition=tp.partition))
            elif self._objection is not None and (why := self._objection(tp)) is not None:
                self._refuse(tp, why)

    def _was_made_again(self, topic: str) -> bool:
        before, now = self._ids[topic], self._topic_id(topic)
        return before is not None and now is not None and before != now

    def sent(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """These are on their way."""
        self.doubtful.update(offsets)
        for tp in offsets:
            self._unclear[tp] = self._unclear.get(tp, 0) + 1

    def take(self, tp: TopicPartition, code: int, membership: Membership, broker: str | None = None) -> Reaction:
        """Note the answer of the coordinator ``broker`` for one partition."""
        reaction = reaction_to(Api.OFFSET_COMMIT, code)
        if reaction not in UNCERTAIN and code not in UNCERTAIN_CODES:
            self._unclear[tp] -= 1  # this attempt's: nothing is said of those before it
        if reaction is Reaction.PROCEED or not self._unclear[tp]:
            self.doubtful.pop(tp, None)
        if reaction is Reaction.PROCEED:
            del self.pending[tp]
            return reaction
        error = group_error(code, api=Api.OFFSET_COMMIT, group=self._machine.group_id, broker=broker, tp=tp)
        self.trouble = error
        if reaction is Reaction.REFUSE:
            self._refuse(tp, error)
        elif reaction in LOSSES:
            self._lost(tp, error, membership)
        elif reaction is Reaction.FAIL:
            self._machine.commit_refused(membership, error, self._now())
            raise error
        return reaction

    def _lost(self, tp: TopicPartition, error: BrokerError, membership: Membership) -> None:
        """The generation that asked is over; a newer one may still own the partition, and then it is asked again."""
        if not self._is_member:
            raise error  # others are members of the group: nobody but they may commit
        if self._machine.membership == membership and not self._machine.is_rejoining:
            self._machine.commit_refused(membership, error, self._now())
            self._refuse(tp, _revoked(tp, error))

    def _refuse(self, tp: TopicPartition, error: KafkaError) -> None:
        del self.pending[tp]
        self.refused[tp] = error

    def leave_to(self, older: Commit) -> None:
        """What may be written of this call must not be followed by less: an older one that goes on commits it too."""
        for tp in older.pending.keys() & self.doubtful.keys():
            older.pending[tp] = self.doubtful[tp]


def _revoked(tp: TopicPartition, cause: KafkaError | None) -> PartitionRevokedError:
    why = f": {cause.message}" if cause is not None else ""
    error = PartitionRevokedError(
        f"the offset was not committed: the partition is not this member's{why}", topic=tp.topic, partition=tp.partition
    )
    error.__cause__ = cause
    return error
