"""A transport without a network: a test plays the peer."""

from __future__ import annotations

import anyio.lowlevel

from pykafka08.connection.transport import Link, deliver, lost_connection
from pykafka08.errors import KafkaError
from pykafka08.protocol.framing import FrameSplitter

__all__ = ["MemoryTransport"]


class MemoryTransport:
    """No network: a test plays the peer.  ``written`` is what the link has sent, joined."""

    def __init__(self, link: Link, max_frame_bytes: int) -> None:
        self.written = bytearray()
        self.is_closed = False
        self._link = link
        self._splitter = FrameSplitter(max_frame_bytes)

    def wake_writer(self, *, at_once: bool = False) -> None:
        if not self.is_closed and (parts := self._link.data_to_send()):
            self.written += b"".join(parts)
            self._link.data_sent()

    def peer_sends(self, data: bytes) -> None:
        try:
            self._splitter.feed(data)
            deliver(self._splitter, lambda: None if self.is_closed else self._link)
        except KafkaError as error:
            self.peer_closes(error)

    def peer_closes(self, error: KafkaError | None = None) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._link.connection_lost(error or lost_connection(None, self._splitter))

    def allow_frames(self, max_frame_bytes: int) -> None:
        self._splitter.max_frame_bytes = max_frame_bytes

    def close(self) -> None:
        self.is_closed = True

    async def wait_closed(self) -> None:
        await anyio.lowlevel.checkpoint()
