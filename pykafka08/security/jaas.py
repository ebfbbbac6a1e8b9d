"""Java's login configuration, ``sasl.jaas.config``: its syntax, and the settings that login modules stand for.  Pure.

The syntax is that of Kafka's JaasConfig: ``MODULE FLAG option=value option="quoted value";`` with comments of Java.
Texts are kept as :class:`Secret`: no error, and no local variable of a frame in a traceback, shows an option's value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pykafka08.errors import ConfigError
from pykafka08.security.secret import Secret

__all__ = ["PROPERTY", "JaasLogin", "jaas_settings", "meant_mechanism", "parse_jaas"]

PROPERTY = "sasl.jaas.config"
FLAGS = ("required", "requisite", "sufficient", "optional")

_TOKEN = re.compile(
    r"""(?P<space>[\x00-\x20]+|//[^\r\n]*|/\*.*?\*/|/(?!\*)[^\r\n]*)
    |(?P<quoted>"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*')
    |(?P<number>-?[.0-9][-.0-9\w$\xa0-\U0010ffff]*)
    |(?P<word>[a-zA-Z_$\xa0-\U0010ffff][-.0-9a-zA-Z_$\xa0-\U0010ffff]*)
    |(?P<equals>=)
    |(?P<semicolon>;)
    |(?P<open>["'])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CLASS = re.compile(r"(?:[a-z_][a-z0-9_]*\.)+[A-Z][A-Za-z0-9_$]{1,80}")
_NAME = re.compile(r"[a-zA-Z][a-zA-Z_.]{1,60}")

_USELESS = "\0"
"""Marks an option that is accepted and ignored."""
_UNSECURED = "sasl_oauthbearer_unsecured_login"
"""A mapping; its keys are the names of the options."""
_ENDPOINT_TLS = "sasl_oauthbearer_ssl"
"""A mapping; its keys are the names of the options, with underscores for dots."""
_OF_PASSWORDS = {
    "username": "sasl_plain_username",
    "password": "sasl_plain_password",
    "debug": _USELESS,
    "serviceName": _USELESS,
}
_OF_OAUTH = {
    "clientId": "sasl_oauthbearer_client_credentials_client_id",
    "clientSecret": "sasl_oauthbearer_client_credentials_client_secret",
    "scope": "sasl_oauthbearer_scope",
    "debug": _USELESS,
}
_OF_KERBEROS = {
    "keyTab": "sasl_kerberos_keytab",
    "principal": "sasl_kerberos_principal",
    "serviceName": "sasl_kerberos_service_name",
    "ticketCache": "sasl_kerberos_ticket_cache",
    "useKeyTab": _USELESS,
    "useTicketCache": _USELESS,
    "storeKey": _USELESS,
    "doNotPrompt": _USELESS,
    "renewTGT": _USELESS,
    "refreshKrb5Config": _USELESS,
    "isInitiator": _USELESS,
    "clearPass": _USELESS,
    "debug": _USELESS,
}
_OF_IAM = {
    "awsProfileName": "sasl_msk_iam_profile",
    "awsRoleArn": "sasl_msk_iam_role_arn",
    "awsRoleSessionName": "sasl_msk_iam_role_session_name",
    "awsStsRegion": "sasl_msk_iam_region",
    "awsDebugCreds": _USELESS,
    "awsMaxRetries": _USELESS,
    "awsMaxBackOffTimeMs": _USELESS,
}


class _Module(NamedTuple):
    mechanisms: tuple[str, ...]
    options: Mapping[str, str]
    """Option -> setting."""
    prefixes: Mapping[str, str] = {}
    """Prefix of option names -> setting that is a mapping from the rest of each name to its value."""
    needs: tuple[str, ...] = ()


_KERBEROS = _Module(("GSSAPI",), _OF_KERBEROS)
MODULES: Mapping[str, _Module] = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": _Module(
        ("PLAIN",), _OF_PASSWORDS, {"user_": _USELESS}, ("username", "password")
    ),
    "org.apache.kafka.common.security.scram.ScramLoginModule": _Module(
        ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        {**_OF_PASSWORDS, "tokenauth": "sasl_scram_tokenauth"},
        {"user_": _USELESS},
        ("username", "password"),
    ),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": _Module(
        ("OAUTHBEARER",),
        {**_OF_OAUTH, **_OF_IAM},
        {"extension_": "sasl_oauthbearer_extensions", "unsecuredLogin": _UNSECURED, "ssl.": _ENDPOINT_TLS},
    ),
    "com.sun.security.auth.module.Krb5LoginModule": _KERBEROS,
    "com.ibm.security.auth.module.Krb5LoginModule": _KERBEROS,
    "software.amazon.msk.auth.iam.IAMLoginModule": _Module(("AWS_MSK_IAM",), _OF_IAM),
}
"""Login modules of Kafka, of Java's Kerberos and of AWS."""


class _Token(NamedTuple):
    kind: str
    text: Secret


@dataclass(frozen=True)
class JaasLogin:
    """One login module with its options."""

    module: str
    options: Mapping[str, Secret]

    @property
    def short_name(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The SASL mechanisms that the module is for."""
        return MODULES[self.module].mechanisms


def parse_jaas(text: Secret) -> JaasLogin:
    """The login module of a configuration; ConfigError if it does not have exactly one known module."""
    tokens = _tokens(text)
    if not tokens:
        raise _wrong("it is empty; its form is MODULE required username='...' password='...';")
    module = _module(tokens[0])
    if module is None:
        raise _wrong(_unknown_module(tokens[0]))
    if (_word(tokens, 1) or "").lower() not in FLAGS:
        raise _wrong(f"{_short(module)} is not followed by one of {', '.join(FLAGS)}")
    options, end = _options(tokens, module)
    if end + 1 < len(tokens):
        raise _wrong("there is text after its semicolon; give exactly one login module")
    return JaasLogin(module, options)


def jaas_settings(login: JaasLogin, mechanism: str | None) -> tuple[str, dict[str, object]]:
    """The SASL mechanism and the settings that a login module stands for.

    ConfigError if it is for another mechanism, or lacks an option or has one that is unknown.
    """
    known = MODULES[login.module]
    for option in known.needs:
        if not login.options.get(option):
            raise _wrong(f"{login.short_name} needs the option {option}")
    if mechanism is None:
        if len(known.mechanisms) > 1:
            raise ConfigError(
                f"{PROPERTY}: {login.short_name} needs sasl_mechanism, one of {', '.join(known.mechanisms)}"
            )
        mechanism = known.mechanisms[0]
    if mechanism not in known.mechanisms:
        meant = meant_mechanism(mechanism, known.mechanisms)
        advice = "the default of sasl.mechanism in a properties file is GSSAPI" if mechanism == "GSSAPI" else meant
        raise ConfigError(
            f"{PROPERTY}: {login.short_name} is for {' and '.join(known.mechanisms)}, but "
            f"sasl_mechanism={mechanism!r:.60}" + (f" ({advice})" if advice else "")
        )
    settings: dict[str, object] = {}
    for name, value in login.options.items():
        _add(settings, login, name, value)
    if known is _KERBEROS:
        if not _is_on(login, "useKeyTab"):
            settings.pop("sasl_kerberos_keytab", None)
        elif not settings.get("sasl_kerberos_keytab"):
            raise _wrong(f"{login.short_name} has useKeyTab=true and needs the option keyTab, the keytab's file")
    return mechanism, settings


def meant_mechanism(name: str, known: Iterable[str]) -> str | None:
    """``did you mean 'PLAIN'?`` if only case, blanks or dashes differ from a known name; otherwise None."""
    meant = name.strip().upper().replace("_", "-")
    return next((f"did you mean {each!r}?" for each in known if each.replace("_", "-") == meant), None)


def _add(settings: dict[str, object], login: JaasLogin, name: str, value: Secret) -> None:
    known = MODULES[login.module]
    setting = known.options.get(name)
    if setting is not None:
        if setting is not _USELESS:
            settings[setting] = _value(login, name, setting, value)
        return
    prefix, setting = next(each for each in known.prefixes.items() if name.startswith(each[0]))
    if setting is not _USELESS:
        mapping = settings.setdefault(setting, {})
        assert isinstance(mapping, dict)
        if setting == _ENDPOINT_TLS:
            mapping[name.replace(".", "_")] = value if name.endswith(("password", ".key")) else value.reveal()
            return
        mapping[name if setting == _UNSECURED else name.removeprefix(prefix)] = value.reveal()


def _value(login: JaasLogin, name: str, setting: str, value: Secret) -> object:
    if setting == "sasl_scram_tokenauth":
        return _is_on(login, name)
    return value if setting.endswith(("_password", "_secret")) else value.reveal()


def _is_on(login: JaasLogin, name: str) -> bool:
    value = login.options.get(name, Secret("false"))
    if value.reveal().lower() not in ("true", "false"):
        raise _wrong(f"the option {name} of {login.short_name} is neither true nor false")
    return value.reveal().lower() == "true"


def _tokens(text: Secret) -> list[_Token]:
    # Raises nothing: the plain text is a local variable here.
    found = []
    for match in _TOKEN.finditer(text.reveal()):
        kind = match.lastgroup or "other"
        if kind == "quoted":
            found.append(_Token(kind, Secret(_ESCAPE.sub(_unescaped, match.group()[1:-1]))))
        elif kind != "space":
            found.append(_Token(kind, Secret(match.group())))
    return found


def _unescaped(match: re.Match[str]) -> str:
    escape = match.group(1)
    return chr(int(escape, 8)) if escape[0] in "01234567" else _ESCAPED.get(escape, escape)


def _word(tokens: list[_Token], index: int) -> str | None:
    """A module, a flag or the name of an option; None if the next token is something else."""
    if index >= len(tokens) or tokens[index].kind not in ("word", "quoted"):
        return None
    return tokens[index].text.reveal()


def _options(tokens: list[_Token], module: str) -> tuple[dict[str, Secret], int]:
    """The options, and the index of the semicolon."""
    options: dict[str, Secret] = {}
    index = 2
    while index < len(tokens) and tokens[index].kind != "semicolon":
        name = tokens[index]
        place = f"the option no. {len(options) + 1} of {_short(module)}"
        if name.kind not in ("word", "quoted"):
            raise _wrong(f"{place} {_fault(name)}")
        if _is_option(module, name):
            place = f"the option {name.text.reveal()} of {_short(module)}"
        if index + 2 >= len(tokens) or tokens[index + 1].kind != "equals":
            raise _wrong(f'{place} is not of the form name="value"')
        value = tokens[index + 2]
        if value.kind not in ("word", "quoted"):
            raise _wrong(f"the value of {place} {_fault(value)}")
        if not _is_option(module, name):
            raise _wrong(f"{_short(module)} has an unknown option {_shown(name)}; it takes {_taken(module)}")
        options[name.text.reveal()] = value.text
        index += 3
    if index >= len(tokens):
        raise _wrong("the semicolon at its end is missing")
    return options, index


def _is_option(module: str, name: _Token) -> bool:
    known = MODULES[module]
    text = name.text.reveal()
    return text in known.options or any(text.startswith(each) and text != each for each in known.prefixes)


def _taken(module: str) -> str:
    return ", ".join([*MODULES[module].options, *(f"{prefix}..." for prefix in MODULES[module].prefixes)])


def _fault(token: _Token) -> str:
    if token.kind == "open":
        return "has no closing quote in its line"
    if token.kind == "semicolon":
        return "is missing"
    return "must be in quotes: Java's parser does not accept its digits or signs without them"


def _module(token: _Token) -> str | None:
    return next((each for each in MODULES if each == token.text.reveal()), None)


def _unknown_module(token: _Token) -> str:
    names = ", ".join(dict.fromkeys(map(_short, MODULES)))
    if _CLASS.fullmatch(token.text.reveal()):
        return f"the login module {token.text.reveal()} is not known; there are {names}"
    return f"it does not begin with the class of a login module: {names}, each with its package"


def _short(module: str) -> str:
    return module.rpartition(".")[2]


def _shown(name: _Token) -> str:
    # A quote in the wrong place makes a part of a password a name.
    return repr(name.text.reveal()) if _NAME.fullmatch(name.text.reveal()) else "whose name is not that of an option"


def _wrong(why: str) -> ConfigError:
    return ConfigError(f"{PROPERTY}: {why}")
