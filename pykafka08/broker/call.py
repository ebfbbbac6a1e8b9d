"""One request on its way through a handler, and what a handler may do besides answering."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from pykafka08.acl_operations import (
    CLUSTER_NAME,
    OPERATIONS,
    REFUSALS,
    SUPPORTED_OPERATIONS,
    AclOperation,
    AclResourceType,
)
from pykafka08.broker.authorizer import ANONYMOUS
from pykafka08.broker.cluster_state import ClusterState, Node
from pykafka08.broker.connection_context import ConnectionContext
from pykafka08.broker.endpoints import Endpoint
from pykafka08.broker.faults import ScriptedCall
from pykafka08.broker.personality import Personality
from pykafka08.broker.state import NO_LEADER, Partition, Topic
from pykafka08.driver import Waiter
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.headers import RequestHeader
from pykafka08.protocol.messages import REGISTRY
from pykafka08.protocol.schema import Response

__all__ = ["Call", "CloseConnection", "Reply", "answered_later", "controller_error", "coordinator_error", "mapped"]

R = TypeVar("R")

Reply: TypeAlias = "Response | Waiter[Response | None] | None"
"""What a handler returns: the answer, a waiter that will have it, or None for a request that gets no answer."""


class CloseConnection(Exception):
    """Close the client's connection without an answer; the text is for the log."""


