"""Names of hosts and topics for errors and log lines, cut to a maximum length."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["MOST_SHOWN", "address_text", "only_name", "shortened"]

MOST_SHOWN = 300
"""Characters of a name in errors and log lines; a valid host name has at most 253, a topic name 249."""


def shortened(name: str) -> str:
    """A name for errors and log lines; a broker may send one of 32,767 characters."""
    return name if len(name) <= MOST_SHOWN else f"{name[:MOST_SHOWN]}... ({len(name)} characters)"


def only_name(names: Collection[str]) -> str | None:
    """The name, if there is only one: an error has one topic at most."""
    return next(iter(names)) if len(names) == 1 else None


def address_text(host: str, port: int) -> str:
    """``"host:port"`` for errors and log lines."""
    return f"{shortened(host)}:{port}"
