"""Errors of the Kerberos library, as sentences that say what to change.

The library reports an error as two numbers: a major code of GSSAPI, and a minor code, which for Kerberos is an entry of
MIT's error tables (``krb5.h``).  Its own text follows ours in parentheses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pykafka08.errors import AuthenticationError, SecurityError, TransportError
from pykafka08.short_names import shortened

__all__ = ["NAME", "KerberosIdentity", "failure_of", "kdc_silent"]

NAME = "GSSAPI"
FIRST_CODE = 2**32 - 1765328384
"""Number of Kerberos' first error, without a sign."""

KDC_UNREACHABLE = 156
CACHE_ABSENT = 195
TICKET_EXPIRED = 32
MAJOR_CODES = {11 << 16: TICKET_EXPIRED}
"""Errors that have no minor code: GSS_S_CREDENTIALS_EXPIRED."""
ROUTINE_ERROR = 0xFF << 16
"""The part of a major code that is the error."""
BAD_INTEGRITY = 31

_CLOCK = "the clocks of this machine, the broker and the KDC differ by too much", "synchronise them (NTP)"
_NO_TICKET = (
    "there is no ticket for {principal}",
    "run kinit, or set sasl_kerberos_principal and sasl_kerberos_keytab",
)
_WRONG_KEY = (
    "the key in {keytab} is not the one of {principal}",
    "its password was changed, or the keytab is old: export the keytab again",
)
_CONFIG = "krb5.conf is not usable", "correct /etc/krb5.conf, or the file that KRB5_CONFIG names"
_CACHE = "the credential cache cannot be used", "check sasl_kerberos_ticket_cache or KRB5CCNAME, and run kinit again"
_BROKERS_KEY = (
    "the broker has no valid key of {service}",
    "connect by the host name in the broker's principal or set sasl_kerberos_domain_name; else the broker's keytab is "
    "old",
)

REASONS = {
    1: ("the account of {principal} has expired", "have the KDC's administrator extend it"),
    6: ("the KDC does not know {principal}", "check sasl_kerberos_principal and its realm"),
    7: (
        "the KDC does not know the service {service}",
        "check sasl_kerberos_service_name, connect by the host name in the broker's principal or set "
        "sasl_kerberos_domain_name, and set rdns = false in krb5.conf if reverse DNS gives another name",
    ),
    12: ("the KDC's policy forbids a ticket", "ask the KDC's administrator"),
    14: ("the KDC does not have the encryption types of this client", "see permitted_enctypes in krb5.conf"),
    18: ("the account of {principal} is locked", "have the KDC's administrator unlock it"),
    23: ("the password of {principal} has expired", "change it, and export the keytab again"),
    24: _WRONG_KEY,
    BAD_INTEGRITY: _WRONG_KEY,
    TICKET_EXPIRED: (
        "the ticket of {principal} has expired",
        "run kinit, or set sasl_kerberos_keytab to have it renewed",
    ),
    33: _CLOCK,
    35: _BROKERS_KEY,
    36: _BROKERS_KEY,
    37: _CLOCK,
    44: _BROKERS_KEY,
    45: _BROKERS_KEY,
    133: ("sasl_kerberos_principal={principal} is malformed", "write it as name@REALM"),
    134: ("sasl_kerberos_principal={principal} is malformed", "write it as name@REALM"),
    135: _CONFIG,
    136: _CONFIG,
    141: _NO_TICKET,
    148: _CLOCK,
    154: ("krb5.conf names no KDC for the realm", "add the realm with its kdc, or correct the realm of the principal"),
    KDC_UNREACHABLE: ("no KDC answers", "check the kdc of the realm in krb5.conf, DNS and the network"),
    193: _CACHE,
    194: _CACHE,
    CACHE_ABSENT: _NO_TICKET,
    199: _CACHE,
    212: _CACHE,
    224: ("krb5.conf names no default realm", "set default_realm there, or write the principal as name@REALM"),
    237: ("krb5.conf permits no encryption type that the library has", "correct permitted_enctypes there"),
}
"""What has happened and what to do, by the number of the error in Kerberos' table."""

OF_THE_BROKER = {BAD_INTEGRITY: _BROKERS_KEY}
"""Errors with another meaning after the first token was sent."""

WITH_KEYTAB = {
    141: ("{keytab} has no key of {principal}", "compare sasl_kerberos_principal with klist -k {keytab}"),
    CACHE_ABSENT: ("{keytab} has no key of {principal}", "compare sasl_kerberos_principal with klist -k {keytab}"),
}
"""Errors with another meaning if there is a keytab."""


@dataclass(frozen=True)
class KerberosIdentity:
    """Who authenticates to which service, for errors."""

    service: str
    principal: str = "the default principal"
    keytab: str | None = None
    may_pass: bool = False
    """True if these credentials have worked before: then an unreachable KDC is a temporary failure."""

    def named(self, principal: str) -> KerberosIdentity:
        return replace(self, principal=shortened(principal))

    def error(self, reason: str, advice: str = "", said: str = "") -> AuthenticationError:
        return AuthenticationError(self._text(reason, advice, said), mechanism=NAME)

    def kdc_error(self, reason: str, advice: str, said: str = "") -> SecurityError | TransportError:
        """The error of a KDC that does not answer."""
        if self.may_pass:
            return TransportError(self._text(reason, advice, said))
        return self.error(reason, advice, said)

    def _text(self, reason: str, advice: str, said: str) -> str:
        keytab = f"sasl_kerberos_keytab={self.keytab!r}"
        facts = {"principal": self.principal, "service": self.service, "keytab": keytab}
        text = reason.format(**facts)
        missing = [
            f"{word} {name}"
            for word, name in (("service", self.service), ("principal", self.principal))
            if name not in text and not name.startswith("the ")
        ]
        about = f" ({', '.join(missing)})" if missing else ""
        ending = f"; {advice.format(**facts)}" if advice else ""
        return f"{NAME}: {text}{about}{ending}{f' ({said})' if said else ''}"


def failure_of(error: Any, identity: KerberosIdentity, *, is_broker_involved: bool) -> SecurityError | TransportError:
    """The error for one of the library ``gssapi``.

    ``is_broker_involved``: the broker has sent a token, so a wrong key is the broker's.
    """
    code = MAJOR_CODES.get(getattr(error, "maj_code", 0) & ROUTINE_ERROR, getattr(error, "min_code", 0) - FIRST_CODE)
    said = shortened(_text_of(error))
    known = REASONS.get(code)
    if is_broker_involved:
        known = OF_THE_BROKER.get(code, known)
    elif identity.keytab is not None:
        known = WITH_KEYTAB.get(code, known)
    if known is None:
        what = "the broker's token is not accepted" if is_broker_involved else "the Kerberos library failed"
        return identity.error(what, "", said)
    if code == KDC_UNREACHABLE:
        return identity.kdc_error(*known, said)
    return identity.error(*known, said)


def kdc_silent(identity: KerberosIdentity, seconds: float) -> SecurityError | TransportError:
    """The error of a call to the library that is still waiting for a KDC."""
    return identity.kdc_error(f"no KDC has answered in {seconds:g} s", REASONS[KDC_UNREACHABLE][1])


def _text_of(error: Any) -> str:
    """The library's own words: those of Kerberos, or else those of GSSAPI."""
    statuses = getattr(error, "get_all_statuses", None)
    if statuses is None:
        return str(error)
    texts = [text for text in statuses(error.min_code, False) if text not in ("", "Success")]
    return "; ".join(texts or statuses(error.maj_code, True))
