"""``register``, where Spark has found the format by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from pykafka08.spark import register


def session(condition: str) -> Any:
    """One whose registrations end with that error."""

    def refuse(_: type) -> None:
        raise AnalysisException(message="no", errorClass=condition, messageParameters={})

    return SimpleNamespace(dataSource=SimpleNamespace(register=refuse))


def test_what_spark_has_found_already_is_registered() -> None:
    register(session("DATA_SOURCE_ALREADY_EXISTS"))  # PySpark 4.0


def test_other_errors_are_raised() -> None:
    with pytest.raises(AnalysisException, match="no"):
        register(session("SOMETHING_ELSE"))
