"""Fixtures for every test: the two event loops."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Each test marked ``anyio`` runs on asyncio and on trio."""
    return str(request.param)
