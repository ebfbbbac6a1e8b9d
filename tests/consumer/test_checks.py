"""What is refused before anything is done with it: listeners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykafka08 import Consumer, RebalanceListener
from pykafka08.errors import ConfigError


def consumer_with(listener: Any) -> Consumer:
    return Consumer("t", bootstrap_servers="localhost", group_id="g", listener=listener)


class Listener(RebalanceListener):
    """One that takes what it wants, and has more."""

    partitions_seen = 0

    async def partitions_revoked(self, partitions: Any) -> None: ...

    def counted(self) -> int:
        return self.partitions_seen


async def nothing(self: RebalanceListener, partitions: Any) -> None:
    """A listener's method."""


def test_a_listener_is_an_instance() -> None:
    assert consumer_with(Listener())
    for kind in (RebalanceListener, Listener):
        with pytest.raises(ConfigError, match=rf"listener={kind.__name__} is a class.* listener={kind.__name__}\(\)"):
            consumer_with(kind)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("on_partitions_assigned", "did you mean partitions_assigned?"),
        ("on_partitions_revoked", "did you mean partitions_revoked?"),
        ("partitions_revoke", "did you mean partitions_revoked?"),
        ("partitions_losts", "did you mean partitions_lost?"),
        ("on_partitions_zzz", "the methods are partitions_assigned, "),
    ],
)
def test_a_method_that_nobody_would_call_is_told(name: str, meant: str) -> None:
    methods: dict[str, Callable[..., Any]] = {name: nothing}
    with pytest.raises(ConfigError) as caught:
        consumer_with(type("Misspelt", (RebalanceListener,), methods)())
    assert f"nobody calls its {name}; {meant}" in str(caught.value)
