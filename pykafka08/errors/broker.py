"""What a broker answers: an error code as an exception."""

from __future__ import annotations

from pykafka08.acl_operations import CLUSTER_NAME, OPERATIONS, REFUSALS, AclOperation, AclResourceType
from pykafka08.error_codes import ErrorCode
from pykafka08.errors.root import KafkaError
from pykafka08.short_names import shortened

__all__ = [
    "AuthorizationError",
    "BrokerError",
    "OffsetOutOfRangeError",
    "ProducerFencedError",
    "UnknownTopicError",
    "broker_error",
]


class BrokerError(KafkaError):
    """A broker answered with an error code.

    ``code`` is an :class:`ErrorCode`, or the bare number where it is not in the table.
    """

    def __init__(
        self,
        code: int,
        message: str | None = None,
        *,
        broker: str | None = None,
        api: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
    ) -> None:
        self.code = ErrorCode.of(code)
        if isinstance(self.code, ErrorCode):
            text = f"{self.code.name} ({int(self.code)}): {message or self.code.meaning}"
        else:
            text = f"error code {code}: {message or 'not known to this release of pykafka08'}"
        super().__init__(text, broker=broker, api=api, topic=topic, partition=partition, offset=offset)

    @property
    def is_retriable(self) -> bool:
        """True if the same request may succeed later."""
        return isinstance(self.code, ErrorCode) and self.code.is_retriable


class UnknownTopicError(BrokerError):
    """The cluster does not have the topic, or the client may not see it."""


class OffsetOutOfRangeError(BrokerError):
    """The asked offset is not, or no longer, in the log."""


class AuthorizationError(BrokerError):
    """An access control list does not let the user do something; trying again does not change that.

    ``resource_type`` is one of "topic", "group", "cluster", "transactional id" and "delegation token".
    ``resource_name`` is the name of the resource, None if the broker does not tell it.  ``operation`` is the operation
    that was refused, as in Kafka's tools ("READ", "WRITE", ...), None if it is unknown.  The text says which ACL to
    add: a client that reads needs READ, and one that writes WRITE, which include DESCRIBE.
    """

    def __init__(
        self,
        code: int,
        message: str | None = None,
        *,
        broker: str | None = None,
        api: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        operation: str | None = None,
        needed: str | None = None,
    ) -> None:
        super().__init__(code, message, broker=broker, api=api, topic=topic, partition=partition, offset=offset)
        kind = _TYPE_OF_CODE[code]
        if operation is None and kind in OPERATIONS.get(api or "", {}):
            operation = OPERATIONS[api or ""][kind].name
        names = {
            AclResourceType.TOPIC: topic,
            AclResourceType.GROUP: group,
            AclResourceType.CLUSTER: CLUSTER_NAME,
            AclResourceType.TRANSACTIONAL_ID: transactional_id,
        }
        self.group = group
        self.resource_type = kind.name.lower().replace("_", " ")
        self.resource_name = names.get(kind)
        self.operation = operation
        resource = "on the cluster" if kind is AclResourceType.CLUSTER else f"a {self.resource_type}"
        if self.resource_name is not None and kind is not AclResourceType.CLUSTER:
            resource = f"{self.resource_type} {shortened(self.resource_name)!r}"
        name = self.code.name if isinstance(self.code, ErrorCode) else "error code"
        text = f"the user may not {operation or 'use'} {resource}: {name} ({code})"
        advice = "add an ACL that allows it"
        if needed is not None and operation == AclOperation.DESCRIBE.name:
            advice = f"add an ACL for {needed}, which includes DESCRIBE"
            if kind is AclResourceType.TOPIC and needed == AclOperation.WRITE.name:
                advice += ", and for CREATE if the topic does not exist"
        self.args = (f"{text}{f': {message}' if message else ''}; {advice}",)


class ProducerFencedError(BrokerError):
    """Another producer has taken the transactional id, or the transaction took longer than its time-out.

    Nothing can be written with this producer any more.
    """


_CLASS_OF_CODE: dict[int, type[BrokerError]] = {
    ErrorCode.OFFSET_OUT_OF_RANGE: OffsetOutOfRangeError,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicError,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopicError,
    ErrorCode.PRODUCER_FENCED: ProducerFencedError,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: AuthorizationError,
}


_TYPE_OF_CODE = {int(code): kind for kind, code in REFUSALS.items()}


def broker_error(
    code: int,
    message: str | None = None,
    *,
    broker: str | None = None,
    api: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
    group: str | None = None,
    transactional_id: str | None = None,
    needed: str | None = None,
) -> BrokerError:
    """The exception for ``code``: a subclass of BrokerError if applications need to catch it.

    ``group`` and ``transactional_id`` are those of the request, of which an AuthorizationError may name one.
    ``needed`` is "READ" or "WRITE" if the client needs that operation on the resource and the request only DESCRIBE.
    """
    kind = _CLASS_OF_CODE.get(code, BrokerError)
    if kind is AuthorizationError:
        return AuthorizationError(
            code,
            message,
            broker=broker,
            api=api,
            topic=topic,
            partition=partition,
            offset=offset,
            group=group,
            transactional_id=transactional_id,
            needed=needed,
        )
    error = kind(code, message, broker=broker, api=api, topic=topic, partition=partition, offset=offset)
    error.group = group
    return error
