"""The state of a transactional producer: which requests its transaction needs next, and what their answers mean.

Pure.  One request at a time is under way.  States and their order are in ``states``, what a code means in
``reactions``.  Sources: KIP-98; KIP-360 (a new epoch of one's own id), KIP-447 (offsets of a group's member), KIP-890
(partitions join by being written to, and each transaction has its own epoch: *v2*).

After an error, and after a request whose answer was lost, the next transaction has a new epoch: a request that is
delayed on its way must not act on it.  Coordinators before 2.5 give one to whoever has the transactional id: they are
asked with EndTxn, which they refuse to all but the newest epoch, whether it is still this producer's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import AuthorizationError, KafkaError, TransactionStateError
from pykafka08.producer.failures import in_doubt
from pykafka08.producer.sequences import Identity
from pykafka08.producer.transactions.actions import (
    AddOffsets,
    AddPartitions,
    Answer,
    Call,
    CommitOffsets,
    EndTransaction,
    FindCoordinator,
    IdentityGiven,
    InitProducer,
    KeyType,
    OffsetsOrder,
    PartitionsAdded,
    StateChanged,
    TransactionAction,
)
from pykafka08.producer.transactions.judgement import aborted, judge, says
from pykafka08.producer.transactions.reactions import UNCLEAR, Reaction, is_fatal_to_transactions, is_indefinite
from pykafka08.producer.transactions.states import TRANSITIONS, TransactionState
from pykafka08.producer.transactions.trouble import TransactionTroubleWatch
from pykafka08.records.record import TopicPartition
from pykafka08.setting_names import AS_ARGUMENTS, SettingNames

__all__ = ["TransactionMachine"]

CONCURRENT_S = 0.02
"""Before it is asked for the first time whether the markers of the transaction before are written by now."""

ENDING = (TransactionState.ABORTING, TransactionState.INITIALIZING)
"""There is nothing left to abort."""


class Sending(Protocol):
    """The producer's machine, as far as the end of a transaction depends on it."""

    @property
    def is_idle(self) -> bool:
        """No batch is in flight."""

    @property
    def has_gaps(self) -> bool:
        """Batches were given up whose numbers a broker may wait for, or have: only a new epoch helps."""


