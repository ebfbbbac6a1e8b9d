"""`python -m tests.integration.prepare`: fetch what the tests with real brokers need, before they run.

Without it the first test of each release fetches that release's jars, within the time that the test has.
"""

from __future__ import annotations

import shutil
import sys

from tests.brokers.archives import make_archive
from tests.brokers.jars import resolve_all
from tests.brokers.model import ClusterError
from tests.conformance.kafka_json import fetch_jar
from tests.integration.clusters import RELEASES
from tests.spark.connector import connector_jars
from tests.stores.jars import delta_spark_jars, hdfs_jars, s3a_jars

CLIENTS = ("3.9.2", "4.3.0")
"""The jars that tests/conformance and tests/protocol read Kafka's definitions from."""

ARCHIVED = "4.3.1"
"""The release that the tests start most: its archive saves more processor time than it costs."""


def main() -> int:
    if shutil.which("mvn") is None:
        return 0  # the tests say what they miss
    try:
        resolve_all(RELEASES)
        make_archive(ARCHIVED)
        for release in CLIENTS:
            fetch_jar(release)
        connector_jars()
        s3a_jars()
        hdfs_jars()
        delta_spark_jars()
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
