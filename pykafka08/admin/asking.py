"""Who is asked for what an administrator wants, until a deadline: any broker, the controller, a group's coordinator."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

import anyio

from pykafka08.acl_operations import REFUSALS
from pykafka08.backoff import Backoff
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, build
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    BrokerError,
    ClosedError,
    ConfigError,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    SecurityError,
    TransportError,
    UnknownTopicError,
    UnsupportedVersionError,
    broker_error,
)
from pykafka08.errors.deadline import at_deadline, refusal_of
from pykafka08.group.machine import GroupMachine
from pykafka08.group.offsets import GroupOffsets
from pykafka08.group.settings import GroupConfig
from pykafka08.protocol.messages.alter_configs import AlterConfigsRequest
from pykafka08.protocol.messages.create_partitions import CreatePartitionsRequest
from pykafka08.protocol.messages.create_topics import CreateTopicsRequest
from pykafka08.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka08.protocol.messages.delete_topics import DeleteTopicsRequest
from pykafka08.protocol.messages.describe_configs import DescribeConfigsRequest
from pykafka08.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka08.protocol.messages.list_groups import ListGroupsRequest
from pykafka08.protocol.messages.offset_fetch import OffsetFetchRequest
from pykafka08.protocol.schema import Request
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.security.settings import protect
from pykafka08.short_names import shortened

__all__ = ["MOVED", "Asking", "check_code", "only", "refusals"]

T = TypeVar("T")

_SINCE: dict[type[Request[Any]], tuple[str, str]] = {
    CreateTopicsRequest: ("creating topics", "0.10.1"),
    DeleteTopicsRequest: ("deleting topics", "0.10.1"),
    CreatePartitionsRequest: ("adding partitions", "1.0"),
    ListGroupsRequest: ("listing groups", "0.9"),
    DescribeGroupsRequest: ("describing groups", "0.9"),
    DeleteGroupsRequest: ("deleting groups", "1.1"),
    OffsetFetchRequest: ("listing all offsets of a group", "0.10.2"),
    DescribeConfigsRequest: ("describing settings", "0.11"),
    AlterConfigsRequest: ("altering settings", "0.11"),
}
"""What an API is for, and the first release whose brokers have it."""

_BY_ZOOKEEPER = (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    CreatePartitionsRequest,
    DescribeConfigsRequest,
    AlterConfigsRequest,
)

MOVED = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class Asking:
    """An open client and its deadlines; what is asked for is in ``admin``."""

    def __init__(self, bootstrap_servers: str | Iterable[str], **settings: Any) -> None:
        protect(settings)
        (self._config,) = build({"bootstrap_servers": bootstrap_servers, **settings}, ClientConfig)
        self._client: Client | None = None

    async def _enter(self) -> None:
        if self._client is not None:
            raise ClosedError("an admin cannot be reused; create a new one")
        self._client = Client(self._config, allow_auto_topic_creation=False)
        await self._client.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections and end all background tasks; leaving the block does it.  Any task may call it."""
        if self._client is not None:
            await self._client.aclose()

    # --- who is asked -----------------------------------------------------------------------------------------------

    def _open(self) -> Client:
        if self._client is None:
            raise ClosedError("use the admin with 'async with'")
        self._client.tasks.check()
        return self._client

    def _seconds(self, timeout: float | None) -> float:
        if timeout is not None and timeout < 0:
            raise ConfigError(f"timeout={timeout!r} is below 0")
        return self._config.default_api_timeout_ms / 1000 if timeout is None else timeout

    def _outsider(self, group_id: str) -> GroupOffsets:
        config = GroupConfig(group_id=group_id)
        return GroupOffsets(self._open(), config, GroupMachine(config, self._backoff()), lambda: None, needed=None)

    def _backoff(self) -> Backoff:
        return Backoff(self._config.retry_backoff_ms / 1000, self._config.retry_backoff_max_ms / 1000, random.random)

    async def _controller(self, left: float) -> int:
        """Any broker before 0.10, which do not say who it is and have nothing to be asked of it."""
        client = self._open()
        snapshot = client.metadata
        if snapshot.controller_id is None:
            snapshot = await client.refresh(timeout=left)
        known = [snapshot.controller_id] if snapshot.controller_id is not None else sorted(snapshot.brokers)
        if not known:
            raise TransportError("the cluster's metadata names no broker")
        return known[0]

    async def _check_live(self, node_id: int, left: float) -> None:
        """TransportError for a broker that is not in new metadata either."""
        client = self._open()
        if node_id in client.metadata.brokers:
            return
        brokers = (await client.refresh(timeout=left)).brokers
        if node_id not in brokers:
            live = ", ".join(map(str, sorted(brokers)))
            raise TransportError(f"broker {node_id} is not in the cluster's metadata; the live brokers are {live}")

    async def _coordinator(self, group_id: str, kind: type[Request[Any]], left: float) -> int:
        try:
            return (await self._outsider(group_id).find_coordinator(timeout=left)).node_id
        except UnsupportedVersionError as error:
            raise _too_old(kind, error) from error

    async def _ask(self, node_id: int | None, kind: type[Request[Any]], message: Any, left: float) -> Any:
        """The answer of that broker, or any; an API that it lacks is told by what it is for."""
        client = self._open()
        try:
            if node_id is None:
                return await client.request_any(message, timeout=left)
            most = min(left, self._config.request_timeout_ms / 1000)
            return await client.request(node_id, message, timeout=most)
        except UnsupportedVersionError as error:
            raise _too_old(kind, error) from error

    async def _ask_controller(
        self,
        kind: type[Request[Any]],
        call: Callable[[BrokerVersions], Request[Any]],
        seconds: float,
        codes: Callable[[Any], list[int]],
    ) -> tuple[Any, str | None]:
        """The controller's answer, and the controller's name."""

        async def once(left: float) -> tuple[Any, str | None]:
            node_id = await self._controller(left)
            answer = await self._ask(node_id, kind, call, left)
            if ErrorCode.NOT_CONTROLLER in codes(answer):
                raise broker_error(ErrorCode.NOT_CONTROLLER, api=kind.name, broker=self._name(node_id))
            return answer, self._name(node_id)

        return await self._retried(seconds, once)

    def _name(self, node_id: int | None) -> str | None:
        """The broker's name for errors; None if the request was sent to any broker."""
        broker = self._open().metadata.brokers.get(node_id) if node_id is not None else None
        return broker.name if broker is not None else None

    async def _retried(self, seconds: float, once: Callable[[float], Awaitable[T]]) -> T:
        """``await once(seconds_left)`` until it raises nothing that another attempt may mend, or time is up.

        The error is the SecurityError then, if one of the attempts was refused for the credentials or certificates.
        """
        client = self._open()
        backoff = self._backoff()
        deadline = anyio.current_time() + seconds
        refusal: SecurityError | None = None
        while True:
            try:
                return await once(max(0.0, deadline - anyio.current_time()))
            except UnknownTopicError:
                raise
            except BrokerError as error:
                if not error.is_retriable:
                    raise
                cause: KafkaError = error
                refusal = None
            except (TransportError, RequestTimeoutError) as error:
                cause = error
                refusal = refusal_of(error) or refusal
            pause = backoff.failed()
            if anyio.current_time() + pause >= deadline:
                raise at_deadline(cause, refusal)
            if not isinstance(cause, BrokerError) or cause.code in MOVED:
                client.invalidate(client.metadata.generation)
            await anyio.sleep(pause)


