"""The session that all tests with Spark share, as the stages of a pipeline have it, but that it compiles no query."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pykafka08.spark.pipeline.session import ALWAYS, prepare
from tests.spark.queries import INTERPRETED, with_conf


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    names = [name for name in ALWAYS if name.startswith("spark.sql.")]
    with with_conf(spark, INTERPRETED | {name: ALWAYS[name] for name in names}):
        prepare(spark)
        yield spark
