"""What ``pykafka08.zookeeper`` exports, and what importing it loads."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from pykafka08 import zookeeper


def test_every_export_exists_and_every_name_is_exported() -> None:
    assert zookeeper.__all__ == sorted(zookeeper.__all__)
    assert set(zookeeper.__all__) == set(zookeeper._HOME)
    for name in zookeeper.__all__:
        home = import_module(f"pykafka08.zookeeper.{zookeeper._HOME[name]}")
        assert getattr(zookeeper, name) is getattr(home, name)
    assert set(zookeeper.__all__) <= set(dir(zookeeper))
    with pytest.raises(AttributeError, match="Nothing"):
        zookeeper.Nothing  # noqa: B018


def test_the_layout_is_read_without_kazoo() -> None:
    code = "import sys; import pykafka08.zookeeper.paths; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert not {"kazoo", "anyio", "structlog"} & set(run.stdout.split())
