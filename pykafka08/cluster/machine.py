"""When to ask for metadata, and whom: bootstrap, age, invalidation, new topics, backoff.  Pure; times are seconds.

Here: the newest snapshot and the plan for the next.  Not here: connections (``client``), what a snapshot means
(``metadata``).

    A *refresh* is one question, put to one broker; if that broker is slow, to a second one as well; if it fails, to the
    next one.  The first good answer ends the refresh and makes the next snapshot; later answers are dropped.
    A *round* is over when every candidate has failed, or when one has refused the credentials.  Candidates are the
    brokers of the snapshot, those first that answered last, then the bootstrap addresses.  At the first round's end the
    bootstrap has failed; later rounds are repeated with backoff for as long as the client lives.  After the first
    snapshot a round does not wait for brokers that hang: once nobody else is left to ask, the others are asked again,
    with the same backoff.

    Why a refresh is due       When
    never had one              at once
    invalidated                at once, or one backoff after the last refresh, which grows while nothing has changed
    topics missing             at once for new ones, then with backoff while they, or their leaders, are missing
    a leader's broker is gone  with backoff while a partition in use is led by a broker that cannot be reached
    age                        ``metadata_max_age`` after the last
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pykafka08.backoff import Backoff
from pykafka08.cluster.metadata import Broker, LeaderNews, Snapshot
from pykafka08.config import Address, ClientConfig
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    AuthenticationError,
    BrokerError,
    KafkaError,
    NoBrokersError,
    RemoteProtocolError,
    RequestTimeoutError,
    ResponseTooLargeError,
    SecurityError,
    UnknownTopicError,
    broker_error,
)
from pykafka08.protocol.messages.metadata import MetadataResponse
from pykafka08.short_names import address_text

__all__ = ["UNSOLVABLE", "Ask", "ClusterMachine"]

SLOW_ANSWER = 1.0
"""A broker that has not answered for so long is not waited for alone: it may be paused, or cut off."""

TROUBLE_BACKOFF_MAX = 0.4
"""Longest pause between refreshes while records cannot flow, so that a new leader is found soon."""

UNREACHABLE_FOR = 10.0
"""How long a failed connect counts as news about a broker, if nobody tries again."""

LASTING = (ResponseTooLargeError, SecurityError)
"""Errors of a broker that asking again will not mend."""

UNSOLVABLE = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})
"""Topic errors that asking again will not mend."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Send Metadata to ``node_id`` for ``topics`` (None: all) and report with ``attempt``."""

    attempt: int
    node_id: int
    topics: tuple[str, ...] | None


