"""A search for secrets in everything that a program shows: logs, reprs, tracebacks, output and files.

    search = SecretSearch("s3cret-of-alice")
    with search.of_logs():
        ...
    search.of_error("wrong password", error)
    search.of_objects("producer", producer)
    search.of_run("pykafka08 consume", completed_process)
    search.of_files(log_directory)
    assert search.found == []

Each secret is searched for as it is, and in base64, hexadecimal, percent-encoded, and escaped as in JSON and Python.
``search.add(...)`` adds one that is known later, such as a token.
"""

from __future__ import annotations

import base64
import gc
import gzip
import io
import json
import logging
import subprocess
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, MethodType, ModuleType, TracebackType
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

import anyio.lowlevel
import pytest

from pykafka08.connection.connection import Connection
from pykafka08.security.hidden_text import HiddenText
from pykafka08.security.secret import Secret

__all__ = ["Finding", "SecretSearch", "everything_is_sent", "forms_of"]

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = (*(str(ROOT / name) + "/" for name in ("pykafka08", "pyspark_pykafka08")), "<string>")
"""Frames of these files and of dataclasses' constructors may not hold a secret; a frame of the application may."""
WALKED = ("pykafka08", "pyspark_pykafka08", "kazoo", "puresasl", "httpx", "httpcore")
"""Packages whose objects are walked through; of all others only the ``repr`` is read."""
LEAST_LENGTH = 6
MOST_OBJECTS = 100_000


class Finding(NamedTuple):
    where: str
    """Such as ``producer._config.password`` or ``log of kazoo.client``."""
    secret: str | bytes
    form: str
    """Such as ``plain`` or ``base64``."""


