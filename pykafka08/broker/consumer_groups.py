"""What is checked before a member of the new group protocol acts, and which group it acts in (KIP-848).

Offsets and groups of the classic protocol are ``groups``'; how the two turn into each other is ``group_migration``'s.
Kafka 4.3 takes commits from a member behind its epoch for what it still owns; here they are stale in every release.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pykafka08.broker.consumer_group import ConsumerGroup
from pykafka08.broker.consumer_member import LEFT_FOR_A_WHILE, ConsumerMember, Partitions
from pykafka08.broker.server_assignors import SERVER_ASSIGNORS
from pykafka08.broker.state import Topics
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

__all__ = ["Beaten", "Refusal", "beat", "check_commit", "check_member", "check_request", "leave"]

JOINING = 0
LEAVING = -1
MEMBER_ID_VERSION = 1
"""Up to here the broker names members that have no id."""


class Refusal(Exception):
    """The request is answered with an error."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Beaten(NamedTuple):
    """The answer to a heartbeat; ``assigned`` is None where the member knows."""

    member_id: str
    epoch: int
    assigned: Partitions | None


def check_request(request: ConsumerGroupHeartbeatRequest, version: int) -> None:
    """Refusal of what makes no sense in any group."""
    epoch = request.member_epoch
    needs_id = version >= MEMBER_ID_VERSION or epoch > JOINING or epoch == LEAVING
    topics_told = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    faults = (
        (needs_id and not request.member_id, "the member has no id"),
        (not request.group_id, "the group has no name"),
        (request.instance_id == "", "the instance id is empty"),
        (request.rack_id == "", "the rack id is empty"),
        (epoch < LEFT_FOR_A_WHILE, f"{epoch} is no member epoch"),
        (epoch == LEFT_FOR_A_WHILE and request.instance_id is None, "only static members leave for a while"),
        (epoch == JOINING and request.rebalance_timeout_ms == -1, "who joins tells a rebalance time-out"),
        (epoch == JOINING and request.topic_partitions != [], "who joins owns nothing"),
        (epoch == JOINING and not topics_told, "who joins tells its topics"),
    )
    for is_wrong, why in faults:
        if is_wrong:
            raise Refusal(ErrorCode.INVALID_REQUEST, why)
    if request.server_assignor is not None and request.server_assignor not in SERVER_ASSIGNORS:
        known = ", ".join(SERVER_ASSIGNORS)
        text = f"assignor {request.server_assignor!r} is not supported; there are {known}"
        raise Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, text)


def beat(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, topics: Topics, *, new_id: str, client: Sequence[str]
) -> Beaten:
    """A member joins, or lives; ``client`` is its client id and host.  Refusal if it may not."""
    owned = owned_of(request)
    member = _member_of(group, request, owned, new_id)
    member.client_id, member.client_host = client
    if request.rebalance_timeout_ms >= 0:
        member.rebalance_timeout = request.rebalance_timeout_ms / 1000
    member.rack_id = request.rack_id if request.rack_id is not None else member.rack_id
    member.assignor = request.server_assignor if request.server_assignor is not None else member.assignor
    is_new = member.member_id not in group.members
    has_changed = _subscribe(member, request)
    if is_new:
        group.add(member)
    if has_changed or is_new:
        group.bump()
    group.expect_heartbeat(member)
    told_all = request.rebalance_timeout_ms >= 0 and request.topic_partitions is not None
    told_all = told_all and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
    has_moved = group.settle(member, owned, topics)
    tells = has_moved or told_all or request.member_epoch == JOINING
    return Beaten(member.member_id, member.epoch, member.assigned if tells else None)


def owned_of(request: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    if request.topic_partitions is None:
        return None
    return frozenset((each.topic_id, number) for each in request.topic_partitions for number in each.partitions)


def _member_of(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, owned: Partitions | None, new_id: str
) -> ConsumerMember:
    """Who asks: known, or new if it joins."""
    member_id, instance_id, epoch = request.member_id or new_id, request.instance_id, request.member_epoch
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None and epoch == JOINING:
            return ConsumerMember(member_id, None)
    else:
        member = group.static_member(instance_id)
        if epoch == JOINING:
            return _static_joins(group, member, member_id, instance_id)
        if member is not None and member.member_id != member_id:
            raise Refusal(ErrorCode.FENCED_INSTANCE_ID, f"{instance_id} is member {member.member_id}")
    if member is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of group {group.group_id}")
    _check_epoch(member, epoch, owned)
    return member


def _static_joins(
    group: ConsumerGroup, former: ConsumerMember | None, member_id: str, instance_id: str
) -> ConsumerMember:
    if former is None:
        return ConsumerMember(member_id, instance_id)
    if former.classic is None and former.epoch != LEFT_FOR_A_WHILE:
        raise Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, f"{instance_id} is still member {former.member_id}")
    back = former.replaced_by(member_id)
    group.add(back)
    return back


def _check_epoch(member: ConsumerMember, epoch: int, owned: Partitions | None) -> None:
    if epoch in (JOINING, member.epoch):
        return
    # The answer that bumped the epoch may have been lost.
    is_behind = epoch == member.previous_epoch < member.epoch and owned is not None and owned <= member.assigned
    if not is_behind:
        raise Refusal(ErrorCode.FENCED_MEMBER_EPOCH, f"epoch {epoch} is not {member.epoch}: give all up and join again")


def _subscribe(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> bool:
    """True if it reads other topics than before."""
    before = member.names, member.regex
    regex = request.subscribed_topic_regex
    if regex is not None and regex != member.regex:
        try:
            re.compile(regex)
        except re.error as error:
            text = f"{regex!r} is not a regular expression: {error}"
            raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from error
        member.regex = regex
    if request.subscribed_topic_names is not None:
        member.names = frozenset(request.subscribed_topic_names)
    return before != (member.names, member.regex)


def leave(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> Beaten:
    """A member goes; a static one with epoch -2 keeps its place until its session ends."""
    if request.instance_id is None:
        member = group.members.get(request.member_id)
    else:
        member = group.static_member(request.instance_id)
        if member is not None and member.member_id != request.member_id:
            raise Refusal(ErrorCode.FENCED_INSTANCE_ID, f"{request.instance_id} is member {member.member_id}")
    if member is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"{request.member_id} is not a member of group {group.group_id}")
    if request.member_epoch == LEFT_FOR_A_WHILE:
        member.leave_for_a_while()
    else:
        group.remove(member)
    return Beaten(request.member_id, request.member_epoch, None)


def check_commit(group: ConsumerGroup, member_id: str, epoch: int, *, knows_epochs: bool) -> ErrorCode:
    """May this member, or anybody with epoch -1 where nobody is in the group, commit?"""
    if epoch < 0 and not group.members:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is not None and member.classic is None and not knows_epochs:
        return ErrorCode.UNSUPPORTED_VERSION
    return check_member(group, member_id, epoch)


def check_member(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """Is it one, and at that epoch?"""
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if epoch == member.epoch:
        return ErrorCode.NONE
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
