"""Properties of Kafka's Java clients as keyword arguments of this client."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from pykafka08.config import SETTING_NAMES, ClientConfig, ProducerConfig, names_among, setting_fields
from pykafka08.errors import ConfigError
from pykafka08.kafka_properties import librdkafka
from pykafka08.kafka_properties.naming import written_names
from pykafka08.kafka_properties.providers import resolved
from pykafka08.kafka_properties.tables import (
    ASSIGNORS,
    OBJECTS,
    OF_CONSUMERS,
    OF_PRODUCERS,
    OTHER_VALUES,
    PARTITIONERS,
    REFUSED,
    WITHOUT_EFFECT,
    Refused,
)
from pykafka08.logs import library_logger
from pykafka08.properties import read_properties
from pykafka08.security.hidden_text import HiddenText
from pykafka08.security.secret import HiddenValue, Secret, kind_of
from pykafka08.security.settings import PROTOCOLS, is_secret
from pykafka08.setting_hints import hint

__all__ = [
    "Converted",
    "PropertiesSource",
    "arguments_from",
    "built_from",
    "check_refused",
    "guarded",
    "is_secret",
    "protected",
    "read_client_properties",
    "settings_from",
    "settings_of",
    "typed",
]

T = TypeVar("T")

log = library_logger("config")

PropertiesSource = str | os.PathLike[str] | Mapping[str, Any]
"""The path of a properties file, or the properties themselves."""

_MOST_DIGITS = 40
_LEVEL = re.compile(r"compression\.(gzip|lz4|zstd)\.level")
_SECURITY = ("security.", "ssl.", "sasl.")
_ALL_REFUSED: Mapping[str, Refused] = {**REFUSED, **librdkafka.REFUSED}
_ALL_WITHOUT_EFFECT: Mapping[str, str] = {**WITHOUT_EFFECT, **librdkafka.WITHOUT_EFFECT}
_ALL_VALUES: Mapping[tuple[str, str], str] = {**OTHER_VALUES, **librdkafka.VALUES}
JAVAS_MECHANISM = "GSSAPI"
"""``sasl.mechanism`` of Kafka's clients where a file does not have it."""


class Converted(NamedTuple):
    """What properties mean to a client."""

    settings: dict[str, Any]
    unknown: list[str]
    """Names that this client does not have; Kafka's clients ignore them too."""
    without_effect: dict[str, str]
    """Property -> why it has no effect."""
    names: dict[str, str]
    """Setting -> the property that it comes from, as it was written."""

    def arguments(self, *kinds: type, kept: Collection[str] = ()) -> dict[str, Any]:
        """Keyword arguments of a client of these kinds, whose errors name the properties.

        Settings in ``kept`` keep their names, because they are given as keyword arguments.
        """
        return {**self.settings, SETTING_NAMES: written_names(self.names, *kinds, kept=kept)}


def guarded(properties: PropertiesSource) -> PropertiesSource:
    """The same with secrets as :class:`Secret`, to take the argument's place in the caller's local variables.

    Nothing is raised here, as a traceback would hold the secrets.
    """
    if isinstance(properties, (str, os.PathLike, HiddenValue)):
        return cast("PropertiesSource", properties)
    if not isinstance(properties, Mapping):
        return cast("PropertiesSource", HiddenValue(properties))
    return {str(name): _guarded(value) if is_secret(str(name)) else value for name, value in properties.items()}


def _guarded(value: object) -> Secret | HiddenValue:
    if isinstance(value, (Secret, HiddenValue)):
        return value
    text = _as_text(value)
    return Secret(text) if isinstance(text, str) else HiddenValue(value)


def protected(properties: Mapping[str, Any]) -> dict[str, str | Secret]:
    """A copy as texts, with secrets as :class:`Secret`.

    Raises ConfigError for a value that is not a string, number, boolean or path.
    """
    properties = cast("Mapping[str, Any]", guarded(properties))
    texts = {name: _as_text(value) for name, value in properties.items()}
    for name, text in texts.items():
        if name in librdkafka.CALLBACKS:
            raise ConfigError(f"{name}: {librdkafka.CALLBACKS[name]}")
        if not isinstance(text, (str, Secret)):
            kind = kind_of(text)
            raise ConfigError(
                f"{name}: the value of a property must be a string, number, boolean or path, not of the type {kind}"
            )
    return cast("dict[str, str | Secret]", texts)