class ClusterMachine:
    """The state of one client's view of its cluster; ``jitter`` is a source of numbers in 0 to 1."""

    def __init__(self, config: ClientConfig, jitter: Callable[[], float], now: float) -> None:
        self.snapshot = Snapshot(0, fetched_at=now)
        self.seeds: tuple[Broker, ...] = ()
        self.seeds_changed(config.bootstrap_servers)
        self.bootstrap_error: KafkaError | None = None
        self._jitter = jitter
        self._max_age = config.metadata_max_age_ms / 1000
        self._topics: set[str] = set()
        self._uses_all = False
        self._is_new_topic = False
        self._is_invalid = False
        self._unreachable: dict[int, float] = {}
        self._answered_last: int | None = None
        self._last_error: BaseException | None = None
        self._refused: KafkaError | None = None
        self._lasting_error: KafkaError | None = None
        self._asked: dict[int, Ask] = {}
        self._hedge_at = 0.0
        self._attempts = 0
        self._tried: set[int] = set()
        self._causes: dict[str, BaseException] = {}
        most = min(config.retry_backoff_max_ms / 1000, TROUBLE_BACKOFF_MAX)
        self._trouble = Backoff(config.retry_backoff_ms / 1000, most, jitter)
        self._vain = Backoff(config.retry_backoff_ms / 1000, most, jitter)
        self._rounds = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000, jitter)
        self._not_before = now

    def seeds_changed(self, addresses: Sequence[Address]) -> None:
        """Bootstrap addresses from now on, where others know better than the configuration."""
        self.seeds = tuple(Broker(-1 - index, *address) for index, address in enumerate(addresses))

    # --- questions --------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> frozenset[str]:
        """The topics in use."""
        return frozenset(self._topics)

    def broker(self, node_id: int) -> Broker | None:
        """The broker of that id; negative ids are bootstrap addresses."""
        if node_id >= 0:
            return self.snapshot.brokers.get(node_id)
        return self.seeds[-1 - node_id] if -1 - node_id < len(self.seeds) else None

    def candidates(self) -> list[int]:
        """Brokers to ask something that any broker can answer: the likeliest first, the bootstrap addresses last."""
        brokers = self.snapshot.brokers
        known = [node_id for node_id in brokers if node_id >= 0]
        known.sort(key=lambda each: (each in self._unreachable, each != self._answered_last, self._jitter()))
        addresses = {(brokers[node_id].host, brokers[node_id].port) for node_id in known}
        seeds = [seed.node_id for seed in self.seeds if (seed.host, seed.port) not in addresses]
        seeds.sort(key=lambda each: (each != self._answered_last, self._jitter()))
        return known + seeds

    def is_found(self, topic: str, needed: str | None = None) -> bool:
        """True if the topic has partitions; raises if it never will, which ``needed`` on the topic may change."""
        code = self.snapshot.topic_error(topic)
        if code in UNSOLVABLE:
            raise broker_error(code, topic=topic, api="Metadata", needed=needed)
        return not code and bool(self.snapshot.partitions(topic))

    def missing_topic(self, name: str, error: RequestTimeoutError) -> KafkaError:
        """The error of a topic that was not found before a deadline, which ended in ``error``."""
        if not self._uses_all and name not in self.snapshot.topics:
            return RequestTimeoutError(f"no usable answer about the topic: {error}", topic=name)
        code = self.snapshot.topic_error(name) or ErrorCode.LEADER_NOT_AVAILABLE
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            # Kafka 0.10.1 to 0.11 say the same of a topic that the user may not DESCRIBE
            return UnknownTopicError(code, "the cluster has no such topic, or the user may not DESCRIBE it", topic=name)
        return UnknownTopicError(code, "the topic has no partitions yet", topic=name)

    def last_failure(self) -> str:
        """Why the last question was not answered, for an error's text."""
        return f"the last broker asked: {self._last_error}" if self._last_error else "no broker has refused"

    # --- inputs -----------------------------------------------------------------------------------------------------

    def use_topics(self, names: Iterable[str]) -> None:
        new = set(names) - self._topics
        self._topics |= new
        if any(name not in self.snapshot.topics for name in new):
            self._is_new_topic = True

    def use_all_topics(self) -> None:
        if not self._uses_all:
            self._uses_all = self._is_new_topic = True

    def drop_topics(self, names: Iterable[str]) -> None:
        self._topics -= set(names)

    def invalidate(self, generation: int) -> None:
        """What was learnt from that snapshot is wrong.  Older generations are known to be: nothing happens."""
        if generation >= self.snapshot.generation:
            self._is_invalid = True

    def leaders_learned(self, news: Iterable[LeaderNews], brokers: Iterable[Broker]) -> bool:
        """True if it made a new snapshot, which a refresh will complete."""
        before, self.snapshot = self.snapshot, self.snapshot.with_leaders(news, brokers)
        self._is_invalid = self._is_invalid or self.snapshot is not before
        return self.snapshot is not before

    def broker_reachable(self, node_id: int) -> None:
        """A connection to it is ready."""
        self._unreachable.pop(node_id, None)

    def broker_unreachable(self, node_id: int, now: float) -> None:
        """A connection to it could not be made: somebody else may lead its partitions soon."""
        if node_id in self.snapshot.brokers:
            self._unreachable[node_id] = now + UNREACHABLE_FOR
            self._is_invalid = True

    def metadata_received(self, attempt: int, response: MetadataResponse, now: float) -> bool:
        """True if it made a new snapshot."""
        ask = self._asked.get(attempt)
        if ask is None:
            return False
        try:
            if response.error_code:
                raise broker_error(response.error_code, api="Metadata")
            snapshot = self.snapshot.next(
                response,
                now=now,
                wanted=lambda name: self._uses_all or name in self._topics,
                spare_brokers=self.seeds,
            )
        except (BrokerError, RemoteProtocolError) as error:
            asked = self.broker(ask.node_id)
            error.broker = asked.name if asked is not None else None
            self._refused = error
            self.metadata_failed(attempt, error, now)
            return False
        is_unchanged = self._is_invalid and _is_same_cluster(self.snapshot, snapshot)
        self._is_new_topic = self._is_new_topic and not self._covers(ask)
        self._is_invalid = False
        self._asked.clear()
        self._end_round()
        self._answered_last = ask.node_id
        self._last_error = self._lasting_error = None
        self.snapshot = snapshot
        self._unreachable = {each: until for each, until in self._unreachable.items() if each in self.snapshot.brokers}
        if self._is_in_trouble(now):
            self._not_before = now + self._trouble.failed()
        else:
            self._trouble.succeeded()
            self._not_before = now + (self._vain.failed() if is_unchanged else self._trouble.pause())
        if not is_unchanged:
            self._vain.succeeded()
        return True

    def take_refused(self) -> KafkaError | None:
        """The reason why the last answer gave no snapshot, returned once; None if the answer was late."""
        refused, self._refused = self._refused, None
        return refused

    def take_lasting_error(self) -> KafkaError | None:
        """The error of a round in which every broker failed, returned once, if no retry can help."""
        error, self._lasting_error = self._lasting_error, None
        return error

    def metadata_failed(self, attempt: int, error: BaseException, now: float) -> None:
        """The broker did not answer; the next one is asked at the next poll."""
        ask = self._asked.pop(attempt, None)
        if ask is None:
            return
        self._last_error = error
        broker = self.broker(ask.node_id)
        if broker is not None:
            self._causes[address_text(broker.host, broker.port)] = error
        self._hedge_at = now
        # All brokers check the same credentials: the others would refuse them too.
        is_refused = isinstance(error, AuthenticationError) and error.mechanism is not None
        if is_refused or (not self._asked and self._next_candidate() is None):
            self._round_failed(now)

    # --- outputs ----------------------------------------------------------------------------------------------------

    def poll(self, now: float) -> list[Ask]:
        if self._asked:
            if now < self._hedge_at:
                return []
        elif not self._is_due(now):
            return []
        node_id = self._next_candidate()
        self._hedge_at = now + SLOW_ANSWER
        if node_id is None:
            self._leave_hanging(now)
            return []
        self._attempts += 1
        topics = None if self._uses_all else tuple(sorted(self._topics))
        ask = self._asked[self._attempts] = Ask(self._attempts, node_id, topics)
        self._tried.add(node_id)
        return [ask]

    def next_wakeup(self) -> float | None:
        if self._asked:
            return self._hedge_at
        if self._is_urgent():
            return self._not_before
        wakes = [self.snapshot.fetched_at + self._max_age]
        return max(self._not_before, min([*wakes, *self._unreachable.values()]))

    # --- inside -----------------------------------------------------------------------------------------------------

    def _is_due(self, now: float) -> bool:
        if self._is_new_topic and self.snapshot.generation and not self._rounds.failures:
            return True
        if now < self._not_before:
            return False
        return self._is_urgent() or self._is_in_trouble(now) or now >= self.snapshot.fetched_at + self._max_age

    def _is_urgent(self) -> bool:
        """True if the next refresh waits for nothing but the backoff."""
        return (
            not self.snapshot.generation
            or bool(self._tried)
            or self._is_invalid
            or self._is_new_topic
            or bool(self._trouble.failures)
        )

    def _is_in_trouble(self, now: float) -> bool:
        """True if records of a topic in use cannot flow, and asking again may change that."""
        for node_id in [each for each, until in self._unreachable.items() if until <= now]:
            del self._unreachable[node_id]
        snapshot = self.snapshot
        for name in snapshot.topics if self._uses_all else self._topics:
            topic = snapshot.topics.get(name)
            if topic is None or topic.error:
                if topic is None or topic.error not in UNSOLVABLE:
                    return True
                continue
            leaders = {each.leader for each in topic.partitions.values()}
            if not leaders or not leaders <= snapshot.brokers.keys() or leaders & self._unreachable.keys():
                return True
        return False

    def _covers(self, ask: Ask) -> bool:
        """True if a question asked for all that is in use now."""
        return ask.topics is None or (not self._uses_all and self._topics <= set(ask.topics))

    def _next_candidate(self) -> int | None:
        return next((node_id for node_id in self.candidates() if node_id not in self._tried), None)

    def bootstrap_failure(self, still_open: Mapping[str, BaseException] = MappingProxyType({})) -> KafkaError:
        """The error of a bootstrap that has come to nothing: the SecurityError of an address, or NoBrokersError.

        ``still_open`` has the errors of addresses that have not failed yet.
        """
        causes = {**still_open, **self._causes}
        refused = next((each for each in causes.values() if isinstance(each, SecurityError)), None)
        if refused is not None:
            return refused
        said = "; ".join(_cause_of(name, cause) for name, cause in causes.items())
        return NoBrokersError(f"no bootstrap address answered as a Kafka broker: {said}", causes)

    def _round_failed(self, now: float) -> None:
        lasting = (each for each in self._causes.values() if isinstance(each, LASTING))
        self._lasting_error = next(lasting, None)
        if not self.snapshot.generation:
            self.bootstrap_error = self.bootstrap_failure()
        self._asked.clear()
        self._tried.clear()
        self._causes.clear()
        self._not_before = now + self._rounds.failed()
        self._is_invalid = True

    def _leave_hanging(self, now: float) -> None:
        """All were asked and some hang: begin a round without these.  A bootstrap fails once, so that it waits."""
        hanging = {ask.node_id for ask in self._asked.values()}
        if self.snapshot.generation and not hanging.issuperset(self.candidates()):
            self._tried = hanging
            self._hedge_at = now + self._rounds.failed()

    def _end_round(self) -> None:
        self._tried.clear()
        self._causes.clear()
        self._rounds.succeeded()


def _is_same_cluster(one: Snapshot, other: Snapshot) -> bool:
    """True if two snapshots differ only in their age."""
    return one.topics == other.topics and one.brokers == other.brokers and one.controller_id == other.controller_id


def _cause_of(address: str, cause: BaseException) -> str:
    """The cause, with the address if its text does not name it yet."""
    if isinstance(cause, KafkaError) and address in cause.message:
        return cause.message
    text = str(cause)
    return text if address in text else f"{address}: {text}"
