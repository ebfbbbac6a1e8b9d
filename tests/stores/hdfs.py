"""HDFS in one process: Hadoop's mini cluster, a name node and a data node."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pykafka08.spark.java import provide_java
from tests.brokers.jars import java_command, quick_flags
from tests.stores.jars import hdfs_jars

MANAGER = "org.apache.hadoop.test.MiniDFSClusterManager"
JVM = (*quick_flags(), "-Xmx256m")


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """Run HDFS with its data below a folder; ``HOST:PORT`` of the name node."""
    provide_java()
    details = folder / "details.json"
    command = [java_command(), *JVM, f"-Dhadoop.log.dir={folder}", f"-Dtest.build.data={folder}"]
    command += ["-cp", os.pathsep.join(map(str, hdfs_jars())), MANAGER]
    command += ["-format", "-nnport", "0", "-datanodes", "1", "-writeDetails", str(details), "-D", "dfs.replication=1"]
    with (folder / "hdfs.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            while not details.exists() or not details.read_text().endswith("}"):
                assert process.poll() is None, (folder / "hdfs.log").read_text()
                time.sleep(0.05)
            yield f"127.0.0.1:{json.loads(details.read_text())['namenode_port']}"
        finally:
            process.kill()  # nothing of it is used again
