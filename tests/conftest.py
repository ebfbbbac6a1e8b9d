"""Fixtures for every test: the two event loops; `requirements` and `integration.fixtures` have the rest."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.requirements", "tests.integration.fixtures"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Each test marked ``anyio`` runs on asyncio and on trio."""
    return str(request.param)
