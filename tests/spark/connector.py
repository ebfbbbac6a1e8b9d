"""The jars of Spark's own Kafka connector, fetched by Maven once into the cache that the brokers' jars are in.

One set for all releases of PySpark that are tested: the connector 4.2.0 works on 4.2 and 4.3, and the token provider of
4.0.0 is the newest that can be had without its parent's repositories.
"""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

from tests.brokers.jars import cache_root, run_maven

ARTIFACTS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)


def connector_jars() -> list[Path]:
    """For ``spark.jars``; ClusterError if Maven cannot bring them."""
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    home = root / "spark-connector-4.2.0"
    with (root / "spark-connector.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            _fetch(home)
    return sorted(home.glob("*.jar"))


def _fetch(home: Path) -> None:
    draft = home.with_suffix(".part")
    shutil.rmtree(draft, ignore_errors=True)
    for artifact in ARTIFACTS:
        run_maven(["dependency:get", "-Dtransitive=false", f"-Dartifact={artifact}"])
        run_maven(["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={draft}"])
    draft.rename(home)


if __name__ == "__main__":
    print(*connector_jars(), sep="\n")
