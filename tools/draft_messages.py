"""Drafts the files of ``pykafka08/protocol/messages/`` from the definitions inside kafka-clients jars.

    python tools/draft_messages.py OUT_DIR kafka-clients-3.9.2.jar kafka-clients-4.3.0.jar

The later jar rules; fields and versions that only the earlier one has are kept.  A draft has the structure and no
meaning: docstrings are written by hand afterwards, from the KIPs.  Existing files are not touched.  Formatting is left
to ``ruff format``.  An API that was renamed gets a file under each name.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Definition", "draft", "load_definitions", "merged", "python_name"]

Json = dict[str, Any]

_SPECIFIERS = {"bool": "bool_", "bytes": "bytes_", "records": "records_", "uuid": "uuid_"}
_ANNOTATIONS = {
    "string": "str",
    "bytes": "bytes",
    "records": "Buffer",
    "uuid": "UUID",
    "bool": "bool",
    "float64": "float",
}
_PRIMITIVE = {
    "bool",
    "int8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "float64",
    "string",
    "bytes",
    "records",
    "uuid",
}
_ODD_NAMES = {"Enable2Pc": "enable_2pc"}


@dataclass
class Definition:
    """One message of one jar: its JSON with common structs resolved, keyed by type name."""

    json: Json
    structs: dict[str, list[Json]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for common in self.json.get("commonStructs", []):
            self.structs[common["name"]] = common["fields"]
        self._collect(self.json.get("fields", []))
        for common in self.json.get("commonStructs", []):
            self._collect(common["fields"])

    def _collect(self, fields: list[Json]) -> None:
        for each in fields:
            if "fields" in each:
                self.structs[each["type"].removeprefix("[]")] = each["fields"]
                self._collect(each["fields"])


def load_definitions(jar: Path) -> dict[str, Definition]:
    """Message name to definition, for every message that the jar declares."""
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                parsed = json.loads(text)
                if parsed["validVersions"] != "none":
                    found[parsed["name"]] = Definition(parsed)
    return found


def python_name(kafka_name: str) -> str:
    """``TopicAuthorizedOperations`` as ``topic_authorized_operations``."""
    if kafka_name in _ODD_NAMES:
        return _ODD_NAMES[kafka_name]
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", kafka_name.replace("KRaft", "Kraft")).lower()


def _merged_fields(older: list[Json], newer: list[Json]) -> list[Json]:
    """The newer fields in their order, each older one that is gone after the field it followed."""
    result = [dict(each) for each in newer]
    names = [each["name"] for each in result]
    previous = -1
    for each in older:
        if each["name"] in names:
            previous = names.index(each["name"])
        else:
            previous += 1
            result.insert(previous, dict(each))
            names.insert(previous, each["name"])
    return result


def merged(older: Definition | None, newer: Definition | None) -> Definition:
    """One definition with the versions of both; where they differ the newer one rules."""
    if older is None or newer is None:
        return newer or older  # type: ignore[return-value]
    result = Definition(dict(newer.json))
    result.json["fields"] = _merged_fields(older.json["fields"], newer.json["fields"])
    for name, fields in older.structs.items():
        result.structs[name] = _merged_fields(fields, result.structs[name]) if name in result.structs else fields
    ends = [int(end) for each in (older, newer) for end in each.json["validVersions"].split("-")]
    result.json["validVersions"] = f"{min(ends)}-{max(ends)}" if min(ends) != max(ends) else str(min(ends))
    return result


def _default(kind: str, value: Any) -> str | None:
    """Python source of a default, None where the kind has that default anyway."""
    if isinstance(value, str) and kind != "string":
        value = {"null": None, "true": True, "false": False, "": ""}.get(value, value)
        if isinstance(value, str) and value:
            value = int(value, 0)
    elif value == "null":
        value = None
    if kind == "records" or (value in ("", False, 0) and value is not None):
        return None
    return repr(value)


def _field_line(each: Json, names: dict[str, str]) -> str:
    kafka_type = each["type"]
    base = kafka_type.removeprefix("[]")
    element = names.get(base, _ANNOTATIONS.get(base, "int"))
    annotation = f"list[{element}]" if kafka_type.startswith("[]") else element
    arguments = []
    if kafka_type.startswith("[]"):
        specifier = "array"
        arguments.append(names.get(base, _SPECIFIERS.get(base, base)))
    elif base in _PRIMITIVE:
        specifier = _SPECIFIERS.get(base, base)
    else:
        specifier = "struct_"
        arguments.append(names[base])
    if each["versions"] != "0+":
        arguments.append(f'versions="{each["versions"]}"')
    nullable = each.get("nullableVersions")
    if nullable and nullable != "none":
        arguments.append(f'nullable="{nullable}"')
        annotation += " | None"
    elif base == "records":
        annotation += " | None"
    if "tag" in each:
        arguments += [f"tag={each['tag']}", f'tagged="{each["taggedVersions"]}"']
    if "default" in each:
        default = _default("array" if kafka_type.startswith("[]") else base, each["default"])
        if default is not None:
            arguments.append(f"default={default}")
    if each.get("ignorable") in (True, "true"):
        arguments.append("ignorable=True")
    return f"    {python_name(each['name'])}: {annotation} = {specifier}({', '.join(arguments)})"


class _Draft:
    """The text of one file."""

    def __init__(self) -> None:
        self.body: list[str] = []
        self.uses: set[str] = set()

    def class_text(self, name: str, base: str, decorator: str, fields: list[Json], names: dict[str, str]) -> None:
        lines = [_field_line(each, names) for each in fields]
        self.uses.update(re.findall(r"= (\w+)\(", "\n".join(lines)))
        self.uses.update(re.findall(r"array\(([a-z]\w*)", "\n".join(lines)))
        self.uses.update(re.findall(r"\b(UUID|Buffer)\b", "\n".join(lines)))
        self.body += ["", "", decorator, f"class {name}({base}):", f'    """{name}."""', "", *lines]


def _ordered_structs(definition: Definition, fields: list[Json], seen: list[str]) -> list[str]:
    """Type names, each after those that it uses."""
    for each in fields:
        name = each["type"].removeprefix("[]")
        if name not in _PRIMITIVE and name not in seen:
            _ordered_structs(definition, definition.structs[name], seen)
            seen.append(name)
    return seen


def draft(request: Definition, response: Definition) -> str:
    """The source of one file of ``messages/``."""
    out = _Draft()
    name = request.json["name"].removesuffix("Request")
    request_structs = _ordered_structs(request, request.json["fields"], [])
    response_structs = _ordered_structs(response, response.json["fields"], [])
    shared = {each for each in request_structs if response.structs.get(each) == request.structs[each]}
    clashing = set(request_structs) & set(response_structs) - shared
    for kind, definition, structs in (("Request", request, request_structs), ("Response", response, response_structs)):
        names = {each: f"{kind}{each}" if each in clashing else each for each in structs}
        for each in structs:
            if not (kind == "Response" and each in shared):
                out.class_text(names[each], "Struct", "@struct", definition.structs[each], names)
        facts = f'key={definition.json["apiKey"]}, versions="{definition.json["validVersions"]}"'
        flexible = definition.json.get("flexibleVersions", "none")
        if flexible != "none":
            facts += f', flexible="{flexible}"'
        base = f'Request["{name}Response"]' if kind == "Request" else "Response"
        out.class_text(name + kind, base, f"@message({facts})", definition.json["fields"], names)
    head = [f'"""{name} (API key {request.json["apiKey"]})."""', "", "from __future__ import annotations", ""]
    if "UUID" in out.uses:
        head += ["from uuid import UUID", ""]
    imported = sorted(
        (out.uses - {"UUID"})
        | {"Request", "Response", "message"}
        | ({"struct", "Struct"} if "@struct" in out.body else set())
    )
    head.append(f"from pykafka08.protocol.schema import ({', '.join(imported)},)")
    classes = sorted(re.findall(r"^class (\w+)", "\n".join(out.body), flags=re.MULTILINE))
    head += ["", f"__all__ = {json.dumps(classes)}"]
    return "\n".join(head + out.body) + "\n"


def main(arguments: list[str]) -> int:
    """Writes the files that are missing; prints their names."""
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    older, newer = (load_definitions(Path(jar)) for jar in arguments[1:])
    for name in sorted(set(older) | set(newer)):
        both = older.get(name), newer.get(name)
        listeners = {each for side in both if side for each in side.json.get("listeners", [])}
        path = folder / f"{python_name(name.removesuffix('Request'))}.py"
        if "broker" not in listeners or path.exists():
            continue
        answer = name.removesuffix("Request") + "Response"
        path.write_text(draft(merged(*both), merged(older.get(answer), newer.get(answer))))
        print(path.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
