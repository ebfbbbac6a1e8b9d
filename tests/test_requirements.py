"""The needs of tests: one line when skipped, failures when required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import NEEDS, REQUIRE, SOAK

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = """
import pytest

@pytest.fixture
def cluster():
    raise AssertionError("set up although its test cannot run")

@pytest.mark.{marker}
@pytest.mark.parametrize("number", range(3))
def test_one(number, cluster): ...

@pytest.mark.{marker}
def test_two(cluster): ...
"""


def run(
    folder: Path, *markers: str, required: bool = False, brokers: str = "docker"
) -> subprocess.CompletedProcess[str]:
    """pytest over a file of tests for each marker, with nothing on the path."""
    for marker in markers:
        (folder / f"test_{marker}.py").write_text(SAMPLE.format(marker=marker))
    # where CI is set, pytest prints more
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    environment |= {"PATH": str(folder), "PYTHONPATH": str(ROOT), REQUIRE: "1" if required else "0"}
    command = [sys.executable, "-m", "pytest", "-p", "tests.requirements", "-ra", "--rootdir", str(folder)]
    command += ["-c", os.devnull, "-p", "no:cacheprovider", f"--brokers={brokers}", str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_missing_programs_are_named_in_one_line(tmp_path: Path) -> None:
    result = run(tmp_path, *NEEDS)
    lines = [line for line in result.stdout.splitlines() if line.startswith("SKIPPED")]
    assert result.returncode == 0, result.stdout
    assert len(lines) == len(NEEDS)
    for need in NEEDS.values():
        (line,) = [line for line in lines if need.purpose in line]
        assert line.startswith("SKIPPED [4]")
        for program in need.programs:
            assert f"no {program}" in line


def test_missing_programs_fail_where_they_are_required(tmp_path: Path) -> None:
    result = run(tmp_path, *NEEDS, required=True)
    assert result.returncode == 1
    assert any(f"{4 * len(NEEDS)} {word}" in result.stdout for word in ("failed", "errors")), result.stdout


def test_brokers_none_skips_the_tests_with_real_brokers(tmp_path: Path) -> None:
    result = run(tmp_path, "brokers", brokers="none")
    assert result.returncode == 0, result.stdout
    assert "needs real brokers, switched off by --brokers=none" in result.stdout


def test_the_compose_files_are_tried_with_brokers_docker_only(tmp_path: Path) -> None:
    result = run(tmp_path, "compose", brokers="jars", required=True)
    assert "4 deselected" in result.stdout, result.stdout


def test_what_is_neither_a_form_nor_an_address_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path, brokers="localhost")
    assert result.returncode == 4
    assert "'localhost' is neither jars, docker, none nor an address HOST:PORT" in result.stderr


LOOPS = """
import pytest

@pytest.fixture
def clusters(): ...

@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request): ...

@pytest.mark.parametrize("version", ["0.8.0", "2.8.2", "4.3.1"])
def test_real(clusters, version, anyio_backend): ...

@pytest.mark.parametrize("version", ["0.8.0", "2.8.2"])
def test_older(clusters, version, anyio_backend): ...

@pytest.mark.parametrize(("version", "anyio_backend"), [("0.8.0", "trio")], indirect=["anyio_backend"])
def test_on_trio(clusters, version, anyio_backend): ...

def test_embedded(anyio_backend): ...
"""


@pytest.mark.parametrize(
    ("soak", "on_trio"),
    [
        ("0", ["test_real[trio-4.3.1]", "test_on_trio[0.8.0-trio]", "test_embedded[trio]"]),
        (
            "1",
            [
                *("test_real[trio-0.8.0]", "test_real[trio-2.8.2]", "test_real[trio-4.3.1]"),
                *("test_older[trio-0.8.0]", "test_older[trio-2.8.2]"),
                *("test_on_trio[0.8.0-trio]", "test_embedded[trio]"),
            ],
        ),
    ],
)
def test_real_clusters_meet_trio_with_the_newest_release_alone_unless_it_is_a_soak(
    tmp_path: Path, soak: str, on_trio: list[str]
) -> None:
    (tmp_path / "test_loops.py").write_text(LOOPS)
    plugins = ["-p", "tests.requirements", "-p", "tests.integration.fixtures", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *plugins, "-c", os.devnull]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), SOAK: soak}
    words = [*command, "--rootdir", str(tmp_path), str(tmp_path)]
    result = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    names = [line.partition("::")[2] for line in result.stdout.splitlines() if "::" in line]
    assert sorted(name for name in names if "trio" in name) == sorted(on_trio), result.stdout + result.stderr
    assert len([name for name in names if "asyncio" in name]) == 6
