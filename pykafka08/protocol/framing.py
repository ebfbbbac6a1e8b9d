"""Cuts a stream of bytes into frames: a 4-byte size, then that many bytes.  No I/O.

Bytes come in either through :meth:`FrameSplitter.feed`, or, without a copy, through :meth:`~FrameSplitter.next_buffer`
and :meth:`~FrameSplitter.bytes_received`, which are the two calls of an asyncio BufferedProtocol.  Small frames pass
through one staging buffer; a large frame gets a bytearray of its exact size, which the socket fills directly.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from pykafka08.errors import KafkaError, RemoteProtocolError, ResponseTooLargeError, TlsError
from pykafka08.wire import INT32, Buffer

__all__ = ["MAX_FRAME_BYTES", "FrameSplitter"]

MAX_FRAME_BYTES = 100 * 1024 * 1024
"""Kafka's own limit of a request (``socket.request.max.bytes``)."""

_STAGING_BYTES = 64 * 1024
_SMALLEST_OWN = 8 * 1024

_STEP = 64 * 1024
_LARGEST_KEPT = 9 * 512 * 1024  # an answer of the consumer's usual size, and a batch more
_MOST_KEPT = 4

_OTHER_PROTOCOLS: tuple[tuple[bytes, str, type[KafkaError]], ...] = (
    (b"HTTP", "the peer speaks HTTP", RemoteProtocolError),
    (b"\x15\x03", "the peer answered with a TLS alert: set security_protocol to SSL or SASL_SSL", TlsError),
    (b"\x16\x03", "the peer speaks TLS", RemoteProtocolError),
    (b"SSH-", "the peer speaks SSH", RemoteProtocolError),
)
_TEXT = frozenset(b"\r\n\t" + bytes(range(0x20, 0x7F)))
"""Bytes of text.  Four of them, read as the size of a frame, are more than 150 MB."""


