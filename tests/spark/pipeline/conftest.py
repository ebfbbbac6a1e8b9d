"""The session that all tests with Spark share, as the stages of a pipeline have it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pykafka08.spark.pipeline.session import ALWAYS, prepare


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name) for name in ALWAYS if name.startswith("spark.sql.")}
    prepare(spark)
    yield spark
    for name, value in before.items():
        assert value is not None
        spark.conf.set(name, value)
