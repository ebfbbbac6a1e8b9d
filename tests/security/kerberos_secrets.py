"""Secrets of Kerberos: the keys in keytabs and ticket caches, tickets, and the tokens that are sent.

The formats are those of MIT's library: a keytab of version 0x502, a credential cache of version 0x504.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka08.security.sasl.kerberos import _Kerberos
from tests.security.secrets_found import SecretSearch

__all__ = ["TOKEN_START", "keys_of_keytab", "parts_of", "search_for_tokens", "secrets_of_ticket_cache"]

TOKEN_START = bytes.fromhex("06092a864886f71201020201006e82")
"""In the first token of every exchange (RFC 4121): Kerberos' object identifier, and the head of an AP-REQ."""
PART = 32
"""Bytes to search for: a text may hold a token that is cut off, and two tokens differ only where they are encrypted."""
SHORTEST = 64
"""Bytes of a token with encrypted parts; the others have nothing but a header and a check sum."""


class _Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(f">{layout}", self.data, self.at)
        self.at += struct.calcsize(f">{layout}")
        return int(value)

    def counted(self, layout: str) -> bytes:
        size = self.number(layout)
        self.at += size
        return self.data[self.at - size : self.at]

    def skip(self, size: int) -> None:
        self.at += size


def keys_of_keytab(path: Path) -> list[bytes]:
    """The key of each entry."""
    reader = _Reader(path.read_bytes())
    assert reader.number("H") == 0x502
    keys = []
    while reader.at < len(reader.data):
        size = reader.number("i")
        entry = _Reader(reader.data, reader.at)
        reader.skip(abs(size))
        if size > 0:  # else the hole that a removed entry has left
            for _ in range(entry.number("H") + 1):  # the realm, and the components of the name
                entry.counted("H")
            entry.skip(struct.calcsize(">IIBH"))  # type of name, time, version of the key, type of the key
            keys.append(entry.counted("H"))
    return keys


def secrets_of_ticket_cache(path: Path) -> list[bytes]:
    """Session keys, and parts of the tickets; settings that the library keeps there as tickets have neither."""
    if not path.exists():
        return []
    reader = _Reader(path.read_bytes())
    assert reader.number("H") == 0x504
    reader.counted("H")
    _skip_principal(reader)
    secrets: list[bytes] = []
    while reader.at < len(reader.data):
        _skip_principal(reader)
        is_setting = _skip_principal(reader) == b"X-CACHECONF:"
        reader.skip(2)
        key = reader.counted("I")
        reader.skip(struct.calcsize(">4IBI"))  # four times, a flag, flags of the ticket
        for _ in range(2):  # addresses, authorization data
            for _ in range(reader.number("I")):
                reader.skip(2)
                reader.counted("I")
        tickets = reader.counted("I"), reader.counted("I")
        if not is_setting:
            secrets += [key, *(part for ticket in tickets for part in parts_of(ticket))]
    return secrets


def _skip_principal(reader: _Reader) -> bytes:
    """Returns its realm."""
    reader.skip(4)
    count = reader.number("I")
    realm = reader.counted("I")
    for _ in range(count):
        reader.counted("I")
    return realm


def parts_of(token: bytes) -> Iterator[bytes]:
    """Parts of its encrypted bytes: of the ticket in the middle, and at its end."""
    if len(token) > SHORTEST:
        middle = len(token) // 2
        yield token[middle : middle + PART]
        yield token[-PART:]


def search_for_tokens(search: SecretSearch, tickets: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """From now on ``search`` looks for each token that this process sends, and for what the ticket cache has by then.

    Returns the list that the tokens go to.
    """
    tokens: list[bytes] = []
    respond = _Kerberos.respond

    async def noted(exchange: _Kerberos, challenge: bytes | None) -> bytes | None:
        token = await respond(exchange, challenge)
        if token is not None and len(token) > SHORTEST:
            tokens.append(token)
            search.add(*parts_of(token), *secrets_of_ticket_cache(tickets))
        return token

    monkeypatch.setattr(_Kerberos, "respond", noted)
    return tokens
