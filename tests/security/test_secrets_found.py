"""The search for secrets finds each kind of leak, made on purpose here, and nothing else."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import zstandard

from pykafka08.logs import library_logger
from pykafka08.security.hidden_text import HiddenText
from pykafka08.security.secret import Secret
from tests.security import secrets_found
from tests.security.secrets_found import SecretSearch

SECRET = 'pä/ß w"ord\\+é'
HERE = (__name__.partition(".")[0],)


@pytest.fixture
def search() -> SecretSearch:
    return SecretSearch(SECRET)


@pytest.mark.parametrize(
    "leak",
    [
        SECRET,
        f"password={SECRET}!",
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        f"https://host/?a={quote(SECRET, safe='')}&b=c",
        json.dumps({"a": SECRET}),
        json.dumps({"a": SECRET}, ensure_ascii=False),
        repr(SECRET),
        repr(SECRET.encode()),
        repr(SECRET.encode("utf-16-be")),
        f"token {SECRET}".encode(),
        *(base64.b64encode(f"{'u' * length}{SECRET}\0trailer".encode()) for length in range(5)),
        *(base64.urlsafe_b64encode(f"\0{'u' * length}\0{SECRET}".encode()).decode() for length in range(5)),
    ],
)
def test_every_form_is_found(search: SecretSearch, leak: str | bytes) -> None:
    search.of_text("here", leak)
    assert [(each.where, each.secret) for each in search.found] == [("here", SECRET)]


@pytest.mark.parametrize("text", ["", "***", SECRET[:-1], SECRET.upper(), base64.b64encode(b"another secret"), b"\xff"])
def test_other_texts_are_no_finding(search: SecretSearch, text: str | bytes) -> None:
    search.of_text("here", text)
    assert search.found == []
    assert search.searched == 1


KEY = b"\x00'\xff\n\"k\x80y\xfe"


@pytest.mark.parametrize(
    "leak",
    [
        KEY,
        b"x" + KEY + b"'y",
        KEY.decode("latin-1"),
        KEY.hex(),
        KEY.hex(" "),
        repr(KEY),
        repr(b"'" + KEY + b'"'),
        repr(bytearray(KEY)),
        *(base64.b64encode(b"u" * length + KEY + b"trailer").decode() for length in range(4)),
    ],
)
def test_bytes_are_found_in_every_form(leak: str | bytes) -> None:
    search = SecretSearch(KEY)
    search.of_text("here", leak)
    assert [each.secret for each in search.found] == [KEY]


def test_a_secret_that_is_known_later_is_searched_for_from_then_on(search: SecretSearch) -> None:
    for text in ("before token-of-bob", "after token-of-bob"):
        search.of_text(text, text)
        search.add("token-of-bob")
    assert [each.where for each in search.found] == ["after token-of-bob"]


@pytest.mark.parametrize("secrets", [(), ("short",), (b"short",)])
def test_secrets_that_chance_would_find_are_refused(secrets: tuple[str | bytes, ...]) -> None:
    with pytest.raises(ValueError, match="6 characters" if secrets else "give a secret"):
        SecretSearch(*secrets)


def _aloof() -> logging.Logger:
    logger = logging.getLogger("tests.aloof")
    logger.propagate = False
    logger.setLevel(logging.CRITICAL)
    return logger


def _raise_with_local() -> None:
    password = SECRET
    raise KeyError(len(password))


def _log_exception() -> None:
    try:
        _raise_with_local()
    except KeyError:
        logging.getLogger("kazoo.client").exception("failed")


@pytest.mark.parametrize(
    ("speak", "where"),
    [
        (lambda: logging.getLogger().debug("password %s", SECRET), "log of root"),
        (lambda: logging.getLogger("kazoo.client").log(5, "Auth %r", ("digest", SECRET)), "log of kazoo.client"),
        (lambda: logging.getLogger("asyncio").debug("x", extra={"task": [SECRET]}), "log of asyncio"),
        (lambda: library_logger("t").debug("an.event", password=SECRET), "log of pykafka08.t"),
        (lambda: _aloof().debug(SECRET), "log of tests.aloof"),
        (_log_exception, "log of kazoo.client: KeyError, password in _raise_with_local"),
    ],
)
def test_logs(search: SecretSearch, speak: Callable[[], None], where: str) -> None:
    with search.of_logs():
        speak()
    assert [each for each in search.found if each.where.startswith(where)]
    before = len(search.found)
    speak()
    assert len(search.found) == before


def test_handlers_hear_no_more_than_without_the_search(search: SecretSearch, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("tests.heard")
    caplog.set_level(logging.WARNING)
    with search.of_logs():
        logger.debug("one")
        logger.warning("two")
    logger.info("three")
    assert [record.message for record in caplog.records] == ["two"]
    assert not logger.isEnabledFor(logging.DEBUG)


def raised(leak: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseException) as caught:
        leak()
    return caught.value


def _caused() -> None:
    try:
        raise KeyError(SECRET)
    except KeyError as error:
        raise ValueError("text") from error


def _while_handling() -> None:
    try:
        raise KeyError(SECRET)
    except KeyError:
        raise ValueError("text")  # noqa: B904 - the cause is what must be found


def _with_attribute() -> None:
    error = ValueError("text")
    error.password = SECRET  # type: ignore[attr-defined]
    raise error


@pytest.mark.parametrize("leak", [_caused, _while_handling, _with_attribute, lambda: SECRET.encode("ascii")])
def test_errors(search: SecretSearch, leak: Callable[[], object]) -> None:
    search.of_error("here", raised(leak))
    assert search.found


def test_local_variables_of_the_packages_frames_alone(search: SecretSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    error = raised(_raise_with_local)
    search.of_error("here", error)
    assert search.found == []
    monkeypatch.setattr(secrets_found, "PACKAGES", (__file__,))
    search.of_error("here", error)
    (finding,) = search.found
    assert finding.where.startswith("here: KeyError, password in _raise_with_local (")


@dataclass
class Shown:
    password: Any


@dataclass
class Hidden:
    password: Any = field(repr=False)


class Slotted:
    __slots__ = ("__password", "other")

    def __init__(self, password: Any) -> None:
        self.__password = password

    def show(self) -> Any:
        return self.__password


class Printing:
    def __repr__(self) -> str:
        return f"Printing({SECRET})"


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("half made")


@pytest.mark.parametrize(
    ("root", "where"),
    [
        (SECRET, "root"),
        (Shown(SECRET), "root, repr"),
        (Hidden({"a": [SECRET]}), "root.password['a'][0]"),
        (Slotted((1, SECRET.encode())), "root._Slotted__password[1]"),
        ({SECRET: 1}, "root, a key"),
        ({1: Hidden(memoryview(SECRET.encode()))}, "root[1].password"),
        (partial(print, end=SECRET), "root, repr"),
        (partial(print, Hidden(SECRET)), "root.args[0].password"),
        (Slotted(SECRET).show, "root.__self__._Slotted__password"),
        ([Printing()], "root[0], repr"),
    ],
)
def test_objects(search: SecretSearch, root: object, where: str) -> None:
    search.of_objects("root", root, walked=HERE)
    assert where in [each.where for each in search.found]


def test_secrets_kept_as_such_are_no_finding(search: SecretSearch) -> None:
    loop: list[object] = [Silent(), None, 5, print, Shown(Secret(SECRET)), Hidden(HiddenText(SECRET))]
    loop.append(loop)
    search.of_objects("root", loop, walked=HERE)
    assert search.found == []


def test_more_objects_than_the_limit_are_an_error(search: SecretSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets_found, "MOST_OBJECTS", 10)
    with pytest.raises(RuntimeError, match="more than 10 objects"):
        search.of_objects("root", [[number] for number in range(20)])


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("is_text", [True, False])
def test_output_of_a_program(search: SecretSearch, stream: str, is_text: bool) -> None:
    code = f"import sys; sys.{stream}.buffer.write({SECRET.encode()!r})"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        encoding="utf-8" if is_text else None,
        timeout=50,
        check=True,
    )
    search.of_run("tool", run)
    assert [each.where for each in search.found] == [f"{stream} of tool"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_files(search: SecretSearch, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "below").mkdir()
    file = tmp_path / "below" / "events"
    (tmp_path / "other").write_bytes(b"\xff")
    file.write_bytes(pack(b"x" * 100_000 + json.dumps([SECRET]).encode()))
    search.of_files(tmp_path)
    assert [each.where for each in search.found] == [str(file)]


def test_a_file_that_is_not_there_is_an_error(search: SecretSearch, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        search.of_files(tmp_path / "none")
