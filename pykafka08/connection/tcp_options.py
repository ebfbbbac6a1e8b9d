"""What every TCP socket of ours is set to."""

from __future__ import annotations

import socket

__all__ = ["set_options"]


def set_options(raw: socket.socket) -> None:
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
