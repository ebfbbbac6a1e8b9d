"""One connection as pure state: order, correlation ids, deadlines, the version handshake, and the end of all of it.

Here: which bytes go out, whose answer a frame is, what fails and with which error.  Not here: sockets and waiting
(``transport``, ``connection``), which broker to talk to (``cluster``).  Times are monotonic seconds.

    CONNECTING ── opened ──> HANDSHAKE ── versions known ──> READY ── idle, lost, poisoned ──> CLOSED
        ^                        │  │                          ^
        │                        │  └──> AUTHENTICATING ───────┘ with SASL; see ``authentication``
        └─── redial (a closed connection is an answer of some releases; see ``handshake``)

Calls are accepted in all states but CLOSED.  Until READY they are held, with their deadlines running, and again for as
long as the broker throttles this client (KIP-219: it would read nothing meanwhile), and while a SASL session is renewed
(KIP-368: the broker accepts nothing else until it has the last token; see ``authentication``).  A broker answers
in the order of the requests, so the oldest open request is the only one whose answer may come; anything else poisons
the connection.  Two clocks run on a call: the *caller's* deadline ends only the wait, and its late answer is dropped;
when an answer is overdue for the request time-out as well, the peer is taken for dead and the connection is closed.
A renewal has a shorter time for each answer, because calls are held for it.
"""

from __future__ import annotations

import math
from collections import deque
from enum import Enum
from typing import Any

from pykafka08.connection.actions import Action, Authenticate, Close, Redial, Suspect, Throttled
from pykafka08.connection.authentication import Authentication
from pykafka08.connection.call import Call, Content, Outcome, may_be_held
from pykafka08.connection.deadlines import Deadlines
from pykafka08.connection.handshake import Handshake, Probe, check_first_answer, explain_foreign_peer
from pykafka08.connection.session import Session
from pykafka08.connection.silence import Silence
from pykafka08.connection.throttle import throttled_for
from pykafka08.errors import (
    AuthenticationError,
    ClosedError,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    ResponseTooLargeError,
    SecurityError,
    TransportError,
)
from pykafka08.errors.deadline import passing, with_refusal
from pykafka08.protocol.headers import RequestHeads, split_response
from pykafka08.protocol.messages.produce import ProduceRequest
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeResponse
from pykafka08.protocol.schema import Request, Response
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.setting_names import AS_ARGUMENTS, SettingNames
from pykafka08.wire import INT32, Buffer

__all__ = ["ConnectionMachine", "State"]

LAST_CORRELATION_ID = 2**31 - 1


class State(Enum):
    CONNECTING = "connecting"
    HANDSHAKE = "handshake"
    AUTHENTICATING = "authenticating"
    READY = "ready"
    CLOSED = "closed"


SETTING_UP = (State.CONNECTING, State.HANDSHAKE, State.AUTHENTICATING)


