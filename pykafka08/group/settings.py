"""Settings of a group member as a frozen dataclass; times in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from pykafka08.errors import ConfigError
from pykafka08.group.assignors import ASSIGNORS, Assignor
from pykafka08.setting_names import AS_ARGUMENTS, SettingNames

__all__ = ["SESSION_TIMEOUT_MS", "GroupConfig"]

INT32_MAX = 2**31 - 1
SESSION_TIMEOUT_MS = 45_000
PROTOCOLS = ("classic", "consumer", "auto")


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
    group_protocol: str = "classic"
    """``"consumer"`` is the new one (KIP-848, Kafka 4.0): the broker assigns, and its settings count for sessions,
    heartbeats and assignors.  ``"auto"`` is that where the group's coordinator has it and the group can take it, else
    the classic one."""
    group_remote_assignor: str | None = None
    """The broker's assignor in the new protocol, ``"uniform"`` or ``"range"``; None for its default."""
    client_rack: str | None = None
    """Told to the broker in the new protocol."""
    setting_names: SettingNames = field(default=AS_ARGUMENTS, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.group_id, str) or not self.group_id:
            raise ConfigError(f"group_id={self.group_id!r} is not the name of a group")
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms"):
            value = getattr(self, name)
            if value is None and name == "session_timeout_ms":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= INT32_MAX:
                raise ConfigError(f"{name}={value!r} is not a number from 1 to {INT32_MAX}")
        session_ms = self.session_timeout_ms or SESSION_TIMEOUT_MS
        # In the new protocol both are the broker's.
        if session_ms <= self.heartbeat_interval_ms and self.group_protocol != "consumer":
            default = "" if self.session_timeout_ms else " (the default)"
            raise ConfigError(
                f"session_timeout_ms={session_ms}{default} is not more than "
                f"heartbeat_interval_ms={self.heartbeat_interval_ms}: every session would end"
            )
        if self.group_protocol not in PROTOCOLS:
            raise ConfigError(f"group_protocol={self.group_protocol!r} is not one of {', '.join(PROTOCOLS)}")
        for name in ("group_instance_id", "group_remote_assignor"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise ConfigError(f"{name}={value!r} is not a name")
        if self.group_remote_assignor is not None and self.group_protocol == "classic":
            raise ConfigError("group_remote_assignor is the broker's, in the new protocol: give group_protocol too")
        if self.client_rack is not None and not isinstance(self.client_rack, str):
            raise ConfigError(f"client_rack={self.client_rack!r} is not a string")
        names = self.partition_assignment_strategy
        is_list = isinstance(names, tuple) and all(isinstance(name, str) and name in ASSIGNORS for name in names)
        if not is_list or not names or len(set(names)) != len(names):
            known = ", ".join(ASSIGNORS)
            raise ConfigError(
                f"partition_assignment_strategy={names!r:.300} is not a list of different names of {known}"
            )

    @property
    def session_timeout(self) -> float:
        """In seconds, before a broker's release is known."""
        return (self.session_timeout_ms or SESSION_TIMEOUT_MS) / 1000

    @property
    def prefers_new_protocol(self) -> bool:
        """Who chooses assignors of the classic protocol wants that, even with ``"auto"``."""
        has_chosen = self.partition_assignment_strategy != GroupConfig.partition_assignment_strategy
        return self.group_protocol == "consumer" or (self.group_protocol == "auto" and not has_chosen)

    @property
    def assignors(self) -> tuple[Assignor, ...]:
        return tuple(ASSIGNORS[name] for name in self.partition_assignment_strategy)

    @property
    def is_cooperative(self) -> bool:
        """True if members keep their partitions while they join."""
        return all(assignor.is_cooperative for assignor in self.assignors)
