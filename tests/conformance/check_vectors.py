"""Checks golden vectors: python tests/conformance/check_vectors.py FILE...

Each FILE has a JSON object a line, plain or gzip: messages or record sets, see data/README.md.  Every line is decoded,
compared with its JSON, encoded again and compared with its bytes.  Exit status 0 if nothing differs, 1 if something
does or an API that clients use is not declared, 2 if a file cannot be read.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pykafka08.errors import KafkaError
from pykafka08.protocol.headers import request_header_version, response_header_version
from pykafka08.protocol.messages import REGISTRY, request_class, response_class
from pykafka08.protocol.schema import Message
from tests.conformance.early_access import OTHER_LAYOUTS, OTHER_NAMES
from tests.conformance.json_form import difference, json_form
from tests.conformance.record_vectors import check_record_line

__all__ = ["NOT_FOR_CLIENTS", "Tally", "check_line", "check_lines", "read_lines"]

NOT_FOR_CLIENTS = frozenset({4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82})
"""Keys that only brokers and controllers send: LeaderAndIsr, Vote, BrokerRegistration and their like."""

_SHOWN_DIFFERENCES = 20


@dataclass
class Tally:
    """What came of the lines; ``undeclared`` holds the APIs and versions that clients use and we lack."""

    vectors: int = 0
    differ: list[str] = field(default_factory=list)
    not_declared: int = 0
    undeclared: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{self.vectors} vectors, {len(self.differ)} differ, {self.not_declared} not declared"


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, plain or gzip."""
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    for line in data.decode().splitlines():
        if line.strip():
            yield json.loads(line)


def check_lines(lines: Iterable[dict[str, Any]]) -> Tally:
    """Checks messages and record sets, told apart by their fields."""
    tally = Tally()
    for line in lines:
        tally.vectors += 1
        if "api_key" not in line:
            found = check_record_line(line)
            label = f"records magic {line['magic']} {line['codec']}"
        elif not _is_declared(line):
            tally.not_declared += 1
            if line["api_key"] not in NOT_FOR_CLIENTS:
                tally.undeclared.add(f"{line['name']} {line['kind']} version {line['version']}")
            continue
        else:
            found = check_line(line)
            label = f"{line['name']} {line['kind']} version {line['version']}"
        if found:
            tally.differ.append(f"{label}: {found}")
    return tally


def _class_of(line: dict[str, Any]) -> type[Message]:
    return request_class(line["api_key"]) if line["kind"] == "request" else response_class(line["api_key"])


def _is_declared(line: dict[str, Any]) -> bool:
    return line["api_key"] in REGISTRY and line["version"] in _class_of(line).versions


def check_line(line: dict[str, Any]) -> str | None:
    """None if we agree with Java about this message, else what differs first."""
    found = _check_as(_class_of(line), line)
    other = OTHER_LAYOUTS.get((line["api_key"], line["kind"], line["version"]))
    return _check_as(other, line) if found and other else found


def _check_as(message: type[Message], line: dict[str, Any]) -> str | None:
    version, data = line["version"], bytes.fromhex(line["hex"])
    header_version = request_header_version if line["kind"] == "request" else response_header_version
    if header_version(message, version) != line["header_version"]:
        return f"header version {header_version(message, version)}, Java has {line['header_version']}"
    try:
        decoded = message.decode(data, version)
        again = decoded.encode(version)
    except KafkaError as error:
        return f"{type(error).__name__}: {error}"
    if again != data:
        return f"encoded again as {again.hex()}, Java has {line['hex']}"
    return difference(_renamed(json_form(decoded, version), OTHER_NAMES.get(line["name"], {})), line["json"])


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if isinstance(value, dict):
        return {names.get(name, name): _renamed(each, names) for name, each in value.items()}
    return value


def main(arguments: list[str]) -> int:
    """Prints what differs to standard error and the counts, last, to standard output."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        tally = check_lines(line for name in arguments for line in read_lines(Path(name)))
    except (OSError, ValueError, KeyError) as error:
        print(f"cannot read the vectors: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    for text in tally.differ[:_SHOWN_DIFFERENCES]:
        print(text[:2000], file=sys.stderr)
    for text in sorted(tally.undeclared):
        print(f"not declared, though clients use it: {text}", file=sys.stderr)
    print(tally)
    return 1 if tally.differ or tally.undeclared else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
