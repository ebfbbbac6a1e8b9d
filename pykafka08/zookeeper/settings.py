"""Settings of the bridge to ZooKeeper, checked once, before anything is sent."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pykafka08.config import Address
from pykafka08.errors import ConfigError
from pykafka08.security.client_key import KeySettings, load_key_files
from pykafka08.security.hidden_text import hidden
from pykafka08.security.secret import Secret
from pykafka08.zookeeper.operations import Acl

__all__ = ["ZooKeeperConfig", "parse_servers", "path_fault", "without_secrets"]

DEFAULT_PORT = 2181
LEAST_SESSION_MS, MOST_SESSION_MS = 100, 2**31 - 1
MECHANISMS = ("DIGEST-MD5", "GSSAPI")
SECRETS = ("sasl_password", "tls_key_password")
KEY_SETTINGS = KeySettings("tls_certificate_file", "tls_key_file", "tls_key_password")


def without_secrets(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of keyword arguments with :class:`Secret` objects as passwords, so that no traceback shows one."""
    protected = dict(settings)
    for name in SECRETS:
        if isinstance(protected.get(name), str):
            protected[name] = Secret(protected[name])
    credentials = protected.get("auth")
    if isinstance(credentials, str):
        protected["auth"] = Secret(credentials)
    elif isinstance(credentials, Sequence):
        protected["auth"] = tuple(_without_secret(each) for each in credentials)
    return protected


def _without_secret(credential: object) -> object:
    """Everything but the scheme of a pair is a secret, in pairs of the wrong form too."""
    if isinstance(credential, str):
        return Secret(credential)
    if not isinstance(credential, Sequence):
        return credential
    scheme, *others = credential or [""]
    return (scheme, *(Secret(each) if isinstance(each, str) else each for each in others))


def path_fault(path: object) -> str | None:
    """Why this is no path of a node, None if it is one: it begins with a slash and has no empty and no dotted part."""
    if not isinstance(path, str) or not path.startswith("/"):
        return "it does not begin with a slash"
    if path == "/":
        return None
    parts = path[1:].split("/")
    if "" in parts:
        return "a part of it is empty"
    if "." in parts or ".." in parts:
        return "a part of it is dots alone"
    if "\0" in path:
        return "it has a NUL"
    return None


def parse_servers(text: object) -> tuple[tuple[Address, ...], str]:
    """``"h1:2181,h2/chroot"`` as addresses and the chroot, which is empty or begins with a slash."""
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f"zookeeper={text!r} is not a string of the form 'host:2181,host:2181/chroot'")
    if "://" in text:
        raise ConfigError(f"zookeeper={text!r}: write host:port, without a protocol")
    hosts, slash, chroot = text.strip().partition("/")
    chroot = (slash + chroot).rstrip("/")
    fault = path_fault(chroot) if chroot else None
    if fault:
        raise ConfigError(f"zookeeper={text!r}: the chroot {chroot!r} is no path: {fault}")
    if "/" in chroot and any(sign in chroot for sign in ",:"):
        raise ConfigError(f"zookeeper={text!r}: the chroot is written once, after the last server")
    addresses = tuple(_parse_address(part.strip(), text) for part in hosts.split(",") if part.strip())
    if not addresses:
        raise ConfigError(f"zookeeper={text!r} names no server")
    return addresses, chroot


def _parse_address(part: str, whole: str) -> Address:
    if part.startswith("["):
        host, _, port = part[1:].partition("]")
        port = port.removeprefix(":")
    elif part.count(":") > 1:
        host, port = part, ""
    else:
        host, _, port = part.partition(":")
    if not host:
        raise ConfigError(f"zookeeper={whole!r}: {part!r} has no host")
    if port and not (port.isascii() and port.isdigit() and len(port) < 20 and 0 < int(port) < 65536):
        raise ConfigError(f"zookeeper={whole!r:.100}: {part!r:.100} has no valid port")
    return host, int(port) if port else DEFAULT_PORT


