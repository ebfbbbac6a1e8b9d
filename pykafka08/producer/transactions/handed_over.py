"""A transaction that one process has filled and another ends: what passes between them, and how it is ended.

The producer that filled it may be gone by then: to end a transaction takes its transactional id, producer id and epoch,
and no more (KIP-98).  Until then it stays open, for ``transaction_timeout_ms`` at most, and readers with
``read_committed`` wait before it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio

from pykafka08.backoff import pause_after
from pykafka08.clock import clock
from pykafka08.cluster.client import Client
from pykafka08.driver import LibraryLogger, library_logger
from pykafka08.errors import KafkaError, RemoteProtocolError, RequestTimeoutError
from pykafka08.errors.deadline import at_deadline
from pykafka08.producer.failures import broker_name
from pykafka08.producer.sequences import Identity
from pykafka08.producer.transactions.actions import EndTransaction, FindCoordinator
from pykafka08.producer.transactions.machine import TransactionMachine
from pykafka08.producer.transactions.requests import TransactionRequests
from pykafka08.producer.transactions.states import TransactionState
from pykafka08.protocol.schema import Request
from pykafka08.protocol.versions import BrokerVersions

__all__ = ["OpenTransaction", "end_transaction"]

log = library_logger("producer")

ENDING = (TransactionState.COMMITTING, TransactionState.ABORTING)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """All of it is in the brokers' logs, and it has no end yet.  It can be pickled."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_v2: bool
    """The cluster has agreed on KIP-890: the end gives the producer another epoch."""


class _TakenOver(TransactionMachine):
    """Knows of the transaction what is needed to end it."""

    def __init__(self, transaction: OpenTransaction, backoff: Callable[[int], float]) -> None:
        super().__init__(transaction.transactional_id, backoff)
        self.identity = Identity(transaction.producer_id, transaction.epoch)
        self.is_v2 = transaction.is_v2
        self.state = TransactionState.IN_TRANSACTION
        self._has_started = True


class _NothingSent:
    """What the machine asks of a producer: whoever ends the transaction has sent nothing of it."""

    is_idle = True
    has_gaps = False


async def end_transaction(client: Client, transaction: OpenTransaction, *, is_commit: bool, timeout: float) -> None:
    """Commit or abort it, with retries for ``timeout`` seconds; to commit once more, after a lost answer, is no error.

    ProducerFencedError where a newer producer has its transactional id, which has aborted it.  Where the coordinator
    has aborted it after ``transaction_timeout_ms``: TransactionAbortedError if the cluster has agreed on KIP-890, else
    ProducerFencedError.  Another BrokerError where the coordinator knows of no such transaction;
    RequestTimeoutError at the end of ``timeout``, and then it may have ended as wanted.
    """
    now = clock()
    config = client.config
    first, most = config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000
    jitter = random.random
    machine = _TakenOver(transaction, lambda attempts: pause_after(attempts, first, most, jitter()))
    (machine.commit if is_commit else machine.abort)()
    requests = TransactionRequests(transaction.transactional_id, 0)
    with anyio.move_on_after(timeout) as scope:
        while machine.state in ENDING:
            for action in machine.poll(now(), _NothingSent()):
                if isinstance(action, (FindCoordinator, EndTransaction)):
                    await _ask(client, machine, requests, action)
            pause = (machine.next_wakeup() or 0) - now()
            if machine.state in ENDING and pause > 0:
                await anyio.sleep(pause)
    if scope.cancelled_caught:
        late = RequestTimeoutError(
            f"transactional id {transaction.transactional_id!r}: no end was confirmed within {timeout:g} s; "
            f"{machine.progress()}"
        )
        late.__cause__ = machine.last_error
        raise at_deadline(late, client.refusal(None if machine.coordinator is None else [machine.coordinator]))
    if machine.state in (TransactionState.FATAL_ERROR, TransactionState.ABORTABLE_ERROR):
        raise machine.verdict()
    _log_of(client, transaction.transactional_id).info("transaction.ended_for_another", committed=is_commit)


async def _ask(
    client: Client, machine: TransactionMachine, requests: TransactionRequests, call: FindCoordinator | EndTransaction
) -> None:
    now = clock()
    make = requests.make(call)
    made = []

    def noted(versions: BrokerVersions) -> Request[Any]:
        made.append(make(versions))
        return made[-1]

    try:
        if isinstance(call, FindCoordinator):
            node_id, response = await client.ask_any(noted)
        else:
            node_id = call.node_id
            response = await client.request(node_id, noted, timeout=client.config.request_timeout_ms / 1000)
    except KafkaError as error:
        _log_of(client, machine.transactional_id).info("transaction.request_failed", api=call.api, cause=str(error))
        machine.failed(call, error, now(), was_written=bool(made))
    else:
        try:
            answer = requests.read(call, response, broker_name(client.metadata, node_id))
        except RemoteProtocolError as error:
            machine.answer_invalid(call, error)
        else:
            machine.answered(call, answer, now())


def _log_of(client: Client, transactional_id: str) -> LibraryLogger:
    return log.bind(**{**client.facts, "transactional_id": transactional_id})
