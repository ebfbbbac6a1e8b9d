"""The cache of jars, one folder a release, filled by Maven once; the java command.

The cache is `$KAFKA_BROKERS_CACHE`, or `.cache/kafka-brokers` in the home folder: never in the project.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.brokers import releases
from tests.brokers.model import ClusterError
from tests.brokers.releases import Version

ATTEMPTS = 3
MAVEN_TIMEOUT_S = 300

TOOL_CLASSES = {
    "topics": ("org.apache.kafka.tools.TopicCommand", "kafka.admin.TopicCommand", "kafka.admin.CreateTopicCommand"),
    "console-producer": (
        "org.apache.kafka.tools.ConsoleProducer",
        "kafka.tools.ConsoleProducer",
        "kafka.producer.ConsoleProducer",
    ),
    "console-consumer": (
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "kafka.tools.ConsoleConsumer",
        "kafka.consumer.ConsoleConsumer",
    ),
    "consumer-groups": (
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "kafka.admin.ConsumerGroupCommand",
    ),
    "configs": ("org.apache.kafka.tools.ConfigCommand", "kafka.admin.ConfigCommand"),
    "acls": ("org.apache.kafka.tools.AclCommand", "kafka.admin.AclCommand"),
    "get-offsets": ("org.apache.kafka.tools.GetOffsetShell", "kafka.tools.GetOffsetShell"),
    "reassign-partitions": (
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        "kafka.admin.ReassignPartitionsCommand",
    ),
    "preferred-election": (
        "org.apache.kafka.tools.LeaderElectionCommand",
        "kafka.admin.LeaderElectionCommand",
        "kafka.admin.PreferredReplicaLeaderElectionCommand",
    ),
    "delete-records": ("org.apache.kafka.tools.DeleteRecordsCommand", "kafka.admin.DeleteRecordsCommand"),
    "dump-log": ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"),
    "producer-perf": ("org.apache.kafka.tools.ProducerPerformance", "kafka.tools.ProducerPerformance"),
    "consumer-perf": ("org.apache.kafka.tools.ConsumerPerformance", "kafka.tools.ConsumerPerformance"),
    "storage": ("org.apache.kafka.tools.StorageTool", "kafka.tools.StorageTool"),
    "zookeeper-shell": ("org.apache.zookeeper.ZooKeeperMain",),
}
"""A tool's short name, and the classes it has been over the years, newest first."""


