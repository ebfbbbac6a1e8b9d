"""Tests of the codecs run three times: with each choice of faster packages, and with what every installation has."""

from __future__ import annotations

import pytest

from pykafka08.records.compression import Compression
from pykafka08.records.libraries import load
from tests.records.libraries import CHOICES


@pytest.fixture(params=list(CHOICES))
def libraries(request: pytest.FixtureRequest) -> str:
    """Which packages are in use; all of them must be installed for the tests."""
    choice = str(request.param)
    assert all(load(package) is not None for package in CHOICES[choice])
    return choice


@pytest.fixture
def compression(libraries: str) -> Compression:
    return Compression(CHOICES[libraries])
