"""What an answer to a transactional request comes to: the gravest reaction to its codes, and what to tell.  Pure."""

from __future__ import annotations

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, ProducerFencedError, TransactionAbortedError, broker_error
from pykafka08.producer.transactions.actions import Answer, Call
from pykafka08.producer.transactions.reactions import Reaction, reaction_to
from pykafka08.records.record import TopicPartition

__all__ = ["aborted", "judge", "says"]


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
            api=call.api,
        )
    topic, index = partition if partition is not None else (None, None)
    return reaction, broker_error(code, answer.message, api=call.api, topic=topic, partition=index)


def says(error: KafkaError, code: ErrorCode) -> bool:
    """It is a broker's, with this code."""
    return getattr(error, "code", None) == code


def aborted(cause: KafkaError) -> TransactionAbortedError:
    """What calls in a transaction that can only be aborted raise."""
    error = TransactionAbortedError(f"the transaction is aborted; the next one can begin: {cause}")
    error.__cause__ = cause
    return error
