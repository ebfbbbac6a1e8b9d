"""Tokens of an OAuth 2 token endpoint (RFC 6749, RFC 7523): client credentials and JWT bearer (KIP-768, KIP-1139)."""

from __future__ import annotations

import base64
import json
import random
import ssl
import time
from collections.abc import Awaitable, Callable
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlsplit

import anyio
import anyio.to_thread

from pykafka08.errors import AuthenticationError, ConfigError, TransportError
from pykafka08.logs import library_logger
from pykafka08.security.oauth.assertion import Assertion
from pykafka08.security.oauth.token import OAuthToken, claims_of, number_claim
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig
from pykafka08.security.tls import TlsContexts

if TYPE_CHECKING:
    import httpx

__all__ = ["TokenEndpoint", "client_credentials", "jwt_bearer"]

MECHANISM = "OAUTHBEARER"
URL = "sasl_oauthbearer_token_endpoint_url"
CLIENT_ID = "sasl_oauthbearer_client_credentials_client_id"
CLIENT_SECRET = "sasl_oauthbearer_client_credentials_client_secret"  # noqa: S105 - a setting's name

DEFAULT_TIMEOUT = 10.0
LONGEST_ANSWER = 1024 * 1024
LONGEST_REASON = 300
DEADLINE_MARGIN = 0.25
"""Seconds before the caller's deadline, so that the error says what the endpoint did."""
LARGEST_SKEW = 300.0
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP statuses after which the request is repeated."""
NO_ENDPOINT = frozenset({404, 405, 410})
"""Statuses of a URL that is not a token endpoint's."""
BASIC = "Basic "
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

log = library_logger("security")

Form = dict[str, "str | Secret"]
Parts = tuple[Form, "Secret | None"]
"""The fields of a request's body, and the value of its Authorization header."""


