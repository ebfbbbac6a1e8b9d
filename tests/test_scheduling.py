"""How a run with several processes goes: its units, their order, every test once, and what is said at its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.scheduling import next_unit, unit_of

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = """
import pytest

@pytest.fixture(scope="session")
def clusters(): ...

@pytest.mark.parametrize("version", ["4.3.1", "0.8.0"])
@pytest.mark.parametrize("number", range(3))
def test_shared(clusters, version, number, record):
    record(version)

@pytest.mark.cluster(kind="secured")
@pytest.mark.parametrize("version", ["4.3.1", "0.8.0"])
def test_secured(clusters, version, record):
    record(f"secured-{version}")

@pytest.mark.cluster(is_special=True)
@pytest.mark.parametrize("version", ["4.3.1"])
def test_special(clusters, version, record):
    record("special")

@pytest.mark.parametrize("number", range(20))
def test_plain(number, record):
    record("plain")
"""
CONFTEST = """
import os
from pathlib import Path
import pytest

pytest_plugins = ["PLUGIN"]

def pytest_configure(config):
    config.addinivalue_line("markers", "cluster: which one")

@pytest.fixture
def record(request):
    def note(what):
        with (Path(__file__).parent / "ran").open("a") as file:
            file.write(f"{what} {os.getpid()} {request.node.name.partition('@')[0]}\\n")
    return note
"""


def run(folder: Path, plugin: str, *words: str) -> subprocess.CompletedProcess[str]:
    """pytest over the folder's tests, with this plugin of ours."""
    (folder / "conftest.py").write_text(CONFTEST.replace("PLUGIN", plugin))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(folder), "-c", os.devnull]
    command += ["-p", "no:cacheprovider", *words, str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)


def test_what_shares_a_cluster_stays_on_one_process_and_all_is_run_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text(SAMPLE)
    result = run(tmp_path, "tests.scheduling", "--numprocesses", "2")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "58 passed" in result.stdout
    ran = [line.split(" ", 2) for line in (tmp_path / "ran").read_text().splitlines()]
    assert len(ran) == 2 * (2 * 3 + 2 + 1 + 20)
    for cluster in ("4.3.1", "0.8.0", "secured-4.3.1", "secured-0.8.0"):
        assert len({process for what, process, _ in ran if what == cluster}) == 1, ran


def test_each_process_takes_the_longest_of_its_kind_and_then_of_the_other() -> None:
    units = {
        "tests/test_a.py": 30,
        "tests/test_b.py": 100,
        "cluster-4.3.1": 50,
        "cluster-0.8.0": 2,
        "cluster-special-x-4.3.1": 4,
    }
    taken = []
    while units:
        taken.append(next_unit(units, with_clusters=len(taken) != 1))
        del units[taken[-1]]
    assert taken == ["cluster-special-x-4.3.1", "tests/test_b.py", "cluster-4.3.1", "cluster-0.8.0", "tests/test_a.py"]


def test_tests_with_a_spark_session_stay_together_by_folder() -> None:
    names = ("spark/test_a.py", "spark/test_b.py", "spark/pipeline/test_a.py")
    units = [unit_of(cast(pytest.Item, SimpleNamespace(fixturenames=("spark",), path=Path(name)))) for name in names]
    assert units == ["cluster-of-spark-in-spark", "cluster-of-spark-in-spark", "cluster-of-spark-in-pipeline"]


def test_a_test_that_starts_spark_outside_the_folder_of_those_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_stray.py").write_text("import pytest\n\n@pytest.mark.spark\ndef test_stray(): ...\n")
    result = run(tmp_path, "tests.scheduling")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR, result.stdout + result.stderr
    assert "test_stray.py::test_stray has the marker spark: move it below tests/spark/" in result.stderr


def test_a_run_of_everything_ends_with_what_failed(tmp_path: Path) -> None:
    (tmp_path / "test_red.py").write_text("def test_red():\n    assert 'this' == 'that'\n")
    result = run(tmp_path, "tests.whole_runs")
    assert result.returncode == 1
    end = result.stdout.partition("= what failed =")[2]
    assert "test_red.py::test_red (call)" in end
    assert "assert 'this' == 'that'" in end


STRICT = ("-W", "error::ResourceWarning", "-W", "error::pytest.PytestUnraisableExceptionWarning")
LEAVES_ITS_SOCKET = """
import gc, socket

def test_that_leaves_it():
    cycle = []
    cycle += [cycle, socket.create_server(("127.0.0.1", 0))]

def test_that_meets_it():
    gc.collect()
"""


def test_a_failure_tells_which_test_opened_a_socket_that_was_left_open(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(LEAVES_ITS_SOCKET)
    result = run(tmp_path, "tests.whole_runs", "-p", "tests.open_sockets", *STRICT)
    assert result.returncode == 1, result.stdout + result.stderr
    end = result.stdout.partition("= what failed =")[2]
    assert "test_sample.py::test_that_meets_it (call)" in end
    assert ": test_sample.py::test_that_leaves_it\n" in end
    assert "test_sample.py:6 test_that_leaves_it\n" in end
