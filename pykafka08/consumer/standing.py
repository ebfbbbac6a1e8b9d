"""A fetch that is made again and again, with nothing looked at but what has changed.  Pure.

Who reads thousands of partitions of which few have news cannot look at all of them for each answer.  While every
partition of a broker takes part in its fetches and nothing is wrong with any, the next fetch follows from the last one
and from the partitions that were answered.  Whatever else happens (``Assignment.is_shaken``) ends that, and ``plan``
looks at everything again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka08.consumer.actions import FetchAsk, SendFetch
from pykafka08.consumer.chunk import Answer, Chunk
from pykafka08.consumer.partition import PartitionState
from pykafka08.records.record import TopicPartition

__all__ = ["Standing", "fetch_ask", "is_as_asked", "is_at_rest"]


class Standing:
    """What one broker is asked, in the order of the fetch; ``until`` is when a replica's lease ends.

    ``buffered`` are the partitions of which something may be unread.
    """

    __slots__ = ("_renewed", "asks", "buffered", "fetch", "has_landed", "until")

    def __init__(self, fetch: SendFetch, buffered: Iterable[PartitionState], until: float) -> None:
        self.asks = {ask.tp: ask for ask in fetch.asks}
        self.buffered = dict.fromkeys(buffered)
        self.fetch = fetch
        self.has_landed = False
        self.until = until
        self._renewed: dict[TopicPartition, PartitionState] = {}

    def answered(
        self, partitions: Iterable[TopicPartition], states: Mapping[TopicPartition, PartitionState]
    ) -> list[FetchAsk]:
        """These were named by an answer: the next fetch asks of them what their states say then.  What was asked."""
        asks = [self.asks[tp] for tp in partitions if tp in self.asks]
        for ask in asks:
            self._renewed[ask.tp] = states[ask.tp]
            self.buffered[states[ask.tp]] = None
        return asks

    def is_kept(self, full_at: int) -> bool:
        """All partitions take part in the next fetch, too; ``full_at`` are bytes from which on one would not."""
        for state in list(self.buffered):
            if not state.buffer:
                del self.buffered[state]
            elif state.buffered_bytes > full_at:
                return False
        return True

    def unread(self) -> set[Answer]:
        """Answers of which something is unread."""
        return {chunk.answer for state in self.buffered for chunk in state.buffer if isinstance(chunk, Chunk)}

    def next_fetch(self, max_bytes: int, max_wait: float) -> SendFetch:
        """The same again, with those renewed that were answered: they come last, as all that had their turn."""
        renewed = []
        for tp, state in self._renewed.items():
            state.is_in_flight = True
            ask = fetch_ask(state)
            if ask != self.asks[tp]:
                del self.asks[tp]
                self.asks[tp] = ask
                renewed.append(ask)
        self._renewed.clear()
        self.has_landed = False
        self.fetch = SendFetch(self.fetch.node_id, tuple(self.asks.values()), max_bytes, max_wait, tuple(renewed))
        return self.fetch

    def end(self, states: Mapping[TopicPartition, PartitionState]) -> None:
        """Its partitions are to be looked at one by one: none is in flight, if the fetch has landed."""
        if self.has_landed:
            for ask in self.asks.values():
                state = states.get(ask.tp)
                if state is not None and state.epoch == ask.epoch:
                    state.is_in_flight = False


def fetch_ask(state: PartitionState) -> FetchAsk:
    """What is asked of a partition that has a position."""
    assert state.fetch_offset is not None
    last_epoch = -1 if state.doubted_in is not None else state.fetch_epoch
    return FetchAsk(
        state.tp, state.fetch_offset, state.max_bytes, state.epoch, state.leader_epoch, state.topic_id, last_epoch
    )


def is_as_asked(state: PartitionState, ask: FetchAsk | None) -> bool:
    """The same would be asked now of a partition in flight: what could be another without another epoch is not."""
    return (
        ask is not None
        and state.epoch == ask.epoch
        and state.leader_epoch == ask.leader_epoch
        and state.topic_id == ask.topic_id
        and (state.doubted_in is None or ask.last_epoch == -1)
    )


def is_at_rest(state: PartitionState, now: float) -> bool:
    """It is not to be read, and nothing is under way for it."""
    is_busy = state.is_in_flight or state.is_halted or state.is_being_located or state.retry_at > now
    return state.is_quiet and not is_busy
