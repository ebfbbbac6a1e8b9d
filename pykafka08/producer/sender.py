"""Performs what the producer's machine says, and tells it what came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from pykafka08.cluster.client import Client, Purpose
from pykafka08.cluster.metadata import Snapshot
from pykafka08.driver import Driver, Waiter, library_logger
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, RemoteProtocolError, broker_error
from pykafka08.producer.actions import (
    Action,
    AskIdentity,
    BatchFailed,
    CheckCreation,
    IdempotenceOff,
    RecordsStalled,
    RefreshMetadata,
    RoomFreed,
    Send,
    UseTopics,
)
from pykafka08.producer.batch import Batch
from pykafka08.producer.failures import broker_name
from pykafka08.producer.machine import ProducerMachine
from pykafka08.producer.reactions import Outcome
from pykafka08.producer.request import Encoding, ProduceV1, build_request, new_leaders, read_response
from pykafka08.producer.room import Room
from pykafka08.producer.sequences import NO_IDENTITY, Identity
from pykafka08.producer.transactions.actions import TransactionAction
from pykafka08.producer.transactions.transactor import Transactor
from pykafka08.protocol.messages.create_topics import CreateTopicsResponse
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from pykafka08.protocol.messages.produce import ProduceRequest
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.scratch import keep_freed_pages

__all__ = ["Sender"]

log = library_logger("producer")

IDENTITY_S = 5.0
"""A broker that has given no producer id by then is passed over: any other one will do."""

NO_TRANSACTION_MS = 2**31 - 1
"""What Kafka's own clients send as the time-out of transactions that they do not begin."""


