"""ZooKeeper's encoding: big-endian numbers, strings and buffers behind a 32-bit length, -1 for none."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Reader", "Writer"]

T = TypeVar("T")

_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")


class Reader:
    """Raises ValueError where the bytes end too soon."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._data)

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if size < 0 or len(taken) != size:
            raise ValueError("a request ends too soon")
        self._at += size
        return taken

    def boolean(self) -> bool:
        return self.take(1) != b"\0"

    def int32(self) -> int:
        value: int = _INT.unpack(self.take(4))[0]
        return value

    def int64(self) -> int:
        value: int = _LONG.unpack(self.take(8))[0]
        return value

    def buffer(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else self.take(size)

    def string(self) -> str:
        return (self.buffer() or b"").decode()

    def vector(self, read: Callable[[], T]) -> list[T]:
        return [read() for _ in range(max(0, self.int32()))]


class Writer:
    """Collects one answer."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)

    def raw(self, data: bytes) -> Writer:
        self._parts.append(data)
        return self

    def boolean(self, value: bool) -> Writer:
        return self.raw(b"\1" if value else b"\0")

    def int32(self, value: int) -> Writer:
        return self.raw(_INT.pack(value))

    def int64(self, value: int) -> Writer:
        return self.raw(_LONG.pack(value))

    def buffer(self, data: bytes | None) -> Writer:
        return self.int32(-1) if data is None else self.int32(len(data)).raw(data)

    def string(self, text: str) -> Writer:
        return self.buffer(text.encode())

    def strings(self, texts: list[str]) -> Writer:
        self.int32(len(texts))
        for text in texts:
            self.string(text)
        return self
