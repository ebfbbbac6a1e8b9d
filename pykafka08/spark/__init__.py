"""Kafka on Spark from Python: the data source ``pykafka08`` for batch and streaming, without a connector jar.

``register(spark)`` once, then ``spark.read.format("pykafka08")``, with the options of Spark's own ``kafka`` source.
This module needs no pyspark until ``register`` is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pykafka08.spark.java import provide_java
from pykafka08.spark.local_python import local_python

__all__ = ["local_python", "register", "session_conf"]

UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
"""Spark's setting (4.1 and later): the JVM and its Python workers speak over Unix sockets."""
REDACTION = "spark.sql.redaction.options.regex"
"""Spark's setting: an option whose name or value matches has no value in plans and in the event log."""
SPARKS_DEFAULT = "(?i)url"
HIDDEN_OPTIONS = "(?i:password|passphrase|secret|token|jaas|ssl[.]keystore[.]key|(access|account)[.]key)"
"""Options with passwords, keys and tokens, also those of stores, which a Spark Connect session has as settings.

Spark's own ``spark.redaction.regex`` matches some of them."""


def session_conf() -> dict[str, str]:
    """The settings of a Spark session under which small batches are fast and plans show no secrets; all optional.

    They must be given before the session starts: ``SparkSession.builder.config(map=session_conf())``.  On a machine
    without Java this sets ``JAVA_HOME``, to the runtime that the extra ``spark`` has brought (:mod:`~.java`).
    """
    provide_java()
    return {UNIX_SOCKETS: "true", REDACTION: _with_secrets(SPARKS_DEFAULT)}


def register(spark: Any) -> None:
    """Make the format ``pykafka08`` known to a SparkSession, classic or Connect.

    Plans and the event log of the session show no secret options from then on.  Workers have the driver's Python:
    :func:`local_python` on a local master, else ``sys.executable``.  Spark would take the first ``python3`` on the
    path; what ``PYSPARK_PYTHON`` or ``spark.pyspark.python`` says stays.  On a local master the JVM and its workers
    speak over Unix sockets.
    """
    from pyspark.errors import AnalysisException

    _name_archive(spark)
    _prepare_workers(spark)
    redaction = spark.conf.get(REDACTION, SPARKS_DEFAULT)
    if HIDDEN_OPTIONS not in redaction:
        spark.conf.set(REDACTION, _with_secrets(redaction))
    from pykafka08.spark.data_source import KafkaDataSource

    try:
        spark.dataSource.register(KafkaDataSource)
    except AnalysisException as error:
        # PySpark 4.0 does not let us replace what it has found by itself, which is the same.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def _with_secrets(redaction: str) -> str:
    return f"(?:{redaction})|{HIDDEN_OPTIONS}"


def _prepare_workers(spark: Any, environment: Mapping[str, str] = os.environ) -> None:
    """Choose how Spark starts Python workers; it reads this for each worker, so the session may be running already."""
    context = getattr(spark, "sparkContext", None)  # a session of Spark Connect has none
    if context is None:
        return
    is_local = context.master.startswith("local")
    if is_local:  # elsewhere workers are started by executors, whose settings came with them
        context._conf.setIfMissing(UNIX_SOCKETS, "true")
    if "PYSPARK_PYTHON" not in environment and not context._conf.get("spark.pyspark.python"):
        context.pythonExec = local_python(environment) if is_local else sys.executable


def _name_archive(spark: Any) -> None:
    """Lets a stream's process beside the driver find this package where it came with ``--py-files``.

    Spark (4.3) tells that process of archives under a folder of the job's in which there are none, so that it only
    finds what is on the path that all Python processes have.
    """
    archive = str(Path(__file__).parents[2])
    if not os.path.isfile(archive):
        return
    context = getattr(spark, "sparkContext", None)  # a session of Spark Connect has none
    if context is not None:
        known = context.environment.get("PYTHONPATH", "")
        if archive not in known.split(os.pathsep):
            context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, [known, archive]))
