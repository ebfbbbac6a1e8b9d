"""SASL on one connection, as pure decisions: which request carries which token, and what each answer means.

The tokens themselves come from a mechanism (``security.sasl``), which may wait for a thread or a server, so that the
connection's driver asks it.  Correlation ids are in ``machine``.

    the broker has          requests
    SaslHandshake v1 (1.0)  SaslHandshake, then SaslAuthenticate for each token
    SaslHandshake v0        SaslHandshake, then each token bare, as a frame of its own
    neither (0.9)           bare tokens; GSSAPI alone

A session that the broker limits is renewed on the same connection before it ends (KIP-368).  SaslHandshake and the
first token leave together then.  Until the broker has the last token it refuses other requests; those may follow that
token at once, where the broker answers it with success or an error code and nothing else:

                     round trips for which requests are held
    PLAIN            1: the token's
    OAUTHBEARER      1: the token's, as a broker that refuses it waits for another token
    SCRAM            1: the first token's; requests follow the second one
    GSSAPI           one for each token but the last

Sources: KIP-43, KIP-152, KIP-368; observed on real brokers (requests behind the last token: 2.8.2, 3.9.2,
4.3.1).
"""

from __future__ import annotations

import re
from typing import Any

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import AuthenticationError, KafkaError, TransportError
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from pykafka08.protocol.schema import Request
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.security.secret import Secret
from pykafka08.short_names import shortened
from pykafka08.wire import Buffer

__all__ = ["Authentication"]

CREDENTIALS = {
    "PLAIN": "check sasl_plain_username and sasl_plain_password",
    "SCRAM-SHA-256": "check sasl_plain_username and sasl_plain_password",
    "SCRAM-SHA-512": "check sasl_plain_username and sasl_plain_password",
    "OAUTHBEARER": "check the token: its issuer, audience, scope, times and signature",
    "AWS_MSK_IAM": "check the AWS credentials, the region, and the IAM policy",
    "GSSAPI": "check the principal, the ticket and sasl_kerberos_service_name",
}
"""What to do about refused credentials."""
HINT_IF_DELEGATED = (
    "check that sasl_plain_username and sasl_plain_password are the id and the HMAC "
    "of a delegation token that has not expired"
)

LONGEST_REASON = 500
MOST_MECHANISMS = 20


