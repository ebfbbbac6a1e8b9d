"""Client quotas of users, client ids and addresses: stored, matched and checked, but not enforced.

Source: KIP-546, KIP-599 (controller mutations), KIP-612 (connections); error codes as in 4.3.1.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pykafka08.error_codes import ErrorCode

__all__ = ["ClientQuotas", "Condition", "Entity", "alteration_fault", "conditions_fault"]

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, IP)
CLIENT_KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
ADDRESS_KEYS = ("connection_creation_rate",)
FRACTIONAL_KEYS = ("request_percentage", "controller_mutation_rate")
EXACT, DEFAULT, ANY = range(3)

Entity = tuple[tuple[str, "str | None"], ...]
"""Types and names, sorted; None stands for the default quota of the type."""


class Condition(NamedTuple):
    """The required name of an entity for one type."""

    entity_type: str
    match_type: int
    match: str | None

    def matches(self, names: Mapping[str, str | None]) -> bool:
        if self.entity_type not in names:
            return False
        return self.match_type == ANY or names[self.entity_type] == self.match


def conditions_fault(conditions: Sequence[Condition]) -> tuple[ErrorCode, str] | None:
    """The error of invalid conditions; None if they are valid."""
    types = [each.entity_type for each in conditions]
    for kind, match_type, match in conditions:
        if not kind:
            return ErrorCode.INVALID_REQUEST, "an entity type is empty"
        if kind not in TYPES:
            return ErrorCode.UNSUPPORTED_VERSION, f"entity type {kind!r:.100} is not one of {', '.join(TYPES)}"
        if types.count(kind) > 1:
            return ErrorCode.INVALID_REQUEST, f"entity type {kind} appears more than once in the filter"
        if match_type not in (EXACT, DEFAULT, ANY):
            return ErrorCode.INVALID_REQUEST, f"match type {match_type} is not known"
        if (match is not None) is not (match_type == EXACT):
            return ErrorCode.INVALID_REQUEST, "a name to match is allowed only in an exact match"
    if IP in types and len(types) > 1:
        return ErrorCode.INVALID_REQUEST, "entity type ip cannot be combined with others"
    return None


def alteration_fault(entity: Sequence[tuple[str, str | None]], operations: Sequence[tuple[str, float, bool]]) -> str:
    """The fault of an alteration; "" if it has none.  Operations: key, value, and True if the quota is removed."""
    kinds = [kind for kind, _ in entity]
    if not entity:
        return "an entity needs at least one type and name"
    for kind, name in entity:
        if kind not in TYPES:
            return f"entity type {kind!r:.100} is not one of {', '.join(TYPES)}"
        if name == "":
            return f"the name of a {kind} must not be empty"
    if IP in kinds and len(kinds) > 1:
        return "entity type ip cannot be combined with others"
    if IP in kinds and entity[0][1] is not None and not _is_address(entity[0][1]):
        return f"{entity[0][1]!r:.100} is not an IP address"
    known = ADDRESS_KEYS if IP in kinds else CLIENT_KEYS
    for position, (key, value, is_removed) in enumerate(operations):
        if key not in known:
            return f"quota {key!r:.100} is not one of {', '.join(known)}"
        if key in (each for each, _, _ in operations[:position]):
            return f"quota {key} is named twice"
        if not is_removed and not 0 < value < float("inf"):
            return f"quota {key} must be a number above 0, not {value}"
        if not is_removed and key not in FRACTIONAL_KEYS and value != int(value):
            return f"quota {key} must be a whole number, not {value}"
    return ""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class ClientQuotas:
    """Quotas by entity."""

    def __init__(self) -> None:
        self._quotas: dict[Entity, dict[str, float]] = {}

    def alter(self, entity: Entity, operations: Sequence[tuple[str, float, bool]]) -> None:
        quotas = self._quotas.setdefault(entity, {})
        for key, value, is_removed in operations:
            if is_removed:
                quotas.pop(key, None)
            else:
                quotas[key] = value
        if not quotas:
            del self._quotas[entity]

    def matching(self, conditions: Sequence[Condition], *, is_strict: bool) -> list[tuple[Entity, dict[str, float]]]:
        """Entities that match; with ``is_strict`` only those without further types."""
        return [
            (entity, dict(quotas))
            for entity, quotas in self._quotas.items()
            if all(each.matches(dict(entity)) for each in conditions)
            and not (is_strict and len(entity) != len(conditions))
        ]