def _as_text(value: object) -> object:
    """Text of a number, boolean or path; other values as they are."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return str(value) if isinstance(value, (int, float)) else value


def read_client_properties(path: str | os.PathLike[str]) -> dict[str, str | Secret]:
    """The pairs of a properties file, with secrets as :class:`Secret`."""
    return protected(read_properties(os.fspath(path)))


def built_from(make: Callable[..., T], properties: PropertiesSource, settings: Mapping[str, Any], *kinds: type) -> T:
    """``make(**arguments)`` of :func:`arguments_from`.

    Errors about settings, here and of the client, name the properties as they were written.
    """
    properties = guarded(properties)
    arguments = arguments_from(properties, settings, *kinds)
    with names_among(arguments).naming():
        return make(**arguments)


def arguments_from(properties: PropertiesSource, settings: Mapping[str, Any], *kinds: type) -> dict[str, Any]:
    """As :func:`settings_from`, overridden by ``settings`` and with the names of the properties (``setting_names``).

    ConfigError if no brokers are given.
    """
    properties = guarded(properties)
    arguments = {**converted_from(properties, *kinds).arguments(*kinds, kept=settings.keys()), **settings}
    if "bootstrap_servers" not in arguments:
        raise ConfigError("bootstrap.servers is missing from the properties: add it there, or give bootstrap_servers")
    return arguments


def settings_from(properties: PropertiesSource, *kinds: type) -> dict[str, Any]:
    """Keyword arguments for a client out of a properties file or a mapping by Kafka's names.

    Names that this client does not have are logged.
    """
    properties = guarded(properties)
    return converted_from(properties, *kinds).settings


def converted_from(properties: PropertiesSource, *kinds: type) -> Converted:
    """As :func:`settings_from`, with the names of the properties."""
    properties = guarded(properties)
    if isinstance(properties, (str, os.PathLike)):
        given = read_client_properties(properties)
    elif isinstance(properties, Mapping):
        given = protected(properties)
    else:
        kind = kind_of(properties)
        raise ConfigError(f"properties must be the path of a file or a mapping, not of the type {kind}")
    converted = settings_of(given, *kinds)
    if converted.unknown:
        log.warning("config.unknown_properties", names=", ".join(converted.unknown))
    for name, why in converted.without_effect.items():
        log.debug("config.property_without_effect", property=name, why=why)
    return converted


def settings_of(
    properties: Mapping[str, str | Secret], *kinds: type, refused: Mapping[str, str] | None = None
) -> Converted:
    """Keyword arguments for a client out of Java's names.

    ``kinds`` are ``ProducerConfig``, or ``ConsumerConfig`` and ``GroupConfig``, or none for an admin client.
    An unsupported property that would change what is read, written or trusted raises ConfigError.  ``refused`` has more
    of these, with the reason.
    """
    given = resolved(protected(properties))
    types = {name: str(field.type) for name, field in setting_fields(ClientConfig, *kinds).items()}
    settings: dict[str, Any] = {}
    names: dict[str, str] = {}
    found = Converted(settings, [], {}, names)
    for name, value in given.items():
        setting = name.strip().replace(".", "_").replace("-", "_")
        setting = librdkafka.NAMES.get(setting, setting)
        first = names.setdefault(setting, name)
        if _reveal(given[first]) != _reveal(value):
            raise ConfigError(
                f"{first} and {name} are two names of one setting, with different values: give one of them"
            )
        dotted = setting.replace("_", ".")
        if refused is not None and dotted in refused:
            raise ConfigError(f"{name}: {refused[dotted]}")
        if not _is_of_another_client(dotted, types):
            check_refused(name, dotted, value)
            _check_retries(name, dotted, value)
        if setting in types:
            _set(settings, name, setting, value, types[setting])
        elif dotted == "partitioner.class" and ProducerConfig in kinds:
            _set_partitioner(settings, name, value)
        elif not _LEVEL.fullmatch(dotted):
            _pass_over(found, name, dotted, value, types)
    if ProducerConfig in kinds:
        _set_level(settings, given)
    _name_passphrase(settings)
    protocol = str(settings.get("security_protocol", "")).upper()
    if protocol in PROTOCOLS and protocol.startswith("SASL_"):
        settings.setdefault("sasl_mechanism", JAVAS_MECHANISM)
    return found


def _set(settings: dict[str, Any], name: str, setting: str, value: str | Secret, kind: str) -> None:
    if setting in OBJECTS:
        raise ConfigError(f"{name}: {OBJECTS[setting]}, and cannot be given in a file: give {setting}=")
    if setting == "partition_assignment_strategy":
        settings[setting] = _assignors(_reveal(value))
        return
    text = _text(value)
    text = _ALL_VALUES.get((setting, text), text)
    if not text and "None" in kind and (value or setting.startswith(("ssl_", "sasl_"))):
        return  # missing: so Java treats an empty value, and _ALL_VALUES those of librdkafka
    if setting == "sasl_oauthbearer_extensions":
        settings[setting] = _pairs(name, text)
        return
    settings[setting] = typed(name, setting, value, kind)


def _pairs(name: str, text: str) -> dict[str, str]:
    """``a=b,c=d``, as librdkafka writes SASL extensions."""
    pairs = [each.partition("=") for each in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise ConfigError(f"{name}: it is not of the form name=value,name=value")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _pass_over(found: Converted, name: str, dotted: str, value: str | Secret, types: Mapping[str, str]) -> None:
    """Record a property that is not a setting; ConfigError if ignoring it would change what the client does."""
    if _is_of_another_client(dotted, types):
        found.without_effect[name] = "it belongs to another kind of client"
    elif dotted in _ALL_WITHOUT_EFFECT:
        found.without_effect[name] = _ALL_WITHOUT_EFFECT[dotted]
    elif dotted in _ALL_REFUSED:
        found.without_effect[name] = "this client does this anyway"
    elif dotted.startswith(_SECURITY):
        meant = hint(dotted.replace(".", "_"), types, lambda each: each.replace("_", "."))
        raise ConfigError(f"{name}: no such security property is known" + (f"; {meant}" if meant else ""))
    else:
        # A name with other characters may be a part of a secret: a line of the file without a name and a value.
        found.unknown.append(name if re.fullmatch(r"[\w.-]+", name, re.ASCII) else "***")


def _is_of_another_client(dotted: str, types: Mapping[str, str]) -> bool:
    return (dotted in OF_PRODUCERS and "acks" not in types) or (
        dotted in OF_CONSUMERS and "fetch_min_bytes" not in types
    )


def check_refused(name: str, dotted: str, value: str | Secret) -> None:
    """ConfigError if this client does not support the value of ``name``, which Kafka spells ``dotted``."""
    if dotted not in _ALL_REFUSED:
        return
    text = _reveal(value).strip()
    why, harmless = _ALL_REFUSED[dotted]
    parts = [each.strip().rpartition(".")[2] for each in text.split(",")]
    if not all(part in harmless or part.lower() in harmless for part in parts):
        shown = "" if isinstance(value, Secret) else f"={text!r:.200}"
        raise ConfigError(f"{name}{shown}: {why}")


def _set_partitioner(settings: dict[str, Any], name: str, value: str | Secret) -> None:
    class_name = _text(value)
    if not class_name:
        return
    partitioner = PARTITIONERS.get(class_name.rpartition(".")[2])
    if partitioner is None:
        raise ConfigError(
            f"{name}={class_name!r:.200}: Java classes cannot be used here; partitioner=murmur2, crc32, ... names one "
            "of this client"
        )
    settings.setdefault("partitioner", partitioner)


def _set_level(settings: dict[str, Any], given: Mapping[str, str | Secret]) -> None:
    """Java has a level for each codec; the level of the codec in use is taken."""
    for name, value in given.items():
        found = _LEVEL.fullmatch(name.strip())
        if found is None:
            continue
        level = typed(name, name, value, "int")
        if settings.get("compression_type") == found[1] and not (found[1] == "gzip" and level == -1):
            settings.setdefault("compression_level", level)


def _check_retries(name: str, dotted: str, value: str | Secret) -> None:
    if dotted == "retries" and _reveal(value).strip() == "0":
        raise ConfigError(f"{name}=0: a producer retries until delivery.timeout.ms; idempotence prevents duplicates")


def _name_passphrase(settings: dict[str, Any]) -> None:
    """librdkafka's ``ssl.key.password`` is also that of a key file, which has a setting of its own here."""
    if "ssl_certfile" in settings and "ssl_keystore_location" not in settings and "ssl_key_password" in settings:
        settings.setdefault("ssl_password", settings.pop("ssl_key_password"))