class TransactionMachine:
    """``backoff`` is the pause before the nth further attempt, in seconds."""

    def __init__(
        self, transactional_id: str, backoff: Callable[[int], float], setting_names: SettingNames = AS_ARGUMENTS
    ) -> None:
        self.transactional_id = transactional_id
        self.setting_names = setting_names
        self.state = TransactionState.UNINITIALIZED
        self.identity: Identity | None = None
        self.error: KafkaError | None = None
        """Of ABORTABLE_ERROR and FATAL_ERROR; in ABORTING why it came to that, None if the application wanted it."""
        self.is_v2 = False
        self._is_checked = False
        """The coordinator gives a new epoch to no other than the identity that has the last one."""
        self.coordinator: int | None = None
        self._backoff = backoff
        self._group_coordinators: dict[str, int] = {}
        self._call: Call | None = None
        self._attempts = 0
        self._not_before = 0.0
        self._notices: list[TransactionAction] = []
        self.on_move: Callable[[], None] = lambda: None
        """Called at once when the state is another: before whoever waits for a record hears that it failed."""
        self.last_error: KafkaError | None = None
        """What the last request that failed ended with, for texts."""
        self.trouble = TransactionTroubleWatch(transactional_id)
        self._must_renew = False
        """The next transaction needs a new epoch."""
        self.doubt: KafkaError | None = None
        """FATAL_ERROR, to the block whose commit had no answer; those after it have nothing in doubt."""
        self._forget()

    def _forget(self) -> None:
        """Of the last transaction."""
        self._wanted: dict[TopicPartition, None] = {}
        self._members: set[TopicPartition] = set()
        self._groups: set[str] = set()
        self._orders: deque[OffsetsOrder] = deque()
        self._has_started = False
        """The coordinator may know of the transaction."""
        self._is_doubtful = False
        """It may also know nothing of it: what was to start it has no answer."""
        self._may_be_committed = False
        """A commit has no answer."""
        self._is_owner = False
        """The coordinator has confirmed, just now, that this producer has the newest epoch."""

    def _move(self, state: TransactionState, error: KafkaError | None = None) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state} -> {state}"
        self.state, self.error = state, error
        self._attempts, self._not_before = 0, 0.0
        self._notices.append(StateChanged())
        self.on_move()

    # --- what the application does ------------------------------------------------------------------------------------

    def initialize(self) -> None:
        """Get the first epoch; producers that have the transactional id are fenced by it."""
        self._move(TransactionState.INITIALIZING)

    def begin(self, *, is_v2: bool, is_checked: bool = True) -> None:
        """``is_v2``: the cluster has agreed on KIP-890; ``is_checked``: the coordinator knows KIP-360.

        Raises what :meth:`refusal` says unless READY.
        """
        if self.state is not TransactionState.READY:
            raise self.refusal()
        self._forget()
        self.is_v2, self._is_checked = is_v2, is_checked
        self._move(TransactionState.IN_TRANSACTION)

    def commit(self) -> None:
        """Every batch of the transaction is acknowledged, and every offset taken.  Raises what stands against it."""
        if self.state is not TransactionState.IN_TRANSACTION:
            raise self.refusal()
        self._move(TransactionState.COMMITTING)

    def abort(self) -> None:
        """Only where a transaction is open.  EndTxn waits until no batch is in flight."""
        error = self.error
        self._wanted.clear()
        self._orders.clear()
        self._move(TransactionState.ABORTING, error)
        if error is not None:
            self._must_renew = True

    def offsets_wanted(self, order: OffsetsOrder) -> None:
        """Commit offsets in the transaction."""
        self._check_open()
        self._orders.append(order)

    def offsets_refused(self, error: KafkaError) -> None:
        """What was read is another's to process: nothing that came of it counts."""
        self._spoil(error)

    def _check_open(self) -> None:
        if self.state is not TransactionState.IN_TRANSACTION:
            raise self.refusal()

    def progress(self) -> str:
        """The state of the last request, for error texts."""
        last = f"the last error: {self.last_error}" if self.last_error is not None else "no request has failed"
        if self._call is None:
            return last
        return f"{self._call.api} was sent and has no answer yet; {last}"

    @property
    def has_started(self) -> bool:
        """The coordinator may know of the transaction."""
        return self._has_started

    def refusal(self) -> KafkaError:
        """Why nothing can be written, begun or committed now."""
        if self.error is None:
            return TransactionStateError(
                f"records and offsets go inside of 'async with producer.transaction()': it is {self.state.value}"
            )
        if self.state is TransactionState.FATAL_ERROR or isinstance(self.error, AuthorizationError):
            return self.error.with_traceback(None)
        return aborted(self.error)

    def verdict(self) -> KafkaError:
        """:meth:`refusal` to the block that was open when it came to that."""
        return self.refusal() if self.doubt is None else self.doubt.with_traceback(None)

    # --- what the producer's machine asks and tells -------------------------------------------------------------------

    def admits(self, partition: TopicPartition) -> bool:
        """Records may be sent to the partition now; if not, it is made part of the transaction first."""
        if self.state is not TransactionState.IN_TRANSACTION:
            return False
        if partition in self._members:
            return True
        if not self.is_v2:
            self._wanted[partition] = None
            return False
        self._members.add(partition)
        self._has_started = True
        return True

    def batch_failed(self, error: KafkaError) -> None:
        """A record of the transaction will not be written."""
        if is_fatal_to_transactions(error):
            self._end(error)
        elif self.state in (TransactionState.IN_TRANSACTION, TransactionState.COMMITTING):
            self._spoil(error)

    def _end(self, error: KafkaError) -> None:
        if self.state is not TransactionState.FATAL_ERROR:
            self.trouble.ended()
            self._forget()
            self._move(TransactionState.FATAL_ERROR, error)

    def _spoil(self, error: KafkaError) -> None:
        """The transaction can only be aborted.  Where it is being so, or none is open, the request is repeated."""
        if self._call is None:
            self.trouble.ended()
        if self.state in (TransactionState.IN_TRANSACTION, TransactionState.COMMITTING):
            self._wanted.clear()
            self._orders.clear()
            self._move(TransactionState.ABORTABLE_ERROR, error)

    # --- what to do ---------------------------------------------------------------------------------------------------

    def poll(self, now: float, sending: Sending) -> list[TransactionAction]:
        actions: list[TransactionAction] = []
        if self._call is None and self._not_before <= now:
            self._not_before = 0.0
            self._call = self._next(sending)
            if self._call is not None:
                self.trouble.sent(self._call, now)
                actions.append(self._call)
        notices, self._notices = self._notices, []
        return notices + actions

    def next_wakeup(self) -> float | None:
        return self._not_before if self._call is None and self._not_before else None

    def _next(self, sending: Sending) -> Call | None:
        state = self.state
        if state is TransactionState.INITIALIZING:
            if self.identity is not None and not self._is_checked and not self._is_owner:
                return self._asked(lambda node_id: EndTransaction(node_id, self._own, False, False))
            return self._asked(lambda node_id: InitProducer(node_id, self.identity))
        if state is TransactionState.IN_TRANSACTION:
            return self._next_part()
        is_commit = state is TransactionState.COMMITTING
        if is_commit and self._orders:
            return self._next_part()
        if not is_commit and (state is not TransactionState.ABORTING or not sending.is_idle):
            return None
        self._must_renew |= sending.has_gaps
        if not self._has_started:
            self._ended(None)
            self._is_owner = False  # nobody was asked
            return self._next(sending)
        return self._asked(lambda node_id: EndTransaction(node_id, self._own, is_commit, self.is_v2))

    @property
    def _own(self) -> Identity:
        assert self.identity is not None
        return self.identity

    def _asked(self, call: Callable[[int], Call]) -> Call:
        """The call, if it is known whom to ask."""
        if self.coordinator is None:
            return FindCoordinator(KeyType.TRANSACTION, self.transactional_id)
        return call(self.coordinator)

    def _next_part(self) -> Call | None:
        if self._wanted:
            return self._asked(lambda node_id: AddPartitions(node_id, self._own, tuple(self._wanted)))
        if not self._orders:
            return None
        order = self._orders[0]
        group_id = order.member.group_id
        if not self.is_v2 and group_id not in self._groups:
            return self._asked(lambda node_id: AddOffsets(node_id, self._own, group_id))
        node_id = self._group_coordinators.get(group_id)
        if node_id is None:
            return FindCoordinator(KeyType.GROUP, group_id)
        self._has_started = True  # in v2 by this very call
        return CommitOffsets(node_id, self._own, order, self.is_v2)

    # --- answers ------------------------------------------------------------------------------------------------------

    def answered(self, call: Call, answer: Answer, now: float) -> None:
        """A broker answered the call."""
        self._call = None
        reaction, error = judge(call, answer, self.transactional_id)
        if error is not None:
            self.setting_names.in_error(error)
        if self.state is TransactionState.FATAL_ERROR:
            return
        self._note_parts(call, answer)
        if reaction is Reaction.DONE:
            if self._is_preliminary(call):
                self.trouble.found()
            else:
                self.trouble.ended()
                self._attempts = 0
            self._not_before = 0.0
            self._done(call, answer)
            return
        assert error is not None
        if not UNCLEAR.isdisjoint((answer.code, *answer.codes.values())):
            self._may_be_done(call)
        if isinstance(call, InitProducer):
            self._is_owner = False  # another may get it before it is asked again
        self._react(call, reaction, error, now)

    def failed(self, call: Call, error: KafkaError, now: float, *, was_written: bool = True) -> None:
        """The call ended without an answer; ``was_written`` False: before a byte of it was written."""
        self._call = None
        if self.state is TransactionState.FATAL_ERROR:
            return
        if not is_indefinite(error):
            # Offsets that the broker cannot take do not concern the producer.
            (self._spoil if isinstance(call, CommitOffsets) else self._end)(error)
            return
        if was_written:
            self._answer_lost(call)
        elif isinstance(call, InitProducer):
            self._is_owner = False
        self._react(call, Reaction.FIND, error, now)

    def _is_preliminary(self, call: Call) -> bool:
        """True if the call only prepares another one, whose pauses it must not reset."""
        is_check = isinstance(call, EndTransaction) and self.state is TransactionState.INITIALIZING
        return is_check or isinstance(call, FindCoordinator)

    def answer_invalid(self, call: Call, error: KafkaError) -> None:
        """Take an answer with impossible values; ``error`` names them."""
        self._call = None
        if self.state is TransactionState.FATAL_ERROR:
            return
        self._answer_lost(call)
        if isinstance(call, CommitOffsets) or (isinstance(call, FindCoordinator) and call.key_type is KeyType.GROUP):
            self._spoil(error)  # the group coordinator's answer does not concern the producer
            return
        if self._may_be_committed:
            self.doubt = in_doubt(error)
        self._end(error)

    def _answer_lost(self, call: Call) -> None:
        """The request may have been performed, or be so later."""
        if not isinstance(call, FindCoordinator):
            self._must_renew = True
        self._may_be_done(call)

    def _may_be_done(self, call: Call) -> None:
        """The request may have been performed."""
        if isinstance(call, EndTransaction) and call.is_commit:
            self._may_be_committed = True
        if isinstance(call, (AddPartitions, AddOffsets)) and not self._has_started:
            self._has_started = self._is_doubtful = True

    def _note_parts(self, call: Call, answer: Answer) -> None:
        """What has been done of a call for several partitions."""
        good = {partition for partition, code in answer.codes.items() if not code}
        if isinstance(call, AddPartitions) and good:
            self._has_started, self._is_doubtful = True, False
            for partition in good:
                self._wanted.pop(partition, None)
            self._members |= good
            self._notices.append(PartitionsAdded())
        elif isinstance(call, CommitOffsets):
            for partition in good:
                call.order.left.pop(partition, None)

    def _done(self, call: Call, answer: Answer) -> None:
        if isinstance(call, FindCoordinator):
            if call.key_type is KeyType.TRANSACTION:
                self.coordinator = answer.node_id
            else:
                self._group_coordinators[call.key] = answer.node_id
        elif isinstance(call, InitProducer):
            self._identify(answer.identity)
            self._must_renew = False
            self._move(TransactionState.READY)
        elif isinstance(call, AddOffsets):
            self._has_started, self._is_doubtful = True, False
            self._groups.add(call.group_id)
        elif isinstance(call, CommitOffsets):
            if self._orders and self._orders[0] is call.order and call.order.is_done:
                self._orders.popleft()
                self._notices.append(StateChanged())
        elif isinstance(call, EndTransaction):
            # With KIP-890 each end changes the epoch: if the answer has no epoch, InitProducerId must ask for it.
            self._must_renew |= call.is_v2 and answer.identity is None
            self._ended(answer.identity)

    def _identify(self, identity: Identity | None) -> None:
        assert identity is not None
        self.identity = identity
        self._notices.append(IdentityGiven(identity))

    def _ended(self, identity: Identity | None) -> None:
        """The transaction is over; ``identity`` is the one that its end gave (v2)."""
        if identity is not None:
            self._identify(identity)
            self._must_renew = False
        self.trouble.ended()
        self._forget()
        self._is_owner = True
        if self.state is not TransactionState.INITIALIZING:
            self._move(TransactionState.INITIALIZING if self._must_renew else TransactionState.READY)

    def _react(self, call: Call, reaction: Reaction, error: KafkaError, now: float) -> None:
        """To anything but DONE."""
        self.last_error = error
        is_abort = isinstance(call, EndTransaction) and not call.is_commit
        may_be_nothing = is_abort and (self._is_doubtful or self.state is TransactionState.INITIALIZING)
        if reaction is Reaction.FATAL and may_be_nothing and says(error, ErrorCode.INVALID_TXN_STATE):
            self._ended(None)  # there was nothing to abort
        elif self._may_be_committed and reaction > Reaction.FIND:
            self.doubt = in_doubt(error)  # not aborted for sure: that is not to be said of it
            self._end(error)
        elif reaction in (Reaction.FENCED, Reaction.FATAL):
            self._end(error)
        elif reaction is Reaction.FORGOTTEN:
            self._must_renew = True
            if is_abort:
                self._ended(None)
            else:
                self._is_doubtful = True  # whoever says so need not be the coordinator, which may have it open
                self._spoil(error)
        elif reaction is Reaction.ABORT and self.state not in ENDING:
            self._spoil(error)
        else:
            self.trouble.failed(call, error)
            if reaction is Reaction.FIND:
                self._forget_coordinator(call)
            self._attempts += 1
            pause = self._backoff(self._attempts)
            if says(error, ErrorCode.CONCURRENT_TRANSACTIONS):
                pause = min(pause, CONCURRENT_S * self._attempts)
            self._not_before = now + pause

    def _forget_coordinator(self, call: Call) -> None:
        if isinstance(call, CommitOffsets):
            self._group_coordinators.pop(call.order.member.group_id, None)
        elif not isinstance(call, FindCoordinator):
            self.coordinator = None