class Call:
    """A request with its surroundings.  ``version`` is the one it is answered in."""

    __slots__ = (
        "client_host",
        "cluster",
        "header",
        "is_authenticated",
        "listener",
        "node",
        "principal",
        "sasl",
        "script",
        "session_state",
        "version",
    )

    def __init__(
        self,
        cluster: ClusterState,
        node: Node,
        header: RequestHeader,
        version: int,
        script: ScriptedCall,
        connection: ConnectionContext,
    ) -> None:
        self.cluster = cluster
        self.node = node
        self.header = header
        self.version = version
        self.script = script
        self.client_host = connection.client_host
        self.listener = connection.listener
        self.session_state = connection.state
        self.sasl = connection.sasl
        """SASL of the connection; None on a listener without."""
        user = connection.user
        self.is_authenticated = user is not None
        self.principal = f"User:{user}" if user is not None else cluster.principals.get(self.client_id, ANONYMOUS)
        """The user of the connection, as in access control lists (``"User:alice"``)."""

    @property
    def host(self) -> str:
        """The client's address, as in access control lists."""
        return self.client_host

    def endpoint_of(self, node: Node) -> Endpoint:
        """A broker's address for this client: that of the listener that the client uses."""
        return node.endpoints[self.listener]

    def live_endpoints(self) -> list[tuple[Node, Endpoint]]:
        """The running brokers with their addresses for this client."""
        return [(node, self.endpoint_of(node)) for node in self.cluster.live_nodes()]

    @property
    def personality(self) -> Personality:
        return self.cluster.personality

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    def scripted_error(self, topic: str | None = None, partition: int | None = None) -> int:
        """The code that a test wants in place of the outcome, 0 for none."""
        return self.script.error(topic, partition)

    def scripted_error_after(self, topic: str | None = None, partition: int | None = None) -> int:
        """The code that a test wants though the request was performed, 0 for none."""
        return self.script.error(topic, partition, after=True)

    def denied(self, kind: AclResourceType, name: str = CLUSTER_NAME, operation: AclOperation | None = None) -> int:
        """The error code if the principal may not do this to the resource, else 0.

        ``operation``: by default the one that the request's API needs on resources of that type.
        """
        authorizer = self.cluster.authorizer
        if authorizer is None:
            return ErrorCode.NONE
        if operation is None:
            operation = OPERATIONS.get(REGISTRY[self.header.api_key].name, {}).get(kind)
            if operation is None:
                return ErrorCode.NONE
        may = authorizer.authorize(self.principal, self.host, operation, (kind, name))
        # Users are resources of the delegation-token APIs only, which share one error code.
        return ErrorCode.NONE if may else REFUSALS.get(kind, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)

    def authorized_operations(self, kind: AclResourceType, name: str = CLUSTER_NAME) -> int:
        """The operations that the principal may perform on the resource, as a bit field."""
        supported = SUPPORTED_OPERATIONS[kind]
        if kind is AclResourceType.GROUP and self.personality < (4, 0):
            supported = supported - {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
        return sum(1 << each for each in supported if not self.denied(kind, name, each))

    def cluster_operations(self) -> int:
        """The operations on the cluster, as a bit field; 0 if the user may not DESCRIBE it."""
        if self.denied(AclResourceType.CLUSTER, operation=AclOperation.DESCRIBE):
            return 0
        return self.authorized_operations(AclResourceType.CLUSTER)

    def led_partition(
        self, topic: Topic | None, name: str, index: int, leader_epoch: int = -1, *, or_follows: bool = False
    ) -> tuple[Partition | None, int]:
        """A partition that this broker leads, or None and the error code: scripted, unknown, not leader, fenced.

        ``or_follows``: or of which it has a replica in sync.
        """
        code = self.scripted_error(name, index) or (self.denied(AclResourceType.TOPIC, name) if name else 0)
        if code:
            return None, code
        if topic is None or not 0 <= index < len(topic.partitions):
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = topic.partitions[index]
        if partition.leader != self.node.node_id:
            is_follower = partition.leader != NO_LEADER and self.node.node_id in partition.isr
            if not (or_follows and is_follower):
                return None, ErrorCode.NOT_LEADER_OR_FOLLOWER
        if leader_epoch >= 0 and leader_epoch != partition.leader_epoch:
            is_old = leader_epoch < partition.leader_epoch
            return None, ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
        return partition, ErrorCode.NONE


def answered_later(
    call: Call, seconds: float, answer: Callable[[], Response | None]
) -> tuple[Waiter[Response | None], Callable[[], None]]:
    """A waiter that gets ``answer()`` after ``seconds``, and a function that lets it have it at once.

    The timer goes when the waiter is done, also when the client's connection ends first.
    """
    waiter: Waiter[Response | None] = Waiter()

    def finish() -> None:
        if not waiter.is_done:
            waiter.set_result(answer())

    timer = call.cluster.timers.call_after(max(0.0, seconds), finish)
    waiter.add_done_callback(lambda _: timer.cancel())
    return waiter, finish


def mapped(result: Waiter[R] | R, response: Callable[[R], Response]) -> Reply:
    """The response for a result that is there, or will be."""
    if not isinstance(result, Waiter):
        return response(result)
    coming: Waiter[R] = result
    waiter: Waiter[Response | None] = Waiter()

    def pass_on(done: Waiter[R]) -> None:
        if done.error is not None:
            waiter.set_exception(done.error)
        elif not waiter.is_done:
            waiter.set_result(response(done.result()))

    # A client that goes away ends the waiter of its answer; who prepares the answer must see it too.
    def pass_back(ended: Waiter[Response | None]) -> None:
        if ended.error is not None:
            coming.set_exception(ended.error)

    coming.add_done_callback(pass_on)
    waiter.add_done_callback(pass_back)
    return waiter


def coordinator_error(
    call: Call, key: str, kind: AclResourceType | None = AclResourceType.GROUP, *, takes_scripted: bool = True
) -> int:
    """Scripted error, refusal, or NOT_COORDINATOR where another broker coordinates ``key``; 0 if it is ours.

    ``kind``: the type of the resource that the key names; None if the request needs no right to it.
    """
    code = call.scripted_error() if takes_scripted else 0
    if not code and kind is not None:
        code = call.denied(kind, key)
    if code:
        return code
    return ErrorCode.NONE if call.cluster.coordinator(key) is call.node else ErrorCode.NOT_COORDINATOR


def controller_error(call: Call) -> int:
    """NOT_CONTROLLER where another broker is the controller and this one does not forward; 0 if it may go on."""
    is_controller = call.cluster.controller_id == call.node.node_id
    return ErrorCode.NONE if is_controller or not call.personality.has_zookeeper else ErrorCode.NOT_CONTROLLER
