"""Which form of the package runs: the one that was meant, in this process and in those it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pykafka08
from pykafka08 import form

ROOT = Path(__file__).resolve().parent.parent
MEANT = os.environ.get("PYKAFKA08_FORM", "compiled" if pykafka08.compiled else "pure")
"""The form that this run is about, as `make test` and `make test-compiled` say it."""
ASK = "import pykafka08, pykafka08.form as form; print(pykafka08.compiled, *form.compiled_modules())"


def test_the_form_that_was_meant_runs() -> None:
    assert {"pure": False, "compiled": True}[MEANT] is pykafka08.compiled
    assert Path(pykafka08.__file__).parent == ROOT / "pykafka08"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_other_processes_run_the_same_form(elsewhere: bool, tmp_path: Path) -> None:
    folder = tmp_path if elsewhere else ROOT
    run = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, cwd=folder, timeout=50, check=True
    )
    assert run.stdout.split() == [str(pykafka08.compiled), *form.compiled_modules()]


def test_what_was_built_is_told_apart_from_what_was_not() -> None:
    assert bool(form.compiled_modules()) is pykafka08.compiled
    assert form.interpreted_modules() == ()
    assert all(name.startswith("pykafka08.") for name in form.compiled_modules())


def test_every_module_of_the_list_is_compiled_or_none() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from compiled_tree import modules_to_compile
    finally:
        sys.path.remove(str(ROOT / "tools"))
    listed = sorted(name.removesuffix(".py").replace("/", ".") for name in modules_to_compile())
    assert sorted(form.compiled_modules()) == (listed if pykafka08.compiled else [])
