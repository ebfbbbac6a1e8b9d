"""Kerberos against a KDC of our own: the exchange with an acceptor in this process, its errors, and hostile brokers."""

from __future__ import annotations

import gc
import re
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from pykafka08.errors import AuthenticationError, ConfigError, KafkaError, TransportError
from pykafka08.security.sasl import kerberos as module
from pykafka08.security.sasl.login import login_of
from pykafka08.security.settings import SecurityConfig
from tests.security.kdc import HOST, PASSWORD, REALM, Kdc
from tests.security.kerberos_secrets import keys_of_keytab

pytestmark = [pytest.mark.anyio, pytest.mark.kerberos]


@pytest.fixture(autouse=True)
def _no_tickets_of_earlier_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._memory_caches, "_free", {})


NO_LAYER = bytes((1, 0, 0, 0))
LONG = 65_537


def login_with(**changed: Any) -> Any:
    return login_of(SecurityConfig(security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI", **changed))


def keytab_login(kdc: Kdc, name: str = "alice", **changed: Any) -> Any:
    settings = {"sasl_kerberos_principal": name, "sasl_kerberos_keytab": str(kdc.keytab(name)), **changed}
    return login_with(**settings)


def acceptor(kdc: Kdc, keytab: str = "kafka") -> Any:
    """The broker's side of an exchange."""
    import gssapi

    credentials = gssapi.Credentials(usage="accept", store={"keytab": str(kdc.keytab(keytab))})
    return gssapi.SecurityContext(creds=credentials, usage="accept")


async def known(kdc: Kdc, login: Any) -> tuple[Any, Any]:
    """The client's mechanism and the broker's context once both sides know each other."""
    mechanism, broker = login.mechanism("localhost"), acceptor(kdc)
    assert await mechanism.respond(broker.step(await mechanism.respond(None))) == b""
    assert broker.complete
    return mechanism, broker


async def exchange(kdc: Kdc, login: Any) -> str:
    """A whole exchange; the user that the broker sees."""
    mechanism, broker = await known(kdc, login)
    assert not mechanism.may_be_followed
    answer = broker.unwrap(await mechanism.respond(broker.wrap(NO_LAYER, False).message)).message
    assert mechanism.is_complete
    assert mechanism.may_be_followed
    assert not mechanism.is_last_token_answered
    assert await mechanism.respond(b"") is None
    assert answer[:4] == NO_LAYER
    assert answer[4:].decode() == str(broker.initiator_name)
    return answer[4:].decode()


async def test_a_keytab_leaves_the_users_own_tickets_alone(kerberos: Kdc) -> None:
    login = keytab_login(kerberos)
    assert login.name == login.mechanism("localhost").name == "GSSAPI"
    assert await exchange(kerberos, login) == f"alice@{REALM}"
    assert not kerberos.tickets.exists()


def test_the_search_for_secrets_knows_the_keys_that_klist_shows(kdc: Kdc) -> None:
    shown = re.findall(r"\(0x([0-9a-f]+)\)", kdc.run("klist", "-k", "-K", str(kdc.keytab("kafka"))))
    assert len(shown) == 4
    assert [key.hex() for key in keys_of_keytab(kdc.keytab("kafka"))] == shown


async def test_a_keytab_names_its_principal(kerberos: Kdc) -> None:
    assert await exchange(kerberos, keytab_login(kerberos, sasl_kerberos_principal=None)) == f"alice@{REALM}"


async def test_a_ticket_of_kinit_is_used_as_soon_as_it_is_there(kerberos: Kdc) -> None:
    login = login_with()
    with pytest.raises(AuthenticationError, match="run kinit"):
        await exchange(kerberos, login)
    kerberos.kinit("alice", password=PASSWORD)
    assert await exchange(kerberos, login) == f"alice@{REALM}"


async def test_a_named_ticket_cache_is_used(kerberos: Kdc, tmp_path: Path) -> None:
    kerberos.kinit("-c", str(tmp_path / "own"), "alice", password=PASSWORD)
    assert await exchange(kerberos, login_with(sasl_kerberos_ticket_cache=str(tmp_path / "own"))) == f"alice@{REALM}"


async def test_the_service_is_named_by_the_host_or_by_the_domain_setting(
    kerberos: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(address: str) -> tuple[str, list[str], list[str]]:
        if address == HOST:
            return "localhost", [], [HOST]
        raise socket.herror("unknown host")

    monkeypatch.setattr(module.socket, "gethostbyaddr", found)
    kerberos.admin("addprinc -randkey kafka/127.9.9.9", must_succeed=False)
    kerberos.admin(f"ktadd -k {kerberos.keytab('kafka')} kafka/127.9.9.9")
    asked = [
        ({}, "localhost.", "kafka/localhost"),
        ({}, HOST, "kafka/localhost"),
        ({}, "127.9.9.9", "kafka/127.9.9.9"),
        ({"sasl_kerberos_domain_name": "localhost."}, "elsewhere", "kafka/localhost"),
        ({"sasl_kerberos_domain_name": HOST}, HOST, f"kafka/{HOST}"),
    ]
    for changed, host, service in asked:
        broker = acceptor(kerberos)
        broker.step(await keytab_login(kerberos, **changed).mechanism(host).respond(None))
        assert str(broker.target_name) == f"{service}@{REALM}"


async def test_many_exchanges_at_once_ask_for_one_ticket(kerberos: Kdc) -> None:
    login = keytab_login(kerberos)
    before = len(kerberos.requests("AS_REQ"))
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(exchange, kerberos, login)
    assert len(kerberos.requests("AS_REQ")) == before + 1


async def test_caches_in_memory_are_used_again(kerberos: Kdc) -> None:
    first = keytab_login(kerberos)
    await exchange(kerberos, first)
    name = first._ticket_cache
    second = keytab_login(kerberos)
    assert second._ticket_cache != name
    del first
    gc.collect()
    assert keytab_login(kerberos)._ticket_cache == name
    assert keytab_login(kerberos, sasl_kerberos_principal=f"alice@{REALM}")._ticket_cache != name


# --- security layers ----------------------------------------------------------------------------------------------


async def test_no_layer_is_chosen_among_all(kerberos: Kdc) -> None:
    mechanism, broker = await known(kerberos, keytab_login(kerberos))
    offer = broker.wrap(bytes((7, 0, 255, 255)), True).message
    assert broker.unwrap(await mechanism.respond(offer)).message[:4] == NO_LAYER


@pytest.mark.parametrize(
    ("offer", "text"),
    [
        (bytes((6, 0, 255, 255)), r"demands a security layer \(integrity \(auth-int\), confidentiality"),
        (bytes(4), "none that is known"),
        (b"", "has 0 bytes, not 4"),
        (NO_LAYER + b"\0", "has 5 bytes, not 4"),
    ],
)
async def test_impossible_layers_are_refused(kerberos: Kdc, offer: bytes, text: str) -> None:
    mechanism, broker = await known(kerberos, keytab_login(kerberos))
    with pytest.raises(AuthenticationError, match=text):
        await mechanism.respond(broker.wrap(offer, False).message)
    assert not mechanism.is_complete


# --- hostile brokers ----------------------------------------------------------------------------------------------

HOSTILE: dict[str, Callable[[bytes], bytes | None]] = {
    "nothing": lambda token: None,
    "an empty token": lambda token: b"",
    "garbage": lambda token: b"\x60\x82garbage",
    "the client's own token": lambda token: token,
    "a changed token": lambda token: token[:-1] + bytes((token[-1] ^ 1,)),
    "a short token": lambda token: token[:20],
    "an oversized token": lambda token: bytes(LONG),
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_wrong_first_answer_is_refused(kerberos: Kdc, what: str) -> None:
    mechanism, broker = keytab_login(kerberos).mechanism("localhost"), acceptor(kerberos)
    token = await mechanism.respond(None)
    answer = broker.step(token)
    with pytest.raises(AuthenticationError) as caught:
        await mechanism.respond(HOSTILE[what](token if "own" in what else answer))
    assert caught.value.mechanism == "GSSAPI"
    assert (f"has {LONG} bytes" in str(caught.value)) == (what == "an oversized token")
    assert not mechanism.is_complete


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_wrong_offer_of_layers_is_refused(kerberos: Kdc, what: str) -> None:
    mechanism, broker = await known(kerberos, keytab_login(kerberos))
    offer = broker.wrap(NO_LAYER, False).message
    with pytest.raises(AuthenticationError):
        await mechanism.respond(HOSTILE[what](NO_LAYER if "own" in what else offer))
    assert not mechanism.is_complete


async def test_an_answer_to_another_exchange_is_refused(kerberos: Kdc) -> None:
    login = keytab_login(kerberos)
    mechanism, broker = login.mechanism("localhost"), acceptor(kerberos)
    other = broker.step(await login.mechanism("localhost").respond(None))
    await mechanism.respond(None)
    with pytest.raises(AuthenticationError):
        await mechanism.respond(other)


async def test_a_token_after_the_exchange_is_refused(kerberos: Kdc) -> None:
    mechanism, broker = await known(kerberos, keytab_login(kerberos))
    await mechanism.respond(broker.wrap(NO_LAYER, False).message)
    with pytest.raises(AuthenticationError, match="after the exchange"):
        await mechanism.respond(b"more")


async def test_a_broker_that_does_not_prove_its_identity_is_refused(
    kerberos: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gssapi

    login, broker = keytab_login(kerberos), acceptor(kerberos)
    make, integrity = gssapi.SecurityContext, gssapi.RequirementFlag.integrity
    monkeypatch.setattr(gssapi, "SecurityContext", lambda **settings: make(**{**settings, "flags": integrity}))
    mechanism = login.mechanism("localhost")
    broker.step(await mechanism.respond(None))
    with pytest.raises(AuthenticationError, match="did not prove its identity"):
        await mechanism.respond(broker.wrap(NO_LAYER, False).message)
    assert not mechanism.is_complete


# --- errors -------------------------------------------------------------------------------------------------------

ERRORS: dict[str, tuple[tuple[str, ...], dict[str, Any], list[str]]] = {
    # what is wrong: commands of kadmin, settings, what the error says; {KEYTAB} is a keytab of bob
    "no ticket": ((), {}, ["no ticket for the default principal", "service kafka/localhost", "run kinit"]),
    "ticket of another": (
        (),
        {"sasl_kerberos_principal": "carol"},
        [f"no ticket for carol@{REALM}", "sasl_kerberos_keytab"],
    ),
    "malformed principal": ((), {"sasl_kerberos_principal": "a@b@c"}, ["sasl_kerberos_principal=a@b@c is malformed"]),
    "no cache": ((), {"sasl_kerberos_ticket_cache": "/absent"}, ["no ticket for the default principal"]),
    "no cache file": ((), {"sasl_kerberos_ticket_cache": "{GARBAGE}"}, ["cache cannot be used", "run kinit again"]),
    "no keytab": (
        (),
        {"sasl_kerberos_keytab": "/absent"},
        ["cannot read sasl_kerberos_keytab='/absent'", "No such file", "service kafka/localhost"],
    ),
    "a folder as keytab": ((), {"sasl_kerberos_keytab": "FILE:/"}, ["cannot read sasl_kerberos_keytab='FILE:/'"]),
    "garbage as keytab": ((), {"sasl_kerberos_keytab": "{GARBAGE}"}, ["is not a keytab", "ktadd"]),
    "keytab of another": (
        (),
        {"sasl_kerberos_principal": "carol", "sasl_kerberos_keytab": "{KEYTAB}"},
        [f"has no key of carol@{REALM}", "klist -k"],
    ),
    "unknown principal": (
        ("delprinc -force bob",),
        {"sasl_kerberos_keytab": "{KEYTAB}", "sasl_kerberos_principal": "bob"},
        [f"the KDC does not know bob@{REALM}", "check sasl_kerberos_principal"],
    ),
    "old key": (
        ("cpw -randkey bob",),
        {"sasl_kerberos_keytab": "{KEYTAB}", "sasl_kerberos_principal": "bob"},
        [f"is not the one of bob@{REALM}", "export the keytab again"],
    ),
    "old key with preauthentication": (
        ("cpw -randkey bob", "modprinc +requires_preauth bob"),
        {"sasl_kerberos_keytab": "{KEYTAB}", "sasl_kerberos_principal": "bob"},
        [f"is not the one of bob@{REALM}", "export the keytab again"],
    ),
    "expired account": (
        ("modprinc -expire yesterday bob",),
        {"sasl_kerberos_keytab": "{KEYTAB}", "sasl_kerberos_principal": "bob"},
        [f"the account of bob@{REALM} has expired"],
    ),
    "locked account": (
        ("modprinc -allow_tix bob",),
        {"sasl_kerberos_keytab": "{KEYTAB}", "sasl_kerberos_principal": "bob"},
        [f"the account of bob@{REALM} is locked"],
    ),
    "unknown service": (
        (),
        {"sasl_kerberos_keytab": "{KEYTAB}", "sasl_kerberos_service_name": "other"},
        ["the KDC does not know the service other/localhost", f"principal bob@{REALM}", "rdns = false"],
    ),
    "wrong host": (
        (),
        {"sasl_kerberos_keytab": "{KEYTAB}", "sasl_kerberos_domain_name": "other"},
        ["the KDC does not know the service kafka/other", "host name in the broker's principal"],
    ),
}


@pytest.mark.parametrize("what", ERRORS)
async def test_an_error_says_what_to_change(kerberos: Kdc, tmp_path: Path, what: str) -> None:
    commands, settings, texts = ERRORS[what]
    keytab, garbage = tmp_path / "bob.keytab", tmp_path / "garbage"
    garbage.write_bytes(b"garbage")
    kerberos.admin("addprinc -randkey bob", f"ktadd -k {keytab} bob", *commands)
    files = {"KEYTAB": str(keytab), "GARBAGE": str(garbage)}
    try:
        login = login_with(**{name: value.format(**files) for name, value in settings.items()})
        with pytest.raises(AuthenticationError) as caught:
            await login.mechanism("localhost").respond(None)
    finally:
        kerberos.admin("delprinc -force bob", must_succeed=False)
    for text in texts:
        assert text in str(caught.value)
    assert "{" not in str(caught.value)


async def refused_by(kdc: Kdc, login: Any, keytab: str = "kafka") -> KafkaError:
    """The client's error after the broker has refused its first token."""
    mechanism, broker = login.mechanism("localhost"), acceptor(kdc, keytab)
    with pytest.raises(AuthenticationError) as caught:
        await mechanism.respond(broker.step(await mechanism.respond(None)))
    return caught.value


async def test_a_wrong_clock_is_named(kerberos: Kdc) -> None:
    kerberos.kinit("alice", password=PASSWORD)
    kerberos.run("kvno", f"kafka/localhost@{REALM}")
    set_clock_offset(kerberos.tickets, 3600)
    error = await refused_by(kerberos, login_with())
    assert "clocks of this machine, the broker and the KDC differ" in str(error)
    assert f"service kafka/localhost, principal alice@{REALM}" in str(error)


async def test_an_expired_ticket_is_named(kerberos: Kdc) -> None:
    kerberos.kinit("alice", password=PASSWORD)
    set_clock_offset(kerberos.tickets, 11 * 3600)
    with pytest.raises(AuthenticationError, match=f"the ticket of alice@{REALM} has expired .*run kinit"):
        await login_with(sasl_kerberos_principal="alice").mechanism("localhost").respond(None)
    with pytest.raises(AuthenticationError, match="the ticket of the default principal has expired"):
        await login_with().mechanism("localhost").respond(None)


NEW_KEYS = {
    "of a later version": ("cpw -randkey kafka/old",),
    "of the same version": (
        "delprinc -force kafka/old",
        "addprinc -randkey kafka/old",
        "ktadd -k {keytab}.new kafka/old",
    ),
}


@pytest.mark.parametrize("key", NEW_KEYS)
async def test_a_brokers_old_key_is_named(kerberos: Kdc, key: str) -> None:
    keytab = kerberos.keytab("old")
    kerberos.admin("addprinc -randkey kafka/old", f"ktadd -k {keytab} kafka/old")
    kerberos.admin(*(command.format(keytab=keytab) for command in NEW_KEYS[key]), must_succeed=False)
    try:
        error = await refused_by(kerberos, keytab_login(kerberos, sasl_kerberos_domain_name="old"), "old")
    finally:
        kerberos.admin("delprinc -force kafka/old")
        keytab.unlink()
    assert "the broker has no valid key of kafka/old" in str(error)
    assert f"principal alice@{REALM}" in str(error)


def set_clock_offset(cache: Path, seconds: int) -> None:
    """Make the library believe that the KDC's clock differs from this machine's."""
    data = cache.read_bytes()
    assert data[:2] == b"\x05\x04"
    (size,) = struct.unpack_from(">H", data, 2)
    header = struct.pack(">HHii", 1, 8, seconds, 0)
    cache.write_bytes(data[:2] + struct.pack(">H", len(header)) + header + data[4 + size :])


# --- the KDC ------------------------------------------------------------------------------------------------------


async def test_an_absent_kdc_is_named_and_passes_for_credentials_that_have_worked(
    kerberos: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = keytab_login(kerberos)
    with free_port() as port:
        absent = str(kerberos.write_config("absent.conf", port=port))
        monkeypatch.setenv("KRB5_CONFIG", absent)
        with pytest.raises(AuthenticationError, match=r"no KDC answers.*kafka/localhost.*alice.*krb5.conf"):
            await login.mechanism("localhost").respond(None)
        monkeypatch.setenv("KRB5_CONFIG", str(kerberos.config))
        await exchange(kerberos, login)
        monkeypatch.setenv("KRB5_CONFIG", absent)
        await exchange(kerberos, login)  # its tickets are at hand
        with pytest.raises(TransportError, match="no KDC answers"):
            await login.mechanism("another").respond(None)


async def test_a_silent_kdc_holds_up_neither_the_connection_nor_more_than_one_thread(
    kerberos: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = keytab_login(kerberos)
    begin, begun = login._begin, []
    monkeypatch.setattr(login, "_begin", lambda host: begun.append(host) or begin(host))
    monkeypatch.setattr(module, "KDC_SECONDS", 0.2)
    with free_port(is_listening=True) as port:
        monkeypatch.setenv("KRB5_CONFIG", str(kerberos.write_config("silent.conf", port=port)))
        with anyio.fail_after(5):
            for _ in range(3):
                with pytest.raises(AuthenticationError, match=r"no KDC has answered in 0.2 s .*kafka/localhost"):
                    await login.mechanism("localhost").respond(None)
                assert login._is_asking
    assert begun == ["localhost"]
    while login._is_asking:  # noqa: ASYNC110 - until the library has noticed that the KDC has gone
        await anyio.sleep(0.01)
    monkeypatch.setenv("KRB5_CONFIG", str(kerberos.config))
    monkeypatch.setattr(module, "KDC_SECONDS", 8)
    await exchange(kerberos, login)


@contextmanager
def free_port(*, is_listening: bool = False) -> Iterator[int]:
    """A port without a KDC: it refuses connections, or takes them and is silent."""
    with socket.socket() as bound:
        bound.bind((HOST, 0))
        if is_listening:
            bound.listen()
        yield bound.getsockname()[1]


# --- settings and libraries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"sasl_kerberos_service_name": ""}, "sasl_kerberos_service_name='' is not a service alone"),
        ({"sasl_kerberos_service_name": "kafka/host"}, "'kafka/host' is not a service alone"),
        ({"sasl_kerberos_keytab": ""}, "sasl_kerberos_keytab is empty"),
        ({"sasl_kerberos_principal": "a\0"}, "sasl_kerberos_principal is empty or has a NUL"),
    ],
)
def test_unusable_settings_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        login_with(**settings)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            ModuleNotFoundError("No module named 'gssapi'"),
            r"needs the extra 'gssapi': pip install 'pykafka08\[gssapi\]'",
        ),
        (ImportError("libgssapi_krb5.so.2: cannot open shared object file"), "apt-get install libgssapi-krb5-2"),
        (OSError("no such library"), "needs the Kerberos library"),
    ],
)
def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch, error: Exception, text: str) -> None:
    def fail(name: str) -> Any:
        raise error

    monkeypatch.setattr(module, "import_module", fail)
    with pytest.raises(ConfigError, match=text):
        login_with()
