"""Facts about a client's connection that its requests are answered by."""

from __future__ import annotations

from pykafka08.broker.security.sasl_session import SaslSession

__all__ = ["ConnectionContext"]


class ConnectionContext:
    """``certificate_user`` is the user whom the client's certificate names; None without one."""

    __slots__ = ("certificate_user", "client_host", "listener", "sasl", "state")

    def __init__(
        self, client_host: str, listener: str, *, sasl: SaslSession | None = None, certificate_user: str | None = None
    ) -> None:
        self.client_host = client_host
        """The client's address."""
        self.listener = listener
        """The name of the listener that the client is connected to."""
        self.sasl = sasl
        """SASL of the connection; None on a listener without."""
        self.certificate_user = certificate_user
        self.state: dict[str, object] = {}
        """Notes of handlers, such as the client's name from ApiVersions."""

    @property
    def user(self) -> str | None:
        """The authenticated user; None without authentication.  SASL takes precedence, as in Kafka."""
        if self.sasl is not None:
            return None if self.sasl.principal is None else self.sasl.principal.name
        return self.certificate_user
