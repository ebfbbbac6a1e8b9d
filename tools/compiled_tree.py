"""Makes a tree that runs the compiled form: ``python tools/compiled_tree.py DEST``.

DEST becomes a copy of the checkout, tests and examples with it, in which the modules that pyproject.toml names are
compiled; ``PYTHONPATH=DEST`` is all that is needed to run it.  What was compiled before is kept while nothing that goes
into it has changed (``DEST/compiled-from.txt`` says what it was made from).
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import compile_modules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "build", "dist", "jars", "*.pyc.*", ".*_cache", ".hypothesis", "*.egg-info"
)
"""Names that are not copied.  Bytecode is copied, except files that another process is writing (``*.pyc.*``)."""
STAMP = "compiled-from.txt"


def modules_to_compile() -> list[str]:
    """The modules that pyproject.toml names, as paths from the root."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return list(project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["modules"])


def _fingerprint(modules: Sequence[str]) -> str:
    """What the compiled modules depend on: their list, every source of the package, the tools."""
    lines = [f"python {sys.version}", f"mypy {version('mypy')}", f"modules {' '.join(modules)}"]
    sources = sorted([Path(compile_modules.__file__), *(ROOT / "pykafka08").rglob("*.py")])
    lines += [f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in sources]
    return "\n".join(lines) + "\n"


def make_tree(destination: Path) -> None:
    """Make ``destination`` anew; it is swapped in at the end, so that nobody sees a half-made one."""
    modules = modules_to_compile()
    fingerprint = _fingerprint(modules)
    stamp = destination / STAMP
    fresh = destination.with_name(f"{destination.name}.new")
    old = destination.with_name(f"{destination.name}.old")
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(ROOT, fresh, ignore=LEFT_OUT, symlinks=True)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == fingerprint:
        for made in (destination / "pykafka08").rglob("*.so"):
            shutil.copy2(made, fresh / made.relative_to(destination))
        print(f"{destination} is up to date")
    else:
        started = time.perf_counter()
        made_files = compile_modules.compile_in(fresh, modules)
        seconds = time.perf_counter() - started
        print(f"{destination}: {len(modules)} modules compiled, {len(made_files)} files, {seconds:.0f} s")
    (fresh / STAMP).write_text(fingerprint, encoding="utf-8")
    if destination.exists():
        destination.rename(old)
    fresh.rename(destination)
    shutil.rmtree(old, ignore_errors=True)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description="a copy of the checkout with its hot modules compiled")
    arguments.add_argument("destination", type=Path)
    make_tree(arguments.parse_args().destination.absolute())
