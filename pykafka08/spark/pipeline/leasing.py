"""Leases of a pipeline's folder: the runs and backfills that write to it now, on this machine or on any store.

The newest commit of the table ``_lease`` names the holders.  A renewal is the table's next version, which one of
several writers makes.  The lease of a killed process ends after its duration, or at once if the process was on this
machine.  Every commit to another table carries the epoch of its lease, see :class:`Lease`.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from deltalake.exceptions import DeltaError

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.notes import NoteLog
from pykafka08.spark.pipeline.tables.table import Fence, LeaseLostError

__all__ = ["BACKFILL", "CONVERSION", "Holder", "Lease", "holders", "leased"]

FOLDER = "_lease"
BACKFILL, CONVERSION = "backfill", "conversion"
"""Work that is not a stage."""
DURATION_S = 60.0
RENEWALS = 4
"""The number of renewals in one duration."""
LOOK_S = 1.0
"""Seconds between attempts while another process is alone in the folder."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Holder:
    """A process that holds a lease."""

    owner: str
    """A random id."""
    work: tuple[str, ...]
    """Stages, :data:`BACKFILL` or :data:`CONVERSION`.  Two holders never have one of them at once."""
    epoch: int
    """Later leases have higher epochs."""
    host: str
    pid: int
    process: str
    """The boot, the namespace and the start of the process, as far as the system tells them."""
    renewed: float
    """The time of the last renewal in seconds since 1970."""
    seconds: float
    """The duration of the lease after its last renewal."""
    is_alone: bool = False
    """Whether no other process may get a lease meanwhile."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Holder:
        """The holder in a commit."""
        return cls(**{**document, "work": tuple(document["work"])})

    def is_live(self) -> bool:
        """Whether the lease holds: its duration has not passed, and its process is not known to have ended."""
        if time.time() - self.renewed > self.seconds:
            return False
        is_here = self.process.partition(" ")[0] == _machine()
        return not is_here or _process(self.pid) == self.process

    def __str__(self) -> str:
        age = max(0, round(time.time() - self.renewed))
        return f"{', '.join(self.work)} on {self.host}, process {self.pid}, lease renewed {age} s ago"


@dataclass(frozen=True)
class _Holders:
    """The newest version of the table."""

    version: int = -1
    epoch: int = 0
    """The highest epoch so far."""
    every: tuple[Holder, ...] = ()
    """The next commit leaves out those whose lease has ended."""

    @classmethod
    def of(cls, version: int, note: Mapping[str, Any]) -> _Holders:
        return cls(version, note.get("epoch", 0), tuple(Holder.of(one) for one in note.get("holders", ())))

    def live(self, but: str = "") -> list[Holder]:
        """The holders whose lease has not ended, without one owner."""
        return [one for one in self.every if one.owner != but and one.is_live()]

    def has(self, owner: str) -> bool:
        return any(one.owner == owner for one in self.every)


@dataclass
class Lease(Fence):
    """A lease that this process holds and renews in a thread.

    Tables that are opened with it call :meth:`check` before each commit, and the commit carries the epoch: so a process
    that was suspended for longer than its lease commits nothing more to a table to which its successor has committed.
    """

    log: NoteLog
    holder: Holder
    _renewed: float = field(default_factory=lambda: time.monotonic())
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _is_lost: bool = False

    @property
    def epoch(self) -> int:
        return self.holder.epoch

    def check(self) -> None:
        """Raise LeaseLostError if the lease has ended; a lease that is overdue is renewed first."""
        if not self._is_lost and time.monotonic() - self._renewed > self.holder.seconds:
            self.renew()
        if self._is_lost:
            raise LeaseLostError(
                f"{self.log.uri}: the lease of {', '.join(self.holder.work)} has ended, because it was not renewed for "
                f"{self.holder.seconds:g} s, and another process has taken it; end this one, or run it again after that"
            )

    def renew(self) -> None:
        """Renew the lease.  It is lost if another process has taken it for ended."""
        with self._lock:
            is_made = False
            while not is_made and not self._is_lost:
                found = _read(self.log)
                self._is_lost = not found.has(self.holder.owner)
                is_made = not self._is_lost and self._replace(
                    found, found.live(self.holder.owner), self.holder.is_alone
                )

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Let no other process have a lease meanwhile; yields False without any effect if another one has a lease."""
        is_alone = self._become_alone()
        try:
            yield is_alone
        finally:
            if is_alone:
                with self._lock:
                    self.holder = replace(self.holder, is_alone=False)
                with suppress(DeltaError, OSError):  # the next renewal does it
                    self.renew()

    def _become_alone(self) -> bool:
        with self._lock:
            found = _read(self.log)
            if not found.has(self.holder.owner) or found.live(self.holder.owner):
                return False
            return self._replace(found, [], True)

    def stop_renewing(self) -> None:
        """End the renewals; the lease holds for its duration."""
        self._ended.set()

    def release(self) -> None:
        """Give the lease back.  If the store does not answer, the lease ends after its duration."""
        self.stop_renewing()
        with self._lock, suppress(DeltaError, OSError):
            found = _read(self.log)
            while found.has(self.holder.owner) and not _commit(self.log, found, found.live(self.holder.owner)):
                found = _read(self.log)

    def keep_renewing(self) -> None:
        """Renew the lease again and again until its release; errors of the store are for the next attempt."""
        while not self._ended.wait(self.holder.seconds / RENEWALS):
            with suppress(DeltaError, OSError):
                self.renew()

    def _replace(self, found: _Holders, others: Sequence[Holder], is_alone: bool) -> bool:
        began, renewed = time.monotonic(), replace(self.holder, renewed=time.time(), is_alone=is_alone)
        is_made = _commit(self.log, found, [*others, renewed])
        if is_made:
            self.holder, self._renewed = renewed, began
        return is_made


