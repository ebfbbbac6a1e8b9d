"""The pipeline killed with SIGKILL and run again: each input is there once, by a check that is not the pipeline's.

``make pipeline-soak`` strikes twenty times, at places drawn by a seed (``PYKAFKA08_SOAK_SEED``): drivers, workers, and
real brokers; the embedded one has nothing left once it is killed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from pykafka08.spark.pipeline.running import NOT_STARTED
from tests.brokers import control, topics
from tests.brokers.model import Topic
from tests.integration.clusters import Clusters, RealCluster, run_command, session_folder
from tests.spark.pipeline import evidence, orders
from tests.spark.pipeline.killing import (
    BACKFILL_PLACES,
    PLACES,
    WITH_KAFKA,
    Kill,
    Run,
    Strike,
    command,
    kill_driver,
    kill_worker,
)

ATTEMPTS = 5
"""Runs that end before the blow falls, by all their work done or by Spark's own ten seconds for a process to start."""
OLD = """
[sources.old]
bootstrap_servers = "{0.bootstrap}"
topics = ["orders"]
starting = "group:readers"
zookeeper = "{0.zookeeper}"

"""
SHORT = [Kill("worker", "silver/_delta_log/*.json"), Kill("driver", "checkpoints/publish-hourly/offsets/[0-9]*")]
SEED = int(os.environ.get("PYKAFKA08_SOAK_SEED", "1"))
DRAWN = {
    "embedded": {"driver": 4, "worker": 3},
    "0.11.0.3": {"driver": 2, "worker": 2, "broker": 2},
    "4.3.1": {"driver": 2, "worker": 2, "broker": 3},
}
"""Where → how often each is killed; twenty in all, once amid the compaction, and each pipeline's backfill twice."""
BOTH_DAYS = ("--from", "2024-03-01", "--to", "2024-03-02")


def drawn(where: str) -> list[Kill]:
    """In the order in which a run comes by."""
    chance = random.Random(f"{SEED} {where}")
    victims = [one for one, count in DRAWN[where].items() for _ in range(count)]
    kills = [Kill(one, chance.choice(WITH_KAFKA if one == "broker" else PLACES)) for one in victims]
    return sorted(kills, key=lambda one: PLACES.index(one.place))


def completed(*words: str) -> str:
    """What a command prints that ends well; begun again where Spark gave up on a process that was slow to start."""
    for _ in range(ATTEMPTS):
        done = command(*words)
        if done.returncode == 0 or NOT_STARTED not in done.stdout + done.stderr:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Life:
    """A pipeline, its broker and all that was sent."""

    def __init__(self, folder: Path, brokers: str, strikes: Mapping[str, Strike]) -> None:
        self.brokers = brokers
        self.config = orders.written_config(folder, brokers)
        self.out = folder / "out"
        self.sent = evidence.Sent()
        self._strikes = strikes
        self._runs = 0
        self._next = 1

    def produce(self, count: int) -> None:
        """New orders, and some of the last ones again."""
        self.sent.produce(self.brokers, range(max(1, self._next - 5), self._next + count))
        self._next += count

    def suffer(self, kill: Kill) -> None:
        """Run until the blow has fallen."""
        for _ in range(ATTEMPTS):
            self._runs += 1
            run = Run(self.config, self.config.parent / f"run-{self._runs}.log")
            try:
                is_struck = run.is_struck(kill.place, self._strikes[kill.victim])
                run.process.wait()
            finally:
                run.end()
            if run.process.returncode == 0:
                self.produce(60)  # else no further run would come by anywhere
            if is_struck:
                return
        raise AssertionError(f"{kill}: {run.text()}")

    def finish(self) -> None:
        self.produce(20)
        completed("run", str(self.config), "--no-charts")
        evidence.check(self.out, self.brokers, self.sent)

    def kill_backfill(self, place: str) -> None:
        """Silver is whole all the same: as it was, or as it is to be.  Records that it has may be refused, too."""
        run = Run(self.config, self.config.parent / "backfill.log", *BOTH_DAYS, action="backfill")
        try:
            assert run.is_struck(place, kill_driver), f"{place}: {run.text()}"
        finally:
            run.end()
        evidence.check_silver(self.out, self.sent, is_interrupted=True)

    def check_what_is_made_anew(self) -> None:
        """The pipeline's own proof, and a backfill of all days: it equals what the stream made."""
        proof = completed("verify", str(self.config))
        assert proof.count("ok ") == len(proof.splitlines()), proof
        completed("backfill", str(self.config), *BOTH_DAYS)
        evidence.check_silver(self.out, self.sent)
        completed("run", str(self.config), "--no-charts")  # the windows are published again
        evidence.check(self.out, self.brokers, self.sent)


