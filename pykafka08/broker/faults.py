"""Faults by script: the next answers that a test wants to be wrong, late or missing.

A fault names an API (``"Produce"``, ``ApiKey.PRODUCE`` or a request class) and can be narrowed to a broker.  It lets
``skip`` such requests pass, and is used up after ``times`` more, never with ``times=None``: ``skip=4`` hits the fifth.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container
from typing import Any, NamedTuple

from pykafka08.errors import ConfigError
from pykafka08.protocol.messages import REGISTRY, ApiKey
from pykafka08.protocol.schema import Request

__all__ = ["ConnectionLife", "Faults", "LoggedRequest", "ScriptedCall", "api_key"]


class LoggedRequest(NamedTuple):
    """One request as a broker saw it; ``time`` is the event loop's clock in seconds.

    ``trailing_bytes`` came after its last field: brokers overlook them (librdkafka sends some), a good client has none.
    """

    time: float
    broker: int
    api: str
    version: int
    client_id: str | None
    trailing_bytes: int = 0


def api_key(api: str | int | type[Request[Any]]) -> int:
    """The number of an API that is given by name, number or class; ConfigError if there is none."""
    if isinstance(api, str):
        for key in ApiKey:
            if api.lower() in (REGISTRY[key].name.lower(), key.name.lower()):
                return int(key)
        raise ConfigError(f"no API is called {api!r}")
    number = int(api) if isinstance(api, int) else api.api_key
    if number not in REGISTRY:
        raise ConfigError(f"no API has the number {number}")
    return number


class _Fault:
    """One line of the script; ``times`` counts down."""

    def __init__(
        self,
        kind: str,
        api: str | int | type[Request[Any]],
        times: int | None,
        skip: int,
        broker: int | None,
        *,
        code: int = 0,
        is_performed: bool = False,
        topic: str | None = None,
        partition: int | None = None,
        seconds: float = 0.0,
        size: int = 0,
        action: Callable[[], object] | None = None,
    ) -> None:
        self.kind = kind
        self.key = api_key(api)
        self.times = times
        self.skip = skip
        self.broker = broker
        self.code = code
        self.is_performed = is_performed
        self.topic = topic
        self.partition = partition
        self.seconds = seconds
        self.size = size
        self.action = action

    def passes(self) -> bool:
        """True while a request is to be let past."""
        if self.skip <= 0:
            return False
        self.skip -= 1
        return True


class ScriptedCall:
    """The faults of one request.  A request uses a fault up once, however many of its partitions it hits."""

    __slots__ = ("_faults", "_taken")

    def __init__(self, faults: list[_Fault]) -> None:
        self._faults = faults
        self._taken: list[_Fault] = []

    def _take(self, fault: _Fault) -> bool:
        if fault not in self._taken:
            if fault.times is not None:
                if fault.times <= 0:
                    return False
                fault.times -= 1
            self._taken.append(fault)
        return True

    def takes(self, kind: str) -> bool:
        """True if a fault of that kind is for this request."""
        return any(fault.kind == kind and self._take(fault) for fault in self._faults)

    def has_error(self, topic: str, partition: int) -> bool:
        """True if ``error`` has a code for this partition; does not use it up."""
        return any(
            fault.kind == "answer"
            and fault.topic in (None, topic)
            and fault.partition in (None, partition)
            and (fault.times is None or fault.times > 0)
            for fault in self._faults
        )

    def act(self) -> None:
        """Do what the test wants to happen when this request arrives."""
        for fault in self._faults:
            if fault.action is not None and self._take(fault):
                fault.action()

    def cut(self) -> int | None:
        """The number of bytes of the answer after which to close; None for all of it."""
        return next((fault.size for fault in self._faults if fault.kind == "cut" and self._take(fault)), None)

    def delay(self) -> float:
        """Seconds to hold the answer back."""
        return max(
            (fault.seconds for fault in self._faults if fault.kind == "delay" and self._take(fault)), default=0.0
        )

    def error(
        self,
        topic: str | None = None,
        partition: int | None = None,
        *,
        after: bool = False,
        codes: Container[int] | None = None,
    ) -> int:
        """The code to answer instead of doing (or, with ``after``, after doing) what was asked; 0 for none.

        ``codes`` restricts it to errors of one kind.
        """
        for fault in self._faults:
            if (
                fault.kind == "answer"
                and fault.is_performed is after
                and fault.topic in (None, topic)
                and fault.partition in (None, partition)
                and (codes is None or fault.code in codes)
                and self._take(fault)
            ):
                return fault.code
        return 0


_NO_FAULTS = ScriptedCall([])


DEATHS = ("at once", "before", "after", "cut")
"""Of a connection: ``before`` or ``after`` the next request is performed, or inside its answer."""


class ConnectionLife(NamedTuple):
    """How long a new connection lives, in seconds, and which of DEATHS it dies; ``share`` of the answer goes out."""

    seconds: float
    way: str
    share: float


class Faults:
    """The script.  Faults of one kind are used in the order in which they were added."""

    def __init__(self) -> None:
        self._script: list[_Fault] = []
        self._lives: tuple[float, float] | None = None
        self._chance = random.Random()  # noqa: S311 - chooses faults

    def answer(
        self,
        api: str | int | type[Request[Any]],
        error_code: int,
        *,
        times: int | None = 1,
        skip: int = 0,
        broker: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        performed: bool = False,
    ) -> None:
        """Answer ``error_code`` instead of doing what was asked; ``performed`` (Produce only): do it and say so.

        ``topic`` and ``partition`` narrow it down in APIs that have such.
        """
        if performed and api_key(api) != ApiKey.PRODUCE:
            raise ConfigError(f"performed=True is for Produce alone, not for {REGISTRY[api_key(api)].name}")
        self._script.append(
            _Fault(
                "answer", api, times, skip, broker,
                code=int(error_code), is_performed=performed, topic=topic, partition=partition,
            )
        )  # fmt: skip

    def close_before(
        self, api: str | int | type[Request[Any]], *, times: int | None = 1, skip: int = 0, broker: int | None = None
    ) -> None:
        """Close the connection when such a request arrives; it is not performed."""
        self._script.append(_Fault("close_before", api, times, skip, broker))

    def close_after(
        self, api: str | int | type[Request[Any]], *, times: int | None = 1, skip: int = 0, broker: int | None = None
    ) -> None:
        """Perform such a request, then close the connection without an answer."""
        self._script.append(_Fault("close_after", api, times, skip, broker))

    def cut_answer(
        self,
        api: str | int | type[Request[Any]],
        size: int,
        *,
        times: int | None = 1,
        skip: int = 0,
        broker: int | None = None,
    ) -> None:
        """Perform such a request, send the first ``size`` bytes of its answer (four of them its length), then close."""
        if size < 0:
            raise ConfigError(f"size={size!r} is no number of bytes")
        self._script.append(_Fault("cut", api, times, skip, broker, size=size))

    def drop_answer(
        self, api: str | int | type[Request[Any]], *, times: int | None = 1, skip: int = 0, broker: int | None = None
    ) -> None:
        """Perform such a request and never answer; the connection stays open and goes on with the next."""
        self._script.append(_Fault("drop_answer", api, times, skip, broker))

    def duplicate_answer(
        self, api: str | int | type[Request[Any]], *, times: int | None = 1, skip: int = 0, broker: int | None = None
    ) -> None:
        """Send the answer to such a request twice."""
        self._script.append(_Fault("duplicate_answer", api, times, skip, broker))

    def swap_answers(
        self, api: str | int | type[Request[Any]], *, times: int | None = 1, skip: int = 0, broker: int | None = None
    ) -> None:
        """Hold the answer to such a request until the next one of its connection has been sent."""
        self._script.append(_Fault("swap_answers", api, times, skip, broker))

    def delay(
        self,
        api: str | int | type[Request[Any]],
        seconds: float,
        *,
        times: int | None = 1,
        skip: int = 0,
        broker: int | None = None,
    ) -> None:
        """Perform such a request and hold its answer, and all behind it on that connection, for ``seconds``."""
        self._script.append(_Fault("delay", api, times, skip, broker, seconds=seconds))

    def run(
        self,
        api: str | int | type[Request[Any]],
        action: Callable[[], object],
        *,
        times: int | None = 1,
        skip: int = 0,
        broker: int | None = None,
    ) -> None:
        """Call ``action()`` when such a request arrives, before it is performed.

        For example ``lambda: cluster.move_leader("t", 0, 2)``.
        """
        self._script.append(_Fault("run", api, times, skip, broker, action=action))

    def connection_lives(self, shortest: float, longest: float, *, seed: int | str) -> None:
        """End each connection made from now on after ``shortest`` to ``longest`` seconds, until :meth:`clear`.

        It ends at once, or before or after the next request is performed, or inside its answer.  ``seed`` decides.
        """
        if not 0 <= shortest <= longest:
            raise ConfigError(f"lives from {shortest!r} to {longest!r} seconds cannot be had")
        self._lives = shortest, longest
        self._chance = random.Random(seed)  # noqa: S311 - chooses faults

    def next_life(self) -> ConnectionLife | None:
        """The life of a connection that is made now; None if it has no end."""
        if self._lives is None:
            return None
        chance = self._chance
        return ConnectionLife(chance.uniform(*self._lives), chance.choice(DEATHS), chance.random())

    def clear(self) -> None:
        """Forget the rest of the script; connections live on."""
        self._script.clear()
        self._lives = None

    @property
    def has_lives(self) -> bool:
        """False once the lives of connections have no end any more."""
        return self._lives is not None

    def for_request(self, key: int, broker: int) -> ScriptedCall:
        """The faults that a request may meet."""
        if not self._script:
            return _NO_FAULTS
        self._script = [fault for fault in self._script if fault.times is None or fault.times > 0]
        meant = [fault for fault in self._script if fault.key == key and fault.broker in (None, broker)]
        return ScriptedCall([fault for fault in meant if not fault.passes()])
