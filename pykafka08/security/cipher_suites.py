"""IANA names of cipher suites, as Java uses them, and OpenSSL's names."""

from __future__ import annotations

import re

from pykafka08.errors import ConfigError

__all__ = ["openssl_ciphers"]

TLS_1_3 = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
SIGNALS = frozenset({"TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "TLS_FALLBACK_SCSV"})
"""Names in Java's lists that are not cipher suites."""
_NAME = re.compile(
    r"TLS_(?P<exchange>ECDHE_ECDSA|ECDHE_RSA|DHE_RSA|RSA)_WITH_"
    r"(?P<cipher>AES_128|AES_256|CHACHA20)_(?P<mode>GCM|CBC|POLY1305)_(?P<hash>SHA256|SHA384|SHA)"
)


def openssl_ciphers(names: str) -> tuple[str, bool]:
    """OpenSSL's list of the TLS 1.2 suites among these names, and whether TLS 1.3 may be used.

    Python cannot choose among the suites of TLS 1.3: they are given all together or not at all, else ConfigError.
    """
    kind = type(names)  # text that is hidden stays so
    given = [kind(name.strip()) for name in names.split(",") if name.strip()]
    newest = TLS_1_3 & set(given)
    if newest and not newest >= TLS_1_3 - {"TLS_CHACHA20_POLY1305_SHA256"}:
        raise ConfigError(
            f"ssl_cipher_suites: name all cipher suites of TLS 1.3 or none, not only {', '.join(sorted(newest))} alone"
        )
    older = [_openssl_name(name) for name in given if name not in TLS_1_3 | SIGNALS]
    return ":".join(older), bool(newest)


def _openssl_name(name: str) -> str:
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError(f"ssl_cipher_suites: {name!r:.100} cannot be used; OpenSSL's names go into ssl_ciphers")
    exchange = "" if match["exchange"] == "RSA" else match["exchange"].replace("_", "-") + "-"
    if match["cipher"] == "CHACHA20":
        return f"{exchange}CHACHA20-POLY1305"
    cipher = match["cipher"].replace("_", "")
    mode = "GCM-" if match["mode"] == "GCM" else ""
    return f"{exchange}{cipher}-{mode}{match['hash']}"
