"""An asyncio loop whose clock moves to the next timer instead of waiting."""

from __future__ import annotations

import asyncio
import selectors

__all__ = ["VirtualLoop"]


class Selector(selectors.SelectSelector):
    """Moves the clock of ``loop`` instead of waiting."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        assert timeout is not None, "nothing is due any more: whoever waits does so for ever"
        self.loop.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    now = 0.0

    def __init__(self) -> None:
        selector = Selector()
        super().__init__(selector)
        selector.loop = self

    def time(self) -> float:
        return self.now
