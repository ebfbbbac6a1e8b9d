"""The embedded broker until it is told to end: what ``broker`` does once its options are understood."""

from __future__ import annotations

import argparse
import sys

import anyio

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.cli.exits import DONE, Interrupt
from pykafka08.cli.notes import note
from pykafka08.cli.streams import ends_with_its_peer, standard_output, wait_for_end

__all__ = ["serve"]


async def serve(options: argparse.Namespace, topics: dict[str, int], interrupt: Interrupt) -> int:
    """Until a signal comes, or the program that started us is gone."""
    async with EmbeddedCluster(
        brokers=options.brokers,
        version=options.version,
        port=options.port,
        topics=topics,
        default_partitions=options.partitions,
        auto_create_topics=not options.no_auto_create,
    ) as cluster:
        await standard_output().write(f"BROKERS={cluster.bootstrap_servers}\n".encode())
        note(f"{options.brokers} broker(s) as Kafka {cluster.version}, in memory; end with Ctrl-C")
        with interrupt.part():
            if sys.stdin is not None and ends_with_its_peer(sys.stdin.fileno()):
                await wait_for_end(sys.stdin.fileno())
            else:
                await anyio.sleep_forever()
    return DONE
