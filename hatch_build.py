"""Hatchling's hook: adds the SBOM to a wheel and, with PYKAFKA08_COMPILE=1, compiles its hot modules.

``[tool.hatch.build.targets.wheel.hooks.custom]`` in pyproject.toml names the modules and the dependencies' licences.
Modules are compiled in a copy of the package, so that nothing appears in the source tree.
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


SBOM = "pykafka08.cdx.json"


class WheelHook(BuildHookInterface[Any]):
    """Adds the SBOM to a wheel, and the extension modules with their requirements."""

    def dependencies(self) -> list[str]:
        """What a build environment needs beyond hatchling; nothing for a pure wheel."""
        return list(BUILD_REQUIREMENTS) if self._is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Prepare the additions before the wheel is written; SystemExit if the compiler fails."""
        # An editable install runs from the source tree, which stays pure.
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root, "tools")))
        self._folder = Path(tempfile.mkdtemp(prefix="pykafka08-"))
        try:
            if self._is_wanted():
                self._compile(build_data)
            self._describe(build_data)
        except BaseException:
            self._remove_files()
            raise

    def _compile(self, build_data: dict[str, Any]) -> None:
        from compile_modules import compile_in

        tree = self._folder / "tree"
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(self.root, "pykafka08"), tree / "pykafka08", ignore=leave_out)
        for made in compile_in(tree, self.config["modules"]):
            build_data["force_include"][str(tree / made)] = made.as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["dependencies"] += RUNTIME_REQUIREMENTS

    def _describe(self, build_data: dict[str, Any]) -> None:
        from sbom import bill_of_materials

        project = self.metadata.core
        text = bill_of_materials(
            name=project.name,
            version=self.metadata.version,
            description=project.description,
            licence=project.license_expression,
            required=[*project.dependencies, *build_data["dependencies"]],
            extras=project.optional_dependencies,
            licences=self.config["licences"],
        )
        path = self._folder / SBOM
        path.write_text(text, encoding="utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files that were made for the wheel."""
        self._remove_files()

    def _remove_files(self) -> None:
        if (folder := getattr(self, "_folder", None)) is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _is_wanted(self) -> bool:
        wanted = os.environ.get(VARIABLE, "")
        if wanted not in ("", "0", "1"):
            raise SystemExit(f"{VARIABLE} is {wanted!r}; 1 compiles, 0 or nothing does not")
        return wanted == "1"
