"""Arguments of the embedded cluster and the embedded ZooKeeper: errors name the argument that is wrong."""

from __future__ import annotations

import inspect
import math
from typing import Any

import pytest

from pykafka08 import ConfigError, EmbeddedCluster, EmbeddedZooKeeper

NONSENSE: tuple[Any, ...] = (-1, 0, 10**30, 1.5, math.nan, "", "a b", b"x", [], [None], (), {}, {1: 2}, object())


@pytest.mark.parametrize(
    ("cls", "least"), [(EmbeddedCluster, 25), (EmbeddedZooKeeper, 4)], ids=["EmbeddedCluster", "EmbeddedZooKeeper"]
)
def test_an_argument_without_meaning_is_refused_by_its_name(cls: type, least: int) -> None:
    refused, unnamed = set(), []
    for name in list(inspect.signature(cls).parameters):
        for value in NONSENSE:
            try:
                cls(**{name: value})
            except ConfigError as error:
                refused.add(name)
                if name.removesuffix("s") not in str(error):
                    unnamed.append((name, value, str(error)))
            except (AttributeError, TypeError, ValueError) as error:
                unnamed.append((name, value, repr(error)))
    assert unnamed == []
    assert len(refused) >= least
