"""The wheels: pure Python unless PYKAFKA08_COMPILE=1, and what the compiled one is made of.

One small module is compiled here, not the package's list: that is what `make compiled` does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata as installed
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tools.sbom import bill_of_materials

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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
    # Else mypy reads the whole package behind one module, which takes half a minute of processor time.
    package = folder / "pykafka08" / "__init__.py"
    code, marker, _ = package.read_text(encoding="utf-8").partition("\nif TYPE_CHECKING:\n")
    assert marker
    package.write_text(code, encoding="utf-8")
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


def sbom(wheel: Path) -> dict[str, Any]:
    """The wheel's bill of materials, checked against CycloneDX's schema."""
    # Imported here, because it takes two seconds of processor time, which each process of a run would spend.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if ".dist-info/sboms/" in name]
        text = archive.read(name).decode()
    assert name.endswith("/pykafka08.cdx.json")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    document: dict[str, Any] = json.loads(text)
    assert document["metadata"]["component"]["version"] in wheel.name
    return document


def components(document: dict[str, Any], scope: str) -> dict[str, list[str]]:
    """The allowed versions of each dependency, as the document has them."""
    return {
        each["name"]: [fact["value"] for fact in each["properties"]]
        for each in document["components"]
        if each["scope"] == scope
    }


def required(wheel_metadata: str) -> dict[str, Requirement]:
    lines = [line.partition(": ")[2] for line in wheel_metadata.splitlines() if line.startswith("Requires-Dist: ")]
    requirements = [Requirement(line) for line in lines]
    return {each.name: each for each in requirements if "extra" not in str(each.marker)}


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
    document = sbom(wheel)
    listed = components(document, "required")
    assert listed == {name: [str(each.specifier)] for name, each in required(metadata).items()}
    assert len(listed) == 6
    optional = components(document, "optional")
    assert {"gssapi", "httpx", "pyspark", "zstandard"} <= optional.keys()
    assert '>=0.19; extra uvloop; sys_platform != "win32"' in optional["uvloop"]
    assert not {"pykafka08", "pytest", "ruff"} & (optional.keys() | listed.keys())
    (root, *others) = document["dependencies"]
    listed_once = {each["purl"] for each in document["components"]}
    assert set(root["dependsOn"]) == {each["ref"] for each in others} == listed_once


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
    assert str(required(metadata)["librt"].specifier) == "<0.17,>=0.16"
    assert components(sbom(wheel), "required")["librt"] == ["<0.17,>=0.16"]
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


def test_the_same_project_gives_the_same_bill_of_materials_and_another_one_another() -> None:
    def serial(version: str, needed: str) -> str:
        text = bill_of_materials(
            name="p",
            version=version,
            description="",
            licence="MIT",
            required=[needed],
            extras={},
            licences={"anyio": "MIT"},
        )
        return str(json.loads(text)["serialNumber"])

    first = serial("1", "anyio>=4")
    assert first == serial("1", "anyio>=4")
    assert len({first, serial("2", "anyio>=4"), serial("1", "anyio>=5")}) == 3


def test_a_dependency_without_a_licence_is_named() -> None:
    facts = {"name": "p", "version": "1", "description": "", "licence": "MIT"}
    with pytest.raises(SystemExit, match="add the licences of no-such to"):
        bill_of_materials(**facts, required=["anyio"], extras={"x": ["no_such>=1"]}, licences={"anyio": "MIT"})


def test_the_licences_are_those_of_the_installed_dependencies() -> None:
    """Of those whose metadata have an SPDX expression."""
    compared = []
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    licences = tools["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["licences"]
    for name, licence in licences.items():
        try:
            expression = installed.metadata(name).get("License-Expression")
        except installed.PackageNotFoundError:  # tomli, which older Pythons need
            continue
        if expression is not None:
            compared.append(name)
            assert licence == expression, name
    assert {"anyio", "cryptography"} <= set(compared)