def killed_cluster(cluster: RealCluster) -> Strike:
    """The broker killed and begun again at once, the run going on."""

    def strike(run: Run) -> bool:
        cluster.kill(1)
        cluster.start(1)
        return True

    return strike


def prepared(cluster: RealCluster) -> str:
    wanted = [Topic(name, orders.PARTITIONS, 1, {}) for name in (orders.TOPIC, orders.LETTERS, orders.TOTALS)]
    topics.create_topics(cluster.recorded(), wanted)
    return cluster.bootstrap


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_each_input_is_there_once_whatever_was_killed(tmp_path: Path) -> None:
    with orders.broker() as brokers:
        life = Life(tmp_path, brokers, {"driver": kill_driver, "worker": kill_worker(random.Random(SEED))})
        life.produce(150)
        for kill in SHORT:
            life.suffer(kill)
        life.finish()


def live(life: Life, kills: list[Kill]) -> None:
    life.produce(200)
    for kill in kills:
        life.suffer(kill)
    life.finish()
    for place in random.Random(f"{SEED} {kills}").sample(BACKFILL_PLACES, 2):
        life.kill_backfill(place)
    life.check_what_is_made_anew()


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_killed_beside_the_embedded_broker(tmp_path: Path) -> None:
    with orders.broker() as brokers:
        strikes = {"driver": kill_driver, "worker": kill_worker(random.Random(SEED))}
        live(Life(tmp_path, brokers, strikes), [*drawn("embedded"), Kill("driver", "silver/data/compaction-*")])


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("release", ["0.11.0.3", "4.3.1"])
def test_killed_beside_real_brokers(clusters: Clusters, release: str, tmp_path: Path) -> None:
    cluster = clusters.running(release)
    brokers = prepared(cluster)
    strikes = {
        "driver": kill_driver,
        "worker": kill_worker(random.Random(SEED)),
        "broker": killed_cluster(cluster),
    }
    live(Life(tmp_path, brokers, strikes), drawn(release))


@contextmanager
def old_cluster() -> Iterator[RealCluster]:
    """0.8.2.2 beside the one of the fixture."""
    folder = session_folder(os.getpid()) / "old"
    run_command("kafka-up", "0.8.2.2", "--topic", f"{orders.TOPIC}:{orders.PARTITIONS}", "--dir", str(folder))
    try:
        yield RealCluster(folder)
    finally:
        control.take_down(folder, at_once=True, remove=True)


def commit_in_zookeeper(address: str, offsets: Mapping[int, int]) -> None:
    client = KazooClient(address)
    client.start()
    try:
        for partition, offset in offsets.items():
            client.create(f"/consumers/readers/offsets/{orders.TOPIC}/{partition}", b"%d" % offset, makepath=True)
    finally:
        client.stop()
        client.close()  # else two sockets are left


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_sources_of_two_ages_at_once(clusters: Clusters, tmp_path: Path) -> None:
    """0.8.2.2 from a group's offsets in ZooKeeper on, and 4.3.1, which also takes what comes out."""
    new = clusters.running("4.3.1")
    brokers = prepared(new)
    with old_cluster() as old:
        life = Life(tmp_path, brokers, {"old broker": killed_cluster(old), "driver": kill_driver})
        life.config.write_text(life.config.read_text().replace("[decode]", OLD.format(old) + "[decode]"))
        life.sent.produce(old.bootstrap, range(1001, 1151), "old")
        begin = {0: 20, 1: 7}  # the third partition: from its first record on
        commit_in_zookeeper(str(old.zookeeper), begin)
        for partition, offset in begin.items():
            life.sent.forget("old", partition, offset)
        life.produce(200)
        life.suffer(Kill("old broker", "checkpoints/ingest-old/offsets/[0-9]*"))
        life.sent.produce(old.bootstrap, range(1151, 1201), "old")
        life.suffer(Kill("driver", "bronze/old/data/*/topic=orders/**/*.parquet"))
        life.finish()
        life.check_what_is_made_anew()
