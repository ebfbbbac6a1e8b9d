"""``sasl.jaas.config`` as Kafka's own parser reads it, and errors that show nothing of it."""

from __future__ import annotations

import re
import traceback
from typing import Any

import pytest

from pykafka08 import Producer
from pykafka08.config import ClientConfig, build, client_settings
from pykafka08.errors import ConfigError
from pykafka08.security.jaas import MODULES, parse_jaas
from pykafka08.security.sasl.login import login_of
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
SECRET = "Tr0ub4dor-hidden"


def options(text: str) -> dict[str, str]:
    return {name: value.reveal() for name, value in parse_jaas(Secret(text)).options.items()}


@pytest.mark.parametrize(
    ("text", "password"),
    [
        ('password="a b"', "a b"),
        ("password='a b'", "a b"),
        ('password="say \\"hi\\""', 'say "hi"'),
        ('password="back\\\\slash"', "back\\slash"),
        ('password="semi;colon=equals # ! // /* "', "semi;colon=equals # ! // /* "),
        ('password="\\101\\t\\n\\x"', "A\t\nx"),
        ('password="\\400"', " 0"),
        ('password="\u00e9\u4e2d\U0001f511"', "\u00e9\u4e2d\U0001f511"),
        ("password=plain-word_1.x$", "plain-word_1.x$"),
        ('password = "a"', "a"),
        ('password="a" password="b"', "b"),
        ('/* a comment; */ password="a" // password="b"\n', "a"),
        ('\n  password="a"\n  ', "a"),
        ('password="a" / the rest of a line is a comment\n', "a"),
    ],
)
def test_values_and_comments(text: str, password: str) -> None:
    assert options(f'{PLAIN} required username="u" {text};')["password"] == password


