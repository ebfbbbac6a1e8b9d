"""The block that applications write in: ``async with producer.transaction()``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType

import anyio

from pykafka08.cluster.client import Client
from pykafka08.config import ProducerConfig
from pykafka08.driver import Waiter, library_logger
from pykafka08.errors import (
    ClosedError,
    ConfigError,
    KafkaError,
    PartitionRevokedError,
    RequestTimeoutError,
    SecurityError,
    TransactionStateError,
)
from pykafka08.group.metadata import GroupMetadata, OffsetSource
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.producer.machine import ProducerMachine
from pykafka08.producer.sender import Sender
from pykafka08.producer.transactions.handed_over import OpenTransaction
from pykafka08.producer.transactions.requests import TransactionRequests
from pykafka08.producer.transactions.sending import TransactionalSending
from pykafka08.producer.transactions.states import TransactionState
from pykafka08.producer.transactions.transactor import Transactor
from pykafka08.records.record import TopicPartition

__all__ = ["TransactionBlock", "Transactions"]

log = library_logger("producer")

GRACE_S = 5.0
"""How long a cancelled block waits for its abort."""


class Transactions:
    """The blocks of one producer, one at a time.

    ``flush`` waits until every record has ended; ``check`` raises unless the producer is open; ``on_change`` is called
    when :attr:`accepts` may be another.
    """

    def __init__(
        self,
        machine: ProducerMachine,
        config: ProducerConfig,
        flush: Callable[[], Awaitable[None]],
        check: Callable[[], None],
        on_change: Callable[[], None],
    ) -> None:
        self._machine = machine if isinstance(machine, TransactionalSending) else None
        self._config = config
        self._log = log
        self._flush = flush
        self._check = check
        self._on_change = on_change
        self._max_block = config.max_block_ms / 1000
        self._now: Callable[[], float]
        self._transactor: Transactor
        self._is_open = False
        self._is_ending = False
        self._is_handed_over = False
        self._at_end: list[Callable[[bool], None]] = []
        """Told whether the transaction was committed."""
        self._block_end: Waiter[None] = Waiter()
        self._closed: ClosedError | None = None

    @property
    def state(self) -> TransactionState | None:
        """None for a producer without transactions."""
        return self._transactor.machine.state if self._machine is not None else None

    async def open(self, client: Client, sender: Sender, now: Callable[[], float]) -> None:
        """Fence the producers that had the transactional id before; nothing, if there is none."""
        machine, transactional_id = self._machine, self._config.transactional_id
        if machine is None or transactional_id is None:
            return
        self._now = now
        self._log = log.bind(**client.facts)
        requests = TransactionRequests(transactional_id, self._config.transaction_timeout_ms)
        self._transactor = sender.transactor = Transactor(machine, client, requests, now, sender.wake)
        machine.transactions.on_move = self._on_change
        await self._transactor.initialize(self.until)

    def block(self) -> TransactionBlock:
        self._check()
        if self._machine is None:
            setting = self._config.setting_names["transactional_id"]
            raise TransactionStateError(f"give the producer a {setting} to write in transactions")
        return TransactionBlock(self)

    @property
    def accepts(self) -> bool:
        """Records may be written."""
        return (
            self._is_open and not self._is_ending and self._transactor.machine.state is TransactionState.IN_TRANSACTION
        )

    def refusal(self) -> KafkaError:
        """Why they may not."""
        return self._transactor.machine.refusal()

    @property
    def until(self) -> float:
        """When a call that begins now gives up."""
        return self._now() + self._max_block

    async def begin(self) -> None:
        if self._is_open:
            raise TransactionStateError("a transaction is open already: one producer has one at a time")
        self._is_open = True
        try:
            await self._transactor.begin(self.until)
        except BaseException:
            self._is_open = False
            raise
        self._is_ending = False
        self._block_end = Waiter()
        self._on_change()

    async def commit(self) -> None:
        if self._is_handed_over:
            return
        self._is_ending = True
        self._on_change()
        try:
            if self._closed is not None:
                raise self._closed
            await self._flush()
            await self._transactor.commit(self.until)
            self._tell(is_committed=True)
        except BaseException as error:
            await self._abort(error)
            raise
        finally:
            self._ended()

    async def hand_over(self) -> OpenTransaction:
        """Everything in the transaction is acknowledged: leave its end to whoever gets this."""
        self.block()
        machine = self._transactor.machine
        if not self.accepts:
            raise machine.refusal()
        self._is_ending = True
        self._on_change()
        await self._flush()
        if machine.state is not TransactionState.IN_TRANSACTION:
            self._is_ending = False  # it is aborted as its block ends
            raise machine.refusal()
        if not machine.has_started or machine.identity is None:
            self._is_ending = False
            raise TransactionStateError("there is nothing in the transaction that another process could end")
        self._is_handed_over = True
        self._ended()
        return OpenTransaction(machine.transactional_id, *machine.identity, machine.is_v2)

    async def abort(self, cause: BaseException) -> None:
        """``cause`` is raised by the caller afterwards."""
        if self._is_handed_over:
            return
        self._is_ending = True
        self._on_change()
        try:
            await self._abort(cause)
        finally:
            self._ended()

    def _ended(self) -> None:
        self._is_open = False
        self._block_end.set_result(None)
        self._tell(is_committed=False)

    def _tell(self, *, is_committed: bool) -> None:
        listeners, self._at_end = self._at_end, []
        for listener in listeners:
            listener(is_committed)

    async def _abort(self, cause: BaseException) -> None:
        machine = self._transactor.machine
        is_cancelled = not isinstance(cause, Exception)
        until = self._now() + min(GRACE_S, self._max_block) if is_cancelled else self.until
        with anyio.CancelScope(shield=is_cancelled):
            try:
                if machine.state is TransactionState.COMMITTING:
                    # Whether it was committed will be known later: the next transaction waits for that.
                    await self._transactor.settle(until if is_cancelled else self._now())
                else:
                    await self._transactor.abort(until)
            except (RequestTimeoutError, SecurityError) as late:
                self._log.warning("transaction.unsettled", cause=str(late))
            except KafkaError as failure:
                self._log.warning("transaction.abort_failed", cause=str(failure))
        if machine.state is TransactionState.FATAL_ERROR and isinstance(cause, KafkaError):
            fatal = machine.verdict()
            if fatal is not cause:
                raise fatal from cause

    async def send_offsets(
        self, source: OffsetSource | Mapping[TopicPartition, int | OffsetAndMetadata], group_id: str | None
    ) -> None:
        """Make them part of the transaction, within ``max_block_ms``."""
        self.block()
        try:
            member, offsets = _offsets_to_send(source, group_id)
        except PartitionRevokedError as error:
            self._transactor.machine.offsets_refused(error)
            raise
        if self._is_open and not isinstance(source, Mapping):
            self._at_end.append(source.offsets_sent(offsets))
        await self._transactor.commit_offsets(member, offsets, self.until)

    async def drain(self, seconds: float) -> None:
        """The producer is to be closed: end the transaction, if there is one, and every record."""
        if self._is_open and not self._is_ending:
            await self._abandon(seconds)
        await self._flush()
        await self._settle(seconds)

    async def _abandon(self, seconds: float) -> None:
        """Abort the transaction, whose block is still open."""
        self._closed = ClosedError("the producer was closed in the midst of the transaction, which was aborted")
        self._is_ending = True
        self._on_change()
        try:
            await self._transactor.abort(self._now() + seconds)
        except KafkaError as error:
            self._log.warning("transaction.abort_failed", cause=str(error))

    async def _settle(self, seconds: float) -> None:
        """Wait for the end of what is under way; the cluster ends it later all the same."""
        if self._machine is None or self._transactor.machine.state is TransactionState.INITIALIZING:
            return
        with anyio.move_on_after(seconds):
            if self._closed is None and self._is_open:
                await self._block_end
        try:
            await self._transactor.settle(self._now() + seconds)
        except KafkaError as error:
            self._log.warning("transaction.unsettled", cause=str(error))

    def fail(self, error: ClosedError) -> None:
        """The producer is closed: nobody waits any more."""
        self._closed = self._closed or error
        if self._machine is not None:
            self._transactor.fail(self._closed)


def _offsets_to_send(
    source: OffsetSource | Mapping[TopicPartition, int | OffsetAndMetadata], group_id: str | None
) -> tuple[GroupMetadata, Mapping[TopicPartition, OffsetAndMetadata]]:
    """For whom, and what; ConfigError where that is not said."""
    if not isinstance(source, Mapping):
        if group_id is not None:
            raise ConfigError("a consumer knows its group: give no group_id with it")
        return source.group_offsets()
    if not group_id:
        raise ConfigError("committed offsets need a consumer group: give a group_id with them")
    return GroupMetadata(group_id), {
        tp: each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(each) for tp, each in source.items()
    }


class TransactionBlock:
    """What ``producer.transaction()`` gives: enter it once."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    async def __aenter__(self) -> None:
        await self._transactions.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self._transactions.commit()
        else:
            await self._transactions.abort(error)