class Authentication:
    """SASL of one connection; :meth:`begin` starts it, and starts it again for each renewal.

    ``mechanism`` is its name in SaslHandshake, ``setting`` the one in ``sasl_mechanism``.  ``uses_tls``: TLS is
    established.
    ``credentials_source`` supplies the credentials (:attr:`Login.source`).  ``was_served``: a broker of the cluster has
    accepted credentials from there before.
    """

    def __init__(
        self,
        mechanism: str,
        broker: str,
        *,
        setting: str | None = None,
        uses_tls: bool = False,
        credentials_source: str | None = None,
        was_served: bool = False,
        is_delegation_token: bool = False,
    ) -> None:
        self.broker = broker
        self.mechanism = mechanism
        self._is_delegation_token = is_delegation_token
        self._setting = setting or mechanism
        self._uses_tls = uses_tls
        self._credentials_source = credentials_source
        self._was_served = was_served
        self.lifetime = 0.0
        """Seconds after which the broker wants the authentication renewed; 0 for never."""
        self.is_done = False
        self.is_renewal = False
        self._handshake_version: int | None = None
        self._token_version: int | None = None
        self._is_handshake_due = False
        self._is_handshake_open = False
        self._token: bytes | None = None
        self._ends_with_token = False
        self._refusal: str | None = None
        self.failure: KafkaError | None = None
        """The mechanism's error while the answer to SaslHandshake is due; the broker may answer that it lacks the
        mechanism, which is the better error."""
        self._has_sent_token = False
        self._sent: list[Secret] = []
        self._is_answer_due = False

    @property
    def takes_bare_frames(self) -> bool:
        """True if the next frame from the broker is a token without a header."""
        return self._is_answer_due and self._token_version is None and not self.is_done

    def begin(self, versions: BrokerVersions, *, is_renewal: bool = False) -> None:
        """Authenticate with a broker that serves these versions."""
        theirs = versions.ranges.get(SaslHandshakeRequest.api_key)
        self._handshake_version = None if theirs is None else min(theirs.max, SaslHandshakeRequest.versions.max)
        self._token_version = versions.pick(SaslAuthenticateRequest) if self._handshake_version else None
        self._is_handshake_due = self._handshake_version is not None
        self._is_handshake_open = self._has_sent_token = self._is_answer_due = self.is_done = False
        self._ends_with_token = False
        self._token = self._refusal = None
        self._sent = []
        self.is_renewal = is_renewal

    def token_made(self, token: bytes | None, *, is_answered: bool = True, refusal: str | None = None) -> None:
        """The mechanism's next token; None if it has succeeded.

        ``is_answered`` False: a bare one gets no answer.  ``refusal``: why the broker has refused the token before.
        """
        self._refusal = refusal
        self._token = token
        self._ends_with_token = not is_answered and self._token_version is None
        self.is_done = token is None

    def failed(self, error: KafkaError) -> KafkaError | None:
        """The mechanism has raised ``error``.  The error to end with; None if it is kept as :attr:`failure` for now."""
        error = self.without_credentials(error)
        if not self._is_handshake_open:
            return error
        self.failure = error
        return None

    def next_messages(self) -> list[tuple[Request[Any], int] | bytes]:
        """What can be sent now: requests with their versions, and bare tokens."""
        messages: list[tuple[Request[Any], int] | bytes] = []
        if self._is_handshake_due and (self._token is not None or not self.is_renewal):
            assert self._handshake_version is not None
            messages.append((SaslHandshakeRequest(mechanism=self.mechanism), self._handshake_version))
            self._is_handshake_due, self._is_handshake_open = False, True
        if self._token is not None and (self.is_renewal or not self._is_handshake_open):
            token, self._token = self._token, None
            self._sent += secrets_in(token)
            self._has_sent_token = self._is_answer_due = True
            self.is_done = self._ends_with_token
            if self._token_version is None:
                messages.append(token)
            else:
                messages.append((SaslAuthenticateRequest(auth_bytes=token), self._token_version))
        return messages

    def handshake_answered(self, answer: SaslHandshakeResponse) -> None:
        """Raises AuthenticationError if the broker does not offer the mechanism, else :attr:`failure` if it is set."""
        self._is_handshake_open = False
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(sorted(shortened(each) for each in answer.mechanisms[:MOST_MECHANISMS])) or "none"
            wanted = f"sasl_mechanism={self._setting!r}"
            if self._setting != self.mechanism:
                wanted = f"{self.mechanism}, which {wanted} uses"
            raise self._refused(f"the broker does not offer {wanted}; it offers {offered}")
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE and not self.is_renewal:
            raise self._refused(
                "the listener does not use SASL: set security_protocol to "
                f"{'SSL' if self._uses_tls else 'PLAINTEXT'}, or connect to another port"
            )
        if answer.error_code:
            code = ErrorCode.of(answer.error_code)
            raise self._refused(f"the broker refused SaslHandshake: {getattr(code, 'name', code)}")
        if self.failure is not None:
            raise self.failure

    def token_answered(self, answer: SaslAuthenticateResponse) -> bytes:
        """The broker's token; AuthenticationError if it refused ours."""
        if answer.error_code:
            code = ErrorCode.of(answer.error_code)
            # A broker may repeat what it was sent; a secret that the limit cuts would no longer be found.
            reason = without_secrets(answer.error_message or "", self._sent)[:LONGEST_REASON]
            reason = reason or getattr(code, "meaning", f"error code {code}")
            if self._refusal is not None and reason.lstrip().startswith("{"):
                # Kafka repeats the JSON of its last token.
                reason, self._refusal = self._refusal, None
            raise self._refused(f"the broker refused the credentials: {reason}")
        self.lifetime = max(0, answer.session_lifetime_ms) / 1000
        return answer.auth_bytes

    def bare_token_received(self, frame: Buffer) -> bytes:
        """The broker's token; no other token may come before the client has answered."""
        self._is_answer_due = False
        return bytes(frame)

    def not_finished(self, text: str = "in time") -> KafkaError:
        """The error if the mechanism has made no token ``text``, such as "within 2 s"."""
        if self._credentials_source is None:
            return TransportError(f"SASL authentication was not finished {text}", broker=self.broker)
        return self.without_credentials(
            TransportError(f"{self._credentials_source} returned no credentials {text}", broker=self.broker)
        )

    def without_credentials(self, error: KafkaError) -> KafkaError:
        """The error if there are no credentials because of ``error``.

        A TransportError is tried again if the source has worked before, and an AuthenticationError if it has not.
        """
        if self._was_served or not isinstance(error, TransportError):
            return error
        failure = AuthenticationError(error.message, mechanism=self.mechanism, broker=self.broker)
        failure.__cause__ = error
        return failure

    def closed(self, error: TransportError) -> KafkaError:
        """The error of a connection that ended before authentication did."""
        if self.failure is not None:
            return self.failure
        if self._has_sent_token and self._token_version is None:
            refused = self._refused(
                "the broker closed the connection after the credentials were sent, as releases before 1.0 do to refuse "
                "them"
            )
            refused.__cause__ = error
            return refused
        return TransportError(f"{error.message} during SASL authentication", broker=self.broker)

    def _refused(self, text: str) -> AuthenticationError:
        hint = CREDENTIALS.get(self._setting) or CREDENTIALS.get(self.mechanism)
        if self._is_delegation_token:
            hint = HINT_IF_DELEGATED
        details = f" ({self._refusal})" if self._refusal else ""
        ending = f"; {hint}" if hint and "credentials" in text else ""
        return AuthenticationError(f"{text}{details}{ending}", mechanism=self.mechanism, broker=self.broker)


def secrets_in(token: bytes) -> list[Secret]:
    """The password of PLAIN, the access token of OAUTHBEARER, or the proof of SCRAM, in a token for the broker."""
    text = token.decode("utf-8", "replace")
    _, separator, password = text.rpartition("\0")
    if separator:
        return [Secret(password)] if password else []
    return [Secret(each) for each in re.findall(r"(?:\x01auth=Bearer |,p=)([^\x01,]+)", text)]


def without_secrets(text: str, secrets: list[Secret]) -> str:
    """A broker's text with *** in place of each secret."""
    for secret in secrets:
        text = text.replace(secret.reveal(), "***")
    return text
