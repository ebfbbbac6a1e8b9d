"""Archives of a release's classes, with a stand-in for the broker that writes one: made once, then used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers import archives, control, start
from tests.brokers.start import Plan

WRITE = "-XX:ArchiveClassesAtExit="


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    java = tmp_path / "java"
    java.touch()
    jars = tmp_path / "4.3.1" / "jars"
    jars.mkdir(parents=True)
    monkeypatch.setenv("KAFKA_JAVA", str(java))
    monkeypatch.setattr(archives, "resolve", lambda version: jars)
    return jars


@pytest.mark.parametrize("can_write", [True, False])
def test_a_broker_that_starts_and_ends_writes_the_archive(
    jars: Path, monkeypatch: pytest.MonkeyPatch, can_write: bool
) -> None:
    started: list[Plan] = []

    def take_down(folder: Path, **_: object) -> None:
        (flag,) = started[-1].jvm
        if can_write:
            Path(flag.removeprefix(WRITE)).write_text("classes")

    monkeypatch.setattr(start, "start", started.append)
    monkeypatch.setattr(control, "take_down", take_down)
    assert archives.archive_flags(jars) == []
    for _ in range(2):
        archives.make_archive("4.3.1")
    assert len(started) == (1 if can_write else 2)
    assert archives.archive_of(jars).exists() is can_write
    used = [f"-XX:SharedArchiveFile={archives.archive_of(jars)}"]
    assert archives.archive_flags(jars)[-1:] == (used if can_write else [])


def test_another_java_has_another_archive(jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archives.archive_of(jars).touch()
    other = tmp_path / "other"
    other.touch()
    monkeypatch.setenv("KAFKA_JAVA", str(other))
    assert archives.archive_flags(jars) == []
