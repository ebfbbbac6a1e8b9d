"""Leases of a pipeline's folder: the runs and backfills that write to it now, on this machine or on any store.

The newest commit of the table ``_lease`` names the holders.  Each renewal commits the next version of this table; if
several processes try at once, Delta lets only one commit.  The lease of a killed process ends after its duration, or at
once if the process was on this machine.  Every commit to another table carries the epoch of its lease (:class:`Lease`).
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
from pykafka08.spark.pipeline.stores import Folder, first_line
from pykafka08.spark.pipeline.tables.notes import NoteLog
from pykafka08.spark.pipeline.tables.table import Fence, LeaseLostError

__all__ = ["BACKFILL", "CONVERSION", "Holder", "Lease", "RemoteLease", "holders", "leased"]

FOLDER = "_lease"
BACKFILL, CONVERSION = "backfill", "conversion"
"""Names of work that is not a stage."""
DURATION_S = 60.0
RENEWALS = 4
"""The number of renewals in one duration."""
RETRY_S = 1.0
"""Seconds between attempts while another process holds the folder exclusively."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Holder:
    """A process that holds a lease."""

    owner: str
    """A random id."""
    work: tuple[str, ...]
    """Stages, :data:`BACKFILL` or :data:`CONVERSION`.  Only one holder at a time has each of them."""
    epoch: int
    """Later leases have higher epochs."""
    host: str
    pid: int
    process: str
    """Identifies the process: the boot of its machine, its namespace and its start, if the system tells them."""
    renewed: float
    """The time of the last renewal in seconds since 1970."""
    seconds: float
    """The duration of the lease after its last renewal."""
    is_exclusive: bool = False
    """Whether other processes are refused leases."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Holder:
        """The holder that a commit describes."""
        return cls(**{**document, "work": tuple(document["work"])})

    def is_live(self) -> bool:
        """Whether the lease is valid: its duration has not passed, and its process is not known to have ended."""
        if time.time() - self.renewed > self.seconds:
            return False
        is_here = self.process.partition(" ")[0] == _machine()
        return not is_here or _process(self.pid) == self.process

    def __str__(self) -> str:
        age = max(0, round(time.time() - self.renewed))
        return f"{', '.join(self.work)} on {self.host}, process {self.pid}, lease renewed {age} s ago"


@dataclass(frozen=True)
class _Holders:
    """The holders in the newest version of the table."""

    version: int = -1
    epoch: int = 0
    """The highest epoch so far."""
    every: tuple[Holder, ...] = ()
    """All holders in the version; their leases may have ended.  The next commit removes such holders."""

    @classmethod
    def of(cls, version: int, note: Mapping[str, Any]) -> _Holders:
        return cls(version, note.get("epoch", 0), tuple(Holder.of(one) for one in note.get("holders", ())))

    def live(self, but: str = "") -> list[Holder]:
        """The holders whose lease has not ended, except the owner ``but``."""
        return [one for one in self.every if one.owner != but and one.is_live()]

    def has(self, owner: str) -> bool:
        return any(one.owner == owner for one in self.every)


@dataclass
class Lease(Fence):
    """A lease that this process holds and renews in a thread.

    A table that is opened with the lease calls :meth:`check` before each commit, and the commit carries the epoch.  A
    process that was suspended for longer than its lease cannot commit to a table after its successor has committed.
    """

    log: NoteLog
    holder: Holder
    _renewed: float = field(default_factory=lambda: time.monotonic())
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _is_lost: bool = False

    def remote(self) -> RemoteLease:
        """This lease for other processes, which can check it and not renew it."""
        return RemoteLease(self.log.folder, self.holder.owner, self.epoch)

    def __reduce__(self) -> tuple[type[RemoteLease], tuple[Folder, str, int]]:
        return RemoteLease, (self.log.folder, self.holder.owner, self.epoch)

    @property
    def epoch(self) -> int:
        return self.holder.epoch

    def check(self) -> None:
        """Renew the lease if it is overdue.  Raises LeaseLostError if another process has taken it."""
        if not self._is_lost and time.monotonic() - self._renewed > self.holder.seconds:
            self.renew()
        if self._is_lost:
            raise LeaseLostError(
                f"{self.log.uri}: the lease of {', '.join(self.holder.work)} has ended: it was not renewed for "
                f"{self.holder.seconds:g} s, and another process has taken it; run this again after the other has ended"
            )

    def renew(self) -> None:
        """Renew the lease.  It is lost if another process has removed it, because it was overdue."""
        with self._lock:
            is_made = False
            while not is_made and not self._is_lost:
                found = _read(self.log)
                self._is_lost = not found.has(self.holder.owner)
                is_made = not self._is_lost and self._replace(
                    found, found.live(self.holder.owner), self.holder.is_exclusive
                )

    @contextmanager
    def exclusive(self) -> Iterator[bool]:
        """Refuse leases to other processes in the block.  Yields False, without effect, if another one has a lease."""
        is_exclusive = self._become_exclusive()
        try:
            yield is_exclusive
        finally:
            if is_exclusive:
                with self._lock:
                    self.holder = replace(self.holder, is_exclusive=False)
                with suppress(DeltaError, OSError):  # the next renewal ends it
                    self.renew()

    def _become_exclusive(self) -> bool:
        with self._lock:
            found = _read(self.log)
            if not found.has(self.holder.owner) or found.live(self.holder.owner):
                return False
            return self._replace(found, [], True)

    def stop_renewing(self) -> None:
        """Stop renewing the lease; it ends after its duration."""
        self._ended.set()

    def release(self) -> None:
        """Release the lease.  If the store does not answer, the lease ends after its duration."""
        self.stop_renewing()
        with self._lock, suppress(DeltaError, OSError):
            found = _read(self.log)
            while found.has(self.holder.owner) and not _commit(self.log, found, found.live(self.holder.owner)):
                found = _read(self.log)

    def keep_renewing(self) -> None:
        """Renew the lease regularly until its release.  After an error of the store the next renewal tries again."""
        while not self._ended.wait(self.holder.seconds / RENEWALS):
            with suppress(DeltaError, OSError):
                self.renew()

    def _replace(self, found: _Holders, others: Sequence[Holder], is_exclusive: bool) -> bool:
        began, renewed = time.monotonic(), replace(self.holder, renewed=time.time(), is_exclusive=is_exclusive)
        is_made = _commit(self.log, found, [*others, renewed])
        if is_made:
            self.holder, self._renewed = renewed, began
        return is_made


@dataclass(frozen=True)
class RemoteLease:
    """A lease that another process holds: the fence in a Python process of a Spark Connect server.

    If the process that holds the lease is killed, its queries continue on the server until :meth:`check` fails.
    """

    folder: Folder
    """The folder of the table with the leases."""
    owner: str
    epoch: int

    def check(self) -> None:
        """Raise LeaseLostError if the lease has ended."""
        with _store_errors(self.folder):
            found = _read(_log_at(self.folder))
        if not any(one.owner == self.owner for one in found.live()):
            raise LeaseLostError(
                f"{self.folder}: the lease of this query has ended, because the process that started the query has "
                "ended or has not renewed the lease; run this again"
            )


@cache
def _log_at(folder: Folder) -> NoteLog:
    """The log of leases, one object for each process, which reads only new commits."""
    return NoteLog(folder)


@contextmanager
def leased(root: Folder, work: Collection[str], *, is_exclusive: bool = False, say: Say = print) -> Iterator[Lease]:
    """Hold a lease of ``work``, stages or other work in a folder.  Waits while another process deletes files there.

    Raises:
        ConfigError: another process has a lease of the same work, or, with ``is_exclusive``, any lease.
    """
    lease = _acquired(root, tuple(work), is_exclusive, say)
    thread = threading.Thread(target=lease.keep_renewing, name="pykafka08-lease", daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        lease.release()
        thread.join(lease.holder.seconds)


def holders(root: Folder) -> list[Holder]:
    """The processes that write to a folder now.  Raises ConfigError if its store does not answer."""
    with _store_errors(root):
        return _read(NoteLog(root / FOLDER)).live()


def _acquired(root: Folder, work: tuple[str, ...], is_exclusive: bool, say: Say) -> Lease:
    log = _log(root)
    is_reported = False
    while True:
        found = _read(log)
        mine, others = _new(found.epoch + 1, work, is_exclusive), found.live()
        first = next((one for one in others if is_exclusive or set(one.work) & set(work)), None)
        if first is not None:
            raise ConfigError(
                f"folder: {root} is in use: {first}; stop it or wait until it ends (if it was killed on another "
                f"machine, its lease ends {first.seconds:g} s after the last renewal)"
            )
        if any(one.is_exclusive for one in others):
            if not is_reported:
                say(f"waiting for {others[0]}, which deletes files in {root}")
            is_reported = True
            time.sleep(RETRY_S)
        elif _commit(log, found, [*others, mine], mine.epoch):
            return Lease(log, mine)


def _log(root: Folder) -> NoteLog:
    with _store_errors(root):
        if root.is_local:
            Path(root).mkdir(parents=True, exist_ok=True)
        log = NoteLog(root / FOLDER)
        log.prepare()
        return log


@contextmanager
def _store_errors(root: Folder) -> Iterator[None]:
    """Raise errors of the store as ConfigError, which names the folder."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"folder: {error.filename or root}: {error.strerror or error}") from error
    except DeltaError as error:
        raise ConfigError(f"folder: {root}: {first_line(error)}") from error


def _new(epoch: int, work: tuple[str, ...], is_exclusive: bool) -> Holder:
    return Holder(
        owner=uuid.uuid4().hex,
        work=work,
        epoch=epoch,
        host=socket.gethostname(),
        pid=os.getpid(),
        process=_process(os.getpid()),
        renewed=time.time(),
        seconds=DURATION_S,
        is_exclusive=is_exclusive,
    )


def _read(log: NoteLog) -> _Holders:
    return _Holders.of(*log.newest())


def _commit(log: NoteLog, found: _Holders, live: Sequence[Holder], epoch: int | None = None) -> bool:
    note = {"epoch": found.epoch if epoch is None else epoch, "holders": [asdict(one) for one in live]}
    return log.append(found.version + 1, note)


def _process(pid: int) -> str:
    """The machine and the start of a process; only the machine if the process has ended."""
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
