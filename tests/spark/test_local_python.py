"""The Python that Spark's workers on this machine are started with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from pykafka08.spark import local_python

WHERE = "import json, os, pyspark, sys; print(json.dumps([pyspark.__file__, sys.executable, sys.argv[1:], sys.path]))"


def archives_of_spark() -> list[str]:
    library = Path(pyspark.__file__).parent / "python" / "lib"
    return [str(library / "pyspark.zip"), *map(str, library.glob("py4j-*-src.zip"))]


def started(program: str, pythonpath: str, *words: str) -> list[object]:
    """What the program tells of itself."""
    environment = {**os.environ, "PYTHONPATH": pythonpath}
    ran = subprocess.run(
        [program, "-c", WHERE, *words], env=environment, capture_output=True, text=True, check=True, cwd="/"
    )
    found = json.loads(ran.stdout)
    assert isinstance(found, list)
    return found


@pytest.fixture
def program(tmp_path: Path) -> str:
    return local_python({"XDG_CACHE_HOME": str(tmp_path / "it's here")})


def test_pyspark_comes_from_where_it_is_installed(program: str, tmp_path: Path) -> None:
    own = str(tmp_path / "a folder with *")
    with_zip = started(sys.executable, os.pathsep.join([*archives_of_spark(), own]))
    without = started(program, os.pathsep.join([*archives_of_spark(), own]), "a b", "", "it's $HOME")
    assert "pyspark.zip" in str(with_zip[0]), "Spark's own way has changed: is the launcher needed still?"
    assert without[0] == pyspark.__file__
    assert without[1:3] == [sys.executable, ["a b", "", "it's $HOME"]]
    path = without[3]
    assert isinstance(path, list)
    assert own in path
    assert not [entry for entry in path if entry.endswith(".zip") and "pyspark" in entry]


def test_another_sparks_archive_stays(program: str) -> None:
    other = "/opt/spark/python/lib/pyspark.zip"
    path = started(program, other)[3]
    assert isinstance(path, list)
    assert other in path


def test_without_a_path_it_is_python(program: str) -> None:
    assert started(program, "")[1] == sys.executable


def test_where_pyspark_has_no_archive_it_is_the_interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pyspark, "__file__", str(tmp_path / "__init__.py"))
    assert local_python() == sys.executable


def test_workers_import_the_installed_pyspark_and_speak_over_unix_sockets(spark: SparkSession) -> None:
    def where(_: object) -> list[str]:
        import pyspark

        return [pyspark.__file__, os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "").lower()]

    found = spark.sparkContext.parallelize([0], 1).flatMap(where).collect()
    has_unix_sockets = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1)
    assert found == [pyspark.__file__, "true" if has_unix_sockets else ""]
