"""The interface between a connection and a SASL mechanism (RFC 4422)."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Mechanism"]


class Mechanism(Protocol):
    """One authentication exchange of one connection.  Each connection, and each renewal, makes a new one.

    The connection sends what :meth:`respond` returns and passes in what the broker answers, until ``respond`` returns
    None: authentication has succeeded.  Kafka answers the last token too, with an empty one, in all mechanisms but
    GSSAPI on brokers before 1.0; those do not answer once ``is_complete`` is True.
    """

    @property
    def name(self) -> str:
        """The name in SaslHandshake, such as ``"SCRAM-SHA-256"``."""

    @property
    def is_complete(self) -> bool:
        """True if this side has nothing more to check: the last token was made, or the broker has proved itself."""

    @property
    def is_last_token_answered(self) -> bool:
        """False if a broker that takes bare tokens (SaslHandshake v0, or none) does not answer the last one."""

    @property
    def may_be_followed(self) -> bool:
        """True if requests may follow the token made last, in a renewal, before the broker has answered it.

        True only for the last of several tokens: the broker then answers with success or an error code.
        """

    async def respond(self, challenge: bytes | None) -> bytes | None:
        """The token to send after ``challenge`` (None at the start), or None if the exchange has succeeded.

        AuthenticationError for credentials that cannot be used and for a broker that breaks the mechanism's rules or
        does not prove that it knows the password.  Blocking work runs in a thread.
        """
