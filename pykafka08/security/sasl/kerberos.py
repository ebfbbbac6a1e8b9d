"""SASL GSSAPI with Kerberos (RFC 4752), through the library ``gssapi`` and the Kerberos library of the system.

Tickets come from a keytab, or from a credential cache that ``kinit`` fills.  Each exchange asks the library for new
credentials: the library gets a new ticket from the keytab when half of the old ticket's life is over, and reads what
``kinit`` has written.  Its calls block, so they run in threads.
"""

from __future__ import annotations

import errno
import ipaddress
import itertools
import os
import socket
import weakref
from importlib import import_module
from typing import Any

import anyio
import anyio.to_thread

from pykafka08.errors import AuthenticationError, ConfigError
from pykafka08.security.sasl.kerberos_errors import NAME, KerberosIdentity, failure_of, kdc_silent
from pykafka08.security.settings import SecurityConfig
from pykafka08.short_names import shortened

__all__ = ["KerberosLogin", "login_of"]

KDC_SECONDS = 8.0
"""Time limit for getting the tickets of one exchange.  It is shorter than ``socket_connection_setup_timeout_ms``, whose
error would not name the KDC."""
LONGEST_CHALLENGE = 65_536
NO_SECURITY_LAYER = 1
SECURITY_LAYERS = {1: "none (auth)", 2: "integrity (auth-int)", 4: "confidentiality (auth-conf)"}
KEYTAB_MAGIC = 5


def login_of(config: SecurityConfig) -> KerberosLogin:
    """The login for GSSAPI; ConfigError if the extra or the Kerberos library is missing, or a setting is unusable."""
    return KerberosLogin(config)


class KerberosLogin:
    """Principal and tickets of one client."""

    name = NAME
    source = "the Kerberos library"

    def __init__(self, config: SecurityConfig) -> None:
        self._library = _library()
        service = config.sasl_kerberos_service_name
        if not service or set(service) & set("/@\0"):
            shown = shortened(repr(service))
            raise ConfigError(f"sasl_kerberos_service_name={shown} is not a service alone, such as 'kafka'")
        for name in ("principal", "keytab", "ticket_cache", "domain_name"):
            value = getattr(config, f"sasl_kerberos_{name}")
            if value is not None and (not value or "\0" in value):
                raise ConfigError(f"sasl_kerberos_{name} is empty or has a NUL character")
        self._service = service
        self._domain = config.sasl_kerberos_domain_name
        self._principal = config.sasl_kerberos_principal
        self._keytab = config.sasl_kerberos_keytab
        self._ticket_cache = config.sasl_kerberos_ticket_cache
        if self._keytab is not None:
            # In memory, so that the user's own cache is left alone.
            self._ticket_cache = _memory_caches.taken(self, (self._principal, self._keytab))
        self._full_name = self._principal
        """The principal with its realm, as soon as the library has told it."""
        self._lock: anyio.Lock | None = None
        self._is_asking = False
        self.has_served = False
        """True once a broker has proved its identity to these credentials."""

    def mechanism(self, host: str) -> _Kerberos:
        return _Kerberos(self, self._library, host)

    def identity(self, host: str) -> KerberosIdentity:
        """Who authenticates to the broker on ``host``."""
        identity = KerberosIdentity(shortened(f"{self._service}/{host}"), keytab=self._keytab, may_pass=self.has_served)
        return identity if self._full_name is None else identity.named(self._full_name)

    async def begin(self, host: str) -> tuple[Any, bytes, str]:
        """A new security context with the broker on ``host``, its first token, and the host in the broker's principal.

        One call at a time: the library empties a cache before it fills it again, and a KDC that is silent keeps at most
        one thread.
        """
        if self._lock is None:
            self._lock = anyio.Lock()
        async with self._lock:
            if self._is_asking:  # A call that was abandoned.
                raise kdc_silent(self.identity(host), KDC_SECONDS)
            with anyio.move_on_after(KDC_SECONDS):
                return await anyio.to_thread.run_sync(self._begin, host, abandon_on_cancel=True)
        raise kdc_silent(self.identity(host), KDC_SECONDS)

    def _begin(self, host: str) -> tuple[Any, bytes, str]:
        library = self._library
        self._is_asking = True
        try:
            host = self._domain.rstrip(".") if self._domain else _host_name(host)
            credentials = self._credentials(host)
            service = library.Name(f"{self._service}@{host}", library.NameType.hostbased_service)
            flags = library.RequirementFlag.mutual_authentication | library.RequirementFlag.integrity
            context = library.SecurityContext(
                name=service, creds=credentials, usage="initiate", mech=library.MechType.kerberos, flags=flags
            )
            return context, context.step() or b"", host
        except _errors(library) as error:
            raise failure_of(error, self.identity(host), is_broker_involved=False) from error
        finally:
            self._is_asking = False

    def _credentials(self, host: str) -> Any:
        library = self._library
        name = None
        if self._principal is not None:
            given = library.Name(self._principal, library.NameType.kerberos_principal)
            name = given.canonicalize(library.MechType.kerberos)
            self._full_name = str(name)
        store = {}
        if self._keytab is not None:
            _check_keytab(self._keytab, self.identity(host))
            store["client_keytab"] = self._keytab
        if self._ticket_cache is not None:
            store["ccache"] = self._ticket_cache
        try:
            credentials = library.Credentials(
                name=name, usage="initiate", mechs=[library.MechType.kerberos], store=store or None
            )
        except NotImplementedError:
            raise self.identity(host).error(
                "the Kerberos library of this system takes neither a keytab nor a cache by name",
                "leave out sasl_kerberos_keytab and sasl_kerberos_ticket_cache, and run kinit",
            ) from None
        if name is None:
            self._full_name = str(credentials.name)
        return credentials


