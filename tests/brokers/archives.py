"""Archives of a release's classes (class data sharing), with which its JVMs start in two thirds of the processor time.

An archive lies beside the release's jars. A JVM without one, or of another Java, starts as usual.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from pathlib import Path

from tests.brokers.jars import java_command, resolve

QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""An archive of other jars is ignored without a message on the standard output, which some tests compare."""


def archive_of(jars: Path) -> Path:
    """The path of the archive for the Java that the tests use; the file may not exist."""
    java = Path(os.path.realpath(java_command()))
    digest = hashlib.sha256(f"{java} {java.stat().st_mtime_ns}".encode()).hexdigest()[:16]
    return jars.parent / f"classes-{digest}.jsa"


def archive_flags(jars: Path) -> list[str]:
    """The flags by which a JVM with these jars as its class path uses their archive; none if there is no archive."""
    archive = archive_of(jars)
    return [*QUIET, f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def make_archive(version: str) -> None:
    """Write the archive of a KRaft release if it has none: the classes of a broker that has started and ended.

    Raises:
        ClusterError: the broker does not start, or does not end.
    """
    from tests.brokers.control import take_down  # imported here, because its imports import this module
    from tests.brokers.start import Plan, start

    archive = archive_of(resolve(version))
    with archive.with_suffix(".lock").open("w") as lock, tempfile.TemporaryDirectory() as folder:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if archive.exists():
            return
        draft = archive.with_suffix(".part")
        draft.unlink(missing_ok=True)
        start(Plan(version, Path(folder, "cluster"), jvm=[f"-XX:ArchiveClassesAtExit={draft}"]))
        take_down(Path(folder, "cluster"), remove=True, timeout=60)
        if draft.exists():  # a JVM that cannot write archives only warns
            draft.rename(archive)