class FrameSplitter:
    """Iterate it for the whole frames received so far, without their sizes, each as bytes, bytearray or memoryview.

    A frame stays what it is for as long as it, or a view of it, is held.

    An empty frame is a frame: brokers before 1.0 answer a bare SASL token with one.

    A size that is negative or above ``max_frame_bytes`` ends the stream: after the frames before it, iteration raises
    RemoteProtocolError (ResponseTooLargeError if only the size is wrong, TlsError for a TLS alert), also on later
    calls.  No byte after such a size is kept.  ``setting`` is the name of the limit.  ``has_received``: any byte came.
    """

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES, *, setting: str = "receive_message_max_bytes") -> None:
        self.max_frame_bytes = max_frame_bytes
        self._setting = setting
        self._staging = memoryview(bytearray(_STAGING_BYTES))
        self._start = 0
        self._end = 0
        self._own: bytearray | None = None
        self._own_size = 0
        self._filled = 0
        self._frames: deque[Buffer] = deque()
        self.has_received = False
        self._make_error: Callable[[], KafkaError] | None = None
        """For the error that ends the stream; each iteration raises a new one."""

    def set_limit(self, max_frame_bytes: int, setting: str) -> None:
        """Change the limit, and the name of its setting, for frames that begin from now on."""
        self.max_frame_bytes = max_frame_bytes
        self._setting = setting

    @property
    def is_mid_frame(self) -> bool:
        """True if a frame has begun and is not complete: an end of the stream now cuts it off."""
        return self._own is not None or self._end > self._start

    def __iter__(self) -> Iterator[Buffer]:
        while self._frames:
            yield self._frames.popleft()
        if self._make_error is not None:
            raise self._make_error()

    def feed(self, data: Buffer) -> None:
        """Takes bytes as they came."""
        left = memoryview(data)
        while left:
            room = self.next_buffer(len(left))
            size = min(len(room), len(left))
            room[:size] = left[:size]
            self.bytes_received(size)
            left = left[size:]

    def next_buffer(self, sizehint: int = -1) -> memoryview:
        """Where the next bytes belong; never empty.  ``sizehint`` is asyncio's and has no influence."""
        if self._own is not None:
            return memoryview(self._own)[self._filled : self._own_size]
        if self._end == len(self._staging):
            self._compact()
        return self._staging[self._end :]

    def bytes_received(self, size: int) -> None:
        """``size`` bytes were written to the start of the last :meth:`next_buffer`."""
        self.has_received = True
        if self._make_error is not None:
            return
        if self._own is None:
            self._end += size
            self._split()
            return
        self._filled += size
        if self._filled == self._own_size:
            own, self._own = self._own, None
            self._frames.append(own if len(own) == self._own_size else memoryview(own)[: self._own_size])

    def _split(self) -> None:
        """Takes the whole frames out of the staging buffer."""
        staging, at, end = self._staging, self._start, self._end
        while end - at >= INT32.size:
            (size,) = INT32.unpack_from(staging, at)
            if not 0 <= size <= self.max_frame_bytes:
                self._refuse(size, bytes(staging[at : at + INT32.size]))
                return
            body = at + INT32.size
            if body + size > end:
                if size >= _SMALLEST_OWN:
                    self._start_own(size, staging[body:end])
                    return
                break
            frame_end = body + size
            self._frames.append(bytes(staging[body:frame_end]))
            at = frame_end
        self._start, self._end = (at, end) if at < end else (0, 0)

    def _start_own(self, size: int, begun: memoryview) -> None:
        self._own = _memory_for(size)
        self._own[: len(begun)] = begun
        self._own_size = size
        self._filled = len(begun)
        self._start = self._end = 0

    def _compact(self) -> None:
        """Moves the begun frame to the front; it is shorter than the buffer, so that there is room after it."""
        kept = bytes(self._staging[self._start : self._end])
        self._staging[: len(kept)] = kept
        self._start, self._end = 0, len(kept)

    def _refuse(self, size: int, raw: bytes) -> None:
        self._start = self._end = 0
        for beginning, meaning, kind in _OTHER_PROTOCOLS:
            if raw.startswith(beginning):
                self._make_error = partial(kind, meaning)
                return
        text = f"a frame of {size} bytes is announced"
        if all(byte in _TEXT for byte in raw):
            self._make_error = partial(RemoteProtocolError, f"the peer sent text that begins with {raw.decode()!r}")
        elif size > 0:
            text += f", more than {self._setting}={self.max_frame_bytes}"
            self._make_error = partial(ResponseTooLargeError, text, size=size)
        else:
            self._make_error = partial(RemoteProtocolError, text)


# --- memory of large frames -------------------------------------------------------------------------------------------
#
# Frames of a megabyte come by the thousand, each a little longer or shorter than the last.  Memory asked for anew
# each time is cleared and paged in each time, which costs as much as receiving into it, and leaves a heap of gaps.  So
# the last few of the process are kept, and used again once nobody else holds them: whatever reads a frame, or views of
# it, counts as a reference.

_kept: deque[bytearray] = deque()


def _memory_for(size: int) -> bytearray:
    """At least ``size`` bytes that nobody else holds, and of which not much is left over."""
    if not _STEP <= size <= _LARGEST_KEPT or _ALONE is None:
        return bytearray(size)
    for _ in range(len(_kept)):
        try:
            memory, references = _first_of(_kept)
        except IndexError:  # another thread has it
            break
        is_fit = size <= len(memory) <= size + size // 4 + _STEP
        if references == _ALONE and is_fit:
            _kept.append(memory)  # another thread would see that it is held
            return memory
        if references != _ALONE or len(_kept) < _MOST_KEPT - 1:
            _kept.append(memory)
    made = bytearray((size + _STEP - 1) // _STEP * _STEP)
    _kept.append(made)
    while len(_kept) > _MOST_KEPT:
        _kept.popleft()
    return made


def _first_of(kept: deque[bytearray]) -> tuple[bytearray, int]:
    """The first of ``kept``, taken out, and how many references there are to it."""
    memory = kept.popleft()
    return memory, sys.getrefcount(memory)


def _references_to_nothing_else() -> int | None:
    """What is counted of memory that nobody holds; None where counts do not tell."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    return _first_of(deque([bytearray(1)]))[1]


_ALONE = _references_to_nothing_else()