@contextmanager
def leased(root: Folder, work: Collection[str], *, is_alone: bool = False, say: Say = print) -> Iterator[Lease]:
    """Hold the lease of some work in a folder.  Waits while another process deletes files there.

    Raises:
        ConfigError: another process holds the lease of some of it, or, with ``is_alone``, any lease.
    """
    lease = _acquired(root, tuple(work), is_alone, say)
    thread = threading.Thread(target=lease.keep_renewing, name="pykafka08-lease", daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        lease.release()
        thread.join(lease.holder.seconds)


def holders(root: Folder) -> list[Holder]:
    """The processes that write to a folder now.  Raises ConfigError if its store does not answer."""
    with _named(root):
        return _read(NoteLog(root / FOLDER)).live()


def _acquired(root: Folder, work: tuple[str, ...], is_alone: bool, say: Say) -> Lease:
    log = _log(root)
    is_told = False
    while True:
        found = _read(log)
        mine, others = _new(found.epoch + 1, work, is_alone), found.live()
        first = next((one for one in others if is_alone or set(one.work) & set(work)), None)
        if first is not None:
            raise ConfigError(
                f"folder: {root} is in use: {first}; end it, or wait for its end (if it was killed on another machine, "
                f"its lease ends {first.seconds:g} s after the last renewal)"
            )
        if any(one.is_alone for one in others):
            if not is_told:
                say(f"waiting for {others[0]}, which deletes files in {root}")
            is_told = True
            time.sleep(LOOK_S)
        elif _commit(log, found, [*others, mine], mine.epoch):
            return Lease(log, mine)


def _log(root: Folder) -> NoteLog:
    with _named(root):
        if root.is_local:
            Path(root).mkdir(parents=True, exist_ok=True)
        log = NoteLog(root / FOLDER)
        log.prepare()
        return log


@contextmanager
def _named(root: Folder) -> Iterator[None]:
    """Errors of the store as ConfigError."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"folder: {error.filename or root}: {error.strerror or error}") from error
    except DeltaError as error:
        raise ConfigError(f"folder: {root}: {next(iter(str(error).splitlines()), '')}") from error


def _new(epoch: int, work: tuple[str, ...], is_alone: bool) -> Holder:
    return Holder(
        owner=uuid.uuid4().hex,
        work=work,
        epoch=epoch,
        host=socket.gethostname(),
        pid=os.getpid(),
        process=_process(os.getpid()),
        renewed=time.time(),
        seconds=DURATION_S,
        is_alone=is_alone,
    )


def _read(log: NoteLog) -> _Holders:
    return _Holders.of(*log.newest())


def _commit(log: NoteLog, found: _Holders, live: Sequence[Holder], epoch: int | None = None) -> bool:
    note = {"epoch": found.epoch if epoch is None else epoch, "holders": [asdict(one) for one in live]}
    return log.append(found.version + 1, note)


def _process(pid: int) -> str:
    """The machine and the start of a process; the machine alone if the process has ended."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return _machine()
    return _machine() if state == "Z" else f"{_machine()} {rest[18]}"


@cache
def _machine() -> str:
    """The boot of this machine and the namespace of its process ids; random if the system does not tell them."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return uuid.uuid4().hex
