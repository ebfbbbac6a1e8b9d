"""The first bytes of Kerberos tokens, to search texts for tokens of any process."""

from __future__ import annotations

import base64

__all__ = ["TOKEN_START", "forms_of_start"]

TOKEN_START = bytes.fromhex("06092a864886f71201020201006e82")
"""In the first token of every exchange (RFC 4121): Kerberos' object identifier, and the head of an AP-REQ."""
GROUPS = 12
"""Bytes that base64 encodes to whole groups."""


def forms_of_start() -> list[str]:
    """Its texts: hexadecimal, as a ``repr``, and base64 at each of the three places of a group."""
    groups = [base64.b64encode(TOKEN_START[shift : shift + GROUPS]).decode() for shift in range(3)]
    return [TOKEN_START.hex(), repr(TOKEN_START)[2:-1], *groups]