@dataclass(frozen=True, kw_only=True)
class ZooKeeperConfig:
    """How to reach an ensemble.  Times in milliseconds; secrets are not shown by ``repr``."""

    servers: str
    session_timeout_ms: int = 6000
    connection_timeout_ms: int | None = None
    """How long opening may take; the session's time-out if None."""
    request_timeout_ms: int = 15_000
    """Deadline of a call that was given no ``timeout``."""
    auth: Sequence[tuple[str, Secret | str]] = field(default=(), repr=False)
    """Pairs of scheme and credential: ``("digest", "user:password")``."""
    acl: Acl | None = None
    """Of the nodes that are made; open to everybody if None."""
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: Secret | str | None = field(default=None, repr=False)
    tls: bool = False
    tls_ca_file: str | None = None
    tls_certificate_file: str | None = None
    tls_key_file: str | None = None
    tls_key_password: Secret | str | None = field(default=None, repr=False)
    tls_check_hostname: bool = True
    """Must be True.  To turn the check off, set ``tls_insecure_skip_hostname_check=True``."""
    tls_insecure_skip_hostname_check: bool = False
    """Accept a certificate that was issued for another host."""
    name: str = ""
    """Appears in the name of the thread and in log lines."""

    def __post_init__(self) -> None:
        parse_servers(self.servers)
        limits = {
            "session_timeout_ms": (LEAST_SESSION_MS, MOST_SESSION_MS),
            "connection_timeout_ms": (1, MOST_SESSION_MS),
            "request_timeout_ms": (1, MOST_SESSION_MS),
        }
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if value is None and name == "connection_timeout_ms":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise ConfigError(f"{name}={value!r} is not a whole number from {least} to {most}")
        for name, value in without_secrets(vars(self)).items():
            object.__setattr__(self, name, value)
        if not isinstance(self.auth, Sequence) or not all(_is_pair(each) for each in self.auth):
            raise ConfigError("auth is not a list of pairs such as ('digest', 'user:password')")
        self._check_texts()
        self._check_sasl()
        if self.tls_check_hostname is not True:
            raise ConfigError(
                f"tls_check_hostname={self.tls_check_hostname!r} is not supported; "
                "tls_insecure_skip_hostname_check=True accepts a certificate of another host"
            )
        if not self.tls and (self.tls_ca_file or self.tls_certificate_file or self.tls_key_file):
            raise ConfigError("tls_... files are given, but tls=True is not")

    def _check_texts(self) -> None:
        """Codecs name the text that they cannot encode; kazoo would raise such an error with the password in it."""
        texts = [("auth", each) for _, each in self.auth] + [(name, getattr(self, name)) for name in SECRETS]
        for name, value in texts:
            if isinstance(value, Secret) and not _is_unicode(value):
                raise ConfigError(f"{name} has a character that UTF-8 cannot encode (a lone surrogate)")

    def _check_sasl(self) -> None:
        if self.sasl_mechanism is None:
            if self.sasl_username is not None or self.sasl_password is not None:
                raise ConfigError("sasl_username and sasl_password need sasl_mechanism='DIGEST-MD5'")
            return
        if self.sasl_mechanism not in MECHANISMS:
            raise ConfigError(f"sasl_mechanism={self.sasl_mechanism!r} is not one of {', '.join(MECHANISMS)}")
        if self.sasl_mechanism == "DIGEST-MD5" and not (self.sasl_username and self.sasl_password):
            raise ConfigError("sasl_mechanism='DIGEST-MD5' needs sasl_username and sasl_password")
        try:
            import puresasl  # noqa: F401
        except ImportError:
            raise ConfigError(
                "sasl_mechanism needs the package pure-sasl: pip install 'pykafka08[zookeeper-sasl]'"
            ) from None

    @cached_property
    def addresses(self) -> tuple[Address, ...]:
        return parse_servers(self.servers)[0]

    @cached_property
    def chroot(self) -> str:
        """Empty, or a path."""
        return parse_servers(self.servers)[1]

    @cached_property
    def shown_servers(self) -> str:
        return ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.addresses)

    def credentials(self) -> set[tuple[str, str]]:
        """``auth`` as kazoo takes it."""
        return {(scheme, hidden(Secret(text))) for scheme, text in self.auth}

    def sasl_options(self) -> dict[str, Any] | None:
        """As kazoo takes them."""
        if self.sasl_mechanism is None:
            return None
        options: dict[str, Any] = {"mechanism": self.sasl_mechanism}
        if self.sasl_mechanism == "DIGEST-MD5":
            options.update(username=self.sasl_username, password=hidden(Secret(self.sasl_password or "")))
        return options

    def tls_context(self) -> ssl.SSLContext | None:
        """A new context with these files; ConfigError that names the one that cannot be used."""
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.tls_ca_file)
        except OSError as error:
            reason = getattr(error, "reason", None) or error.strerror
            raise ConfigError(f"tls_ca_file={self.tls_ca_file!r} cannot be used: {reason}") from error
        context.check_hostname = not self.tls_insecure_skip_hostname_check
        if self.tls_certificate_file:
            password = Secret(self.tls_key_password) if self.tls_key_password else None
            load_key_files(context, self.tls_certificate_file, self.tls_key_file, password, KEY_SETTINGS)
        return context


def _is_pair(each: object) -> bool:
    if not isinstance(each, tuple) or len(each) != 2:
        return False
    scheme, credential = each
    return isinstance(scheme, str) and isinstance(credential, str | Secret) and bool(scheme) and bool(credential)


def _is_unicode(secret: Secret) -> bool:
    try:
        secret.reveal().encode()
    except UnicodeEncodeError:
        return False
    return True
