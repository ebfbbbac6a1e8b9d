"""Kafka's own definitions: JSON files inside the kafka-clients jar, fetched with Maven, as plain field facts."""

from __future__ import annotations

import fcntl
import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from pykafka08.protocol.fields import MISSING, VersionRange
from tests.brokers.jars import cache_root, run_maven

__all__ = ["Definition", "Fact", "definitions", "fetch_jar"]

MAVEN_TIMEOUT_S = 240

_ZEROS: dict[str, Any] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "uuid": UUID(int=0),
    "float64": 0.0,
    "records": None,
}
_WORDS = {"true": True, "false": False, "null": None}


@dataclass
class Fact:
    """One field as Kafka defines it.  ``kind`` and ``element`` are as in our Field; ``fields`` those of its struct."""

    name: str
    kind: str
    element: str | None
    struct: str | None
    versions: VersionRange
    nullable: VersionRange | None
    tag: int | None
    tagged: VersionRange | None
    default: Any
    ignorable: bool
    fields: list[Fact]


@dataclass
class Definition:
    """One message as Kafka defines it."""

    name: str
    type: str
    key: int | None
    versions: VersionRange
    flexible: int | None
    listeners: tuple[str, ...]
    fields: list[Fact]


def fetch_jar(release: str) -> Path:
    """The kafka-clients jar of a release, from the cache or with Maven: whole, by one process at a time."""
    folder = cache_root() / "clients"
    folder.mkdir(parents=True, exist_ok=True)
    jar = folder / f"kafka-clients-{release}.jar"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jar.exists():
            part = folder / "part"
            words = ["dependency:copy", f"-Dartifact=org.apache.kafka:kafka-clients:{release}"]
            run_maven([*words, f"-DoutputDirectory={part}"])
            (part / jar.name).replace(jar)
    return jar


def definitions(jar: Path) -> dict[str, Definition]:
    """Message name to definition; without those that the release no longer has."""
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                parsed = json.loads(text)
                if parsed["type"] in ("request", "response", "data") and parsed["validVersions"] != "none":
                    found[parsed["name"]] = _definition(parsed)
    return found


def _definition(parsed: dict[str, Any]) -> Definition:
    flexible = _range(parsed["flexibleVersions"])
    common = {each["name"]: each["fields"] for each in parsed.get("commonStructs", [])}
    return Definition(
        name=parsed["name"],
        type=parsed["type"],
        key=parsed.get("apiKey"),
        versions=VersionRange.parse(parsed["validVersions"]),
        flexible=flexible.min if flexible else None,
        listeners=tuple(parsed.get("listeners", ())),
        fields=[_fact(each, common) for each in parsed["fields"]],
    )


def _range(text: str | None) -> VersionRange | None:
    return None if text in (None, "none") else VersionRange.parse(text)


def _fact(each: dict[str, Any], common: dict[str, list[dict[str, Any]]]) -> Fact:
    base = each["type"].removeprefix("[]")
    is_array = each["type"].startswith("[]")
    is_struct = base[0].isupper()
    kind = "array" if is_array else "struct" if is_struct else base
    nested = each.get("fields", common.get(base, [])) if is_struct else []
    return Fact(
        name=each["name"][0].lower() + each["name"][1:],
        kind=kind,
        element=("struct" if is_struct else base) if is_array else None,
        struct=base if is_struct else None,
        versions=VersionRange.parse(each["versions"]),
        nullable=_range(each.get("nullableVersions")),
        tag=each.get("tag"),
        tagged=_range(each.get("taggedVersions")),
        default=_default(kind, each.get("default")),
        ignorable=each.get("ignorable") in (True, "true"),
        fields=[_fact(inner, common) for inner in nested],
    )


def _default(kind: str, value: Any) -> Any:
    """The JSON's default as the value it means; numbers and words may stand there as text."""
    if value is None:
        return MISSING if kind in ("array", "struct") else _ZEROS.get(kind, 0)
    if isinstance(value, str) and value in _WORDS:
        return _WORDS[value]
    if isinstance(value, str) and kind != "string":
        return int(value, 0)
    return value
