"""The cache of brokers' jars, with a program in Maven's place: one run for all; each is kept whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.brokers.jars import resolve, resolve_all
from tests.brokers.model import ClusterError

RELEASES = ["0.8.2.2", "2.8.2", "4.3.1"]
MAVEN = """#!/bin/sh
echo "$@" >> "{runs}"
while [ "$1" != -f ]; do shift; done
home=$(dirname "$2")
modules=$(sed -n 's:</module>:\\n:gp' "$2" | sed -n 's/.*<module>//p')
if [ -n "$modules" ] && [ -e "{refuses}" ]; then exit 1; fi
for module in ${{modules:-.}}; do
  mkdir -p "$home/$module/jars"
  : > "$home/$module/jars/kafka_2.13-any.jar"
done
"""


class Maven:
    """How often it ran; with `refuses` there it fails for several releases at once."""

    def __init__(self, folder: Path) -> None:
        self.refuses = folder / "refuses"
        self._runs = folder / "runs"
        program = folder / "mvn"
        program.write_text(MAVEN.format(runs=self._runs, refuses=self.refuses))
        program.chmod(0o755)

    @property
    def words(self) -> list[list[str]]:
        """The arguments of each run of Maven."""
        return [line.split() for line in self._runs.read_text().splitlines()] if self._runs.exists() else []

    @property
    def runs(self) -> int:
        return len(self.words)


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maven:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("KAFKA_BROKERS_CACHE", str(tmp_path / "cache"))
    return Maven(tmp_path)


def test_all_that_are_missing_are_fetched_in_one_run(maven: Maven) -> None:
    first = resolve("2.8.2")
    assert maven.runs == 1
    folders = resolve_all(RELEASES)
    assert maven.runs == 2
    assert folders[1] == first
    assert all([jar.name for jar in folder.iterdir()] == ["kafka_2.13-any.jar"] for folder in folders)
    assert resolve_all(RELEASES) == folders
    assert maven.runs == 2
    left = {path.name for path in first.parents[1].iterdir() if not path.name.endswith(".lock")}
    assert left == set(RELEASES), "nothing half made is left behind"


def test_where_they_cannot_be_fetched_together_each_is_alone(maven: Maven) -> None:
    maven.refuses.touch()
    assert len(resolve_all(RELEASES)) == 3
    assert maven.runs == 1 + 3


def test_each_file_is_compared_with_its_checksum(maven: Maven) -> None:
    maven.refuses.touch()
    resolve_all(RELEASES)
    assert all("-C" in words for words in maven.words)


def test_what_is_no_release_is_refused_before_anything_is_fetched(maven: Maven) -> None:
    with pytest.raises(ClusterError, match="not a Kafka version: latest"):
        resolve_all(["2.8.2", "latest"])
    assert maven.runs == 0