class ConnectionMachine:
    """The state of one connection to ``broker`` ("host:port", with its id where known).

    ``may_pass``: the credentials worked a moment ago, so calls are retried after a refusal.  ``last_refusal`` is that
    of another connection to the address, since which none was set up.  ``renewal_timeout`` limits each step of
    a renewal.
    """

    def __init__(
        self,
        broker: str,
        client_id: str,
        handshake: Handshake,
        authentication: Authentication | None = None,
        *,
        may_pass: bool = False,
        last_refusal: SecurityError | None = None,
        jitter: float = 0.5,
        now: float,
        setup_deadline: float,
        request_timeout: float,
        renewal_timeout: float,
        max_idle: float,
        setting_names: SettingNames = AS_ARGUMENTS,
    ) -> None:
        self.broker = broker
        self.state = State.CONNECTING
        self.error: KafkaError | None = None
        self.is_refused = False
        self.was_ready = False
        self.has_answered = False
        self.was_idle = False
        self.last_activity = now
        self._silence = Silence(now)
        self._heads = RequestHeads(client_id)
        self._handshake = handshake
        self._authentication = authentication
        self._may_pass = may_pass
        self.last_refusal = last_refusal
        self._session = Session(jitter)
        self._setup_deadline = setup_deadline
        self._request_timeout = request_timeout
        self._renewal_timeout = renewal_timeout
        self._max_idle = max_idle
        self._names = setting_names
        self._correlation_id = 0
        self._held: deque[Call] = deque()
        self._open: deque[Call] = deque()
        self._deadlines = Deadlines()
        self._throttled_until = 0.0
        self._out: list[Buffer] = []
        self._unanswered: list[Call] = []
        self._actions: list[Action] = []

    @property
    def versions(self) -> BrokerVersions | None:
        """What the broker serves; None until the handshake is done."""
        return self._handshake.versions if self._handshake.is_done else None

    @property
    def probe(self) -> Probe:
        """The result of the handshake, for the next connection to the address."""
        return self._handshake.probe

    @property
    def wants_poll(self) -> bool:
        """True if the transport must be dealt with now."""
        return bool(self._actions)

    def is_silent(self, now: float) -> bool:
        """True if the peer has owed an answer, and sent nothing, for a while."""
        return bool(self._open) and now >= self._silence.suspicious_from(self._open[0])

    def suspects_before(self, moment: float) -> bool:
        """True if the peer is suspected, or a renewal given up, earlier than ``moment``, should nothing more come."""
        if not self._open or self.state is not State.READY:
            return False
        if self._session.is_renewing and self._renewal_ends_at < moment:
            return True
        return self._silence.suspect_at(self._open[0]) < moment

    def credentials_error(self, text: str) -> KafkaError | None:
        """The error if no credentials came ``text``, such as "within 2 s"; None if it waits for something else."""
        if not self._waits_for_mechanism:
            return None
        assert self._authentication is not None
        return self._names.in_error(self._authentication.not_finished(text))

    @property
    def _waits_for_mechanism(self) -> bool:
        authentication = self._authentication
        if self.state is not State.AUTHENTICATING or authentication is None:
            return False
        return not self._open and not authentication.takes_bare_frames

    @property
    def has_unanswered(self) -> bool:
        """True if :meth:`data_sent` will end calls."""
        return bool(self._unanswered)

    @property
    def open_calls(self) -> int:
        """Calls that are held, open or being written."""
        return len(self._held) + len(self._open) + len(self._unanswered)

    # --- inputs ---------------------------------------------------------------------------------------------------

    def submit(self, content: Content, version: int | None, outcome: Outcome, deadline: float, now: float) -> None:
        """Send a request, or hold it until the broker is known; ``version`` None picks the highest common one."""
        if self.state is State.CLOSED:
            assert self.error is not None
            outcome.set_exception(self.error)
            return
        call = Call(content, version, outcome, deadline)
        is_free = now >= self._throttled_until and not self._session.is_holding and now < self._session.hold_at
        if self.state is State.READY and is_free:
            self._send_held(now)  # none, but in the moment in which throttling ends
            self._send_call(call, now)
        else:
            self._held.append(call)
            self._deadlines.add(deadline, call, self.open_calls)

    def opened(self, now: float) -> None:
        """A transport is open."""
        if self.state is State.CLOSED:
            return
        self.last_activity = now
        self.state = State.HANDSHAKE
        self._advance(now)

    def frame_received(self, frame: Buffer, now: float) -> None:
        """One whole frame came, without its size."""
        if self.state is State.CLOSED:
            return
        self._silence.quiet_since = now
        if not self._session.is_renewing:  # a renewal is no use of the connection
            self.last_activity = now
        try:
            if self.state is State.HANDSHAKE:
                check_first_answer(frame, self._open[0].correlation_id if self._open else None)
            if self._authentication is not None and self._authentication.takes_bare_frames:
                self._actions.append(Authenticate(self._authentication.bare_token_received(frame)))
            elif not self._open:
                raise self._broken("an answer came that nobody asked for")
            else:
                self._match(frame, now)
        except KafkaError as error:
            self._poison(self._renewal_error(error))

    def connection_lost(self, error: KafkaError, now: float) -> None:
        """The transport ended, or could not be opened, or its bytes were not frames."""
        if self.state is State.CLOSED:
            return
        if self.state is State.HANDSHAKE and isinstance(error, TransportError) and self._open:
            try:
                self._handshake.closed(error)
            except KafkaError as final:
                self._poison(final)
                return
            self._redial(now)
            return
        if self.state is State.AUTHENTICATING and isinstance(error, TransportError):
            assert self._authentication is not None
            self._poison(self._authentication.closed(error))
            return
        if self.state is State.READY and isinstance(error, ResponseTooLargeError) and self._open:
            self._answer_too_large(error)
            return
        if self.state is State.HANDSHAKE and isinstance(error, RemoteProtocolError):
            explain_foreign_peer(error)
        self._poison(error)

    def token_made(
        self,
        token: bytes | None,
        now: float,
        *,
        is_answered: bool = True,
        may_be_followed: bool = False,
        refusal: str | None = None,
    ) -> bool:
        """What the mechanism made of the last :class:`Authenticate`; see :meth:`Authentication.token_made`.

        ``may_be_followed``: the calls that a renewal holds are sent behind the token, without its answer.

        True if that was the end of the exchange.
        """
        if self.state is State.CLOSED:
            return False
        assert self._authentication is not None
        if self._authentication.is_renewal:
            self._session.token_made(may_be_followed=may_be_followed or token is None)
        self._authentication.token_made(token, is_answered=is_answered, refusal=refusal)
        self._continue_authentication(now)
        return self._authentication.is_done

    def authentication_failed(self, error: KafkaError, now: float) -> bool:
        """The mechanism has no token, or does not accept the broker's.  False if it will be asked again later."""
        if self.state is State.READY and self._session.may_retry(now):
            self._session.retry_later(now)
            return False
        if self.state is State.AUTHENTICATING and self._authentication is not None:
            failure = self._authentication.failed(error)
            if failure is None:
                return True
            error = failure
        self._poison(self._renewal_error(error))
        return True

    def _renewal_error(self, error: KafkaError) -> KafkaError:
        """An error that calls repeat themselves after: the next connection tells whether the credentials are wrong."""
        if self.state is not State.READY or not isinstance(error, AuthenticationError):
            return error
        lost = TransportError(f"the SASL session could not be renewed: {error.message}; the connection is closed")
        lost.__cause__ = error
        return lost

    def close(self, error: KafkaError | None = None) -> None:
        """End it from this side; open calls fail with ``error``, or a ClosedError."""
        self._poison(error or ClosedError("the connection was closed by this client", broker=self.broker))

    # --- outputs --------------------------------------------------------------------------------------------------

    def data_to_send(self) -> list[Buffer]:
        """Bytes to write, in order, each handed out once.  Follow with :meth:`data_sent`."""
        out, self._out = self._out, []
        return out

    def data_sent(self) -> None:
        """What :meth:`data_to_send` gave is on its way: requests without an answer are done."""
        if self._unanswered:
            done, self._unanswered = self._unanswered, []
            self.has_answered = True
            for call in done:
                call.response = None
                call.end(None)

    def poll(self, now: float) -> list[Action]:
        """Ends calls whose time is up; says what is to be done with the transport."""
        if self.state in SETTING_UP and now >= self._setup_deadline:
            self._poison(self._setup_error(now))
        if self.state is State.READY and now >= self._renewal_ends_at:
            self._poison(self._unrenewed_error())
        while (due := self._deadlines.pop_due(now)) is not None:
            self._expire(due, now)
        if self.state is State.READY and now >= self._session.hold_at:
            self._session.hold()
        if self.state is State.READY and now >= self._throttled_until and not self._session.is_holding:
            # The broker has read nothing until now, so its silence begins only now.
            self._silence.quiet_since = max(self._silence.quiet_since, self._throttled_until)
            self._throttled_until = 0.0
            self._send_held(now)
        if self.state is State.READY and now >= self._session.renew_at:
            self._begin_authentication(now, is_renewal=True)
        if self.state is State.READY and now >= self._idle_ends_at:
            self.was_idle = True
            self._poison(TransportError(f"closed after {self._max_idle:g} s without use", broker=self.broker))
        if self.state is State.READY and self._open and now >= self._silence.suspect_at(self._open[0]):
            self._silence.suspected(now)
            self._actions.append(Suspect())
        actions, self._actions = self._actions, []
        return actions

    def next_wakeup(self) -> float | None:
        if self.state is State.CLOSED:
            return None
        first = self._deadlines.first
        times = [first] if first is not None else []
        if self.state is not State.READY:
            times.append(self._setup_deadline)
        else:
            if self._throttled_until and not self._session.is_holding:
                times.append(self._throttled_until)
            times += (self._session.hold_at, self._session.renew_at, self._renewal_ends_at)
            times.append(self._silence.suspect_at(self._open[0]) if self._open else self._idle_ends_at)
        return min(times)

    # --- sending --------------------------------------------------------------------------------------------------

    def _advance(self, now: float) -> None:
        """Go on with the handshake, or with the held calls if it is done."""
        if not self._handshake.is_done:
            request, version = self._handshake.next_request()
            self._write_setup(request, version, now)
        elif self._authentication is not None:
            self.state = State.AUTHENTICATING
            self._begin_authentication(now)
        else:
            self._ready(now)

    def _ready(self, now: float) -> None:
        self.state, self.was_ready = State.READY, True
        self._send_held(now)

    def _write_setup(self, request: Request[Any], version: int, now: float) -> None:
        if not self._session.is_renewing:
            self._write(Call(request, version, None, self._setup_deadline), request, version, now)
            return
        used_last = self.last_activity
        self._write(Call(request, version, None, now + self._renewal_timeout), request, version, now)
        self.last_activity = used_last

    @property
    def _idle_ends_at(self) -> float:
        return math.inf if self._open or self._held else self.last_activity + self._max_idle

    @property
    def _renewal_ends_at(self) -> float:
        """The deadline of the present step of a renewal: the broker's answer, or the mechanism's next token.

        The broker's time begins when it has answered the requests before, which it may keep back.  A late first token
        ends the connection only if requests wait for it.
        """
        if not self._session.is_renewing:
            return self._session.asked_at + self._renewal_timeout if self._session.is_holding else math.inf
        if not (self._open[0].is_setup if self._open else self._session.is_holding):
            return math.inf
        return max(self._silence.quiet_since, self._throttled_until) + self._renewal_timeout

    def _begin_authentication(self, now: float, *, is_renewal: bool = False) -> None:
        assert self._authentication is not None
        assert self._handshake.versions is not None
        self._session.token_asked_for(now)
        self._authentication.begin(self._handshake.versions, is_renewal=is_renewal)
        self._actions.append(Authenticate(None))
        self._continue_authentication(now)

    def _continue_authentication(self, now: float) -> None:
        """Send what can be sent, and go on if that was the end."""
        authentication = self._authentication
        assert authentication is not None
        for message in authentication.next_messages():
            if isinstance(message, bytes):
                self._out += (INT32.pack(len(message)), message)
                self.last_activity = now
            else:
                self._write_setup(*message, now)
        if not authentication.is_done:
            if self._session.is_renewing and not self._session.is_holding and now >= self._throttled_until:
                self._send_held(now)
            return
        was_ready = self.state is State.READY
        self._session.begun(authentication.lifetime, now)
        if was_ready:
            if now >= self._throttled_until:
                self._send_held(now)
        else:
            self._ready(now)

    def _send_held(self, now: float) -> None:
        if not self._held:
            return
        held, self._held = self._held, deque()
        for call in held:
            if call.outcome is not None:  # it may have timed out meanwhile
                self._send_call(call, now)

    def _send_call(self, call: Call, now: float) -> None:
        try:
            self._write(call, *self._resolve(call), now)
        except Exception as error:  # noqa: BLE001 - the content may be the caller's own code; it is raised to the caller
            if isinstance(error, KafkaError) and error.broker is None:
                error.broker = self.broker
            call.fail(self._names.in_error(error))

    def _resolve(self, call: Call) -> tuple[Request[Any], int]:
        """The request of a call and the version to send it in."""
        versions = self._handshake.versions
        assert versions is not None
        assert call.content is not None
        request = call.content if isinstance(call.content, Request) else call.content(versions)
        version = call.version if call.version is not None else versions.pick(type(request))
        return request, version

    def _write(self, call: Call, request: Request[Any], version: int, now: float) -> None:
        correlation_id = self._correlation_id
        self._out += self._heads.frame(request, version, correlation_id)
        self._correlation_id = 0 if correlation_id == LAST_CORRELATION_ID else correlation_id + 1
        self.last_activity = now
        call.name, call.content = request.name, None  # what was written need not be kept alive
        call.response, call.version, call.correlation_id, call.sent_at = request.response, version, correlation_id, now
        if type(request) is ProduceRequest and request.acks == 0:
            self._unanswered.append(call)
        else:
            call.overdue = max(call.deadline, now + self._request_timeout)
            call.may_be_held = may_be_held(request)
            if not self._open:
                self._silence.quiet_since = now
            self._open.append(call)
        if call.outcome is not None:
            self._deadlines.add(call.deadline, call, self.open_calls)

    # --- receiving ------------------------------------------------------------------------------------------------

    def _match(self, frame: Buffer, now: float) -> None:
        call = self._open[0]
        response_class = call.response
        assert response_class is not None
        assert call.version is not None
        correlation_id, offset = split_response(response_class, call.version, frame)
        if correlation_id != call.correlation_id:
            raise self._broken(f"a response has correlation id {correlation_id} instead of {call.correlation_id}")
        if call.is_setup:
            self._open.popleft()
            self._session.token_sent_at = call.sent_at
            self._setup_answered(response_class, call.version, frame, offset, now)
            return
        response = None if call.outcome is None else response_class.decode(frame, call.version, offset)
        self._open.popleft()
        call.response = None
        self.has_answered = True
        if response is not None and (seconds := throttled_for(response, call.version)):
            self._throttled_until = max(self._throttled_until, now + seconds)
            self._actions.append(Throttled(seconds))
        call.end(response)

    def _setup_answered(
        self, response_class: type[Response], version: int, frame: Buffer, offset: int, now: float
    ) -> None:
        """The answer to a request of the version handshake or of SASL."""
        if self.state is State.HANDSHAKE:
            self._handshake.answered(frame, offset)
            self._advance(now)
            return
        authentication = self._authentication
        assert authentication is not None
        answer = response_class.decode(frame, version, offset)
        if isinstance(answer, SaslHandshakeResponse):
            authentication.handshake_answered(answer)
            self._continue_authentication(now)
        else:
            assert isinstance(answer, SaslAuthenticateResponse)
            self._actions.append(Authenticate(authentication.token_answered(answer)))

    def _broken(self, text: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"{text}; the connection is closed")

    # --- endings --------------------------------------------------------------------------------------------------

    def _expire(self, call: Call, now: float) -> None:
        """The deadline at the top of the heap has passed: the caller's, then the one for a missing answer."""
        if call.outcome is not None:
            call.fail(self._names.in_error(self._timeout_error(call, now)))
        if call.response is None:
            return
        if call.overdue > now:
            self._deadlines.add(call.overdue, call, self.open_calls)
            return
        self._poison(
            TransportError(f"{call.lateness(now, is_written=call not in self._unanswered)}; the connection is closed")
        )

    def _timeout_error(self, call: Call, now: float) -> RequestTimeoutError:
        refusal = self.last_refusal if self.state in SETTING_UP else None
        if call.response is None:
            is_ready = self.state is State.READY
            why = (
                "the SASL session must be renewed first"
                if self._session.is_holding
                else refusal.message
                if refusal is not None
                else "the broker throttles this client"
                if is_ready
                else f"the peer accepted the connection but has not answered yet: {self._handshake.advice}"
                if self.state is State.HANDSHAKE
                else f"the connection is still in state {self.state.value}"
            )
            text = f"{call.name} was not sent before its deadline: {why}"
        else:
            text = call.lateness(now, is_written=call not in self._unanswered)
        return with_refusal(RequestTimeoutError(text, broker=self.broker, api=call.name), refusal)

    def _setup_error(self, now: float) -> KafkaError:
        if self.state is State.CONNECTING:
            return TransportError("the broker could not be reached in time")
        waited = f" within {now - self._open[0].sent_at:.3g} s" if self._open else " in time"
        if self.state is State.AUTHENTICATING:
            assert self._authentication is not None
            if self._authentication.failure is not None:
                return self._authentication.failure
            if self._waits_for_mechanism:
                return self._authentication.not_finished("within socket_connection_setup_timeout_ms")
            return TransportError(f"the broker did not answer{waited}, during SASL authentication")
        return TransportError(f"the peer accepted the connection but did not answer{waited}: {self._handshake.advice}")

    def _unrenewed_error(self) -> KafkaError:
        """The error of a renewal that took too long."""
        assert self._authentication is not None
        within = f"within {self._renewal_timeout:.3g} s"
        late = (
            f"no answer to {self._open[0].name} {within}"
            if self._open and self._open[0].is_setup
            else self._authentication.not_finished(within).message
        )
        return TransportError(f"the SASL session could not be renewed: {late}; the connection is closed")

    def _answer_too_large(self, error: ResponseTooLargeError) -> None:
        """Fail the oldest call with ``error``; later calls may be sent again on another connection."""
        call = self._open.popleft()
        error.broker, error.api = self.broker, call.name
        self._poison(TransportError(f"the connection was closed because of another request's answer: {error.message}"))
        call.fail(error)

    def _redial(self, now: float) -> None:
        self.state = State.CONNECTING
        self._open.clear()
        self._out.clear()
        self.last_activity = now
        self._actions.append(Redial())

    def _poison(self, error: KafkaError) -> None:
        """Fail every call with this one error, and close."""
        if self.state is State.CLOSED:
            return
        self._names.in_error(error)
        if error.broker is None:
            error.broker = self.broker
        if isinstance(error, SecurityError):
            self.is_refused = True
            if self._may_pass and not self.was_ready:
                error = passing(error)
        self.state, self.error = State.CLOSED, error
        calls = [*self._open, *self._unanswered, *self._held]
        for emptied in (self._open, self._held, self._unanswered, self._deadlines, self._out):
            emptied.clear()
        self._actions.append(Close(error))
        for call in calls:
            call.fail(error)
