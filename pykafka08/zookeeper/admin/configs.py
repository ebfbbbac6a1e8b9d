"""Settings of topics, clients and users: the node is written, then the brokers are told in a form that all read.

Sources: AdminUtils, TopicConfigManager (0.8), DynamicConfigManager (0.9 and later).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pykafka08.errors import AdminRefusedError, ConfigError
from pykafka08.protocol.messages import ApiKey
from pykafka08.zookeeper import paths, reading
from pykafka08.zookeeper.admin.changes import change
from pykafka08.zookeeper.admin.guarded import Guarded
from pykafka08.zookeeper.admin.settings import KINDS
from pykafka08.zookeeper.admin.topics import no_such_topic
from pykafka08.zookeeper.nodes.configs import Config, ConfigChange

__all__ = ["ConfigAdministration", "entity_path"]

_API = {"clients": ApiKey.ALTER_CLIENT_QUOTAS, "users": ApiKey.ALTER_CLIENT_QUOTAS, "ips": ApiKey.ALTER_CLIENT_QUOTAS}
"""Topics and brokers have AlterConfigs."""


def entity_path(
    *,
    topic: str | None = None,
    client: str | None = None,
    user: str | None = None,
    broker: int | str | None = None,
    ip: str | None = None,
) -> str:
    """What the settings belong to, as ZooKeeper has it: one of these, or a user and a client together.

    The name ``<default>`` means all clients, users or brokers that have no settings of their own.
    """
    given = {name for name, value in locals().items() if value is not None}
    made = {
        frozenset({"topic"}): lambda: paths.topic_config(str(topic)),
        frozenset({"client"}): lambda: paths.client_config(str(client)),
        frozenset({"user"}): lambda: paths.user_config(str(user)),
        frozenset({"user", "client"}): lambda: paths.user_client_config(str(user), str(client)),
        frozenset({"broker"}): lambda: f"{paths.CONFIG}/brokers/{_broker(broker)}",
        frozenset({"ip"}): lambda: paths.ip_config(str(ip)),
    }.get(frozenset(given))
    if made is None:
        raise ConfigError("settings belong to a topic, a client, a user, a user and a client, a broker, or an address")
    return made().removeprefix(f"{paths.CONFIG}/")


def _broker(broker: int | str | None) -> str:
    text = str(broker)
    if text != paths.DEFAULT and not (text.isascii() and text.isdecimal()):
        raise ConfigError(f"{text!r} is neither a broker's id nor {paths.DEFAULT}")
    return text


class ConfigAdministration(Guarded):
    """Settings."""

    async def describe_configs(self, entity: str) -> Mapping[str, str]:
        """What is set for an entity, as ``entity_path`` names it; UnknownTopicError for a topic that is not there."""
        await self._check_entity(entity)
        return await reading.config(self.zk, paths.entity_config(entity))

    async def alter_configs(
        self, entity: str, set: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()
    ) -> Mapping[str, str]:
        """Set and remove settings of an entity and tell the brokers; all that is set then.

        What others set meanwhile is kept.  AdminRefusedError for a setting to remove that is not set; ConfigError for a
        name or value that the oldest broker does not take; UnknownTopicError.
        """
        wanted, unwanted = dict(set or {}), list(remove)
        self._check_changes(wanted, unwanted)
        kind = entity.partition("/")[0]
        if kind not in KINDS:
            raise ConfigError(f"{entity!r} has no settings; they are of {', '.join(KINDS)}")
        found = await self._check_writable(f"{entity} is not altered", _API.get(kind, ApiKey.ALTER_CONFIGS))
        await self._check_entity(entity)
        if await self.zk.exists(paths.CONFIG_CHANGES) is None:
            raise AdminRefusedError("brokers of 0.8.0 have no settings in ZooKeeper", path=paths.CONFIG_CHANGES)
        change_format = found.change_format
        if not self.is_forced:
            await self._check_settings(entity, wanted, found)
        notice = ConfigChange(entity, change_format).encode()  # refused before anything is written
        path = paths.entity_config(entity)

        def edit(config: Config | None) -> Config:
            before = config or Config()
            missing = [name for name in unwanted if name not in before.config]
            if missing:
                has = f"it has {', '.join(sorted(before.config))}" if before.config else "it has none"
                raise AdminRefusedError(f"{entity} has no setting {', '.join(missing)} to remove; {has}", path=path)
            kept = {name: value for name, value in before.config.items() if name not in unwanted}
            return replace(before, config={**kept, **wanted})

        _, after = await change(self.zk, Config, path, edit)
        await self.zk.create(paths.config_change(), notice, sequence=True)
        return after.config if after else {}

    def _check_changes(self, wanted: Mapping[str, str], unwanted: list[str]) -> None:
        if not wanted and not unwanted:
            raise ConfigError("there is nothing to set or remove")
        both = sorted({*wanted} & {*unwanted})
        if both:
            raise ConfigError(f"{', '.join(both)}: both set and removed")
        wrong = [name for name, value in wanted.items() if not isinstance(value, str)]
        if wrong:
            raise ConfigError(f"{wrong[0]}={wanted[wrong[0]]!r}: values are strings")

    async def _check_entity(self, entity: str) -> None:
        kind, _, name = entity.partition("/")
        found = paths.match(paths.entity_config(entity))
        if found is None or found.kind.node is not Config:
            raise ConfigError(f"{entity!r} names nothing that has settings")
        if kind == "topics" and await self.zk.exists(paths.topic(name)) is None:
            raise no_such_topic(name)
