"""Config providers (KIP-297, KIP-421): ``${file:PATH:KEY}``, ``${directory:PATH:FILE}`` and ``${env:NAME}`` in values.

``config.providers`` names them, as for Kafka's clients; a reference to a provider that is not named stays as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pykafka08.errors import ConfigError
from pykafka08.logs import library_logger
from pykafka08.properties import read_properties, text_of_file
from pykafka08.security.secret import Secret

__all__ = ["NOT_NAMED", "PREFIX", "resolved", "unresolved"]

PREFIX = "config.providers"
PACKAGE = "org.apache.kafka.common.config.provider."
REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}]*):)?([^}:]*)\}")

NOT_NAMED = "config.providers does not name the provider, so that the value is used as it is"

log = library_logger("config")

Provider = Callable[[str, str, str, Mapping[str, str]], "Secret | None"]
"""``(property, path, key, parameters) -> value``, None if the key does not exist."""


def resolved(properties: Mapping[str, str | Secret]) -> dict[str, str | Secret]:
    """The properties with references replaced, and without those of the providers themselves.

    A value with a replaced reference is a :class:`Secret`.  ConfigError for a provider that is a Java class of somebody
    else, and for a value that a provider does not have.
    """
    providers = _providers(properties)
    for name, reference in unresolved(properties).items():
        log.warning("config.reference_not_replaced", property=name, reference=reference, cause=NOT_NAMED)
    own = {name: value for name, value in properties.items() if not f"{name}.".startswith(f"{PREFIX}.")}
    return {name: _replaced(name, value, providers) for name, value in own.items()} if providers else own


def unresolved(properties: Mapping[str, str | Secret]) -> dict[str, str]:
    """Property -> the provider, as ``${env:...}``, that its value refers to and ``config.providers`` does not name."""
    named = {each.strip() for each in _text(properties.get(PREFIX, "")).split(",")}
    found = {}
    for name, value in properties.items():
        for match in REFERENCE.finditer(_text(value)):
            if match[1] not in named and match[1].isidentifier():
                found[name] = f"${{{match[1]}:...}}"
    return found


def _providers(properties: Mapping[str, str | Secret]) -> dict[str, tuple[Provider, dict[str, str]]]:
    found = {}
    for each in _text(properties.get(PREFIX, "")).split(","):
        name = each.strip()
        if not name:
            continue
        setting = f"{PREFIX}.{name}.class"
        class_name = _text(properties.get(setting, "")).strip()
        provider = _CLASSES.get(class_name.removeprefix(PACKAGE))
        if provider is None:
            known = ", ".join(PACKAGE + one for one in _CLASSES)
            raise ConfigError(f"{setting}={class_name!r:.200} cannot be used here; there are {known}")
        prefix = f"{PREFIX}.{name}.param."
        given = {key.removeprefix(prefix): _text(one) for key, one in properties.items() if key.startswith(prefix)}
        found[name] = (provider, given)
    return found


def _text(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def _replaced(name: str, value: str | Secret, providers: Mapping[str, tuple[Provider, dict[str, str]]]) -> str | Secret:
    references = [match for match in REFERENCE.finditer(_text(value)) if match[1] in providers]
    if not references:
        return value
    parts: list[Secret] = []
    position = 0
    for match in references:
        provider, parameters = providers[match[1]]
        found = provider(name, match[2] or "", match[3], parameters)
        if found is None:
            raise ConfigError(f"{name}: the provider {match[1]!r} has no value for {_place(match)}")
        parts += [Secret(match.string[position : match.start()]), found]
        position = match.end()
    return _joined(parts, Secret(references[0].string[position:]))


def _joined(parts: list[Secret], rest: Secret) -> Secret:
    return Secret("".join(each.reveal() for each in (*parts, rest)))


def _place(match: re.Match[str]) -> str:
    return f"{match[3]!r} in {match[2]!r}" if match[2] else repr(match[3])


def _of_file(name: str, path: str, key: str, parameters: Mapping[str, str]) -> Secret | None:
    _check_allowed(name, path, parameters)
    value = read_properties(path).get(key)
    return None if value is None else Secret(value)


def _of_directory(name: str, path: str, key: str, parameters: Mapping[str, str]) -> Secret | None:
    _check_allowed(name, path, parameters)
    file = Path(path, key)
    if file.parent != Path(path) or not file.is_file():
        return None
    return Secret(text_of_file(file, f"{name}: {file} cannot be read"))


def _of_environment(name: str, path: str, key: str, parameters: Mapping[str, str]) -> Secret | None:
    pattern = parameters.get("allowlist.pattern")
    try:
        is_allowed = pattern is None or re.fullmatch(pattern, key) is not None
    except re.error as error:
        raise ConfigError(f"{name}: allowlist.pattern={pattern!r} is no regular expression: {error}") from None
    if not is_allowed:
        raise ConfigError(f"{name}: allowlist.pattern={pattern!r} does not allow the variable {key!r}")
    value = os.environ.get(key)
    return None if value is None else Secret(value)


def _check_allowed(name: str, path: str, parameters: Mapping[str, str]) -> None:
    allowed = [Path(each.strip()).resolve() for each in parameters.get("allowed.paths", "").split(",") if each.strip()]
    real = Path(path).resolve()
    if allowed and not any(real == each or each in real.parents for each in allowed):
        raise ConfigError(f"{name}: allowed.paths={parameters['allowed.paths']!r} does not allow {path!r}")


_CLASSES: Mapping[str, Provider] = {
    "FileConfigProvider": _of_file,
    "DirectoryConfigProvider": _of_directory,
    "EnvVarConfigProvider": _of_environment,
}
