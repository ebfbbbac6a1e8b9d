"""The package as ``spark-submit --py-files`` sends it to Python processes in which it is not installed."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

import pyspark
import pytest

import pykafka08
from tests.spark.queries import SHORT_LIVED
from tests.spark.sinks import embedded
from tests.spark.test_stream_reader import fill

TIMEOUT_S = 400

JOB = """
import sys

from pykafka08.spark import register
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
register(spark)
servers, folder = sys.argv[1:]
options = {"kafka.bootstrap.servers": servers, "subscribe": "t", "startingOffsets": "earliest"}
stream = spark.readStream.format("pykafka08").options(**options, maxOffsetsPerTrigger="1500").load()
writer = stream.writeStream.format("noop").option("checkpointLocation", folder).trigger(availableNow=True)
query = writer.start()
query.awaitTermination()
import pykafka08
print(sum(each["numInputRows"] for each in query.recentProgress), pykafka08.__file__)
spark.stop()
"""
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.ui.enabled": "false",
}


def python_without_the_package(folder: Path) -> Path:
    """An interpreter that has what is installed here but not what lies in this tree."""
    venv.create(folder, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    (packages / "installed.pth").write_text(sysconfig.get_path("purelib"))  # its own .pth files are not read
    return folder / "bin" / "python"


def archive_of_the_package(path: Path) -> Path:
    package = Path(pykafka08.__file__).parent
    with zipfile.ZipFile(path, "w") as archive:
        for file in package.rglob("*.py"):
            archive.write(file, file.relative_to(package.parent))
    return path


@pytest.mark.spark
@pytest.mark.timeout(TIMEOUT_S)
def test_a_stream_is_read_by_a_job_that_brings_the_package(tmp_path: Path) -> None:
    python = python_without_the_package(tmp_path / "venv")
    archive = archive_of_the_package(tmp_path / "sent.zip")
    (tmp_path / "job.py").write_text(JOB)
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": str(python)}
    environment = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    conf = [word for name, value in CONF.items() for word in ("--conf", f"{name}={value}")]
    submit = ["bash", str(home / "bin" / "spark-submit"), "--master", "local[1]", *conf, "--py-files", str(archive)]
    with embedded(topics={"t": 2}) as cluster:
        fill(cluster, 2000, 1000)
        done = subprocess.run(
            [*submit, "job.py", cluster.servers, str(tmp_path / "checkpoint")],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S - 50,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-5000:]
    rows, where = done.stdout.split()
    assert rows == "3000"
    assert "sent.zip" in where
