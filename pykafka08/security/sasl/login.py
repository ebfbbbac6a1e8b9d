"""Credentials of one client, and the mechanism that they are for.

A login lives as long as its client and makes a :class:`Mechanism` for each connection and each renewal.  What those
share, such as a token that is still valid, belongs to the login.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from pykafka08.errors import ConfigError
from pykafka08.security.jaas import meant_mechanism
from pykafka08.security.sasl.mechanism import Mechanism
from pykafka08.security.settings import SecurityConfig

__all__ = ["Login", "login_of"]

MODULES = {
    "AWS_MSK_IAM": "aws_msk_iam",
    "GSSAPI": "kerberos",
    "OAUTHBEARER": "oauthbearer",
    "PLAIN": "plain",
    "SCRAM-SHA-256": "scram",
    "SCRAM-SHA-512": "scram",
}
"""Module of each mechanism, which has ``login_of(config)``.  Imported on first use: some need an extra."""


class Login(Protocol):
    """The credentials of one client."""

    @property
    def name(self) -> str:
        """The mechanism's name in SaslHandshake."""

    @property
    def source(self) -> str | None:
        """Name of the setting whose function or URL supplies the credentials; None if the settings contain them."""

    def mechanism(self, host: str) -> Mechanism:
        """An exchange with the broker on ``host``, the name or address that the client connects to."""


def login_of(config: SecurityConfig) -> Login:
    """The login for ``sasl_mechanism``; ConfigError if the settings lack a credential or an extra is not installed."""
    name = config.sasl_mechanism
    if name is None:
        known = ", ".join(sorted(MODULES))
        raise ConfigError(f"security_protocol={config.security_protocol!r} needs sasl_mechanism: set one of {known}")
    module = MODULES.get(name)
    if module is None:
        meant = meant_mechanism(name, MODULES)
        advice = f"; {meant}" if meant else ""
        raise ConfigError(f"sasl_mechanism={name!r:.100} is not one of {', '.join(sorted(MODULES))}{advice}")
    login: Login = import_module(f"pykafka08.security.sasl.{module}").login_of(config)
    return login