def _assignors(text: str) -> tuple[str, ...]:
    names = [name.strip().rpartition(".")[2] for name in text.split(",")]
    return tuple(ASSIGNORS.get(name, name) for name in names)


def _reveal(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def _text(value: str | Secret) -> str:
    """The text, stripped.  A value of a config provider stays hidden: it may be a password in the wrong place."""
    text = _reveal(value).strip()
    return HiddenText(text) if isinstance(value, Secret) else text


def typed(name: str, setting: str, value: str | Secret, kind: str) -> Any:
    """The value of a property for a setting of the type ``kind``; ConfigError with the property's name."""
    if is_secret(setting):
        return Secret(_reveal(value).strip())
    text = _text(value)
    shown = "its value" if isinstance(value, Secret) else None
    text = _ALL_VALUES.get((setting, text), text)
    return _number_or_text(text, kind, lambda what: ConfigError(_fault(name, shown, text, what)))


def _fault(name: str, shown: str | None, text: str, what: str) -> str:
    if shown is not None:
        return f"{name}: {shown} is {what}"
    return f"{name}={text!r} is {what}" if len(text) <= _MOST_DIGITS else f"{name}={text[:_MOST_DIGITS]!r}... is {what}"


def _number_or_text(text: str, kind: str, wrong: Callable[[str], ConfigError]) -> Any:
    if "bool" in kind:
        if text.lower() not in ("true", "false"):
            raise wrong("neither true nor false")
        return text.lower() == "true"
    # Python refuses to read thousands of digits; no setting has a value of more than 19.
    is_short = len(text) <= _MOST_DIGITS
    if "int" in kind and is_short and re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if kind in ("float", "float | None") and is_short and re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if kind in ("int", "float", "int | None", "float | None"):
        raise wrong("not a number" if is_short else "not a number that fits 64 bits")
    if "Mapping" in kind or ("tuple" in kind and "Address" not in kind):
        raise wrong("for a setting that is a mapping or list, which a property cannot give")
    return text
