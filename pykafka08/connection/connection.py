"""The driver of one connection: opens the transport, feeds the machine, sweeps its deadlines, closes everything.

``submit`` is a plain function that returns a light waiter; no task and no cancel scope is spent on a request.  One task
per connection runs the sweep.  Which broker to talk to and when to dial again is the business of ``cluster``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, TypeVar

import anyio

from pykafka08 import __version__
from pykafka08.config import Address, ClientConfig
from pykafka08.connection.actions import Authenticate, Redial, Suspect, Throttled
from pykafka08.connection.authentication import Authentication
from pykafka08.connection.handshake import NEWEST_PROBE, Handshake, Probe
from pykafka08.connection.machine import ConnectionMachine, State
from pykafka08.connection.tcp import open_tcp
from pykafka08.connection.transport import Dial, Transport
from pykafka08.driver import TaskTree, Waiter, Wakeup, clock, library_logger
from pykafka08.errors import AuthenticationError, KafkaError, ResponseTooLargeError, SecurityError, TlsError
from pykafka08.protocol.schema import Request, Response
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.security.sasl.login import Login
from pykafka08.security.sasl.mechanism import Mechanism
from pykafka08.short_names import address_text
from pykafka08.wire import Buffer

__all__ = ["Connection", "Message"]

R = TypeVar("R", bound=Response)
Message = Request[R] | Callable[[BrokerVersions], Request[R]]
"""A request, or what makes one when the broker's versions are known."""

log = library_logger("connection")

CLOSE_SECONDS = 1.0

DIAL_SHARE = 0.95
"""Part of the time left for the set-up that a dial may take."""

LONGEST_SETUP_FRAME = 1024 * 1024
"""Bytes of the largest frame taken before authentication has succeeded."""

PROGRESS = {
    State.CONNECTING: "the address had not taken the connection yet",
    State.HANDSHAKE: "the peer had taken the connection but not answered yet",
    State.AUTHENTICATING: "SASL authentication was not finished",
    State.READY: "the broker had said its versions but not answered Metadata yet",
    State.CLOSED: "the connection was closed",
}
"""What each state means to somebody whose time is up."""


