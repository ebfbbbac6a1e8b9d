"""Fixtures for every test: the two event loops; `pytest_plugins` names where the rest is."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# the same examples each time, and no verdict by the clock: the machine may be busy
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

pytest_plugins = [
    "tests.deadlines",
    "tests.open_sockets",
    "tests.requirements",
    "tests.scheduling",
    "tests.security.kdc",
    "tests.whole_runs",
    "tests.integration.fixtures",
    "tests.integration.secured_cluster",
]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without garbage collections, which take a third of the time; later ones leave the tests out."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Each test marked ``anyio`` runs on asyncio and on trio."""
    return str(request.param)