def cache_root() -> Path:
    chosen = os.environ.get("KAFKA_BROKERS_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "kafka-brokers"


def resolve(version: str) -> Path:
    """The folder with the jars of a release: fetched with Maven the first time, only read after that."""
    return resolve_all([version])[0]


def resolve_all(versions: Sequence[str]) -> list[Path]:
    """The same of several releases; those that are missing are fetched together, which takes hardly longer than one."""
    for version in versions:
        if not releases.is_version(version):
            raise ClusterError(f"not a Kafka version: {version} (say 2.8.2, or one of {', '.join(releases.ALIASES)})")
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    wanted = sorted(set(versions))  # everybody locks them in this order
    with contextlib.ExitStack() as until_fetched:
        for version in wanted:
            lock = until_fetched.enter_context((root / f"{version}.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [version for version in wanted if not _is_ready(version)]
        if len(missing) > 1:
            _fetch_together(missing, root / f"{missing[0]}.part")
        for version in missing:
            if not _is_ready(version):
                _keep(version, _fetch(version, root / f"{version}.part"))
    return [root / version / "jars" for version in versions]


def _digest(version: str) -> str:
    return hashlib.sha256(releases.pom(version).encode()).hexdigest()


def _is_ready(version: str) -> bool:
    ready = cache_root() / version / "READY"
    return ready.exists() and ready.read_text().strip() == _digest(version)


def _keep(version: str, fetched: Path) -> None:
    """Make a folder with fetched jars the release's."""
    home = cache_root() / version
    (fetched / "READY").write_text(_digest(version) + "\n")
    shutil.rmtree(home, ignore_errors=True)
    fetched.rename(home)


def _fetch_together(versions: Sequence[str], folder: Path) -> None:
    """One run of Maven, a module for each release. If it fails, none is kept: they are fetched one by one then."""
    print(f"fetching the jars of Kafka {', '.join(versions)} with Maven (once)", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    for version in versions:
        (folder / version).mkdir(parents=True)
        (folder / version / "pom.xml").write_text(releases.pom(version))
    (folder / "pom.xml").write_text(releases.parent_pom(versions))
    _, ok = _copy_jars(folder)
    for version in versions:
        if ok and list((folder / version / "jars").glob("kafka_*.jar")):
            _keep(version, folder / version)
    shutil.rmtree(folder, ignore_errors=True)


def _fetch(version: str, folder: Path) -> Path:
    print(f"fetching the jars of Kafka {version} with Maven (once)", file=sys.stderr, flush=True)
    poms = [releases.pom(version)]
    without_tools = releases.pom(version, with_tools=False)
    if without_tools != poms[0]:
        poms.append(without_tools)  # a few releases were published without kafka-tools
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    output = ""
    for attempt in range(ATTEMPTS):
        for text in poms:
            (folder / "pom.xml").write_text(text)
            shutil.rmtree(folder / "jars", ignore_errors=True)
            output, ok = _copy_jars(folder, refresh=attempt > 0)
            if ok and list((folder / "jars").glob("kafka_*.jar")):
                return folder
        time.sleep(2 * (attempt + 1))
    raise ClusterError(f"Maven could not resolve Kafka {version}:\n{output[-3000:]}")


def _copy_jars(folder: Path, *, refresh: bool = False) -> tuple[str, bool]:
    """Bring the jars of the folder's project, or of each of its modules, to `jars` beside its `pom.xml`."""
    words = [*(["-U"] if refresh else []), "-f", str(folder / "pom.xml")]
    return _maven([*words, "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars"])


def run_maven(words: Sequence[str]) -> None:
    """Run Maven, again if it fails: the network may have."""
    output = ""
    for attempt in range(ATTEMPTS):
        output, ok = _maven(["-U", *words] if attempt else words)
        if ok:
            return
        time.sleep(2 * (attempt + 1))
    raise ClusterError(f"Maven could not do {' '.join(words)}:\n{output[-3000:]}")


def _maven(words: Sequence[str]) -> tuple[str, bool]:
    """What it printed, and whether it succeeded."""
    try:
        run = subprocess.run(
            ["mvn", "-q", "-B", "-C", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=MAVEN_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise ClusterError("Maven (mvn) is not installed; Debian's package is called maven") from None
    except subprocess.TimeoutExpired:
        return f"no end after {MAVEN_TIMEOUT_S} s", False
    return run.stdout, run.returncode == 0


@cache
def find_class(jars: str, *names: str) -> str | None:
    """The first of these classes that one of Kafka's own jars in the folder holds."""
    held: set[str] = set()
    wanted = {name.replace(".", "/") + ".class": name for name in names}
    for jar in sorted(Path(jars).glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as archive:
            held.update(wanted[path] for path in wanted.keys() & set(archive.namelist()))
    return next((name for name in names if name in held), None)


def tool_class(jars: str, tool: str) -> str | None:
    """The class of a tool known by its short name; None when the release has no such tool."""
    return find_class(jars, *TOOL_CLASSES[tool])


def java_command() -> str:
    """`$KAFKA_JAVA`, else the one of `$JAVA_HOME`, else the one on the path."""
    explicit = os.environ.get("KAFKA_JAVA")
    if explicit:
        return explicit
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    found = shutil.which("java")
    if not found:
        raise ClusterError("no java found; set KAFKA_JAVA or install a JDK (17 fits every version)")
    return found


def quick_flags() -> list[str]:
    """Flags for the JVMs of the tests, which live briefly: their start and end take less processor time.

    The fast compiler only, one thread that collects garbage, and no verification of the classes in published jars.
    """
    unverified = ["-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"]
    return ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *unverified]


def jvm_flags(version: Version) -> list[str]:
    """What a release asks of a Java newer than itself; older ones ignore it."""
    if version >= (0, 8, 2):
        return []
    # its snappy reaches into java.lang to load the native library
    return ["-XX:+IgnoreUnrecognizedVMOptions", "--add-opens=java.base/java.lang=ALL-UNNAMED"]


def keytool_command() -> str:
    beside = Path(java_command()).resolve().with_name("keytool")
    return str(beside) if beside.exists() else "keytool"
