"""One Spark session for all tests of a folder that need one, in one process of the run: it costs 5 s and 1 GiB.

Spark's own Kafka connector is in it, as the judge of the tests in ``parity``, and the file system of S3.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pykafka08.spark
from pykafka08.spark.pipeline.session import WITHOUT_CALL_SITES
from tests.spark.connector import connector_jars
from tests.spark.queries import SHORT_LIVED
from tests.spark.secured import kerberos_config
from tests.stores.jars import s3a_jars

TIMEOUT_S = 600
"""For one test with the session: starting it counts; Spark's Python processes are slow to start on a busy machine."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests with the session have the time that they may need, and run apart (the marker)."""
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two task slots, an event log as text; the formats ``pykafka08`` and, from its jars, ``kafka``.

    What makes it fast is what ``register`` does.  The path is that of an activated environment: Spark looks for formats
    with the first ``python3`` on it.
    """
    folder: Path = tmp_path_factory.mktemp("spark")
    events = folder / "events"
    events.mkdir()
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("pykafka08-tests")
        .config("spark.jars", ",".join(map(str, connector_jars())))
        .config("spark.driver.extraClassPath", os.pathsep.join(map(str, s3a_jars())))
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", SHORT_LIVED)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.dir", events.as_uri())
        .config("spark.eventLog.compress", "false")
        .config(map=WITHOUT_CALL_SITES)
    )
    with pytest.MonkeyPatch.context() as patch:  # Python workers have the environment of the JVM
        patch.setenv("KRB5_CONFIG", str(kerberos_config(tmp_path_factory)))
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    pykafka08.spark.register(session)
    yield session
    session.stop()
