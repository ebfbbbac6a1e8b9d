"""Line breaks of PEM texts as OpenSSL needs them.

A property that is continued over lines with a backslash becomes one line with blanks; certificates are often written so
(KIP-651).  Java accepts any white space in PEM, OpenSSL does not.
"""

from __future__ import annotations

import re
import textwrap

__all__ = ["with_line_breaks"]

_BLOCK = re.compile(rb"-----BEGIN ([^-\r\n]+)-----([A-Za-z0-9+/=\s]*)-----END \1-----")
"""Only blocks of plain Base64: blocks with headers, such as those of old encrypted keys, are not changed."""


def with_line_breaks(pem: bytes) -> bytes:
    """The PEM text with each block of Base64 on lines of 64 characters."""
    return _BLOCK.sub(_lines, pem)


def _lines(block: re.Match[bytes]) -> bytes:
    kind, base64 = block[1].decode("latin-1"), b"".join(block[2].split()).decode("ascii")
    lines = textwrap.wrap(base64, 64)
    return "\n".join(["", f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""]).encode("latin-1")