class _Passing(Exception):
    """A failure after which the request is repeated.  ``retry_after``: seconds that the endpoint asks for."""

    def __init__(self, text: str, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


def client_credentials(config: SecurityConfig, url: str, assertion: Assertion | None = None) -> TokenEndpoint:
    """The client credentials grant, with an id and a secret or with a signed assertion."""
    client_id = config.sasl_oauthbearer_client_credentials_client_id
    secret = config.sasl_oauthbearer_client_credentials_client_secret
    form: Form = {"grant_type": "client_credentials"}
    if assertion is not None:
        if client_id:
            form["client_id"] = client_id
        form["client_assertion_type"] = CLIENT_ASSERTION
        return TokenEndpoint(config, url, partial(_with_assertion, form, "client_assertion", assertion))
    if not client_id or not isinstance(secret, Secret) or not secret:
        missing = CLIENT_SECRET if client_id else CLIENT_ID
        raise ConfigError(f"{URL} needs {missing} (KIP-1139 has signed assertions instead)")
    authorization = _basic(client_id, secret, is_encoded=config.sasl_oauthbearer_header_urlencode)

    async def parts() -> Parts:
        return dict(form), authorization

    return TokenEndpoint(config, url, parts)


def jwt_bearer(config: SecurityConfig, url: str, assertion: Assertion) -> TokenEndpoint:
    """The JWT bearer grant: an assertion for a token."""
    return TokenEndpoint(config, url, partial(_with_assertion, {"grant_type": JWT_BEARER}, "assertion", assertion))


async def _with_assertion(form: Form, name: str, assertion: Assertion) -> Parts:
    return {**form, name: await assertion()}, None


def _basic(client_id: str, secret: Secret, *, is_encoded: bool) -> Secret:
    pair = f"{quote_plus(client_id)}:{quote_plus(secret.reveal())}" if is_encoded else f"{client_id}:{secret.reveal()}"
    return Secret(f"{BASIC}{base64.b64encode(pair.encode()).decode()}")


class TokenEndpoint:
    """Requests to one token endpoint; ``make_parts`` makes what each of them carries."""

    def __init__(self, config: SecurityConfig, url: str, make_parts: Callable[[], Awaitable[Parts]]) -> None:
        try:
            import httpx  # noqa: F401
        except ImportError:
            raise ConfigError(f"{URL} needs the extra 'oauth': pip install 'pykafka08[oauth]'") from None
        self._url = url
        self._shown = _checked_url(url)
        # A proxy of the environment would get the credentials of an http: URL.
        self._may_use_proxy = urlsplit(url).scheme == "https"
        self._make_parts = make_parts
        self._scope = config.sasl_oauthbearer_scope
        self._secret = config.sasl_oauthbearer_client_credentials_client_secret
        self._connect_timeout = (config.sasl_login_connect_timeout_ms or 0) / 1000 or DEFAULT_TIMEOUT
        self._read_timeout = (config.sasl_login_read_timeout_ms or 0) / 1000 or DEFAULT_TIMEOUT
        self._pause = config.sasl_login_retry_backoff_ms / 1000
        self._most_time = config.sasl_login_retry_backoff_max_ms / 1000
        tls = config.sasl_oauthbearer_ssl
        self._tls = tls if isinstance(tls, SecurityConfig) else SecurityConfig(security_protocol="SSL")
        self._contexts: TlsContexts | None = None

    async def token(self) -> OAuthToken:
        """A new token.

        AuthenticationError if the endpoint refuses; TransportError if it does not answer within
        ``sasl_login_retry_backoff_max_ms`` or the caller's deadline.
        """
        started = anyio.current_time()
        last = anyio.current_effective_deadline() - DEADLINE_MARGIN
        deadline = min(started + self._most_time, last)
        tls = await anyio.to_thread.run_sync(self._context, abandon_on_cancel=True)
        failure = _Passing("it did not answer in time")
        requests = 0
        while requests == 0 or anyio.current_time() < deadline:
            requests += 1
            try:
                longest = max(deadline, anyio.current_time() + self._connect_timeout + self._read_timeout)
                with anyio.fail_after(max(0.0, min(longest, last) - anyio.current_time())):
                    return await self._requested(tls)
            except TimeoutError:
                break
            except _Passing as error:
                failure = error
            pause = max(self._pause, 0.001) * 2.0 ** min(requests - 1, 30) * random.uniform(0.8, 1.2)  # noqa: S311 - jitter
            pause = max(min(pause, self._most_time), failure.retry_after)
            if anyio.current_time() + pause >= deadline:
                break
            await anyio.sleep(pause)
        seconds = anyio.current_time() - started
        raise TransportError(
            f"no token from {self._shown} after {requests} {'request' if requests == 1 else 'requests'} in "
            f"{seconds:.1f} s: {failure}; see {URL}"
        )

    def _context(self) -> ssl.SSLContext:
        if self._contexts is None:
            self._contexts = TlsContexts(self._tls)
        return self._contexts.current()

    async def _requested(self, tls: ssl.SSLContext) -> OAuthToken:
        import httpx

        form, authorization = await self._make_parts()
        if self._scope:
            form["scope"] = self._scope
        secrets = [value for value in (*form.values(), authorization, self._secret) if isinstance(value, Secret)]
        timeout = httpx.Timeout(self._read_timeout, connect=self._connect_timeout)
        try:
            async with (
                httpx.AsyncClient(
                    verify=tls, timeout=timeout, follow_redirects=False, trust_env=self._may_use_proxy
                ) as client,
                client.stream(
                    "POST",
                    self._url,
                    data={name: value.reveal() if isinstance(value, Secret) else value for name, value in form.items()},
                    headers=_headers(authorization),
                ) as response,
            ):
                body = await _body(response)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        except httpx.HTTPError as error:
            raise self._failed(f"the request failed: {type(error).__name__}") from None
        if response.status_code != httpx.codes.OK:
            raise self._refusal(response, body, secrets)
        return self._parsed(body)

    def _unreachable(self, error: Exception) -> Exception:
        """The error for a failed connection: retriable, unless a certificate is wrong."""
        inner: BaseException | None = error
        while inner is not None:
            if isinstance(inner, ssl.SSLCertVerificationError):
                return self._failed(
                    f"its certificate is not accepted: {inner.verify_message}; see sasl_oauthbearer_ssl"
                )
            inner = inner.__cause__ or inner.__context__
        import httpx

        # The text of that error quotes the answer, which may repeat the request.
        is_quoting = isinstance(error, httpx.RemoteProtocolError)
        text = "the answer is not HTTP, or is cut off" if is_quoting else printable(str(error)) or "no answer"
        return _Passing(f"{type(error).__name__}: {text}")

    def _refusal(self, response: httpx.Response, body: Secret | None, secrets: list[Secret]) -> Exception:
        status = response.status_code
        reason = _error_of(body, secrets)
        if status in RETRIED:
            return _Passing(f"status {status}{reason}", _retry_after(response.headers.get("retry-after")))
        if 300 <= status < 400:
            location = urlsplit(printable(response.headers.get("location", "")))
            target = f"{location.scheme}://{location.netloc.rpartition('@')[2]}{location.path}"
            return self._failed(
                f"it redirects (status {status}) to {target}; redirects are not followed, because the target would "
                f"get the credentials: correct {URL}"
            )
        if status in NO_ENDPOINT:
            return self._failed(f"status {status}{reason}; check {URL}: there is no token endpoint")
        return self._failed(f"status {status}{reason}; check the client's id, secret or assertion, and the scope")

    def _parsed(self, body: Secret | None) -> OAuthToken:
        if body is None:
            raise self._failed(f"its answer has more than {LONGEST_ANSWER} bytes")
        token, lifetime = _token_and_lifetime(body)
        if token is None:
            raise self._failed("its answer has no access_token")
        return _timed(token, lifetime, time.time())

    def _failed(self, text: str) -> AuthenticationError:
        return AuthenticationError(f"{MECHANISM}: no token from {self._shown}: {text}", mechanism=MECHANISM)


def _headers(authorization: Secret | None) -> dict[str, str]:
    # No compression: a few bytes could be unpacked to any number.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Cache-Control": "no-cache"}
    if authorization is not None:
        headers["Authorization"] = authorization.reveal()
    return headers


async def _body(response: httpx.Response) -> Secret | None:
    """The answer, which may have a token or repeat the request; None if it is too long."""
    import httpx

    body = bytearray()
    try:
        async for part in response.aiter_raw():
            body += part
            if len(body) > LONGEST_ANSWER:
                # Closes httpx's generators, which a return would leave open.
                await response.aclose()
    except (httpx.TransportError, httpx.StreamError):
        if len(body) <= LONGEST_ANSWER:
            raise
    if len(body) > LONGEST_ANSWER:
        return None
    return Secret(body.decode("utf-8", "replace"))


def _token_and_lifetime(body: Secret) -> tuple[Secret | None, float | None]:
    answer = _json_object(body)
    token = answer.get("access_token") or answer.get("id_token")
    lifetime = answer.get("expires_in")
    if isinstance(lifetime, str) and lifetime.isascii() and lifetime.isdigit() and len(lifetime) < 12:
        answer["expires_in"] = int(lifetime)  # some endpoints of Microsoft send text
    return Secret(token) if isinstance(token, str) else None, number_claim(answer, "expires_in")


def _timed(token: Secret, lifetime: float | None, now: float) -> OAuthToken:
    """The token with its expiry by this host's clock, which may differ from the clock of the token's issuer."""
    claims = claims_of(token)
    issued, expires = number_claim(claims, "iat"), number_claim(claims, "exp")
    if issued is not None and abs(issued - now) > LARGEST_SKEW:
        log.warning(
            "security.clock_skew",
            seconds=round(now - issued),
            advice="this host's clock and that of the token endpoint disagree; brokers may refuse the token",
        )
    if lifetime is None and expires is not None and issued is not None:
        lifetime = expires - issued
    if lifetime is not None and lifetime > 0:
        return OAuthToken(token, now + lifetime)
    return OAuthToken(token, expires)


def _error_of(body: Secret | None, secrets: list[Secret]) -> str:
    """``": invalid_client: Unknown client"``, or nothing."""
    answer = _json_object(body or Secret(""))
    code = answer.get("error") or answer.get("errorCode")
    description = answer.get("error_description") or answer.get("errorSummary")
    text = "".join(f": {each}" for each in (code, description) if isinstance(each, (str, int)))
    for secret in secrets:
        for word in (secret.reveal(), secret.reveal().removeprefix(BASIC)):
            text = text.replace(word, "***") if word else text
    return printable(text)


def _json_object(body: Secret) -> dict[str, Any]:
    try:
        answer = json.loads(body.reveal())
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _retry_after(value: str | None) -> float:
    is_number = value is not None and value.isascii() and value.isdigit() and len(value) < 6
    return float(value) if is_number and value else 0.0


def printable(text: str) -> str:
    """Text of a server, for an error."""
    return "".join(each if each.isprintable() else "?" for each in text[:LONGEST_REASON])


def shown_url(url: str) -> str:
    """The URL as errors show it: without user, query and fragment."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:LONGEST_REASON]


def _checked_url(url: str) -> str:
    """The URL as errors show it; ConfigError if the client's credentials cannot be sent there."""
    parts = urlsplit(url)
    shown = shown_url(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ConfigError(
            f"{URL}={shown!r} cannot be used: give an https: URL, an http: URL of this machine, or a file: URL"
        )
    if "@" in parts.netloc:
        raise ConfigError(f"{URL} has a user or password: give {CLIENT_ID} and {CLIENT_SECRET}")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise ConfigError(
            f"{URL}={shown!r} would send the client's credentials without TLS: use https; http: is accepted for "
            "localhost, 127.0.0.0/8 and ::1 alone"
        )
    return shown


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
