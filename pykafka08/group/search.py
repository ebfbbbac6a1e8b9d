"""Which broker coordinates the group, as one member knows it, and the question that is under way.  Pure."""

from __future__ import annotations

from pykafka08.group.actions import FindCoordinator

__all__ = ["CoordinatorSearch"]


class CoordinatorSearch:
    """``node_id`` is None while it is not known."""

    def __init__(self) -> None:
        self.node_id: int | None = None
        self.broker: str | None = None
        """``"host:port (id N)"`` of the last coordinator found."""
        self._attempt: int | None = None

    @property
    def is_idle(self) -> bool:
        """True if it is not known and nobody is being asked."""
        return self.node_id is None and self._attempt is None

    def begin(self, attempt: int) -> FindCoordinator:
        self._attempt = attempt
        return FindCoordinator(attempt)

    def found(self, attempt: int, node_id: int, broker: str | None) -> None:
        if self.failed(attempt):
            self.node_id = node_id
            self.broker = broker

    def failed(self, attempt: int) -> bool:
        """True if that is the question that was under way; it is no more."""
        is_ours = self._attempt == attempt
        if is_ours:
            self._attempt = None
        return is_ours

    def lost(self, node_id: int) -> None:
        """That broker does not coordinate the group any more."""
        if self.node_id == node_id:
            self.node_id = None

    def stop(self) -> None:
        """The answer to the question that is under way does not count."""
        self._attempt = None
