"""Hatchling's hook: with PYKAFKA08_COMPILE=1 the wheel has its hot modules compiled; otherwise it is pure Python.

pyproject.toml names the modules (``[tool.hatch.build.targets.wheel.hooks.custom]``).  They are compiled in a copy of
the package, so that nothing appears in the source tree.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "PYKAFKA08_COMPILE"
# The compiler and the run-time library it is made for go together: librt's interface is younger than 1.0.
BUILD_REQUIREMENTS = ["mypy>=2.4,<2.5", "librt>=0.16,<0.17", "setuptools>=65"]
RUNTIME_REQUIREMENTS = ["librt>=0.16,<0.17"]


class CompiledWheel(BuildHookInterface[Any]):
    """Adds the extension modules to a wheel, and what they need to run."""

    def dependencies(self) -> list[str]:
        """What a build environment needs beyond hatchling; nothing for a pure wheel."""
        return list(BUILD_REQUIREMENTS) if self._is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is written; SystemExit where that fails."""
        # An editable install runs from the source tree, which stays pure.
        if not self._is_wanted() or version == "editable":
            return
        sys.path.insert(0, str(Path(self.root, "tools")))
        from compile_modules import compile_in

        tree = self._tree = Path(tempfile.mkdtemp(prefix="pykafka08-"))
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(self.root, "pykafka08"), tree / "pykafka08", ignore=leave_out)
        for made in compile_in(tree, self.config["modules"]):
            build_data["force_include"][str(tree / made)] = made.as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["dependencies"] += RUNTIME_REQUIREMENTS

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copy."""
        if (tree := getattr(self, "_tree", None)) is not None:
            shutil.rmtree(tree, ignore_errors=True)

    def _is_wanted(self) -> bool:
        wanted = os.environ.get(VARIABLE, "")
        if wanted not in ("", "0", "1"):
            raise SystemExit(f"{VARIABLE} is {wanted!r}; 1 compiles, 0 or nothing does not")
        return wanted == "1"
