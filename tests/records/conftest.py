"""Tests of the codecs run twice: with the faster packages, and with what python-snappy and Python bring alone."""

from __future__ import annotations

import pytest

from pykafka08.records import compression, lz4_frame


@pytest.fixture(params=["fast packages", "bare install"])
def libraries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which codec libraries are in use; the fast ones must be installed for the tests."""
    choice = str(request.param)
    if choice == "bare install":
        monkeypatch.setattr(compression, "_isal", lambda: None)
        monkeypatch.setattr(compression, "_zstd_library", lambda: None)
        monkeypatch.setattr(lz4_frame, "_library", lambda: None)
    else:
        assert compression._isal() is not None
        assert compression._zstd_library() is not None
        assert lz4_frame._library() is not None
    return choice
