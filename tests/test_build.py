"""The wheels: pure Python unless PYKAFKA08_COMPILE=1, and what the compiled one is made of.

One small module is compiled here, not the package's list: that is what `make compiled` does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD_S = 600  # the machine may be busy
BUILD = """
import sys
from hatchling.build import build_wheel
print(build_wheel(sys.argv[1]))
"""


def build(source: Path, wheels: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """One wheel of ``source``, with what this environment has instead of a new one's."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYKAFKA08_COMPILE", "PYTHONPATH")}
    command = [sys.executable, "-c", BUILD, str(wheels)]
    options = {"cwd": source, "env": inherited | environment, "capture_output": True, "text": True}
    return subprocess.run(command, timeout=BUILD_S, check=False, **options)  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The checkout as it is built, with `pykafka08/wire.py` alone on the list."""
    folder = tmp_path / "source"
    no_binaries = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    for part in ("pykafka08", "tools"):
        shutil.copytree(ROOT / part, folder / part, ignore=no_binaries)
    for part in ("hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / part, folder)
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    before, marker, after = text.partition("hooks.custom]\nmodules = [")
    assert marker
    text = before + marker + '"pykafka08/wire.py"]' + after.partition("]")[2]
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def contents(wheel: Path) -> tuple[set[str], str]:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        return names, archive.read(metadata).decode()


@pytest.mark.parametrize("switch", [{}, {"PYKAFKA08_COMPILE": "0"}])
def test_the_ordinary_wheel_is_pure(source: Path, tmp_path: Path, switch: dict[str, str]) -> None:
    made = build(source, tmp_path, **switch)
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names, metadata = contents(wheel)
    assert not [name for name in names if name.endswith((".so", ".pyd"))]
    assert "pykafka08/wire.py" in names
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: librt")]
    assert all("extra ==" in line for line in needed)


@pytest.mark.timeout(BUILD_S + 60)
def test_the_compiled_wheel_is_for_this_python_and_runs(source: Path, tmp_path: Path) -> None:
    made = build(source, tmp_path, PYKAFKA08_COMPILE="1")
    assert made.returncode == 0, made.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert f"cp{sys.version_info[0]}{sys.version_info[1]}" in wheel.name
    assert "any" not in wheel.name
    names, metadata = contents(wheel)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    built = {name for name in names if name.endswith(suffix)}
    assert built == {f"pykafka08/wire{suffix}", f"pykafka08/hot__mypyc{suffix}"}
    assert "pykafka08/wire.py" in names
    assert [line for line in metadata.splitlines() if line.startswith("Requires-Dist: librt") and "extra" not in line]
    assert not list(source.rglob(f"*{suffix}"))
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    code = "import pykafka08, pykafka08.form as f; print(pykafka08.compiled, *f.compiled_modules())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=True)
    assert run.stdout.split() == ["True", "pykafka08.wire"]
    (tmp_path / "installed" / "pykafka08" / f"wire{suffix}").unlink()
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=True)
    assert run.stdout.split() == ["False"]


def test_without_a_compiler_the_build_says_so(source: Path, tmp_path: Path) -> None:
    made = build(source, tmp_path, PYKAFKA08_COMPILE="1", CC=str(tmp_path / "no-such-compiler"))
    assert made.returncode != 0
    assert "no-such-compiler" in made.stderr
    assert "needs a C compiler" in made.stderr
    assert not list(tmp_path.glob("*.whl"))


def test_a_switch_that_is_neither_is_refused(source: Path, tmp_path: Path) -> None:
    made = build(source, tmp_path, PYKAFKA08_COMPILE="yes")
    assert made.returncode != 0
    assert "PYKAFKA08_COMPILE is 'yes'" in made.stderr
