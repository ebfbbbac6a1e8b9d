"""Fixtures for every test: the two event loops; what a test may need beyond Python is in `requirements`."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.requirements"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Each test marked ``anyio`` runs on asyncio and on trio."""
    return str(request.param)
