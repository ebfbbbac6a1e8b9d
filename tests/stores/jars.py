"""Hadoop's jars for the tests, fetched by Maven once into the cache that the brokers' jars are in.

Of the release that the installed PySpark is built with: the file system ``s3a`` with the modules of Amazon's SDK that
it needs (its bundle of all modules has 600 MB), and HDFS's mini cluster.  And Delta Lake's connector with its Spark.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
from pathlib import Path

import pyspark

from tests.brokers.jars import cache_root, run_maven
from tests.brokers.model import ClusterError

SPARKS = Path(pyspark.__file__).parent / "jars"
PROJECT = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>pykafka08</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY = """\
    <dependency>
      <groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>
      <exclusions>
        <exclusion><groupId>org.apache.hadoop</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>software.amazon.awssdk</groupId><artifactId>bundle</artifactId></exclusion>
        <exclusion><groupId>org.wildfly.openssl</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>commons-logging</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>"""
AMAZON = "software.amazon.awssdk"
AMAZON_RELEASE = "2.35.4"
"""The one that Hadoop 3.5 was built with; others of 2.x do as well."""
JUNIT = ("org.junit.jupiter", "junit-jupiter-api", "5.8.2")
"""The mini cluster calls its assertions."""


DELTA = (
    ("org.apache.spark", "spark-sql_2.13", "4.2.0"),
    ("io.delta", "delta-spark_4.2_2.13", "4.4.0"),
)
"""The newest connector, and the newest Spark that it supports."""


def hadoop_release() -> str:
    """Of the jars of the installed PySpark."""
    found = re.fullmatch(r"hadoop-client-api-(.+)\.jar", next(SPARKS.glob("hadoop-client-api-*.jar")).name)
    assert found is not None
    return found[1]


def s3a_jars() -> list[Path]:
    """For Spark's class path: what its own jars lack for ``s3a``; ClusterError if Maven cannot bring them."""
    of_amazon = [(AMAZON, name, AMAZON_RELEASE) for name in ("s3", "s3-transfer-manager", "sts")]
    return _fetched("s3a", [("org.apache.hadoop", "hadoop-aws", hadoop_release()), *of_amazon])


def hdfs_jars() -> list[Path]:
    """A class path for HDFS's mini cluster, with Spark's own jars of Hadoop."""
    fetched = _fetched("hdfs", [("org.apache.hadoop", "hadoop-client-minicluster", hadoop_release()), JUNIT])
    names = ("hadoop-client-*.jar", "slf4j-api-*.jar", "jcl-over-slf4j-*.jar", "log4j-*.jar", "snappy-java-*.jar")
    return [*fetched, *(jar for name in names for jar in sorted(SPARKS.glob(name)))]


def delta_spark_jars() -> list[Path]:
    """A class path for a JVM with Delta Lake's connector and its Spark, and PySpark's own jars of Hadoop and HTTP."""
    home = _home("delta", list(DELTA))
    names = ("hadoop-client-*.jar", "httpc*.jar")
    return [*sorted(home.glob("*.jar")), *(jar for name in names for jar in sorted(SPARKS.glob(name)))]


def _fetched(name: str, artifacts: list[tuple[str, str, str]]) -> list[Path]:
    """The artifacts and what they need, without what Spark has in another release."""
    home = _home(f"hadoop-{name}", artifacts)
    sparks = {_artifact(jar) for jar in SPARKS.glob("*.jar")}
    return [jar for jar in sorted(home.glob("*.jar")) if _artifact(jar) not in sparks]


def _home(name: str, artifacts: list[tuple[str, str, str]]) -> Path:
    """The folder with the artifacts and what they need."""
    text = PROJECT.format(dependencies="\n".join(DEPENDENCY.format(*one) for one in artifacts))
    home = cache_root() / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            _fetch(home, text)
    return home


def _fetch(home: Path, project: str) -> None:
    draft = home.with_suffix(".part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    (draft / "pom.xml").write_text(project)
    words = ["-f", str(draft / "pom.xml"), "dependency:copy-dependencies", "-DincludeScope=runtime"]
    run_maven([*words, "-DoutputDirectory=."])
    if not list(draft.glob("*.jar")):
        raise ClusterError(f"Maven brought no jars for\n{project}")
    draft.rename(home)


def _artifact(jar: Path) -> str:
    """Its name without the release."""
    return re.split(r"-\d", jar.name)[0]
