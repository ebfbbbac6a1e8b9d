"""The software bill of materials of a wheel: CycloneDX 1.6 as JSON (PEP 770 puts it into ``.dist-info/sboms``).

A wheel bundles no other project's code, so the document lists the direct dependencies, with the versions that are
allowed.  It depends on ``pyproject.toml`` alone: the same source gives the same bytes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["bill_of_materials"]

PROPERTY = "pykafka08:"
NOT_FOR_USERS = frozenset({"dev"})
"""Extras that are left out: they serve the development of the package."""


def bill_of_materials(
    *,
    name: str,
    version: str,
    description: str,
    licence: str,
    required: Iterable[str],
    extras: Mapping[str, Iterable[str]],
    licences: Mapping[str, str],
) -> str:
    """The document.  ``licences`` has the SPDX expression of each dependency; SystemExit if one is missing."""
    own = canonicalize_name(name)
    parts = _Dependencies(own, licences)
    for text in required:
        parts.add(Requirement(text), extra=None)
    for extra, texts in sorted(extras.items()):
        if extra not in NOT_FOR_USERS:
            for text in texts:
                parts.add(Requirement(text), extra=extra)
    if missing := sorted(parts.names() - licences.keys()):
        raise SystemExit(f"pyproject.toml: add the licences of {', '.join(missing)} to hooks.custom.licences")
    components = parts.components()
    root = f"pkg:pypi/{own}@{version}"
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": root,
                "name": name,
                "version": version,
                "description": description,
                "licenses": [{"expression": licence}],
                "purl": root,
            }
        },
        "components": components,
        "dependencies": [
            {"ref": root, "dependsOn": [each["bom-ref"] for each in components]},
            *({"ref": each["bom-ref"]} for each in components),
        ],
    }
    # A serial number of its own for each different document, and the same one whenever that document is built again.
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    return json.dumps({**document, "serialNumber": serial.urn}, indent=2, ensure_ascii=False) + "\n"


class _Dependencies:
    """Requirements, gathered by project."""

    def __init__(self, own: str, licences: Mapping[str, str]) -> None:
        self._own = own
        self._licences = licences
        self._found: dict[str, list[tuple[Requirement, str | None]]] = {}

    def add(self, requirement: Requirement, extra: str | None) -> None:
        """``pykafka08[lz4]`` in an extra adds nothing: the extra lz4 is listed itself."""
        name = canonicalize_name(requirement.name)
        if name != self._own:
            self._found.setdefault(name, []).append((requirement, extra))

    def names(self) -> set[str]:
        return set(self._found)

    def components(self) -> list[dict[str, Any]]:
        return [self._component(name, wanted) for name, wanted in sorted(self._found.items())]

    def _component(self, name: str, wanted: list[tuple[Requirement, str | None]]) -> dict[str, Any]:
        properties: list[dict[str, str]] = []
        for requirement, extra in wanted:
            text = ",".join(sorted(str(each) for each in requirement.specifier))
            facts = [text or "*"]
            facts += [f"extra {extra}"] if extra is not None else []
            facts += [str(requirement.marker)] if requirement.marker is not None else []
            properties.append({"name": f"{PROPERTY}versions", "value": "; ".join(facts)})
        return {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}",
            "name": name,
            "scope": "required" if any(extra is None for _, extra in wanted) else "optional",
            "licenses": [{"expression": self._licences[name]}],
            "purl": f"pkg:pypi/{name}",
            "properties": properties,
        }
