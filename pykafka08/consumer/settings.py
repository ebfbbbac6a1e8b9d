"""A consumer's keyword arguments as the objects that hold its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykafka08.config import SETTING_NAMES, ClientConfig, ConsumerConfig, build, names_among, setting_fields
from pykafka08.errors import ConfigError
from pykafka08.group.settings import GroupConfig

__all__ = ["consumer_settings"]

NO_GROUP = "none"
"""Stands for the group while the other settings of a consumer without one are checked."""
STRATEGY = "partition_assignment_strategy"


def consumer_settings(settings: Mapping[str, Any]) -> tuple[ClientConfig, ConsumerConfig, GroupConfig | None]:
    """The last is None without a ``group_id``; a name that nobody knows is a ConfigError."""
    names = names_among(settings)
    of_group = setting_fields(GroupConfig).keys()
    of_others = setting_fields(ClientConfig, ConsumerConfig).keys()
    shared = {name: value for name, value in settings.items() if name in of_others or name not in of_group}
    client, consumer = build(shared, ClientConfig, ConsumerConfig, elsewhere=of_group)
    own = {name: value for name, value in settings.items() if name in of_group}
    with names.naming():
        return client, consumer, _group_settings({**own, SETTING_NAMES: names})


def _group_settings(own: dict[str, Any]) -> GroupConfig | None:
    """The group's settings, None without a group.  Raises ConfigError for a wrong setting in both cases."""
    strategy = own.get(STRATEGY)
    if isinstance(strategy, str):
        own[STRATEGY] = tuple(name.strip() for name in strategy.split(","))
    elif isinstance(strategy, list):
        own[STRATEGY] = tuple(strategy)
    if own.get("group_id") is not None:
        return GroupConfig(**own)
    GroupConfig(**{**own, "group_id": NO_GROUP})
    if own.get("group_instance_id") is not None:
        raise ConfigError("group_instance_id makes a static member of a group: give a group_id too")
    return None
