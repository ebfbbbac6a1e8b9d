"""Spark Connect: sessions on a running server, and the settings that only the server can have.

The server has its own Spark settings, file systems, Python interpreter and log.  The functions of ``foreachBatch`` run
in a Python process of the server.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.addresses import Address
from pykafka08.spark.pipeline.stores import first_line

__all__ = ["check_reach", "connected", "stop_queries", "without_parameters"]

PORT = 15002
"""The default port of a server."""
REACHED_S = 10.0
"""The longest wait for a TCP connection to the server."""
RETRIES = 6
"""Attempts after the first one, about a minute together.  PySpark's own 15 attempts take more than ten minutes."""
HADOOP = "spark.hadoop."
"""The prefix of Hadoop's properties among Spark's settings.  A session has them without it."""
RESTARTS = {"spark.sql.streaming.stopActiveRunOnRestart": "true"}
"""With this setting a new run of a stage stops the query that a killed client has left on the server."""
SERVER_ONLY = "the Spark Connect server has to have it from its start"
Settings = Mapping[str, str]


def without_parameters(master: str) -> str:
    """The address of a server without its parameters, which may contain a token."""
    return master.partition(";")[0]


def connected(master: str, needed: Settings, chosen: Settings) -> SparkSession:
    """A new session on a server.

    ``needed``: settings that the stages rely on; ``chosen``: those of ``[spark.conf]``.

    Raises:
        ConfigError: packages are missing, the server does not answer, or only the server can change a setting.
    """
    _check_address(master)
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        spark = SparkSession.builder.remote(master).create()
    except ImportError as error:
        raise ConfigError(f"spark.master: {error}; pip install 'pykafka08[connect]'") from error
    except PySparkException as error:  # parameters of the address
        raise ConfigError(f"spark.master: {without_parameters(master)}: {first_line(error)}") from error
    try:
        cast(Any, spark).client.set_retry_policies([DefaultPolicy(max_retries=RETRIES)])
        _configure(spark, {**RESTARTS, **needed}, chosen)
    except PySparkException as error:
        spark.stop()
        raise ConfigError(f"spark.master: no session at {without_parameters(master)}: {first_line(error)}") from error
    except ConfigError:
        spark.stop()
        raise
    return spark


def _check_address(master: str) -> None:
    """Connect once, because PySpark's client tries again for minutes."""
    try:
        url = urlsplit(master)
        place = (url.hostname or "", url.port or PORT)
        with socket.create_connection(place, REACHED_S):
            return
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"spark.master: no Spark Connect server answers at {without_parameters(master)}: {why}"
        ) from error


def _configure(spark: SparkSession, needed: Settings, chosen: Settings) -> None:
    """Set the settings that a client can change.  Raises ConfigError with a line for each of the others."""
    there = spark.conf.getAll
    refused = []
    for name, value in {**chosen, **needed}.items():
        if name.startswith(HADOOP):
            spark.conf.set(name.removeprefix(HADOOP), value)
        elif there.get(name) == value:
            continue
        elif not name.startswith("spark.") or (name.startswith("spark.sql.") and spark.conf.isModifiable(name)):
            spark.conf.set(name, value)
        elif name in chosen:
            refused.append(f"spark.conf.{name}: {SERVER_ONLY}; start the server with it, or remove it here")
        elif name in there:  # the default of a setting that the server does not list is right
            refused.append(f"spark.master: the server has {name}={there[name]}; start it with {value}")
    if refused:
        raise ConfigError("\n".join(refused))


def check_reach(spark: SparkSession, address: Address) -> None:
    """Raise ConfigError if the server has no file system for an address, or cannot use it."""
    try:
        _ = spark.read.text(address.spark).schema
    except PySparkException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return
        raise ConfigError(
            f"folder: the Spark Connect server cannot read {address.spark}: {first_line(error)}; if its file system "
            "is missing, start the server with the packages of docs/pipeline.md"
        ) from error


def stop_queries(spark: SparkSession) -> None:
    """Stop the queries of a session.  If the server does not answer, they end with the lease of the run."""
    with suppress(PySparkException):
        for query in spark.streams.active:
            query.stop()
