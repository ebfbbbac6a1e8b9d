"""An OpenID Connect provider on a loopback port: its token endpoint, its JWKS, and the failures that a test wants.

    with OidcEndpoint(clients={"app": "secret"}) as endpoint:
        endpoint.token_url, endpoint.jwks()

It knows the client credentials grant, with an id and a secret or a signed assertion, and the JWT bearer grant.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key

__all__ = ["Answer", "Asked", "OidcEndpoint", "issuer_key"]

HOST = "127.0.0.1"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@cache
def issuer_key() -> ECKey:
    """The key that signs tokens, one for a test run."""
    key: ECKey = ECKey.generate_key("P-256", {"kid": "issuer-1", "alg": "ES256", "use": "sig"}, private=True)
    return key


@dataclass
class Answer:
    """An answer that a test wants; ``closes`` ends the connection in its place."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    closes: bool = False


@dataclass
class Asked:
    """One request to the token endpoint."""

    form: dict[str, str]
    headers: dict[str, str]
    path: str


class OidcEndpoint:
    """``scripted`` answers come first, one for each request; ``before_answer`` is called in the server's thread."""

    def __init__(
        self,
        clients: Mapping[str, str] | None = None,
        assertion_keys: Mapping[str, Key] | None = None,
        *,
        lifetime: float = 3600,
        audience: str = "kafka",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.clients = dict(clients or {})
        self.assertion_keys = dict(assertion_keys or {})
        """Public keys by the issuer (``iss``) of assertions."""
        self.lifetime = lifetime
        self.audience = audience
        self.skew = 0.0
        """Seconds that the provider's clock is ahead."""
        self.more: dict[str, Any] = {}
        """More fields of each answer; None removes one."""
        self.scripted: deque[Answer] = deque()
        self.before_answer: Callable[[], None] = lambda: None
        self.asked: list[Asked] = []
        self.issued: list[str] = []
        self._server = ThreadingHTTPServer((HOST, 0), _handler(self))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="oidc", daemon=True)
        self.base = f"{'http' if tls is None else 'https'}://{HOST}:{self._server.server_address[1]}"
        self.issuer = self.base
        self.token_url = f"{self.base}/token"

    def __enter__(self) -> OidcEndpoint:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @staticmethod
    def jwks() -> dict[str, Any]:
        return {"keys": [issuer_key().as_dict(private=False)]}

    def token(self, subject: str, scope: str | None = None, **claims: Any) -> str:
        """A signed token, which is not counted as issued."""
        now = time.time() + self.skew
        made = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": subject,
            "iat": int(now),
            "exp": int(now + self.lifetime),
            **({"scope": scope} if scope else {}),
            **claims,
        }
        return jwt.encode({"alg": "ES256", "kid": "issuer-1"}, made, issuer_key(), algorithms=["ES256"])

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        self.before_answer()
        if self.scripted:
            return self.scripted.popleft()
        if asked.path.partition("?")[0] != "/token":
            return Answer(404)
        subject = self._subject(asked)
        if subject is None:
            error = {"error": "invalid_client", "error_description": "unknown client, or wrong secret or assertion"}
            return Answer(401, json.dumps(error).encode())
        token = self.token(subject, asked.form.get("scope"))
        self.issued.append(token)
        fields = {"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime, **self.more}
        return Answer(200, json.dumps({name: value for name, value in fields.items() if value is not None}).encode())

    def _subject(self, asked: Asked) -> str | None:
        grant, form = asked.form.get("grant_type"), asked.form
        if grant == JWT_BEARER:
            return self._signer(form.get("assertion", ""))
        if grant != "client_credentials":
            return None
        if "client_assertion" in form:
            is_jwt = form.get("client_assertion_type") == CLIENT_ASSERTION
            return self._signer(form["client_assertion"]) if is_jwt else None
        kind, _, encoded = asked.headers.get("authorization", "").partition(" ")
        client, _, secret = base64.b64decode(encoded).decode().partition(":")
        return client if kind == "Basic" and secret and self.clients.get(client) == secret else None

    def _signer(self, assertion: str) -> str | None:
        """The subject of an assertion that one of the known keys has signed."""
        for issuer, key in self.assertion_keys.items():
            try:
                claims = jwt.decode(assertion, key, algorithms=["RS256", "ES256"]).claims
            except (JoseError, ValueError):
                continue
            now = time.time()
            if claims["iss"] == issuer and claims["nbf"] <= now < claims["exp"] and claims["aud"] == self.token_url:
                return str(claims["sub"])
        return None


def _handler(endpoint: OidcEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            self._send(Answer(200, json.dumps(endpoint.jwks()).encode()))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body, strict_parsing=True).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(endpoint.answer(Asked(form, headers, self.path)))

        def _send(self, answer: Answer) -> None:
            self.close_connection = True
            if answer.closes:
                return
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            with suppress(OSError):  # the client may have read enough
                self.wfile.write(answer.body)

        def log_message(self, *args: object) -> None:
            pass

    return Handler
