"""Checks of the fields of Fetch, ListOffsets and OffsetForLeaderEpoch answers that change a consumer's state.  Pure.

Each function returns the fault as the text of a RemoteProtocolError, or None.
"""

from __future__ import annotations

from pykafka08.consumer.actions import EpochAsk, EpochEnd, FetchAsk, FetchedPartition, ListedOffset
from pykafka08.consumer.partition import EARLIEST, LATEST

__all__ = ["LEFT_OUT", "epoch_fault", "fetch_fault", "listing_fault", "session_fault"]

LEFT_OUT = "the answer leaves the partition out"
NONE = -1


def fetch_fault(answer: FetchedPartition, ask: FetchAsk, node_id: int) -> str | None:
    """The fault in broker ``node_id``'s answer for one partition without an error code."""
    if answer.end_offset < NONE:
        return f"the high watermark or last stable offset is {answer.end_offset}"
    if answer.preferred_replica < NONE or answer.preferred_replica == node_id:
        return f"broker {node_id} names {answer.preferred_replica} as the replica to read from"
    for aborted in answer.aborted:
        if aborted.first_offset < 0 or aborted.producer_id < 0:
            return f"an aborted transaction has producer id {aborted.producer_id}, first offset {aborted.first_offset}"
    return None if answer.diverging is None else _diverging_fault(answer.diverging, ask)


def _diverging_fault(diverging: EpochEnd, ask: FetchAsk) -> str | None:
    epoch, end_offset = diverging
    is_unasked = ask.last_epoch < 0 or end_offset < 0
    if is_unasked or not 0 <= epoch <= ask.last_epoch or (epoch == ask.last_epoch and end_offset >= ask.offset):
        return (
            f"the log is said to diverge at offset {end_offset} of leader epoch {epoch}, "
            f"where offset {ask.offset} was asked for after leader epoch {ask.last_epoch}"
        )
    return None


def session_fault(asked: int, answered: int) -> str | None:
    """The fault of the session id in a Fetch answer; ``asked`` is 0 for a new session."""
    if answered < 0 or (asked > 0 and answered not in (0, asked)):
        return f"the answer to a fetch of session {asked} is of session {answered}"
    return None


def listing_fault(answer: ListedOffset, timestamp: int) -> str | None:
    """The fault of the offset for a timestamp; -1 means that no record is that late, and is no end of a log."""
    if answer.offset < (0 if timestamp in (LATEST, EARLIEST) else NONE):
        return f"the offset of timestamp {timestamp} is {answer.offset}"
    return None


def epoch_fault(end: EpochEnd, ask: EpochAsk) -> str | None:
    """The fault of a leader epoch's end; the leader answers -1 and -1 for an epoch older than its log."""
    if end.end_offset < NONE or not NONE <= end.leader_epoch <= ask.last_epoch:
        return f"leader epoch {ask.last_epoch} is said to end at offset {end.end_offset} of epoch {end.leader_epoch}"
    return None
