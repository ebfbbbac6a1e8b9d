"""The peer's certificate in a TLS handshake that failed: its host names, and whether it came at all.

OpenSSL says that the certificate is for another host, not for which.  Python shows the certificate of a connection only
if it was accepted; :class:`NamedPeer` reads it where it was refused.
"""

from __future__ import annotations

import ssl

__all__ = ["NamedPeer", "came_before_certificate", "names_in"]

MOST_NAMES = 10


class NamedPeer(ssl.SSLObject):
    """A TLS connection whose errors know the names in the peer's certificate, or that the peer has sent none."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except ssl.SSLCertVerificationError as error:
            error.peer_names = _names_of(self)  # type: ignore[attr-defined]
            raise
        except ssl.SSLWantReadError:
            raise
        except ssl.SSLError as error:
            error.lacks_certificate = _lacks_certificate(self)  # type: ignore[attr-defined]
            raise


def names_in(error: ssl.SSLCertVerificationError) -> list[str] | None:
    """The host names and IP addresses in the refused certificate; None if they are not known."""
    names: list[str] | None = getattr(error, "peer_names", None)
    return names


def came_before_certificate(error: ssl.SSLError) -> bool:
    """True if the handshake is known to have failed before the peer's certificate came."""
    return getattr(error, "lacks_certificate", False)


def _lacks_certificate(connection: ssl.SSLObject) -> bool:
    try:
        return not connection._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - as in _names_of; then it is not known
        return False


def _names_of(connection: ssl.SSLObject) -> list[str] | None:
    # The public method of Python 3.13 returns bytes alone, which nothing in the standard library reads.  An OpenSSL
    # before 3.0 keeps no certificate that it refused.
    try:
        chain = connection._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
        names = [value for _, value in chain[0].get_info().get("subjectAltName", ())]
    except Exception:  # noqa: BLE001 - the names are an extra; a hostile certificate must not hide the refusal
        return None
    shown = ["".join(filter(str.isprintable, name)) for name in names if isinstance(name, str)]
    more = len(shown) - MOST_NAMES
    return shown[:MOST_NAMES] + [f"{more} more"] * (more > 0)
