"""Client of the HTTP API of schema registries (Confluent, Karapace, Apicurio, Redpanda): schemas by id.

The schema of an id never changes, so a process fetches it once: :data:`_FETCHED` outlives the tasks of a worker.
Unknown ids are cached for one task only, because they may be registered later.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.registry.wire_format import BadValueError
from pykafka08.spark.pipeline.settings import Registry

__all__ = ["RegistryError", "Schema", "SchemaRegistry"]

TIMEOUT_S = 10.0
"""The timeout of each step of a request."""
ATTEMPTS = 3
PAUSE_S = 0.5
"""The pause before the second attempt; the third waits twice as long."""
SCHEMA_NOT_FOUND = 40403
UNKNOWN = (40401, 40402, SCHEMA_NOT_FOUND)
"""The registry's error codes for an unknown subject, version or schema."""
TYPES = {"avro": "AVRO", "protobuf": "PROTOBUF", "json": "JSON"}
"""Format of the settings → the registry's name."""


class RegistryError(Exception):
    """The registry does not answer, or refuses the request.  The batch fails, and the next run reads it again."""


@dataclass(frozen=True)
class Schema:
    """A schema with its references."""

    id: int
    kind: str
    """The format by the registry's name, a value of :data:`TYPES`."""
    text: str
    """JSON, or a serialized file descriptor of Protobuf in Base64."""
    references: tuple[tuple[str, str], ...] = ()
    """Name and text of each reference, after the references that it needs itself."""


class SchemaRegistry:
    """Client of the registry in the settings, for one task."""

    def __init__(self, settings: Registry, pause: Callable[[float], None] = time.sleep) -> None:
        self._settings = settings
        self._pause = pause
        self._unknown: dict[int, str] = {}

    def schema(self, number: int, form: str) -> Schema:
        """The schema of an id, in a format of the settings.

        Raises:
            BadValueError: the id is unknown, or the schema has another format.
            RegistryError: the registry does not answer.
        """
        if number in self._unknown:
            raise BadValueError(self._unknown[number])
        key = self._settings, number, form
        if key not in _FETCHED:
            try:
                _FETCHED[key] = self._fetched(number, form)
            except BadValueError as error:
                self._unknown[number] = str(error)
                raise
        return _FETCHED[key]

    def _fetched(self, number: int, form: str) -> Schema:
        what = f"schema {number}"
        document = self._get(f"/schemas/ids/{number}", what, _query(form))
        kind = document.get("schemaType", "AVRO")
        if kind != TYPES[form]:
            raise BadValueError(f"{what} is {kind}, not {TYPES[form]}")
        found: dict[str, str] = {}
        self._add_references(document, form, what, found)
        return Schema(number, kind, _text_of(document, what), tuple(found.items()))

    def _add_references(self, document: Mapping[str, Any], form: str, what: str, found: dict[str, str]) -> None:
        for each in document.get("references") or ():
            name, subject, version = each["name"], each["subject"], each["version"]
            if name not in found:
                path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
                where = f"{what}: its reference {name} (subject {subject}, version {version})"
                of_name = self._get(path, where, _query(form))
                self._add_references(of_name, form, where, found)
                found[name] = _text_of(of_name, where)

    def types(self) -> list[str]:
        """The formats that the registry supports.  Raises RegistryError."""
        try:
            found = self._get("/schemas/types", "the supported formats", {})
        except BadValueError as error:
            raise RegistryError(str(error)) from None
        return list(found)

    def _get(self, path: str, what: str, query: Mapping[str, str]) -> Any:
        """The document at a path.  Raises BadValueError if it is unknown, otherwise RegistryError."""
        address = self._settings.url
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with _client(self._settings) as client:
                    answer = client.get(address.rstrip("/") + path, params=query)
            except httpx.HTTPError as error:
                failure = f"{type(error).__name__}: {error}"
            else:
                if answer.status_code == httpx.codes.OK:
                    return _document(answer, f"decode.registry: {address}: {what}")
                if answer.status_code == httpx.codes.NOT_FOUND and _code(answer) in UNKNOWN:
                    raise BadValueError(f"{what} is not in the schema registry")
                failure = f"status {answer.status_code}{HINTS.get(answer.status_code, '')}"
                if not answer.is_server_error and answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                    break
            if attempt < ATTEMPTS:
                self._pause(PAUSE_S * attempt)
        raise RegistryError(f"decode.registry: {address}: {what} cannot be fetched: {failure}")


HINTS = {
    401: ": set basic_auth_user_info or bearer_auth_token of [decode.registry]",
    403: ": grant the user read access to the schema",
    404: ": set url to the address of a schema registry",
}
"""Status → cause or remedy."""

_FETCHED: dict[tuple[Registry, int, str], Schema] = {}


def _client(settings: Registry) -> httpx.Client:
    headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
    if settings.bearer_auth_token:
        headers["Authorization"] = f"Bearer {settings.bearer_auth_token}"
    user, _, password = settings.basic_auth_user_info.partition(":")
    auth = (user, password) if settings.basic_auth_user_info else None
    return httpx.Client(headers=headers, auth=auth, verify=_tls(settings), timeout=TIMEOUT_S, trust_env=False)


@cache
def _tls(settings: Registry) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.ssl_ca_location or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"decode.registry.ssl_ca_location: {settings.ssl_ca_location}: {error}") from error


def _query(form: str) -> dict[str, str]:
    """Parameters that request Protobuf as a descriptor, so that no compiler of .proto files is needed."""
    return {"format": "serialized"} if form == "protobuf" else {}


def _document(answer: httpx.Response, what: str) -> Any:
    try:
        return answer.json()
    except ValueError as error:
        raise RegistryError(f"{what}: the answer is not JSON; set url to the address of a schema registry") from error


def _text_of(document: Mapping[str, Any], what: str) -> str:
    text = document.get("schema")
    if not isinstance(text, str):
        raise BadValueError(f"{what} has no text")
    return text


def _code(answer: httpx.Response) -> int:
    try:
        return int(answer.json()["error_code"])
    except (ValueError, KeyError, TypeError):
        return 0
