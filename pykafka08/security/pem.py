"""PEM texts in the line breaks that OpenSSL reads.

A property whose lines end with a backslash, as certificates of KIP-651 are often written, is one line with blanks.
Java takes any white space in PEM.
"""

from __future__ import annotations

import re
import textwrap

__all__ = ["with_line_breaks"]

_BLOCK = re.compile(rb"-----BEGIN ([^-\r\n]+)-----([A-Za-z0-9+/=\s]*)-----END \1-----")
"""Base64 alone: blocks with headers, such as those of old encrypted keys, stay as they are."""


def with_line_breaks(pem: bytes) -> bytes:
    """The same with each block of Base64 on lines of 64 letters."""
    return _BLOCK.sub(_lines, pem)


def _lines(block: re.Match[bytes]) -> bytes:
    kind, base64 = block[1].decode("latin-1"), b"".join(block[2].split()).decode("ascii")
    lines = textwrap.wrap(base64, 64)
    return "\n".join(["", f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""]).encode("latin-1")
