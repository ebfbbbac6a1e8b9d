"""The releases of Kafka that can be started, and the Maven project that names each one's jars.

Not here: fetching them (jars).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

ALIASES = {
    "0.8": "0.8.2.2",
    "0.8.1": "0.8.1.1",
    "0.8.2": "0.8.2.2",
    "0.9": "0.9.0.1",
    "0.10": "0.10.2.2",
    "0.10.0": "0.10.0.1",
    "0.10.1": "0.10.1.1",
    "0.10.2": "0.10.2.2",
    "0.11": "0.11.0.3",
    "1": "1.1.1",
    "1.0": "1.0.2",
    "1.1": "1.1.1",
    "2": "2.8.2",
    "2.8": "2.8.2",
    "3": "3.9.2",
    "3.9": "3.9.2",
    "4": "4.3.1",
    "4.3": "4.3.1",
}

TOOLS_OF = {"4.4.0": "4.3.1"}
"""Releases that were published without kafka-tools, and the release whose tools serve them instead."""

# The first releases depend on jars for JMX, JMS and mail that only log4j's appenders use and that no registry has.
UNPUBLISHED = (
    ("com.sun.jdmk", "jmxtools"),
    ("com.sun.jmx", "jmxri"),
    ("javax.jms", "jms"),
    ("javax.mail", "mail"),
    ("junit", "junit"),
    ("jline", "jline"),
)
CONNECT = ("connect-api", "connect-json", "connect-runtime", "connect-transforms", "connect-file")

Version = tuple[int, ...]


def version_tuple(version: str) -> Version:
    """The numbers of a release, so that releases compare in order."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:4])


def full_version(version: str) -> str:
    """A short name's release; any other text as it is."""
    return ALIASES.get(version, version)


def is_version(version: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+){2,3}", version) is not None


def scala_of(version: Version) -> str:
    """The Scala build to take of a release, as Maven's artifact name ends with it."""
    for first_newer, scala in (((0, 8, 2), "2.10"), ((0, 11), "2.11"), ((2, 4), "2.12")):
        if version < first_newer:
            return scala
    return "2.13"


def pom(version: str, *, with_tools: bool = True) -> str:
    """A Maven project whose run-time dependencies are a broker and, unless told otherwise, its command line tools."""
    v = version_tuple(version)
    tools_of = TOOLS_OF.get(version)
    kafka = "org.apache.kafka"
    wanted = [_dependency(kafka, f"kafka_{scala_of(v)}", version, UNPUBLISHED if v < (0, 10) else ())]
    if v < (0, 8, 1):
        wanted.append(_dependency("log4j", "log4j", "1.2.17"))
    if v >= (0, 9) and with_tools and not tools_of:
        wanted.append(_dependency(kafka, "kafka-tools", version, [(kafka, artifact) for artifact in CONNECT]))
    if (0, 10) <= v < (1,):  # these make ids with a base64 class that Java 11 dropped
        wanted.append(_dependency("javax.xml.bind", "jaxb-api", "2.3.1"))
    if (1,) <= v < (4,):  # from 1.0 on no log binding comes with the jars
        wanted.append(_dependency("org.slf4j", "slf4j-reload4j", "1.7.36"))
    if v >= (4,):
        wanted.append(_dependency("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"))
    managed = ""
    if tools_of:
        api = _dependency(kafka, "kafka-tools-api", tools_of)
        managed = f"  <dependencyManagement><dependencies>\n{api}  </dependencies></dependencyManagement>\n"
    return (
        "<project>\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>local</groupId>\n"
        f"  <artifactId>kafka-{version}</artifactId>\n  <version>1</version>\n  <packaging>pom</packaging>\n"
        f"{managed}  <dependencies>\n{''.join(wanted)}  </dependencies>\n</project>\n"
    )


def parent_pom(versions: Sequence[str]) -> str:
    """A Maven project of several releases' ones, each in the folder named after it."""
    modules = "".join(f"<module>{version}</module>" for version in versions)
    return (
        "<project>\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>local</groupId>\n"
        "  <artifactId>kafka-releases</artifactId>\n  <version>1</version>\n  <packaging>pom</packaging>\n"
        f"  <modules>{modules}</modules>\n</project>\n"
    )


def _dependency(group: str, artifact: str, version: str, without: Sequence[tuple[str, str]] = ()) -> str:
    exclusions = "".join(
        f"<exclusion><groupId>{g}</groupId><artifactId>{a}</artifactId></exclusion>" for g, a in without
    )
    if exclusions:
        exclusions = f"<exclusions>{exclusions}</exclusions>"
    return (
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>{exclusions}</dependency>\n"
    )
