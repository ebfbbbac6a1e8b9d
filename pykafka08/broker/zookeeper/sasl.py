"""The server's side of SASL's DIGEST-MD5, as ZooKeeper has it: one challenge, one answer, one proof in return.

Source: RFC 2831; ZooKeeper's realm is always ``zk-sasl-md5``.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping

from pykafka08.security.secret import Secret

__all__ = ["DigestMd5"]

REALM = "zk-sasl-md5"
_FIELD = re.compile(r'(\w[\w-]*)=(?:"([^"]*)"|([^,]*))')


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data).digest()  # noqa: S324 - what the mechanism is made of


class DigestMd5:
    """``step`` gives the next token; ``user`` is known once the client has proved itself."""

    def __init__(self, passwords: Mapping[str, Secret]) -> None:
        self._passwords = passwords
        self._nonce = secrets.token_urlsafe(24)
        self.user: str | None = None

    def step(self, token: bytes) -> bytes | None:
        """None: the client is refused."""
        if not token:
            return f'realm="{REALM}",nonce="{self._nonce}",charset=utf-8,algorithm=md5-sess,qop="auth"'.encode()
        fields = {name: quoted or plain for name, quoted, plain in _FIELD.findall(token.decode())}
        user = fields.get("username", "")
        password = self._passwords.get(user)
        if password is None or fields.get("nonce") != self._nonce:
            return None
        expected = self._proof(user, password, fields, "AUTHENTICATE:")
        if not hmac.compare_digest(expected, fields.get("response", "")):
            return None
        self.user = user
        return f"rspauth={self._proof(user, password, fields, ':')}".encode()

    def _proof(self, user: str, password: Secret, fields: Mapping[str, str], verb: str) -> str:
        cnonce, qop = fields.get("cnonce", ""), fields.get("qop", "auth")
        who = _md5(f"{user}:{fields.get('realm', '')}:{password.reveal()}".encode())
        first = who + f":{self._nonce}:{cnonce}".encode()
        if "authzid" in fields:
            first += f":{fields['authzid']}".encode()
        second = f"{verb}{fields.get('digest-uri', '')}".encode()
        parts = (_md5(first).hex(), self._nonce, fields.get("nc", ""), cnonce, qop, _md5(second).hex())
        return _md5(":".join(parts).encode()).hex()
