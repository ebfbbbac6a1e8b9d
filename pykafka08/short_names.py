"""Names of hosts and topics as errors and log lines show them: bounded, whatever a broker sends."""

from __future__ import annotations

__all__ = ["MOST_SHOWN", "address_text", "shortened"]

MOST_SHOWN = 300
"""Characters of a name that errors and log lines show; the longest name of a host has 253, of a topic 249."""


def shortened(name: str) -> str:
    """A name as errors and log lines show it: brokers may send one of 32,767 characters."""
    return name if len(name) <= MOST_SHOWN else f"{name[:MOST_SHOWN]}... ({len(name)} characters)"


def address_text(host: str, port: int) -> str:
    """``"host:port"`` as errors and log lines show it."""
    return f"{shortened(host)}:{port}"
