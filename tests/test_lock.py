"""The lock files in ``requirements/``: they agree with ``pyproject.toml``, and each file has a hash."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
DEVELOPMENT = ["dev.txt", "sources.txt"]
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
RENEW = "run: make lock"


def locked(name: str) -> list[tuple[Requirement, list[str]]]:
    """Each pinned requirement of a lock file, with its options."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    lines = re.sub(r"\\\n", " ", text).splitlines()
    entries = [re.split(r"\s(?=--)", line) for line in lines if line and not line.lstrip().startswith("#")]
    return [(Requirement(first), [option.strip() for option in options]) for first, *options in entries]


def versions(names: list[str], python: str) -> dict[str, list[str]]:
    """The pinned versions of each project on Linux with this Python; more than one only if the lock is wrong."""
    found: dict[str, list[str]] = {}
    for requirement, _ in [entry for name in names for entry in locked(name)]:
        if requirement.marker is None or requirement.marker.evaluate(environment(python)):
            (pin,) = requirement.specifier
            assert pin.operator == "=="
            found.setdefault(canonicalize_name(requirement.name), []).append(pin.version)
    return found


def environment(python: str) -> dict[str, str]:
    return {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux", "os_name": "posix"}


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def development(python: str) -> Iterator[Requirement]:
    """What ``pip install '.[dev]'`` would ask for, with the extras that ``dev`` names."""
    table = project()["project"]
    assert isinstance(table, dict)
    waiting = [*table["dependencies"], *table["optional-dependencies"]["dev"]]
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.name == table["name"]:
            waiting += [text for extra in requirement.extras for text in table["optional-dependencies"][extra]]
        elif requirement.marker is None or requirement.marker.evaluate(environment(python)):
            yield requirement


def builders() -> Iterator[Requirement]:
    system = project()["build-system"]
    assert isinstance(system, dict)
    lines = (ROOT / "requirements" / "build.in").read_text(encoding="utf-8").splitlines()
    for text in [*system["requires"], *(line for line in lines if not line.startswith(("#", "-c")))]:
        yield Requirement(text)


def faults(wanted: Iterator[Requirement], found: dict[str, list[str]]) -> list[str]:
    told = []
    for requirement in wanted:
        pins = found.get(canonicalize_name(requirement.name), [])
        if len(pins) != 1 or not requirement.specifier.contains(pins[0], prereleases=True):
            told.append(f"{requirement} is locked as {pins}")
    return told


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_one_allowed_version_of_each_dependency(python: str) -> None:
    assert faults(development(python), versions(DEVELOPMENT, python)) == [], RENEW
    assert faults(builders(), versions(["build.txt"], python)) == [], RENEW


def test_a_dependency_that_is_missing_or_has_another_version_is_found() -> None:
    wanted = [Requirement("anyio>=4.6"), Requirement("kazoo>=99"), Requirement("no-such-project")]
    found = {"anyio": ["4.14.1"], "kazoo": ["2.11.0"]}
    assert faults(iter(wanted), found) == ["kazoo>=99 is locked as ['2.11.0']", "no-such-project is locked as []"]


@pytest.mark.parametrize("python", PYTHONS)
def test_both_lock_files_agree_on_the_projects_they_share(python: str) -> None:
    development, build = versions(DEVELOPMENT, python), versions(["build.txt"], python)
    shared = development.keys() & build.keys()
    assert {"hatchling", "setuptools"} <= shared
    assert {name: development[name] for name in shared} == {name: build[name] for name in shared}, RENEW


@pytest.mark.parametrize("name", ["build.txt", "dev.txt", "sources.txt"])
def test_every_locked_version_has_hashes_and_no_file_names_a_host(name: str) -> None:
    entries = locked(name)
    assert entries
    assert [str(requirement) for requirement, options in entries if not options] == []
    assert [option for _, options in entries for option in options if not HASH.fullmatch(option)] == []
    assert "://" not in (ROOT / "requirements" / name).read_text(encoding="utf-8")
