"""Settings of a group member as a frozen dataclass; times in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

from pykafka08.errors import ConfigError
from pykafka08.group.assignors import ASSIGNORS, Assignor

__all__ = ["GroupConfig"]

INT32_MAX = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class GroupConfig:
    """Names are Kafka's own property names."""

    group_id: str
    group_instance_id: str | None = None
    """Makes a static member (2.3 and later): it keeps its partitions over a restart within the session time-out."""
    session_timeout_ms: int | None = None
    """None: 45000, or 30000 where the broker is older than 0.10.1 and allows no more."""
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    """How long a rebalance waits for each member, and how long a listener may take."""
    partition_assignment_strategy: tuple[str, ...] = ("range", "cooperative-sticky")
    """Names of assignors, best first.  Rebalances are cooperative if all of them are."""

    def __post_init__(self) -> None:
        if not isinstance(self.group_id, str) or not self.group_id:
            raise ConfigError(f"group_id={self.group_id!r} is not the name of a group")
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms"):
            value = getattr(self, name)
            if value is None and name == "session_timeout_ms":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= INT32_MAX:
                raise ConfigError(f"{name}={value!r} is not a number from 1 to {INT32_MAX}")
        names = self.partition_assignment_strategy
        unknown = [name for name in names if name not in ASSIGNORS]
        if not names or unknown or len(set(names)) != len(names):
            raise ConfigError(
                f"partition_assignment_strategy={names!r} is not a list of different names of {', '.join(ASSIGNORS)}"
            )

    @property
    def assignors(self) -> tuple[Assignor, ...]:
        return tuple(ASSIGNORS[name] for name in self.partition_assignment_strategy)

    @property
    def is_cooperative(self) -> bool:
        """True if members keep their partitions while they join."""
        return all(assignor.is_cooperative for assignor in self.assignors)
