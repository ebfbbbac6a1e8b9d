"""Sends what the machine of the classic protocol says, and tells it the answers.

JoinGroup and SyncGroup are held by the broker, and everything behind them on their connection too: they have one of
their own, so that heartbeats, commits and metadata go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pykafka08.cluster.client import Client, Purpose
from pykafka08.cluster.metadata import Snapshot
from pykafka08.driver import Waiter, clock, library_logger
from pykafka08.errors import AuthorizationError, KafkaError, TransportError, UnsupportedVersionError, broker_error
from pykafka08.group.actions import HangUp, Heartbeat, Join, Leave, Look, Sync
from pykafka08.group.held import LOOK_SECONDS, Sight
from pykafka08.group.machine import GroupMachine
from pykafka08.group.reactions import Api
from pykafka08.group.requests import JoinCall, MemberCalls, left_code
from pykafka08.group.settings import GroupConfig
from pykafka08.protocol.messages.describe_groups import DescribeGroupsResponse

__all__ = ["LEAVE_SECONDS", "ClassicExchange", "connection_to_leave_on", "when_ended"]

log = library_logger("group")

LEAVE_SECONDS = 2.0
"""Time-out of one LeaveGroup request; short, because the group may get another coordinator during the close."""
JOIN_MARGIN = 5.0
"""What the broker may need beyond the rebalance time-out to answer JoinGroup."""


def connection_to_leave_on(client: Client, node_id: int) -> Purpose:
    """A connection on which the coordinator handles a request at once.

    A commit is answered when replicas have copied it, which takes seconds after one of them has failed, and JoinGroup
    may be held: LeaveGroup behind either may not be performed before the close is over.
    """
    for purpose in (Purpose.CONTROL, Purpose.MEMBERSHIP):
        if not client.is_busy(node_id, purpose):
            return purpose
    client.hang_up(node_id, Purpose.MEMBERSHIP, TransportError("the member leaves its group"))
    return Purpose.MEMBERSHIP


def when_ended(
    waiter: Waiter[Any], answered: Callable[[Any], None], failed: Callable[[KafkaError], None], wake: Callable[[], None]
) -> None:
    """Call one of the two at the end of a request, and wake the machine's driver."""

    def ended(_: Waiter[Any]) -> None:
        if waiter.error is None:
            answered(waiter.result())
        elif isinstance(waiter.error, KafkaError):
            failed(waiter.error)
        else:
            raise waiter.error  # a fault in the library
        wake()

    waiter.add_done_callback(ended)


class ClassicExchange:
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup of one member; ``perform_of`` has who performs which action."""

    def __init__(self, client: Client, config: GroupConfig, machine: GroupMachine, wake: Callable[[], None]) -> None:
        self._client = client
        self._config = config
        self._log = log.bind(**{**client.facts, "group_id": config.group_id})
        self._machine = machine
        self._wake = wake
        self._calls = MemberCalls(config)
        self._now = clock()
        self.perform_of: Mapping[type, Callable[[Any], object]] = {
            Join: self._join,
            Sync: self._sync,
            Heartbeat: self._heartbeat,
            Leave: self._leave,
            Look: self._look,
            HangUp: self._hang_up,
        }

    def metadata_changed(self, snapshot: Snapshot) -> None:
        """Members lead in turn, and a leader knows the partitions of each topic."""
        self._machine.metadata_changed({name: len(topic.partitions) for name, topic in snapshot.topics.items()})

    @property
    def _request_timeout(self) -> float:
        return self._client.config.request_timeout_ms / 1000

    def _join(self, action: Join) -> None:
        self._log.info("group.join", reason=action.reason)
        call = JoinCall(self._config, action)
        timeout = max(self._request_timeout, self._config.max_poll_interval_ms / 1000 + JOIN_MARGIN)
        waiter = self._client.submit(action.node_id, call, timeout=timeout, purpose=Purpose.MEMBERSHIP)

        def answered(response: Any) -> None:
            timeout, is_v0 = call.session_timeout, call.is_v0
            self._machine.joined(action.attempt, response, self._now(), session_timeout=timeout, is_v0=is_v0)

        self._when_ended(waiter, action.attempt, Api.JOIN_GROUP, answered)

    def _sync(self, action: Sync) -> None:
        # The leader may be as slow as a rebalance allows.
        timeout = max(self._request_timeout, self._config.max_poll_interval_ms / 1000 + JOIN_MARGIN)
        message = self._calls.sync(action)
        waiter = self._client.submit(action.node_id, message, timeout=timeout, purpose=Purpose.MEMBERSHIP)
        self._when_ended(
            waiter, action.attempt, Api.SYNC_GROUP, lambda r: self._machine.synced(action.attempt, r, self._now())
        )

    def _heartbeat(self, action: Heartbeat) -> None:
        waiter = self._client.submit(action.node_id, self._calls.heartbeat(action), timeout=self._request_timeout)
        self._when_ended(
            waiter,
            action.attempt,
            Api.HEARTBEAT,
            lambda r: self._machine.heartbeat_answered(action.attempt, r.error_code, self._now()),
        )

    def _leave(self, action: Leave) -> None:
        call = partial(self._calls.leave, action)
        timeout = min(LEAVE_SECONDS, self._request_timeout)
        purpose = connection_to_leave_on(self._client, action.node_id)
        waiter = self._client.submit(action.node_id, call, timeout=timeout, purpose=purpose)
        self._when_ended(
            waiter,
            action.attempt,
            Api.LEAVE_GROUP,
            lambda r: self._machine.left(action.attempt, left_code(r), self._now()),
        )

    def _look(self, action: Look) -> None:
        """On the connection of heartbeats and commits, which are not held."""
        machine = self._machine
        waiter = self._client.submit(action.node_id, self._calls.look(), timeout=LOOK_SECONDS)

        def answered(response: DescribeGroupsResponse) -> None:
            group = next((each for each in response.groups if each.group_id == self._config.group_id), None)
            if group is None:
                machine.looked(action.attempt, None, self._now())
            elif group.error_code and isinstance(broker_error(group.error_code), AuthorizationError):
                machine.look_refused(action.attempt)
            else:
                members = frozenset(each.member_id for each in group.members)
                machine.looked(action.attempt, Sight(group.group_state, members), self._now())

        def failed(error: KafkaError) -> None:
            if isinstance(error, UnsupportedVersionError):
                machine.look_refused(action.attempt)
            else:
                machine.looked(action.attempt, None, self._now())

        when_ended(waiter, answered, failed, self._wake)

    def _hang_up(self, action: HangUp) -> None:
        text = "the answer is lost: the group is in no state to hold it back; the member joins again"
        error = TransportError(text, api=action.api)
        self._client.hang_up(action.node_id, Purpose.MEMBERSHIP, error)
        self._machine.request_failed(action.attempt, Api(action.api), error, self._now())
        self._wake()

    def _when_ended(self, waiter: Waiter[Any], attempt: int, api: Api, answered: Callable[[Any], None]) -> None:
        def failed(error: KafkaError) -> None:
            self._machine.request_failed(attempt, api, error, self._now())

        when_ended(waiter, answered, failed, self._wake)
