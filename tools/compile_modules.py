"""Compiles modules with mypyc, where they lie: ``python compile_modules.py pykafka08/wire.py ...``, from their tree.

The tree is a copy that its maker made (``compiled_tree.py``, ``hatch_build.py``): extension modules appear beside the
sources, and never in the checkout.  All modules go into one shared library: they call each other without Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Distribution
from setuptools.command.build_ext import build_ext

# After setuptools, whose classes it then takes.
from mypyc.build import mypycify  # isort: skip

SHARED_LIBRARY = "pykafka08.hot"  # its file is pykafka08/hot__mypyc.*.so; pykafka08/form.py looks for it
# Without a configuration file, and with missing imports as Any: the outcome must not depend on what is installed.
MYPY_OPTIONS = ("--config-file=", "--ignore-missing-imports", "--follow-imports=silent")


def compile_in(tree: Path, modules: Sequence[str]) -> list[Path]:
    """Compile ``modules`` (paths from ``tree``) in a process of its own; what was made, as paths from ``tree``.

    SystemExit with a sentence where there is no compiler or a module does not compile; the output goes to stderr.
    """
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if os.name == "posix" and not shutil.which(compiler):
        raise SystemExit(f"the compiled form needs a C compiler, and {compiler!r} is not there; set CC to another")
    environment = {**os.environ, "MYPYPATH": ""}
    command = [sys.executable, str(Path(__file__).resolve()), *modules]
    run = subprocess.run(command, cwd=tree, env=environment, stdout=sys.stderr, check=False)  # noqa: S603 - this file
    if run.returncode:
        raise SystemExit("the modules could not be compiled; see above")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return sorted(path.relative_to(tree) for path in (tree / "pykafka08").rglob(f"*{suffix}"))


def _compile_here(modules: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as work:
        # A C file for each module, since the compiler takes one file at a time and there may be more processors.
        extensions = mypycify(
            [*MYPY_OPTIONS, *modules],
            opt_level="3",
            debug_level="0",
            multi_file=True,
            group_name=SHARED_LIBRARY,
            target_dir=os.path.join(work, "c"),
        )
        for extension in extensions:
            # mypyc puts the headers of a library in a package into a folder that it does not name to the compiler.
            extension.include_dirs.append(os.path.join(work, "c", *SHARED_LIBRARY.split(".")[:-1]))
        distribution = Distribution({"name": "pykafka08", "ext_modules": extensions})
        distribution.cmdclass["build_ext"] = _BuildInParallel
        command: Any = distribution.get_command_obj("build_ext")
        command.build_temp = os.path.join(work, "objects")
        command.build_lib = os.getcwd()
        command.ensure_finalized()
        command.run()


class _BuildInParallel(build_ext):
    """Gives the compiler several C files at a time."""

    def build_extensions(self) -> None:
        compile_some = self.compiler.compile

        def compile_all(sources: Sequence[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                made = pool.map(lambda source: compile_some([source], **options), sources)
                return [name for names in made for name in names]

        self.compiler.compile = compile_all
        super().build_extensions()


if __name__ == "__main__":
    _compile_here(sys.argv[1:])
