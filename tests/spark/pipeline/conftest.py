"""The session that all tests with Spark share, as the stages of a pipeline have it, but that it compiles no query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest
from pyspark.sql import SparkSession

from pykafka08.spark.pipeline.session import ALWAYS, prepare
from tests.spark.queries import INTERPRETED, with_conf
from tests.stores.places import Place, place


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    names = [name for name in ALWAYS if name.startswith("spark.sql.")]
    with with_conf(spark, INTERPRETED | {name: ALWAYS[name] for name in names}):
        prepare(spark)
        yield spark


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Place]]:
    """Gives a place on a kind of store; its server starts once and stays until the end of all tests."""
    with ExitStack() as stack:
        yield cache(lambda scheme: stack.enter_context(place(scheme, tmp_path_factory.mktemp(scheme))))


@pytest.fixture(params=["file", "s3a", "hdfs"])
def stored(request: pytest.FixtureRequest, places: Callable[[str], Place]) -> Place:
    """A place for folders of a pipeline on each kind of store."""
    return places(request.param)