def check_code(
    code: int,
    message: str | None,
    api: str,
    *,
    topic: str | None = None,
    group: str | None = None,
    broker: str | None = None,
) -> None:
    """BrokerError for an error code."""
    if not code:
        return
    if group is not None and code not in REFUSALS.values():
        known = ErrorCode.of(code)
        said = message or (known.meaning if isinstance(known, ErrorCode) else "not known to this release")
        message = f"group {shortened(group)!r}: {said}"
    raise broker_error(code, message, api=api, topic=topic, broker=broker, group=group)


def only(entries: Iterable[T], name_of: Callable[[T], str | None], name: str, api: str, broker: str | None) -> T:
    """The only entry of an answer for ``name``; RemoteProtocolError if it is missing or repeated."""
    found = [each for each in entries if name_of(each) == name]
    if len(found) != 1:
        said = "leaves it out" if not found else f"has it {len(found)} times"
        raise RemoteProtocolError(
            f"{shortened(name)!r} was asked for, and the broker's answer {said}", api=api, broker=broker
        )
    return found[0]


def refusals(
    asked: Iterable[str], told: Iterable[tuple[str | None, int, str | None]], api: str, broker: str | None
) -> dict[str, KafkaError]:
    """Errors of the requested topics; the outcome of a topic that the answer leaves out is unknown."""
    codes = {name: (code, message) for name, code, message in told}
    found: dict[str, KafkaError] = {}
    for name in asked:
        if name not in codes:
            text = "the broker's answer leaves the topic out"
            found[name] = RemoteProtocolError(text, api=api, topic=name, broker=broker)
        elif codes[name][0]:
            found[name] = broker_error(*codes[name], api=api, topic=name, broker=broker)
    return found


def _too_old(kind: type[Request[Any]], error: UnsupportedVersionError) -> UnsupportedVersionError:
    what, release = _SINCE.get(kind, (kind.name, ""))
    if not release:
        return error
    instead = "; the command pykafka08 zk does it through ZooKeeper" if kind in _BY_ZOOKEEPER else ""
    return UnsupportedVersionError(
        f"{what} needs brokers of Kafka {release} or later{instead}: {error.message}",
        broker=error.broker,
        api=kind.name,
    )
