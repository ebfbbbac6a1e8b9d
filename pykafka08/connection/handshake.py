"""Version probe of a new connection: the first requests, as pure decisions.

This module decides which request comes next, and what an answer or a closed connection says about the peer.  Bytes and
correlation ids are in ``machine``, the table of old releases in ``protocol.versions``.

    Metadata v1, no topics ── answered as v1 ──> ApiVersions v3 ── ranges ──────────────────> done
        │      │                                    ├── error 35 ──> ApiVersions in a lower version ──> done
        │      │                                    └── closed ── dial again ──> ApiVersions v0 ── ranges ──> done
        │      │                      ┌──────────── closed, dial again ─────────────────────┘
        │      │                      └──> Metadata v1, no topics ── answered as v1 ──────> done: as 0.10.0
        │      └───────── answered as v0 ──> ListGroups v0 ── answered ────────────────────> done: 0.9
        │                                        └── closed ── dial again ─────────────────> done: 0.8
        └── closed ── dial again ──> ApiVersions v0 ── ranges ──> Metadata ── answered ──> done
                                                                      └── closed ───────────> error (SASL?)

Brokers 0.8 and 0.9 ignore the version of Metadata and answer as v0, without harm.  They must not be sent ApiVersions:
0.9 does not answer it, and other clients of that broker may lose their requests.  It is therefore sent only to a peer
that answered Metadata v1 as v1, or, as v0 and once, on a new connection after the peer closed the first one on Metadata
and is not known to be 0.8 or 0.9.  Source: KIP-35, KIP-511; observed on real brokers of each release.

A SASL listener answers nothing but ApiVersions before authentication, from 0.10.0 on, and closes the connection on all
else.  With SASL the first request is therefore ApiVersions, and Metadata is not asked for:

    ApiVersions v3 ── ranges, or error 35 and a lower version ──> done
        └── closed ── dial again ──> ApiVersions v0 ── ranges ──> done
                                        └── closed ─────────────> done as 0.9 with GSSAPI, else error

Some proxies close the connection on an ApiVersions version that they do not know, or on every ApiVersions.  A
:class:`Probe` holds the requests that such a peer answers, and the next connection to its address begins with those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    AuthenticationError,
    RemoteProtocolError,
    ResponseTooLargeError,
    TransportError,
    broker_error,
)
from pykafka08.protocol.messages import ApiKey
from pykafka08.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka08.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykafka08.protocol.schema import Request
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.short_names import shortened
from pykafka08.wire import INT32, Buffer

__all__ = [
    "NEWEST_PROBE",
    "Handshake",
    "Probe",
    "Step",
    "answered_api_versions",
    "check_first_answer",
    "explain_foreign_peer",
]

NOT_KAFKA = "not a Kafka listener? (a ZooKeeper, TLS or SASL port behaves so: see security_protocol)"
NOT_KAFKA_OVER_TLS = (
    "not a Kafka listener? (a SASL port behaves so: see security_protocol; so does, under TLS 1.3, a peer that demands "
    "a client certificate, or refuses the client's, without an alert: see ssl_certfile and ssl_keyfile)"
)

OTHER_PROTOCOL = "the peer does not speak Kafka's protocol"

API_VERSIONS_VERSION = 3
"""Known to every broker since 2.4; asking for 4 would cost brokers up to 3.8 a second round trip."""

API_NAMES = {int(each): each.name for each in ApiKey}

OLD_RELEASES = ("0.8", "0.9")

VERSIONS_OF_0_8 = BrokerVersions(BrokerVersions.of_release("0.8.0").ranges, "0.8")
"""What 0.8.0, 0.8.1 and 0.8.2 have in common.  Telling them apart makes them close connections and log errors, which is
only worth it for committed offsets."""


class Step(Enum):
    """What is being asked; the value is the version that is sent."""

    METADATA = ("metadata", 1)
    API_VERSIONS = ("api versions", API_VERSIONS_VERSION)
    LIST_GROUPS = ("list groups", 0)
    API_VERSIONS_FIRST = ("api versions first", 0)
    METADATA_AGAIN = ("metadata again", 1)
    DONE = ("done", 0)


@dataclass(frozen=True, slots=True)
class Probe:
    """The first request that an address answers, and the version of ApiVersions (None: it answers none)."""

    first: Step = Step.METADATA
    api_versions: int | None = API_VERSIONS_VERSION


NEWEST_PROBE = Probe()

VERSIONS_WITHOUT_API_VERSIONS = BrokerVersions.of_release("0.10.0")
"""Assumed for a peer that answers Metadata v1 but no ApiVersions: the oldest release that has both."""


def answered_api_versions(versions: BrokerVersions) -> bool:
    """True if the broker has announced them itself; False if its release was guessed from other answers."""
    return versions is not VERSIONS_WITHOUT_API_VERSIONS and not versions.release_guess.startswith(OLD_RELEASES)


class Handshake:
    """Decides; the connection machine sends ``next_request()`` and tells ``answered`` or ``closed``.

    ``known`` skips the probe (a ``broker_version`` hint, or another live connection to the same broker).  ``previous``
    is what the broker was before it was lost: an old one is never asked for ApiVersions on a mere close.  ``probe`` is
    the result of an earlier handshake with the address; the attribute ``probe`` is the result of this one.
    ``was_served``: the cluster has served this client before, so that a closed connection does not mean SASL.
    ``knows_api_versions``: a broker of the cluster has answered ApiVersions before, so that a peer that closes the
    connection on it is not taken for an old proxy: a producer would lose its id, and could write records twice.
    ``mechanism`` is the SASL mechanism that comes next, if the listener uses SASL.  ``uses_tls``: TLS is established.
    """

    def __init__(
        self,
        broker: str,
        software_version: str,
        *,
        known: BrokerVersions | None = None,
        previous: BrokerVersions | None = None,
        was_served: bool = False,
        knows_api_versions: bool = False,
        probe: Probe = NEWEST_PROBE,
        mechanism: str | None = None,
        uses_tls: bool = False,
    ) -> None:
        self.broker = broker
        self._uses_tls = uses_tls
        self.advice = NOT_KAFKA_OVER_TLS if uses_tls else NOT_KAFKA
        """For errors: what else a peer may be that does not answer as a broker."""
        self._mechanism = mechanism
        self._was_served = was_served
        self._knows_api_versions = knows_api_versions
        self.versions = known
        self.probe = probe
        self._software_version = software_version
        self._may_ask_api_versions = previous is None or not previous.release_guess.startswith(OLD_RELEASES)
        self._starts_with_api_versions = False
        self._step, self._version = Step.DONE, 0
        if known is None:
            self._start(probe)

    @property
    def is_done(self) -> bool:
        return self._step is Step.DONE

    @property
    def step(self) -> Step:
        return self._step

    def next_request(self) -> tuple[Request[Any], int]:
        """What to send now, and in which version."""
        if self._step in (Step.METADATA, Step.METADATA_AGAIN):
            return MetadataRequest(topics=[]), self._version
        if self._step is Step.LIST_GROUPS:
            return ListGroupsRequest(), self._version
        if self._version < 3:  # the fields came with version 3
            return ApiVersionsRequest(), self._version
        name = ApiVersionsRequest(client_software_name="pykafka08", client_software_version=self._software_version)
        return name, self._version

    def answered(self, frame: Buffer, offset: int) -> None:
        """The body of the answer to the last request is ``frame[offset:]``."""
        if self._step in (Step.METADATA, Step.METADATA_AGAIN):
            self._metadata_answered(frame, offset)
        elif self._step is Step.LIST_GROUPS:
            ListGroupsResponse.decode(frame, 0, offset)
            self._finish(BrokerVersions.of_release("0.9.0"))
        else:
            self._api_versions_answered(frame, offset)

    def closed(self, error: TransportError) -> None:
        """The peer closed the connection instead of answering.

        Returns when another connection may tell more; raises the final word otherwise.
        """
        if self._step is Step.LIST_GROUPS:
            self._finish(VERSIONS_OF_0_8)
        elif self._step is Step.METADATA and self._may_ask_api_versions:
            self._may_ask_api_versions = False  # once
            self._go(Step.API_VERSIONS_FIRST)
        elif self._step is Step.API_VERSIONS and self._version > 0:
            self._version = 0
            self.probe = replace(self.probe, api_versions=0)
        elif self._step is Step.API_VERSIONS and self._mechanism == "GSSAPI":
            self._finish(BrokerVersions.of_release("0.9.0"))
        elif self._step is Step.API_VERSIONS and self._mechanism is None and not self._knows_api_versions:
            # A broker that has just stopped, behind a proxy, closes all connections: only an answer shows an old proxy.
            self.probe = replace(self.probe, api_versions=None)
            self._go(Step.METADATA)
        elif self._step in (Step.API_VERSIONS_FIRST, Step.METADATA_AGAIN) and self._starts_with_api_versions:
            self._start(NEWEST_PROBE)  # the peer has changed
        elif self._step is Step.METADATA_AGAIN and not self._was_served:
            raise AuthenticationError(
                "the listener wants SASL: it answers ApiVersions but closes the connection on Metadata; set "
                f"security_protocol to {'SASL_SSL' if self._uses_tls else 'SASL_PLAINTEXT'}, and sasl_mechanism",
                broker=self.broker,
            ) from error
        else:
            raise TransportError(
                f"the peer closed the connection on our first request: {self.advice}", broker=self.broker
            ) from error

    def _metadata_answered(self, frame: Buffer, offset: int) -> None:
        if _is_metadata(frame, offset, self._version):
            if self.versions is not None:
                self._step = Step.DONE
            elif self.probe.api_versions is None:
                self._finish(VERSIONS_WITHOUT_API_VERSIONS)
            else:
                self._step, self._version = Step.API_VERSIONS, self.probe.api_versions
        elif _is_metadata(frame, offset, 0) and self._step is Step.METADATA:
            self._go(Step.LIST_GROUPS)
        else:
            raise RemoteProtocolError(
                f"the answer to our first request is neither Metadata v1 nor v0: {self.advice}", broker=self.broker
            )

    def _api_versions_answered(self, frame: Buffer, offset: int) -> None:
        answer = _decode_api_versions(frame, offset, self._version)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION and self._version > 0:
            theirs = [entry.max_version for entry in answer.api_keys if entry.api_key == ApiVersionsRequest.api_key]
            self._version = max(0, min(self._version - 1, *theirs)) if theirs else 0
            return
        if answer.error_code:
            raise broker_error(answer.error_code, broker=self.broker, api="ApiVersions")
        versions = self._versions_of(answer)
        if self._step is Step.API_VERSIONS_FIRST and self._mechanism is None:
            self.versions = versions
            self.probe = replace(self.probe, first=Step.API_VERSIONS_FIRST)
            self._step, self._version = Step.METADATA_AGAIN, _metadata_version(versions)
        else:
            self._finish(versions)

    def _versions_of(self, answer: ApiVersionsResponse) -> BrokerVersions:
        """The announced version ranges; impossible ones are an error, or left out for APIs that this client lacks."""
        for entry in answer.api_keys:
            if entry.api_key in API_NAMES and not 0 <= entry.min_version <= entry.max_version:
                what = f"{API_NAMES[entry.api_key]} in versions {entry.min_version} to {entry.max_version}"
                raise self._impossible(f"offers {what}")
        for feature in answer.finalized_features:
            if feature.max_version_level < 0:
                raise self._impossible(f"has feature {shortened(feature.name)} at level {feature.max_version_level}")
        keys = [entry.api_key for entry in answer.api_keys if entry.api_key in API_NAMES]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise self._impossible(f"offers {API_NAMES[twice]} twice")
        versions = BrokerVersions.of_answer(
            (entry for entry in answer.api_keys if 0 <= entry.min_version <= entry.max_version),
            answer.finalized_features,
        )
        if not versions.serves(MetadataRequest):
            raise self._impossible("does not offer Metadata")
        return versions

    def _impossible(self, what: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"the peer's ApiVersions {what}", broker=self.broker, api=ApiVersionsRequest.name)

    def _start(self, probe: Probe) -> None:
        self.probe, self.versions = probe, None
        if self._mechanism is not None:
            version = probe.api_versions if probe.api_versions is not None else API_VERSIONS_VERSION
            self._step, self._version = Step.API_VERSIONS, version
            return
        self._starts_with_api_versions = probe.first is Step.API_VERSIONS_FIRST and self._may_ask_api_versions
        self._go(Step.API_VERSIONS_FIRST if self._starts_with_api_versions else Step.METADATA)

    def _go(self, step: Step) -> None:
        self._step, self._version = step, step.value[1]

    def _finish(self, versions: BrokerVersions) -> None:
        self.versions, self._step = versions, Step.DONE


def _metadata_version(versions: BrokerVersions) -> int:
    """A Metadata version that the peer serves: 1, which every release has, or the nearest one."""
    theirs = versions.ranges[MetadataRequest.api_key]
    return min(max(Step.METADATA_AGAIN.value[1], theirs.min), theirs.max)


def _is_metadata(frame: Buffer, offset: int, version: int) -> bool:
    """True if the bytes are exactly one Metadata answer of that version."""
    try:
        MetadataResponse.decode(frame, version, offset)
    except RemoteProtocolError:
        return False
    return True


def _decode_api_versions(frame: Buffer, offset: int, version: int) -> ApiVersionsResponse:
    """An error 35 is always in the layout of version 0, whatever was asked."""
    if bytes(frame[offset : offset + 2]) == b"\x00\x23":
        return ApiVersionsResponse.decode(frame, 0, offset)
    return ApiVersionsResponse.decode(frame, version, offset)


def check_first_answer(frame: Buffer, expected_id: int | None) -> None:
    """Raise RemoteProtocolError if a response of the handshake does not begin with ``expected_id``, the correlation id.

    ``expected_id`` is None if no request was sent.
    """
    if expected_id is None:
        fault = f"it sent {len(frame)} bytes before any request"
    elif len(frame) < INT32.size:
        fault = f"a response of {len(frame)} bytes has no correlation id"
    elif (found := INT32.unpack_from(frame)[0]) != expected_id:
        fault = f"a response has correlation id {found} instead of {expected_id}"
    else:
        return
    raise RemoteProtocolError(f"{OTHER_PROTOCOL}: {fault}")


def explain_foreign_peer(error: RemoteProtocolError) -> None:
    """Say in the error that the peer may not be a Kafka broker, because it has not answered any request yet."""
    if isinstance(error, ResponseTooLargeError):
        error.args = (f"{error.message}: its response is too large, or {OTHER_PROTOCOL}",)
    else:
        error.args = (f"{OTHER_PROTOCOL}: {error.message}",)
