"""What an answer to a transactional request comes to: the gravest reaction to its codes, and what to tell.  Pure."""

from __future__ import annotations

from pykafka08.acl_operations import REFUSALS
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import BrokerError, KafkaError, ProducerFencedError, TransactionAbortedError, broker_error
from pykafka08.producer.transactions.actions import AddOffsets, Answer, Call, CommitOffsets, FindCoordinator, KeyType
from pykafka08.producer.transactions.reactions import Reaction, may_have_timed_out, reaction_to
from pykafka08.records.record import TopicPartition

__all__ = ["aborted", "judge", "named", "says"]


def judge(call: Call, answer: Answer, transactional_id: str) -> tuple[Reaction, KafkaError | None]:
    """DONE and None, or another reaction and why."""
    codes: list[tuple[int, TopicPartition | None]] = [(answer.code, None)]
    codes += [(code, partition) for partition, code in answer.codes.items()]
    code, partition = max(codes, key=lambda each: reaction_to(call, each[0]))
    reaction = reaction_to(call, code)
    if reaction is Reaction.DONE:
        return reaction, None
    if reaction is Reaction.FENCED:
        return reaction, ProducerFencedError(
            ErrorCode.PRODUCER_FENCED,
            f"another producer has taken the transactional id {transactional_id!r}, "
            "or the transaction took longer than transaction_timeout_ms",
            broker=answer.broker,
            api=call.api,
        )
    topic, index = partition if partition is not None else (None, None)
    text = f"{_meaning(call, code, answer)} ({named(call, transactional_id)})"
    if may_have_timed_out(call, code):  # only the answer to the abort shows whether the producer is fenced
        return reaction, BrokerError(code, text, broker=answer.broker, api=call.api, topic=topic, partition=index)
    error = broker_error(
        code,
        answer.message if code in REFUSALS.values() else text,
        broker=answer.broker,
        api=call.api,
        topic=topic,
        partition=index,
        group=_group_of(call),
        transactional_id=transactional_id,
        needed="WRITE",
    )
    return reaction, error


def _meaning(call: Call, code: int, answer: Answer) -> str:
    if may_have_timed_out(call, code):
        late = "the transaction took longer than transaction_timeout_ms"
        if isinstance(call, CommitOffsets):
            return f"{late}, or another producer has taken the transactional id"
        return f"{late}, and the coordinator has aborted it"
    known = ErrorCode.of(code)
    return answer.message or (known.meaning if isinstance(known, ErrorCode) else "not known to this release")


def named(call: Call, transactional_id: str) -> str:
    """The transactional id of a request, and its group if it has one, for error texts."""
    group_id = _group_of(call)
    text = f"transactional id {transactional_id!r}"
    return text if group_id is None else f"{text}, group {group_id!r}"


def _group_of(call: Call) -> str | None:
    if isinstance(call, AddOffsets):
        return call.group_id
    if isinstance(call, CommitOffsets):
        return call.order.member.group_id
    return call.key if isinstance(call, FindCoordinator) and call.key_type is KeyType.GROUP else None


def says(error: KafkaError, code: ErrorCode) -> bool:
    """It is a broker's, with this code."""
    return getattr(error, "code", None) == code


def aborted(cause: KafkaError) -> TransactionAbortedError:
    """What calls in a transaction that can only be aborted raise."""
    error = TransactionAbortedError(f"the transaction is aborted; the next one can begin: {cause}")
    error.__cause__ = cause
    return error
