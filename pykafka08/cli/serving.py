"""The embedded broker until it is told to end: what ``broker`` does once its options are understood."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import AsyncExitStack
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from pykafka08.broker.log_manager import DEFAULT_MEMORY_BYTES
from pykafka08.broker.personality import Personality
from pykafka08.broker.server import EmbeddedCluster
from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.cli.exits import DONE, Interrupt
from pykafka08.cli.logs import warnings_shown
from pykafka08.cli.notes import note
from pykafka08.cli.streams import ends_with_its_peer, standard_output, wait_for_end
from pykafka08.properties import properties_text

__all__ = ["serve"]


async def serve(options: argparse.Namespace, topics: dict[str, dict[str, Any]], interrupt: Interrupt) -> int:
    """Until a signal comes, or the program that started us is gone."""
    async with AsyncExitStack() as stack:
        if not options.verbose:
            stack.enter_context(warnings_shown("broker"))
        zookeeper = None
        if options.zookeeper_port is not None:
            zookeeper = await stack.enter_async_context(
                EmbeddedZooKeeper(port=options.zookeeper_port, release=_release_beside(options.version))
            )
        cluster = await stack.enter_async_context(_cluster(options, topics, zookeeper))
        await standard_output().write(f"BROKERS={cluster.bootstrap_servers}\n".encode())
        if zookeeper is not None:
            await standard_output().write(f"ZOOKEEPER={zookeeper.address}\n".encode())
        for line in _client_files(cluster, options, stack):
            await standard_output().write(f"{line}\n".encode())
        place = "in memory" if options.log_dir is None else f"kept in {options.log_dir}"
        note(f"{options.brokers} broker(s) as Kafka {cluster.version}, {place}; end with Ctrl-C")
        with interrupt.part():
            if sys.stdin is not None and ends_with_its_peer(sys.stdin.fileno()):
                await wait_for_end(sys.stdin.fileno())
            else:
                await anyio.sleep_forever()
    return DONE


def _client_files(cluster: EmbeddedCluster, options: argparse.Namespace, stack: AsyncExitStack) -> list[str]:
    """Write a properties file for each user of each listener, and return the lines that name listeners and files."""
    lines = []
    if options.listeners is not None:
        lines += [f"LISTENER_{name}={addresses}" for name, addresses in cluster.listeners.items()]
    protocols = options.listeners or dict.fromkeys(cluster.listeners, options.security)
    secured = [name for name, protocol in protocols.items() if protocol != "PLAINTEXT"]
    if not secured:
        return lines
    has_ca = options.ssl_certfile is None or options.ssl_cafile is not None
    if has_ca and any(protocols[name].endswith("SSL") for name in secured):
        lines.append(f"CA_FILE={cluster.ca_file}")
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="pykafka08-clients-")))
    for number, (name, user) in enumerate(product(secured, options.users or (None,))):
        path = folder / f"client-{number}.properties"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(properties_text(cluster.client_properties(user, listener=name)))
        lines.append(f"CLIENT_PROPERTIES={path}")
    return lines


def _release_beside(kafka: str) -> str:
    """The ZooKeeper that a release of Kafka was published with."""
    personality = Personality(kafka)
    return "3.3" if personality < (0, 8, 2) else "3.4" if personality < (2, 4) else "3.8"


def _cluster(
    options: argparse.Namespace, topics: dict[str, dict[str, Any]], zookeeper: EmbeddedZooKeeper | None
) -> EmbeddedCluster:
    return EmbeddedCluster(
        brokers=options.brokers,
        version=options.version,
        host=options.host,
        port=options.port,
        advertised_host=options.advertised_host,
        log_dir=options.log_dir,
        max_memory_bytes=options.max_memory or DEFAULT_MEMORY_BYTES,
        properties=options.properties,
        topics=topics,
        security=options.security,
        listeners=options.listeners,
        ssl_certfile=options.ssl_certfile,
        ssl_keyfile=options.ssl_keyfile,
        ssl_cafile=options.ssl_cafile,
        users=options.users,
        mechanisms=options.mechanism or None,
        jwks=options.jwks,
        client_auth=options.client_auth,
        acls=options.acl or None,
        default_partitions=options.partitions,
        auto_create_topics=not options.no_auto_create,
        zookeeper=zookeeper,
        delete_topic_enable=True if zookeeper is not None else None,
    )