def forms_of(secret: str | bytes) -> dict[str, str]:
    """Texts that give the secret away, by the name of their form."""
    data = secret.encode() if isinstance(secret, str) else secret
    of_bytes = repr(data)[2:-1]
    forms = {
        "hex": data.hex(),
        "upper-case hex": data.hex().upper(),
        "spaced hex": data.hex(" "),
        "Python's repr of bytes": of_bytes,
        "Python's repr of bytes with both quotes": of_bytes.replace("\\'", "'").replace("'", "\\'"),
    }
    forms |= _forms_of_text(secret) if isinstance(secret, str) else {"Latin-1": secret.decode("latin-1")}
    for shift in range(3):
        # In a longer text the secret may begin at each of the three places of a group of base64; the characters that
        # it shares with its neighbours are left out.
        encoded = base64.b64encode(bytes(shift) + data).decode()
        start = -(-shift * 8 // 6)
        text = encoded[start : (shift + len(data)) * 8 // 6]
        forms[f"base64 at {shift}"] = text
        forms[f"URL-safe base64 at {shift}"] = text.translate(str.maketrans("+/", "-_"))
    found: dict[str, str] = {}
    for name, text in forms.items():
        if text not in found.values():
            found[name] = text
    return found


def _forms_of_text(secret: str) -> dict[str, str]:
    return {
        "plain": secret,
        "percent-encoded": quote(secret, safe=""),
        "percent-encoded path": quote(secret),
        "percent-encoded form": quote_plus(secret),
        "every byte percent-encoded": "".join(f"%{byte:02X}" for byte in secret.encode()),
        "JSON": json.dumps(secret)[1:-1],
        "JSON in Unicode": json.dumps(secret, ensure_ascii=False)[1:-1],
        "Python's repr": repr(secret)[1:-1],
        "Python's repr of UTF-16": repr(secret.encode("utf-16-be"))[2:-1],
    }


class SecretSearch:
    """``found`` has what the searches found so far; a test expects an empty list at its end."""

    def __init__(self, *secrets: str | bytes) -> None:
        if not secrets:
            raise ValueError("give a secret")
        self.found: list[Finding] = []
        self.searched = 0
        """Number of texts, so that a test can make sure that there were any."""
        self._forms: list[tuple[str | bytes, str, str, bytes]] = []
        self.add(*secrets)

    def add(self, *secrets: str | bytes) -> None:
        """Search what comes from now on for these, too."""
        if any(len(secret) < LEAST_LENGTH for secret in secrets):
            raise ValueError(f"give secrets of at least {LEAST_LENGTH} characters: shorter ones are found by chance")
        known = {secret for secret, _, _, _ in self._forms}
        for secret in dict.fromkeys(secrets):
            if secret not in known:
                forms = [(secret, form, text, text.encode()) for form, text in forms_of(secret).items()]
                # Bytes of a program's output that are the secret itself.
                raw = [(secret, "raw", "", secret)] if isinstance(secret, bytes) else []
                self._forms = [*self._forms, *forms, *raw]

    def of_text(self, where: str, text: str | bytes | bytearray) -> None:
        """Search one text; each secret is reported once, in the first form that was found."""
        self.searched += 1
        seen = set()
        for secret, form, as_text, as_bytes in self._forms:
            is_there = as_text != "" and as_text in text if isinstance(text, str) else as_bytes in text
            if is_there and secret not in seen:
                seen.add(secret)
                finding = Finding(where, secret, form)
                if finding not in self.found:
                    self.found.append(finding)

    # -- logs

    @contextmanager
    def of_logs(self) -> Iterator[None]:
        """Search what every logger says inside the block, at every level, with its arguments and tracebacks."""
        with _listening(self._of_record):
            yield

    def _of_record(self, record: logging.LogRecord) -> None:
        where = f"log of {record.name}"
        self.of_text(where, record.getMessage())
        for name, value in vars(record).items():
            if name != "exc_info":
                self.of_text(f"{where}, {name}", _repr(value))
        if record.exc_info and record.exc_info[1] is not None:
            # A formatter of the application may show local variables of every frame, also of other libraries' frames.
            self._of_chain(where, record.exc_info[1], lambda path: True)

    # -- tracebacks

    def of_error(self, where: str, error: BaseException) -> None:
        """Search an error, its causes and its members, and the local variables of the package's frames."""
        self._of_chain(where, error, lambda path: path.startswith(PACKAGES))

    def _of_chain(self, where: str, error: BaseException, is_ours: Callable[[str], bool]) -> None:
        waiting, seen = [error], set()
        while waiting:
            each = waiting.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            name = f"{where}: {type(each).__name__}"
            self.of_text(name, "".join(traceback.format_exception_only(type(each), each)))
            self.of_text(f"{name}, repr", _repr(each))
            self.of_text(f"{name}, attributes", _repr(vars(each)))
            self._of_frames(name, each.__traceback__, is_ours)
            waiting += [other for other in (each.__cause__, each.__context__) if other is not None]
            waiting += getattr(each, "exceptions", ())

    def _of_frames(self, where: str, frames: TracebackType | None, is_ours: Callable[[str], bool]) -> None:
        for frame, line in traceback.walk_tb(frames):
            code = frame.f_code
            if is_ours(code.co_filename):
                for name, value in frame.f_locals.items():
                    self.of_text(f"{where}, {name} in {code.co_name} ({code.co_filename}:{line})", _repr(value))

    # -- objects

    def of_objects(self, where: str, *roots: object, walked: tuple[str, ...] = WALKED) -> None:
        """Search the ``repr`` of every object that is reachable by attributes and items.

        RuntimeError if there are more objects than the search can bear.
        """
        waiting: deque[tuple[str, object]] = deque((where, root) for root in roots)
        kept: dict[int, object] = {}
        while waiting:
            path, each = waiting.popleft()
            if id(each) in kept or isinstance(each, _PLAIN):
                continue
            if len(kept) >= MOST_OBJECTS:
                raise RuntimeError(f"{where} reaches more than {MOST_OBJECTS} objects; the last is {path}")
            kept[id(each)] = each
            if isinstance(each, str | bytes | bytearray) and not isinstance(each, HiddenText):
                self.of_text(path, each)
            elif isinstance(each, memoryview):
                self.of_text(path, bytes(each))
            else:
                if not isinstance(each, Mapping | list | tuple | set | frozenset | deque) or hasattr(each, "_fields"):
                    self.of_text(f"{path}, repr", _repr(each))
                waiting += _children(path, each, walked)

    # -- output and files

    def of_run(self, where: str, run: subprocess.CompletedProcess[Any]) -> None:
        """Search what a program wrote to its standard output and its standard error."""
        for name, output in (("stdout", run.stdout), ("stderr", run.stderr)):
            if output is not None:
                self.of_text(f"{name} of {where}", output)

    def of_files(self, *paths: Path) -> None:
        """Search files, and all files of directories; gzip and zstd are unpacked."""
        for path in paths:
            if not path.exists():
                raise FileNotFoundError(path)
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file():
                    self.of_text(str(file), file.name)
                    self.of_text(str(file), _unpacked(file.read_bytes()))


_PLAIN = (int, float, complex, type(None), type, ModuleType, FunctionType, logging.Logger)


def _children(path: str, each: object, walked: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    if isinstance(each, Secret | HiddenText):
        return
    if isinstance(each, Mapping):
        for key, value in list(each.items()):
            yield f"{path}, a key", key
            yield f"{path}[{_repr(key):.80}]", value
    elif isinstance(each, list | tuple | set | frozenset | deque):
        for number, value in enumerate(list(each)):
            yield f"{path}[{number}]", value
    if isinstance(each, MethodType):
        yield f"{path}.__self__", each.__self__
    elif type(each).__module__ == "functools" and hasattr(each, "keywords"):
        yield f"{path}.args", each.args  # type: ignore[attr-defined]
        yield f"{path}.keywords", each.keywords
        yield f"{path}.func", each.func  # type: ignore[attr-defined]
    elif isinstance(each, BaseException) or type(each).__module__.split(".")[0] in walked:
        for name, value in _attributes(each):
            yield f"{path}.{name}", value


def _attributes(each: object) -> Iterator[tuple[str, object]]:
    yield from list(getattr(each, "__dict__", {}).items())
    for kind in type(each).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            name = f"_{kind.__name__.lstrip('_')}{slot}" if slot.startswith("__") and not slot.endswith("__") else slot
            if slot not in ("__dict__", "__weakref__") and hasattr(each, name):
                yield name, getattr(each, name)


def _repr(value: object) -> str:
    """A ``repr`` that fails shows nothing, and is no finding."""
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - objects of any kind, half made
        return f"<no repr: {type(error).__name__}>"


def _unpacked(data: bytes) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard

        reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True)
        return bytes(reader.read())
    return data


@contextmanager
def _listening(search: Callable[[logging.LogRecord], None]) -> Iterator[None]:
    """Every logger of every thread makes each record, also at levels that are switched off; handlers get no more."""
    kind = logging.Logger
    is_enabled_for, handle = kind.isEnabledFor, kind.handle

    def search_and_handle(logger: logging.Logger, record: logging.LogRecord) -> None:
        if not logger.filter(record):
            return  # no handler gets it, at whatever level
        search(record)
        if is_enabled_for(logger, record.levelno):
            handle(logger, record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "isEnabledFor", lambda logger, level: True)
        patch.setattr(kind, "handle", search_and_handle)
        yield


async def everything_is_sent() -> None:
    """Sessions are renewed all the time: requests that wait for the socket hold a password or a token as bytes."""
    connections = [each for each in gc.get_objects() if type(each) is Connection]
    while any(each._machine._out for each in connections):
        await anyio.lowlevel.checkpoint()
