"""``ssl.principal.mapping.rules``: users' names from the subjects of certificates (KIP-371)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from pykafka08.broker.security.mechanisms import Refused
from pykafka08.errors import ConfigError

__all__ = ["PRINCIPAL_RULES", "principal_mapping"]

PRINCIPAL_RULES = "ssl.principal.mapping.rules"
RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)", re.DOTALL)
REFERENCE = re.compile(r"\\(.)|\$(\d)", re.DOTALL)
CASES: dict[str, Callable[[str], str]] = {"L": str.lower, "U": str.upper, "": str}


class _Rule(NamedTuple):
    """``pattern`` must match the whole name; None for DEFAULT, which takes each name as it is."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    change_case: Callable[[str], str] = str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        return self.change_case(self.pattern.sub(self._replaced, name))

    def _replaced(self, match: re.Match[str]) -> str:
        groups = match.groups(default="")

        def text(reference: re.Match[str]) -> str:
            escaped, number = reference.groups()
            if escaped is not None:
                return str(escaped)
            index = int(number)
            return match[0] if index == 0 else groups[index - 1] if index <= len(groups) else reference[0]

        return REFERENCE.sub(text, self.replacement)


def principal_mapping(rules: str) -> Callable[[str], str]:
    """A function of a subject, such as ``CN=alice,O=Example``; it raises Refused where no rule matches."""
    parsed = _parsed(rules.strip())

    def user(name: str) -> str:
        for rule in parsed:
            found = rule.apply(name)
            if found is not None:
                return found
        raise Refused(f"no rule of {PRINCIPAL_RULES} matches the certificate's subject {name!r:.300}")

    return user


def _parsed(rules: str) -> list[_Rule]:
    parsed, at = [], 0
    while at < len(rules):
        found = RULE.match(rules, at)
        if found is None:
            raise ConfigError(
                f"properties: {PRINCIPAL_RULES}: {rules[at:]!r:.100} is not RULE:pattern/name/ or DEFAULT"
            )
        at = found.end()
        is_default, pattern, replacement, case = found.groups()
        if is_default:
            parsed.append(_Rule())
            continue
        try:
            parsed.append(_Rule(re.compile(pattern), replacement, CASES[case]))
        except re.error as error:
            raise ConfigError(f"properties: {PRINCIPAL_RULES}: {pattern!r:.100}: {error}") from None
    return parsed
