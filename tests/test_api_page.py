"""docs/api.md names everything public with its parameters, and nothing that is not there."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import pytest

import pykafka08
from pykafka08 import KafkaError

PAGE = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^#{2,3} (\w+)\n(.*?)(?=^## |^### |\Z)", PAGE, re.DOTALL | re.MULTILINE))
PUBLIC = {name: getattr(pykafka08, name) for name in pykafka08.__all__ if name != "compiled"}
ERRORS = {name: each for name, each in PUBLIC.items() if issubclass(each, KafkaError)}
WITH_CALLS = (
    "Producer",
    "Delivery",
    "SentRecords",
    "Consumer",
    "RebalanceListener",
    "Admin",
    "LegacyConsumer",
    "Mirror",
    "GroupMigration",
    "EmbeddedCluster",
)
NOT_MADE_BY_USERS = (
    "ConfigEntry",
    "ConsumerHealth",
    "Delivery",
    "GroupDescription",
    "GroupHealth",
    "GroupListing",
    "GroupMember",
    "GroupMove",
    "LegacyHealth",
    "MigratedPartition",
    "MigrationReport",
    "MirrorReport",
    "PartitionReport",
    "ProducerHealth",
    "Record",
    "RebalanceListener",
    "SentRecords",
    "TopicDescription",
    "TopicPlan",
)


def call(name: str, function: object) -> str:
    """As the page writes it: without types."""
    assert callable(function)
    words: list[str] = []
    is_named_only = False
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.KEYWORD_ONLY and not is_named_only:
            words.append("*")
        is_named_only |= each.kind in (each.VAR_POSITIONAL, each.KEYWORD_ONLY)
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={each.default!r}"
        if each.name != "self":
            words.append(f"{stars}{each.name}{default}")
    waits = "await " if inspect.iscoroutinefunction(function) else ""
    return f"{waits}{name}({', '.join(words)})"


def members(cls: type) -> Iterator[str]:
    """Public methods and properties, as the page writes them; those that come from elsewhere are left out."""
    for name in dir(cls):
        owner = next(each for each in cls.__mro__ if name in vars(each) or each is object)
        if name.startswith("_") or not owner.__module__.startswith("pykafka08."):
            continue
        member = vars(owner)[name]
        is_property = isinstance(member, property) or inspect.isgetsetdescriptor(member)  # the latter where compiled
        yield name if is_property else call(name, getattr(cls, name))


@pytest.mark.parametrize("name", WITH_CALLS)
def test_every_call_is_there_and_no_other(name: str) -> None:
    calls = re.findall(r"^\| `([^`]+)` \|", SECTIONS[name], re.MULTILINE)
    assert sorted(calls) == sorted(members(PUBLIC[name]))


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in ERRORS])
def test_every_class_is_there(name: str) -> None:
    if name in NOT_MADE_BY_USERS or issubclass(PUBLIC[name], Enum):
        assert name in SECTIONS or f"| `{name}` |" in SECTIONS["Values"]
    elif name == "EmbeddedCluster":
        shown = re.findall(r"^`(.*?)\.\.\.\)`", SECTIONS[name], re.MULTILINE)
        assert call(name, PUBLIC[name]).startswith(shown[0])
    else:
        assert f"`{call(name, PUBLIC[name])}`" in SECTIONS[name if name in WITH_CALLS else "Values"]


def test_every_error_is_there_below_its_parent() -> None:
    lines = re.findall(r"^    (\w+Error)(?: < (\w+))? ", SECTIONS["Errors"], re.MULTILINE)
    parents = {name: parent or "KafkaError" for name, parent in lines}
    assert parents == {
        name: next(base.__name__ for base in each.__mro__[1:] if base.__name__ in ERRORS)
        for name, each in ERRORS.items()
        if each is not KafkaError
    }
