"""Faults by script: the next answers that a test wants to be wrong, late or missing.

A fault names an API (``"Produce"``, ``ApiKey.PRODUCE`` or a request class) and can be narrowed to a broker; it is used
up after ``times`` requests, never with ``times=None``.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

from pykafka08.errors import ConfigError
from pykafka08.protocol.messages import REGISTRY, ApiKey
from pykafka08.protocol.schema import Request

__all__ = ["Faults", "LoggedRequest", "ScriptedCall", "api_key"]


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
        broker: int | None,
        *,
        code: int = 0,
        is_performed: bool = False,
        topic: str | None = None,
        partition: int | None = None,
        seconds: float = 0.0,
    ) -> None:
        self.kind = kind
        self.key = api_key(api)
        self.times = times
        self.broker = broker
        self.code = code
        self.is_performed = is_performed
        self.topic = topic
        self.partition = partition
        self.seconds = seconds


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


class Faults:
    """The script.  Faults of one kind are used in the order in which they were added."""

    def __init__(self) -> None:
        self._script: list[_Fault] = []

    def answer(
        self,
        api: str | int | type[Request[Any]],
        error_code: int,
        *,
        times: int | None = 1,
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
                "answer", api, times, broker,
                code=int(error_code), is_performed=performed, topic=topic, partition=partition,
            )
        )  # fmt: skip

    def close_before(
        self, api: str | int | type[Request[Any]], *, times: int | None = 1, broker: int | None = None
    ) -> None:
        """Close the connection when such a request arrives; it is not performed."""
        self._script.append(_Fault("close_before", api, times, broker))

    def close_after(
        self, api: str | int | type[Request[Any]], *, times: int | None = 1, broker: int | None = None
    ) -> None:
        """Perform such a request, then close the connection without an answer."""
        self._script.append(_Fault("close_after", api, times, broker))

    def drop_answer(
        self, api: str | int | type[Request[Any]], *, times: int | None = 1, broker: int | None = None
    ) -> None:
        """Perform such a request and never answer; the connection stays open and goes on with the next."""
        self._script.append(_Fault("drop_answer", api, times, broker))

    def delay(
        self, api: str | int | type[Request[Any]], seconds: float, *, times: int | None = 1, broker: int | None = None
    ) -> None:
        """Perform such a request and hold its answer, and all behind it on that connection, for ``seconds``."""
        self._script.append(_Fault("delay", api, times, broker, seconds=seconds))

    def clear(self) -> None:
        """Forget the rest of the script."""
        self._script.clear()

    def for_request(self, key: int, broker: int) -> ScriptedCall:
        """The faults that a request may meet."""
        if not self._script:
            return _NO_FAULTS
        self._script = [fault for fault in self._script if fault.times is None or fault.times > 0]
        return ScriptedCall([fault for fault in self._script if fault.key == key and fault.broker in (None, broker)])
