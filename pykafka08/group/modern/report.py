"""What a member has told the broker of itself, and what is news.  Pure."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

from pykafka08.group.modern.target import PartitionIds

__all__ = ["News", "Report", "Truth"]


class Truth(NamedTuple):
    """What the broker shall know of the member."""

    topics: frozenset[str]
    pattern: str
    owned: PartitionIds


class News(TypedDict):
    """Fields of ``Beat``: None where the broker knows."""

    is_full: bool
    topics: tuple[str, ...] | None
    pattern: str | None
    owned: PartitionIds | None


class Report:
    """Whatever a heartbeat told counts as known when it was answered well; when not, nothing does."""

    def __init__(self) -> None:
        self._known: Truth | None = None
        self._said: Truth | None = None
        self._had_pattern = False

    def is_due(self, truth: Truth) -> bool:
        return self._known != truth

    def say(self, truth: Truth) -> News:
        """For the heartbeat that goes out now."""
        known, self._said = self._known, truth
        self._had_pattern = self._had_pattern or bool(truth.pattern)
        tells_pattern = self._had_pattern if known is None else known.pattern != truth.pattern
        return {
            "is_full": known is None,
            "topics": tuple(sorted(truth.topics)) if known is None or known.topics != truth.topics else None,
            "pattern": truth.pattern if tells_pattern else None,
            "owned": truth.owned if known is None or known.owned != truth.owned else None,
        }

    def heard(self) -> None:
        self._known = self._said

    def forget(self) -> None:
        """Whether it was heard is not known: all of it is told again."""
        self._known = None