class _Kerberos:
    """One exchange: tokens of Kerberos until both sides are known, then the choice of a security layer."""

    name = NAME
    is_last_token_answered = False

    def __init__(self, login: KerberosLogin, library: Any, host: str) -> None:
        self.is_complete = False
        self._login = login
        self._library = library
        self._host = host
        self._context: Any = None

    @property
    def may_be_followed(self) -> bool:
        return self.is_complete

    async def respond(self, challenge: bytes | None) -> bytes | None:
        if self._context is None:
            self._context, token, self._host = await self._login.begin(self._host)
            return token
        if self.is_complete:
            if challenge:
                raise self._wrong("the broker sent a token after the exchange")
            return None
        if not challenge or len(challenge) > LONGEST_CHALLENGE:
            size = "no" if not challenge else len(challenge)
            raise self._wrong(f"the broker's token has {size} bytes; 1 to {LONGEST_CHALLENGE} are accepted")
        return await anyio.to_thread.run_sync(self._answer, challenge, abandon_on_cancel=True)

    def _answer(self, challenge: bytes) -> bytes:
        context = self._context
        try:
            if not context.complete:
                return context.step(challenge) or b""
            self._check_broker()
            layers = context.unwrap(challenge).message
            answer = context.wrap(self._layer(layers) + str(context.initiator_name).encode(), False).message
        except _errors(self._library) as error:
            raise failure_of(error, self._login.identity(self._host), is_broker_involved=True) from error
        self.is_complete = self._login.has_served = True
        return bytes(answer)

    def _check_broker(self) -> None:
        if not self._context.actual_flags & self._library.RequirementFlag.mutual_authentication:
            raise self._wrong("the broker did not prove its identity")

    def _layer(self, offer: bytes) -> bytes:
        """Our choice among the offered security layers: none, and so no size of its messages either."""
        if len(offer) != 4:
            raise self._wrong(f"the broker's offer of security layers has {len(offer)} bytes, not 4")
        if not offer[0] & NO_SECURITY_LAYER:
            names = ", ".join(name for bit, name in SECURITY_LAYERS.items() if offer[0] & bit) or "none that is known"
            raise self._wrong(f"the broker demands a security layer ({names}), which Kafka's protocol does not have")
        return bytes((NO_SECURITY_LAYER, 0, 0, 0))

    def _wrong(self, text: str) -> AuthenticationError:
        return self._login.identity(self._host).error(text)


class _MemoryCaches:
    """Names of credential caches in memory.

    The library never frees such a cache.  One is used again by the next client with the same principal and keytab.
    """

    def __init__(self) -> None:
        self._free: dict[tuple[str | None, str], list[str]] = {}
        self._numbers = itertools.count(1)

    def taken(self, login: KerberosLogin, credentials: tuple[str | None, str]) -> str:
        """A name for this login alone, until it is garbage-collected."""
        free = self._free.setdefault(credentials, [])
        name = free.pop() if free else f"MEMORY:pykafka08-{next(self._numbers)}"
        weakref.finalize(login, free.append, name).atexit = False
        return name


_memory_caches = _MemoryCaches()


def _library() -> Any:
    try:
        return import_module("gssapi")
    except ModuleNotFoundError as error:
        raise ConfigError(
            "sasl_mechanism='GSSAPI' needs the extra 'gssapi': pip install 'pykafka08[gssapi]' "
            "(on Linux it is compiled: apt-get install gcc python3-dev libkrb5-dev)"
        ) from error
    except (ImportError, OSError) as error:
        raise ConfigError(
            f"sasl_mechanism='GSSAPI' needs the Kerberos library (apt-get install libgssapi-krb5-2): {error}"
        ) from error


def _errors(library: Any) -> tuple[type[Exception], ...]:
    """Every exception type of the library."""
    return library.exceptions.GSSError, library.exceptions.GeneralError


def _host_name(host: str) -> str:
    """The host part of a broker's principal; an IP address is looked up in reverse DNS, as Java's client does."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.rstrip(".")
    try:
        return socket.gethostbyaddr(host)[0]
    except OSError:
        return host


def _check_keytab(keytab: str, identity: KerberosIdentity) -> None:
    """Raise an error about the file, because the library's own error does not name it."""
    kind, colon, path = keytab.partition(":")
    if not colon:
        path = keytab
    elif kind not in ("FILE", "WRFILE"):
        return
    try:
        with open(path, "rb") as file:
            start = file.read(1)
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "")
        hints = {"ENOENT": "name the file that the KDC's administrator gave", "EACCES": "give this user read access"}
        user = f"user {os.getuid()}" if reason == "EACCES" and hasattr(os, "getuid") else "this process"
        raise identity.error(f"{user} cannot read {{keytab}}: {error.strerror}", hints.get(reason, "")) from error
    if start != bytes((KEYTAB_MAGIC,)):
        raise identity.error("{keytab} is not a keytab", "export one with kadmin's ktadd")
