"""Performs what the machine of transactions says, and lets applications wait for its states."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from pykafka08.cluster.client import Client
from pykafka08.driver import Waiter, library_logger
from pykafka08.errors import (
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    TransactionAbortedError,
    UnsupportedVersionError,
)
from pykafka08.errors.deadline import at_deadline
from pykafka08.group.metadata import GroupMetadata
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.producer.failures import broker_name, in_doubt
from pykafka08.producer.transactions.actions import (
    Call,
    FindCoordinator,
    IdentityGiven,
    OffsetsOrder,
    PartitionsAdded,
    StateChanged,
    TransactionAction,
    TransactionStalled,
)
from pykafka08.producer.transactions.requests import TransactionRequests, checks_identity
from pykafka08.producer.transactions.sending import TransactionalSending
from pykafka08.producer.transactions.states import TransactionState
from pykafka08.protocol.schema import Request
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition

__all__ = ["Transactor"]

log = library_logger("producer")

FEATURE, V2_LEVEL = "transaction.version", 2
"""What a cluster has agreed on whose brokers all know KIP-890."""

UNSETTLED = (TransactionState.INITIALIZING, TransactionState.COMMITTING, TransactionState.ABORTING)


class Transactor:
    """The driver of a producer's transactions; ``wake`` lets both machines be polled."""

    def __init__(
        self,
        sending: TransactionalSending,
        client: Client,
        requests: TransactionRequests,
        now: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        self.machine = sending.transactions
        self._sending = sending
        self._client = client
        self._log = log.bind(**client.facts)
        self._requests = requests
        self._now = now
        self._wake = wake
        self._news: Waiter[None] = Waiter()
        self._failure: KafkaError | None = None
        client.tasks.on_failure(lambda _: self._tell())

    # --- what the machine says ----------------------------------------------------------------------------------------

    def perform(self, action: TransactionAction) -> None:
        if isinstance(action, StateChanged):
            self._tell()
        elif isinstance(action, IdentityGiven):
            identity = action.identity
            self._log.debug("transaction.identity", producer_id=identity.producer_id, epoch=identity.epoch)
        elif isinstance(action, PartitionsAdded):
            self._sending.gate_opened(self._now())
            self._wake()
        elif isinstance(action, TransactionStalled):
            facts = {"coordinator": action.coordinator, "request": action.api, "seconds": action.seconds}
            self._log.warning("transaction.in_trouble", **facts, error=str(action.error))
        elif isinstance(action, FindCoordinator):
            self._log.debug("transaction.find_coordinator", key=action.key)
            self._client.tasks.start("transaction coordinator look-up", self._find, action)
        else:
            self._ask(action)

    def _tell(self) -> None:
        self._log.debug("transaction.state", state=self.machine.state.name)
        news, self._news = self._news, Waiter()
        news.set_result(None)

    async def _find(self, call: FindCoordinator) -> None:
        """Of any broker."""
        try:
            node_id, response = await self._client.ask_any(self._requests.make(call))
        except KafkaError as error:
            self._failed(call, error)
        else:
            self._answered(call, node_id, response)

    def _ask(self, call: Any) -> None:
        self._log.debug("transaction.ask", api=call.api, node_id=call.node_id)
        timeout = self._client.config.request_timeout_ms / 1000
        make = self._requests.make(call)
        made = []

        def noted(versions: BrokerVersions) -> Request[Any]:
            made.append(make(versions))
            return made[-1]

        def ended(waiter: Waiter[Any]) -> None:
            if waiter.error is None:
                self._answered(call, call.node_id, waiter.result())
            else:
                assert isinstance(waiter.error, KafkaError)
                self._failed(call, waiter.error, was_written=bool(made))

        self._client.submit(call.node_id, noted, timeout=timeout).add_done_callback(ended)

    def _answered(self, call: Call, node_id: int, response: Any) -> None:
        try:
            answer = self._requests.read(call, response, broker_name(self._client.metadata, node_id))
        except RemoteProtocolError as error:
            self._log.warning("transaction.answer_invalid", api=call.api, cause=str(error))
            self.machine.answer_invalid(call, error)
        else:
            self.machine.answered(call, answer, self._now())
        self._wake()

    def _failed(self, call: Call, error: KafkaError, *, was_written: bool = True) -> None:
        self._log.info("transaction.request_failed", api=call.api, cause=str(error))
        self.machine.failed(call, error, self._now(), was_written=was_written)
        self._wake()

    # --- what applications want ---------------------------------------------------------------------------------------

    async def _wait(self, is_over: Callable[[], bool], until: float, what: str) -> None:
        with anyio.CancelScope(deadline=until):
            while True:
                news = self._news
                if is_over():
                    return
                self._client.tasks.check()
                if self._failure is not None:
                    raise self._failure
                await news
        limit = self.machine.setting_names["max_block_ms"]
        late = RequestTimeoutError(
            f"transactional id {self.machine.transactional_id!r}: {what} within {limit}; "
            f"the producer is {self.machine.state.value}; {self.machine.progress()}"
        )
        coordinator = self.machine.coordinator
        refusal = self._client.refusal(None if coordinator is None else [coordinator])
        if refusal is not None:
            raise at_deadline(late, refusal) from late
        raise late from self.machine.last_error

    def fail(self, error: KafkaError) -> None:
        """End all waiting."""
        self._failure = error
        self._tell()

    async def settle(self, until: float) -> None:
        """Return when nothing of an earlier transaction is under way."""
        await self._wait(lambda: self.machine.state not in UNSETTLED, until, "its last transaction had no end")

    async def initialize(self, until: float) -> None:
        """Fence the producers before; raises why that is not possible."""
        self.machine.initialize()
        self._wake()
        await self._wait(lambda: self.machine.state not in UNSETTLED, until, "no epoch was given")
        if self.machine.error is not None:
            raise self.machine.error

    async def begin(self, until: float) -> None:
        """Begin a transaction, when what is left of the last one has ended."""
        await self.settle(until)
        if self.machine.state is TransactionState.ABORTABLE_ERROR:
            await self.abort(until)
            await self.settle(until)
        coordinator = self.machine.coordinator
        versions = self._client.versions_nowait(coordinator) if coordinator is not None else None
        level = versions.features.get(FEATURE, 0) if versions is not None else 0
        is_checked = versions is not None and checks_identity(versions)
        self.machine.begin(is_v2=level >= V2_LEVEL, is_checked=is_checked)
        self._sending.transaction_began()

    async def commit(self, until: float) -> None:
        """All records are acknowledged: commit, or raise why that was not possible.

        An error that ends the wait, and not the transaction, says that it may be committed.
        """
        self.machine.commit()
        self._wake()
        try:
            await self._wait(
                lambda: self.machine.state is not TransactionState.COMMITTING, until, "no end was confirmed"
            )
        except KafkaError as error:
            raise in_doubt(error) from error.__cause__
        if self.machine.error is not None:
            raise self.machine.verdict()

    async def abort(self, until: float) -> None:
        """Fail what is not sent yet, and abort.  Returns when that has ended, or is not needed any more."""
        if self.machine.state in (TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE_ERROR):
            self.machine.abort()
            error = TransactionAbortedError("the transaction was aborted before the record was sent")
            error.__cause__ = self.machine.error
            self._sending.transaction_aborted(error, self._now())
            self._wake()
        await self._wait(lambda: self.machine.state is not TransactionState.ABORTING, until, "no abort was confirmed")

    async def commit_offsets(
        self, member: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], until: float = math.inf
    ) -> None:
        """Make offsets part of the transaction, or raise why it has to be aborted."""
        order = OffsetsOrder(member, dict(offsets))
        if order.is_done:
            return
        self.machine.offsets_wanted(order)
        self._wake()
        open_states = (TransactionState.IN_TRANSACTION, TransactionState.COMMITTING)

        def is_over() -> bool:
            return order.is_done or self.machine.state not in open_states

        await self._wait(is_over, until, "the offsets were not taken")
        if not order.is_done:
            error = self.machine.error
            raise error if isinstance(error, UnsupportedVersionError) else self.machine.refusal()