class Sender:
    """The driver of one producer: machine, client and room; ``now`` is the event loop's clock."""

    def __init__(
        self, machine: ProducerMachine, client: Client, room: Room, encoding: Encoding, now: Callable[[], float]
    ) -> None:
        self._machine = machine
        self._machine.refusals = client.refusals
        self._client = client
        self._encoding = encoding
        self._log = log.bind(**client.facts)
        self._now = now
        self._timeout = client.config.request_timeout_ms / 1000
        self._driver: Driver[Action] = Driver(machine, self._perform)
        self._perform_of: dict[type, Callable[[Any], object]] = {
            Send: self._send,
            RoomFreed: lambda _: room.grant(),
            UseTopics: self._use_topics,
            CheckCreation: self._check_creation,
            RefreshMetadata: self._refresh_metadata,
            AskIdentity: self._ask_identity,
            IdempotenceOff: lambda action: self._log.warning("producer.idempotence_off", cause=str(action.error)),
            BatchFailed: self._warn_of_failure,
            RecordsStalled: self._warn_of_trouble,
        }
        """By the kind of action; all others are the transactor's."""
        self.transactor: Transactor | None = None
        """Of a transactional producer."""

    async def run(self) -> None:
        keep_freed_pages()
        self._client.on_metadata(self._metadata_changed)
        self._client.on_refusal(self._refused)
        self._metadata_changed(self._client.metadata)
        await self._driver.run()

    def wake(self) -> None:
        """The machine was told something: poll it."""
        self._machine.wants_poll = False
        self._driver.wake()

    def wake_if_wanted(self) -> None:
        """Records were added: poll the machine if it has something to do about them."""
        if self._machine.wants_poll:
            self.wake()

    def close(self, error: KafkaError) -> None:
        """Fail all records that are left."""
        for action in self._machine.close(error):
            self._perform(action)

    def _metadata_changed(self, snapshot: Snapshot) -> None:
        self._machine.metadata_changed(snapshot, self._now())
        self.wake()

    def _refused(self, error: KafkaError) -> None:
        self._machine.metadata_refused(error)
        self.wake()

    def _perform(self, action: Action) -> None:
        perform = self._perform_of.get(type(action))
        if perform is not None:
            perform(action)
        else:
            assert self.transactor is not None
            self.transactor.perform(cast("TransactionAction", action))

    def _use_topics(self, action: UseTopics) -> None:
        self._log.debug("producer.use_topics", names=action.names)
        self._client.use_topics(action.names)

    def _check_creation(self, action: CheckCreation) -> None:
        self._log.debug("producer.check_creation", topic=action.topic)
        waiter = self._client.submit_creation_check(action.topic, timeout=self._timeout)
        waiter.add_done_callback(lambda ended: self._creation_checked(action.topic, ended))

    def _creation_checked(self, topic: str, ended: Waiter[CreateTopicsResponse]) -> None:
        refusal = self._client.creation_refusal(topic, ended)
        if refusal is not None:
            self._machine.topic_refused(topic, refusal)
            self.wake()

    def _refresh_metadata(self, action: RefreshMetadata) -> None:
        self._log.debug("producer.refresh_metadata", generation=action.generation)
        self._client.invalidate(action.generation)

    def _warn_of_trouble(self, action: RecordsStalled) -> None:
        error = action.error
        facts = {"topic": error.topic, "partition": error.partition, "seconds": action.seconds}
        self._log.warning("partitions.in_trouble", **facts, error=str(error))

    def _warn_of_failure(self, action: BatchFailed) -> None:
        self._log.warning(
            "producer.batch_failed",
            topic=action.topic,
            partition=action.partition,
            records=action.records,
            cause=str(action.error),
        )

    def _send(self, send: Send) -> None:
        self._log.debug("producer.send", node_id=send.node_id, batches=len(send.batches))
        made: list[ProduceRequest] = []

        def make(versions: BrokerVersions) -> ProduceRequest:
            metadata = self._client.metadata
            is_v1 = self.transactor is not None and not self.transactor.machine.is_v2
            kind = ProduceV1 if is_v1 else ProduceRequest
            self._machine.broker_known(send.node_id, versions.pick(kind))
            batches = tuple(send.batches)
            request = build_request(batches, versions, metadata, self._encoding, self._machine, refuse, kind)
            made.append(request)
            return request

        def refuse(batch: Batch, indices: list[int], error: KafkaError) -> Batch | None:
            return self._machine.records_refused(send, batch, indices, error, self._now())

        waiter = self._client.submit(send.node_id, make, timeout=self._timeout, purpose=Purpose.PRODUCE)
        waiter.add_done_callback(lambda ended: self._ended(send, made, ended))

    def _ask_identity(self, ask: AskIdentity) -> None:
        self._log.debug("producer.ask_identity", node_id=ask.node_id)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TRANSACTION_MS)
        waiter = self._client.submit(ask.node_id, request, timeout=min(self._timeout, IDENTITY_S))
        waiter.add_done_callback(lambda ended: self._identity_ended(ask, ended))

    def _identity_ended(self, ask: AskIdentity, ended: Waiter[InitProducerIdResponse]) -> None:
        identity, error = self._read_identity(ask, ended)
        if error is None:
            self._log.debug("producer.identity", producer_id=identity.producer_id, epoch=identity.epoch)
            self._machine.identity_given(identity, self._now())
        else:
            is_invalid = ended.error is None and isinstance(error, RemoteProtocolError)
            write = self._log.warning if is_invalid else self._log.info
            write("producer.no_identity", node_id=ask.node_id, cause=str(error))
            self._machine.identity_failed(error, self._now(), is_invalid=is_invalid)
        self.wake()

    def _read_identity(
        self, ask: AskIdentity, ended: Waiter[InitProducerIdResponse]
    ) -> tuple[Identity, KafkaError | None]:
        """The producer id and epoch in a broker's answer, or NO_IDENTITY and the error."""
        if ended.error is not None:
            assert isinstance(ended.error, KafkaError)
            return NO_IDENTITY, ended.error
        response = ended.result()
        broker, api = broker_name(self._client.metadata, ask.node_id), InitProducerIdRequest.name
        if response.error_code != ErrorCode.NONE:
            return NO_IDENTITY, broker_error(response.error_code, broker=broker, api=api)
        identity = Identity(response.producer_id, response.producer_epoch)
        if identity.is_valid:
            return identity, None
        said = f"the broker's answer gives producer id {identity.producer_id}, epoch {identity.epoch}"
        return NO_IDENTITY, RemoteProtocolError(said, broker=broker, api=api)

    def _ended(self, send: Send, made: list[ProduceRequest], ended: Waiter[Any]) -> None:
        if ended.error is not None:
            assert isinstance(ended.error, KafkaError)
            self._log.info("producer.request_failed", node_id=send.node_id, cause=str(ended.error))
            self._machine.request_failed(send, ended.error, self._now(), was_written=bool(made))
        else:
            response = ended.result()
            if response is None:  # acks=0: written is all that is known
                outcomes: list[Outcome | None] = [Outcome(0)] * len(send.batches)
            else:
                outcomes = read_response(send.batches, made[-1], response, self._encoding)
            self._machine.request_answered(send, outcomes, self._now())
            if any([outcome.code for outcome in outcomes if outcome is not None]):
                news, brokers = new_leaders(made[-1], response)
                if news:
                    self._client.leaders_learned(news, brokers)
        self.wake()