@pytest.mark.parametrize("flag", ["required", "REQUIRED", "requisite", "sufficient", "optional"])
def test_flags(flag: str) -> None:
    assert options(f"{PLAIN} {flag} username=u;") == {"username": "u"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        (f'{PLAIN} required password="{SECRET}"', "the semicolon at its end is missing"),
        (f'{PLAIN} required password="{SECRET}', "option password of PlainLoginModule has no closing quote"),
        (f'{PLAIN} required password="{SECRET}\n";', "has no closing quote in its line"),
        (f"{PLAIN} required password=;", "the value of the option password of PlainLoginModule is missing"),
        (f"{PLAIN} required password=1{SECRET};", "option password of PlainLoginModule must be in quotes"),
        (f"{PLAIN} required password={SECRET}!x;", "the option no. 2 of PlainLoginModule must be in quotes"),
        (f"{PLAIN} required username {SECRET};", 'username of PlainLoginModule is not of the form name="value"'),
        (f'{PLAIN} required username="u" {SECRET}="x" password="p";', "unknown option whose name is not that of an"),
        (
            f'{PLAIN} required usrname="u" username="u" password="{SECRET}";',
            "has an unknown option 'usrname'; it takes ",
        ),
        (f'{PLAIN} username="u" password="{SECRET}";', "PlainLoginModule is not followed by one of required, "),
        (f'{PLAIN} required password="{SECRET}"; {PLAIN} required;', "exactly one login module"),
        (SECRET, "it does not begin with the class of a login module: PlainLoginModule"),
        (
            f'com.example.MyLoginModule required p="{SECRET}";',
            "the login module com.example.MyLoginModule is not known",
        ),
        (f'{PLAIN} required password="{SECRET}";', "PlainLoginModule needs the option username"),
        (f'{SCRAM} required username="{SECRET}";', "ScramLoginModule is for SCRAM-SHA-256 and SCRAM-SHA-512, but "),
    ],
)
def test_refused_and_nothing_shown(text: str, why: str) -> None:
    settings: dict[str, Any] = {"bootstrap_servers": "h:1", "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}
    if "ScramLoginModule" in text:
        text = text[:-1] + ' password="p";'
    with pytest.raises(ConfigError, match=r"^sasl\.jaas\.config: ") as caught:
        build({**settings, "sasl_jaas_config": Secret(text)}, ClientConfig)
    assert why in str(caught.value)
    trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    inner = [frame for frame in trace.stack if "/tests/" not in frame.filename]
    assert inner
    shown = str(caught.value) + "".join(str(frame.locals) for frame in inner)
    assert SECRET not in shown


def security(text: str, **settings: Any) -> SecurityConfig:
    return SecurityConfig(security_protocol="SASL_PLAINTEXT", sasl_jaas_config=text, **settings)


def test_plain_and_scram() -> None:
    config = security(f'{PLAIN} required username="u" password="{SECRET}" user_admin="x" serviceName="kafka";')
    assert (config.sasl_mechanism, config.sasl_plain_username) == ("PLAIN", "u")
    assert config.sasl_plain_password == Secret(SECRET)
    assert SECRET not in repr(config)
    config = security(f'{SCRAM} required username="u" password="p";', sasl_mechanism="SCRAM-SHA-512")
    assert config.sasl_plain_username == "u"


@pytest.mark.parametrize(
    ("mechanism", "advice"),
    [
        ("scram-sha-256", r"'scram-sha-256' \(did you mean 'SCRAM-SHA-256'\?\)$"),
        ("SCRAM_SHA_512", r"'SCRAM_SHA_512' \(did you mean 'SCRAM-SHA-512'\?\)$"),
        ("GSSAPI", r"'GSSAPI' \(the default of sasl\.mechanism in a properties file is GSSAPI\)$"),
        ("PLAIN", "'PLAIN'$"),
    ],
)
def test_a_mechanism_of_another_login_module_is_refused(mechanism: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=rf"ScramLoginModule is for .*, but sasl_mechanism={advice}"):
        security(f'{SCRAM} required username="u" password="p";', sasl_mechanism=mechanism)


def test_a_mechanism_in_lower_case_is_refused_with_a_hint() -> None:
    config = SecurityConfig(security_protocol="SASL_SSL", sasl_mechanism="plain", sasl_plain_username="u")
    with pytest.raises(ConfigError, match=r"sasl_mechanism='plain' is not one of .*; did you mean 'PLAIN'\?$"):
        login_of(config)


def test_scram_needs_the_mechanism() -> None:
    with pytest.raises(ConfigError, match=r"ScramLoginModule needs sasl_mechanism, one of SCRAM-SHA-256, SCRAM"):
        security(f'{SCRAM} required username="u" password="p";')


def test_kerberos_uses_a_keytab_that_it_says_it_uses() -> None:
    text = f'{KERBEROS} required keyTab="/k" useKeyTab=true storeKey=true serviceName="broker";'
    login = parse_jaas(Secret(text))
    from pykafka08.security.jaas import jaas_settings

    assert jaas_settings(login, None)[1] == {"sasl_kerberos_keytab": "/k", "sasl_kerberos_service_name": "broker"}
    login = parse_jaas(Secret(text.replace("useKeyTab=true", "useKeyTab=false")))
    assert jaas_settings(login, None)[1] == {"sasl_kerberos_service_name": "broker"}
    with pytest.raises(ConfigError, match="option useKeyTab of Krb5LoginModule is neither true nor false"):
        jaas_settings(parse_jaas(Secret(text.replace("useKeyTab=true", "useKeyTab=yes"))), None)


@pytest.mark.parametrize("key_tab", ["", 'keyTab=""'])
def test_kerberos_with_a_keytab_needs_the_file(key_tab: str) -> None:
    with pytest.raises(ConfigError, match="Krb5LoginModule has useKeyTab=true and needs the option keyTab"):
        security(f"{KERBEROS} required useKeyTab=true {key_tab};", sasl_mechanism="GSSAPI")


def test_tls_options_are_of_the_token_endpoint() -> None:
    from pykafka08.security.jaas import jaas_settings

    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    text = f'{module} required ssl.truststore.location="/t.jks" ssl.truststore.password="{SECRET}";'
    found = jaas_settings(parse_jaas(Secret(text)), None)[1]
    expected = {"ssl_truststore_location": "/t.jks", "ssl_truststore_password": Secret(SECRET)}
    assert found == {"sasl_oauthbearer_ssl": expected}
    config = security(text, sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token_endpoint_url="https://h/t")
    assert isinstance(config.sasl_oauthbearer_ssl, SecurityConfig)
    assert config.sasl_oauthbearer_ssl.ssl_truststore_location == "/t.jks"
    assert SECRET not in repr(config)
    with pytest.raises(ConfigError, match="sasl_oauthbearer_ssl: no such setting: ssl_nonsense"):
        security(f'{module} required ssl.nonsense="1";', sasl_mechanism="OAUTHBEARER")


def test_every_module_has_one_of_the_known_mechanisms() -> None:
    from pykafka08.security.sasl.login import MODULES as MECHANISMS

    assert {each for module in MODULES.values() for each in module.mechanisms} == set(MECHANISMS)


def test_it_counts_for_sasl_alone_and_agrees_with_other_settings() -> None:
    assert SecurityConfig(sasl_jaas_config="nonsense").sasl_plain_username is None
    text = f'{PLAIN} required username="u" password="p";'
    assert security(text, sasl_plain_username="u", sasl_plain_password="p").sasl_mechanism == "PLAIN"
    with pytest.raises(ConfigError, match=r"sasl_plain_username and sasl\.jaas\.config disagree"):
        security(text, sasl_plain_username="other")
    with pytest.raises(ConfigError, match=r"^sasl\.jaas\.config: the semicolon"):
        Producer("h:1", security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=text[:-1])


@pytest.mark.parametrize(
    ("mechanism", "text", "setting", "default", "of_module"),
    [
        ("GSSAPI", f'{KERBEROS} required serviceName="broker";', "sasl_kerberos_service_name", "kafka", "broker"),
        (
            "SCRAM-SHA-256",
            f'{SCRAM} required username="u" password="p" tokenauth="true";',
            "sasl_scram_tokenauth",
            False,
            True,
        ),
    ],
)
def test_a_default_that_is_given_disagrees_too(
    mechanism: str, text: str, setting: str, default: object, of_module: object
) -> None:
    settings = {"security_protocol": "SASL_SSL", "sasl_mechanism": mechanism, "sasl_jaas_config": text}
    with pytest.raises(ConfigError, match=rf"^{setting} and sasl\.jaas\.config disagree: give one of them"):
        Producer("h:1", **settings, **{setting: default})
    given: dict[str, Any] = {**settings, "bootstrap_servers": "h:1", setting: default}
    properties = {name.replace("_", "."): value for name, value in given.items()}
    written = re.escape(setting.replace("_", "."))
    with pytest.raises(ConfigError, match=rf"^{written} and sasl\.jaas\.config disagree: give one of them"):
        Producer.from_properties(properties)
    for given in ({}, {setting: of_module}):
        (client,) = build({"bootstrap_servers": "h:1", **settings, **given}, ClientConfig)
        assert getattr(client.security, setting) == of_module
        (again,) = build(client_settings(client), ClientConfig)
        assert again == client