class Connection:
    """One connection to one broker; opens in the background from the moment it is made.

    ``known`` are the broker's versions if another live connection has them, ``previous`` those of before it was lost;
    ``was_served``: a broker of the cluster has served this client before, with the same security settings.
    ``knows_api_versions``: a broker of the cluster has answered ApiVersions before.
    ``may_pass``: a SecurityError of the set-up fails calls with a TransportError, so that they are repeated.
    ``last_refusal`` is that of another connection to the address, since which none was set up.
    ``probe`` is the result of an earlier handshake.  ``dial_at`` delays the first dial (backoff).
    ``on_ready`` and ``on_end`` are called once each, ``on_end`` always and last; ``on_silence``
    is called repeatedly while an answer is overdue.  ``facts`` are in each log line.  ``login`` has the credentials for
    SASL; without it the connection does not authenticate.
    """

    def __init__(
        self,
        config: ClientConfig,
        address: Address,
        tasks: TaskTree,
        *,
        broker: str | None = None,
        known: BrokerVersions | None = None,
        previous: BrokerVersions | None = None,
        was_served: bool = False,
        knows_api_versions: bool = False,
        may_pass: bool = False,
        last_refusal: SecurityError | None = None,
        probe: Probe = NEWEST_PROBE,
        dial_at: float | None = None,
        on_ready: Callable[[Connection], None] | None = None,
        on_silence: Callable[[Connection], None] | None = None,
        on_end: Callable[[Connection], None] | None = None,
        dial: Dial = open_tcp,
        login: Login | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        self.address = address
        self._config = config
        self._log = log.bind(**(facts or {"client_id": config.client_id}))
        self._tasks = tasks
        self._now = clock()
        self._on_ready = on_ready
        self._on_silence = on_silence
        self._on_end = on_end
        self._dial = dial
        self._dial_at = max(self._now(), dial_at or 0.0)  # a backoff that is over does not count as time waited
        self._transport: Transport | None = None
        self._early_loss: KafkaError | None = None
        self._wakeup = Wakeup(keeps_timer=True)
        self._wakes_at = 0.0
        self._ready: Waiter[BrokerVersions] = Waiter()
        self._ended: Waiter[None] = Waiter()
        name = broker or address_text(*address)
        if known is None and config.broker_version is not None:
            known = BrokerVersions.of_release(config.broker_version)
        self._login = login
        self._mechanism: Mechanism | None = None
        self._setup_deadline = self._dial_at + config.socket_connection_setup_timeout_ms / 1000
        self._machine = ConnectionMachine(
            name,
            config.client_id,
            Handshake(
                name,
                __version__,
                known=known,
                previous=previous,
                was_served=was_served,
                knows_api_versions=knows_api_versions,
                probe=probe,
                mechanism=None if login is None else login.name,
                uses_tls=config.security.uses_tls,
            ),
            self._authentication(login, name, was_served=was_served) if login is not None else None,
            may_pass=may_pass,
            last_refusal=last_refusal,
            jitter=random.random(),  # noqa: S311 - jitter
            now=self._now(),
            setup_deadline=self._setup_deadline,
            request_timeout=config.request_timeout_ms / 1000,
            renewal_timeout=min(config.request_timeout_ms, config.socket_connection_setup_timeout_ms) / 1000,
            max_idle=config.connections_max_idle_ms / 1000,
            setting_names=config.setting_names,
        )
        tasks.start(f"connection to {name}", self._run)

    def _authentication(self, login: Login, broker: str, *, was_served: bool) -> Authentication:
        security = self._config.security
        return Authentication(
            login.name,
            broker,
            setting=security.sasl_mechanism,
            uses_tls=security.uses_tls,
            credentials_source=login.source,
            was_served=was_served,
            is_delegation_token=security.sasl_scram_tokenauth,
        )

    @property
    def broker(self) -> str:
        """``"host:port"`` or ``"host:port (id N)"``; may be set when more is known."""
        return self._machine.broker

    @broker.setter
    def broker(self, name: str) -> None:
        self._machine.broker = name

    def note_refusal(self, refusal: SecurityError | None) -> None:
        """Another connection to the address was refused, or was set up (None)."""
        self._machine.last_refusal = refusal

    @property
    def is_open(self) -> bool:
        """False once it is closed for whatever reason; a submit would fail at once."""
        return self._machine.state is not State.CLOSED

    @property
    def is_ready(self) -> bool:
        return self._machine.state is State.READY

    @property
    def progress(self) -> str:
        """How far it has come, for an error's text."""
        return PROGRESS[self._machine.state]

    def credentials_error(self, text: str) -> KafkaError | None:
        """The error if no credentials came ``text``, such as "within 2 s"; None if it waits for something else."""
        return self._machine.credentials_error(text)

    @property
    def was_ready(self) -> bool:
        """True once it has carried requests, also afterwards."""
        return self._machine.was_ready

    @property
    def has_answered(self) -> bool:
        """True if a request after the handshake was answered, or was written and expects no answer."""
        return self._machine.has_answered

    @property
    def was_idle(self) -> bool:
        """True if it was closed for want of use."""
        return self._machine.was_idle

    @property
    def is_silent(self) -> bool:
        """True if an answer has been due for a while and nothing comes."""
        return self._machine.is_silent(self._now())

    @property
    def open_calls(self) -> int:
        return self._machine.open_calls

    @property
    def error(self) -> KafkaError | None:
        """Why it is closed."""
        return self._machine.error

    @property
    def is_refused(self) -> bool:
        """True if TLS or SASL has ended it."""
        return self._machine.is_refused

    @property
    def versions(self) -> BrokerVersions | None:
        """What the broker serves; None until it was asked."""
        return self._machine.versions

    @property
    def probe(self) -> Probe:
        """The result of the handshake, for the next connection to the address."""
        return self._machine.probe

    def submit(self, message: Message[R], *, version: int | None = None, timeout: float) -> Waiter[R]:
        """Send ``message`` after those before it; the waiter ends within ``timeout`` seconds.

        While the connection opens, requests wait.  A request that expects no answer (acks=0) ends with None when it is
        on its way: taken by the socket, or by the event loop for it.
        """
        waiter: Waiter[R] = Waiter()
        now = self._now()
        deadline = now + timeout
        machine = self._machine
        machine.submit(message, version, waiter, deadline, now)
        if self._transport is not None:
            # What ends as it is written ends after the caller has its waiter, as everything else does.
            self._transport.wake_writer(at_once=not machine.has_unanswered)
        if deadline < self._wakes_at or machine.suspects_before(self._wakes_at):
            self._wakeup.set()
        return waiter

    async def wait_ready(self) -> BrokerVersions:
        """The broker's versions; raises what ended the connection instead.  Bounded by the set-up time-out."""
        return await self._ready

    def close(self, error: KafkaError | None = None) -> None:
        """Begin to close: open calls fail with ``error`` or a ClosedError."""
        self._machine.close(error)
        self._wakeup.set()

    async def aclose(self) -> None:
        """Close and wait until the socket is gone."""
        self.close()
        await self._ended

    # --- what the transport calls (transport.Link) ------------------------------------------------------------------

    def data_to_send(self) -> list[Buffer]:
        try:
            return self._machine.data_to_send()
        except Exception as error:  # noqa: BLE001 - raised by a callback; see _callback_failed
            self._callback_failed(error)
            return []

    def data_sent(self) -> None:
        try:
            self._machine.data_sent()
        except Exception as error:  # noqa: BLE001 - as above
            self._callback_failed(error)

    def frame_received(self, frame: Buffer) -> None:
        try:
            self._machine.frame_received(frame, self._now())
            self._after_input()
        except Exception as error:  # noqa: BLE001 - as above
            self._callback_failed(error)

    def connection_lost(self, error: KafkaError) -> None:
        if self._transport is None:  # lost before the dial has returned: dealt with when it has
            self._early_loss = error
            return
        if self._login is not None and not self.was_ready and isinstance(error, ResponseTooLargeError):
            error = self._too_large_for_setup(error)
        if isinstance(error, TlsError):
            from pykafka08.security.tls_errors import informed_error  # here: a client without TLS need not load it

            error = informed_error(error, self._config.security)
        try:
            self._machine.connection_lost(error, self._now())
            self._after_input()
        except Exception as failure:  # noqa: BLE001 - as above
            self._callback_failed(failure)

    def _too_large_for_setup(self, error: ResponseTooLargeError) -> ResponseTooLargeError:
        """The error with the limit that counts before authentication, unless the setting's is lower."""
        limit = self._config.receive_message_max_bytes
        if limit <= LONGEST_SETUP_FRAME:
            return error
        return ResponseTooLargeError(
            f"a frame of {error.size} bytes is announced, more than the {LONGEST_SETUP_FRAME} bytes that are accepted "
            "before authentication",
            size=error.size,
        )

    def _callback_failed(self, error: Exception) -> None:
        """Fail the client after an error in a callback, so that the user's next await raises the error."""
        self._tasks.fail(f"the client failed on an answer from {self.broker}", error)

    def _after_input(self) -> None:
        machine = self._machine
        if not self._ready.is_done:
            if self._transport is not None:
                self._transport.wake_writer()
            if machine.state is State.READY and machine.versions is not None:
                self._log.info("connection.ready", broker=machine.broker, release=machine.versions.release_guess)
                if self._transport is not None:
                    self._transport.allow_frames(self._config.receive_message_max_bytes)
                self._wakeup.set()
                self._ready.set_result(machine.versions)
                if self._on_ready is not None:
                    self._on_ready(self)
        # What was answered may have been held for longer than what is due now may be.
        if machine.wants_poll or machine.suspects_before(self._wakes_at):
            self._wakeup.set()

    # --- the task ---------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._open)
                await self._sweep(group.start_soon)
                group.cancel_scope.cancel()
        finally:
            self._wakeup.close()
            self._machine.close()
            try:
                await self._drop_transport()
            finally:
                self._finish()

    async def _open(self) -> None:
        await anyio.sleep(max(0.0, self._dial_at - self._now()))
        host, port = self.address
        limit = self._config.receive_message_max_bytes
        if self._login is not None:
            limit = min(limit, LONGEST_SETUP_FRAME)
        try:
            self._transport = await self._dial(
                self, host, port, deadline=self._dial_deadline(), max_frame_bytes=limit, tasks=self._tasks
            )
        except KafkaError as error:
            self._machine.connection_lost(error, self._now())
            self._after_input()
            return
        self._machine.opened(self._now())
        self._after_input()
        if self._early_loss is not None:
            early_loss, self._early_loss = self._early_loss, None
            self.connection_lost(early_loss)

    def _dial_deadline(self) -> float:
        """A little before the end of the set-up, so that the dial itself says what has not answered."""
        now = self._now()
        return now + (self._setup_deadline - now) * DIAL_SHARE

    async def _sweep(self, start_soon: Callable[..., Any]) -> None:
        """Perform what the machine says until it says Close."""
        machine = self._machine
        while True:
            for action in machine.poll(self._now()):
                if isinstance(action, Authenticate):
                    start_soon(self._authenticate, action.challenge)
                elif isinstance(action, Redial):
                    self._log.debug("connection.redial", broker=machine.broker)
                    await self._drop_transport()
                    start_soon(self._open)
                elif isinstance(action, Throttled):
                    self._log.info("connection.throttled", broker=machine.broker, seconds=action.seconds)
                elif isinstance(action, Suspect):
                    self._log.info("connection.silent", broker=machine.broker)
                    if self._on_silence is not None:
                        self._on_silence(self)
                else:
                    self._log.info("connection.closed", broker=machine.broker, cause=str(action.error))
                    return
            if self._transport is not None:
                self._transport.wake_writer()  # calls that were held may go now
            wakes_at = machine.next_wakeup()
            self._wakes_at = wakes_at if wakes_at is not None else 0.0
            await self._wakeup.wait(wakes_at)

    async def _authenticate(self, challenge: bytes | None) -> None:
        """Let the mechanism answer ``challenge``."""
        machine = self._machine
        try:
            if challenge is None:
                assert self._login is not None
                self._mechanism = self._login.mechanism(self.address[0])
            mechanism = self._mechanism
            assert mechanism is not None
            with anyio.CancelScope(deadline=inf if machine.was_ready else self._setup_deadline) as scope:
                token = await mechanism.respond(challenge)
            if scope.cancelled_caught:
                return  # the machine ends at the same time
            is_answered = mechanism.is_last_token_answered or not mechanism.is_complete
        except KafkaError as error:
            self._config.setting_names.in_error(error)
            self._log.warning("connection.authentication_failed", broker=machine.broker, cause=str(error))
            machine.authentication_failed(error, self._now())
        except Exception as error:  # noqa: BLE001 - raised by the application's function for passwords or tokens
            failure = AuthenticationError(
                f"no credentials could be had: {type(error).__name__}: {error}", broker=machine.broker
            )
            failure.__cause__ = error
            machine.authentication_failed(failure, self._now())
        else:
            refusal = getattr(mechanism, "refusal", None)  # of OAUTHBEARER alone
            followed = mechanism.may_be_followed
            if machine.token_made(
                token, self._now(), is_answered=is_answered, may_be_followed=followed, refusal=refusal
            ):
                self._log.debug("connection.authenticated", broker=machine.broker, mechanism=mechanism.name)
            if self._transport is not None:
                self._transport.wake_writer()
        self._after_input()
        self._wakeup.set()

    async def _drop_transport(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await transport.wait_closed()

    def _finish(self) -> None:
        error = self._machine.error
        assert error is not None
        self._ready.set_exception(error)
        if self._on_end is not None:
            self._on_end(self)
        self._ended.set_result(None)
