"""Our declarations against Kafka's: every field, range, nullability, tag and default, with the jars of two releases.

3.9.2 has the versions that 4.0 dropped, 4.3.0 the newest.  Where they contradict each other 4.3.0 is right.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pykafka08.protocol.fields import Field
from pykafka08.protocol.messages import REGISTRY, request_class, response_class
from pykafka08.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from pykafka08.protocol.schema import Message
from tests.conformance.early_access import OTHER_LAYOUTS, OTHER_NAMES
from tests.conformance.json_form import camel_case
from tests.conformance.kafka_json import MAVEN_TIMEOUT_S, Definition, Fact, definitions, fetch_jar

OLD, NEW = "3.9.2", "4.3.0"

RENAMED = {
    "ListClientMetricsResourcesRequest": "ListConfigResourcesRequest",
    "ListClientMetricsResourcesResponse": "ListConfigResourcesResponse",
}

pytestmark = [pytest.mark.needs_maven, pytest.mark.timeout(2 * MAVEN_TIMEOUT_S)]


@pytest.fixture(scope="module")
def kafka() -> dict[str, dict[str, Definition]]:
    """Release to its definitions by name."""
    return {release: definitions(fetch_jar(release)) for release in (OLD, NEW)}


def _declared() -> dict[str, type[Message]]:
    """Our messages by Kafka's names."""
    classes: list[type[Message]] = [ConsumerProtocolAssignment, ConsumerProtocolSubscription]
    for key in REGISTRY:
        classes += (request_class(key), response_class(key))
    return {each.__name__: each for each in classes}


def _of_declared(kafka: dict[str, Definition]) -> Iterator[tuple[type[Message], Definition]]:
    ours = _declared()
    for name, definition in kafka.items():
        if name in ours:
            yield ours[name], definition
        elif name in RENAMED:
            yield ours[RENAMED[name]], definition


def test_every_api_of_brokers_is_declared(kafka: dict[str, dict[str, Definition]]) -> None:
    for release, found in kafka.items():
        for definition in found.values():
            if definition.type == "request" and "broker" in definition.listeners:
                assert definition.key in REGISTRY, f"{definition.name} of {release} is not declared"


def test_the_declared_versions_are_those_of_both_releases(kafka: dict[str, dict[str, Definition]]) -> None:
    spans: dict[type[Message], set[int]] = {}
    for found in kafka.values():
        for message, definition in _of_declared(found):
            spans.setdefault(message, set()).update(range(definition.versions.min, definition.versions.max + 1))
            assert message.flexible == definition.flexible, definition.name
            assert definition.key in (None, message.api_key), definition.name
    assert set(spans) == set(_declared().values())
    for message, versions in spans.items():
        assert versions == set(range(message.versions.min, message.versions.max + 1)), message.__name__


@pytest.mark.parametrize("release", [OLD, NEW])
def test_every_version_has_kafkas_layout(kafka: dict[str, dict[str, Definition]], release: str) -> None:
    compared = 0
    for message, definition in _of_declared(kafka[release]):
        kind = definition.type
        names = OTHER_NAMES.get(definition.name.removesuffix("Request").removesuffix("Response"), {})
        for version in range(definition.versions.min, definition.versions.max + 1):
            declared = message
            if release == OLD:
                declared = OTHER_LAYOUTS.get((message.api_key, kind, version), message)
            ours = _layout_of_fields(declared.schema, version, names)
            assert ours == _layout_of_facts(definition.fields, version), f"{definition.name} version {version}"
            compared += 1
    assert compared > 500


def _layout_of_fields(schema: tuple[Field, ...], version: int, names: dict[str, str]) -> list[object]:
    """The fields of one version in order, nested, as facts that matter on the wire."""
    layout: list[object] = []
    for field in schema:
        if field.is_in(version):
            name = camel_case(field.name)
            tag = field.tag if field.is_tagged(version) else None
            nested = _layout_of_fields(field.struct.schema, version, names) if field.struct else []
            facts = (names.get(name, name), field.kind, field.element, field.is_nullable(version), tag, field.default)
            layout.append((*facts, nested))
    return layout


def _layout_of_facts(facts: list[Fact], version: int) -> list[object]:
    layout: list[object] = []
    for fact in facts:
        if version in fact.versions:
            is_nullable = fact.nullable is not None and version in fact.nullable
            tag = fact.tag if fact.tagged is not None and version in fact.tagged else None
            nested = _layout_of_facts(fact.fields, version)
            layout.append((fact.name, fact.kind, fact.element, is_nullable, tag, fact.default, nested))
    return layout


def test_every_field_is_declared_as_the_newest_release_has_it(kafka: dict[str, dict[str, Definition]]) -> None:
    for message in _declared().values():
        known = [
            kafka[release][message.__name__].fields for release in (NEW, OLD) if message.__name__ in kafka[release]
        ]
        _compare_fields(message, known, message.__name__)


def _compare_fields(declared: type, known: list[list[Fact]], where: str) -> None:
    """Compares with the first of ``known`` that has the field; all that any of them has must be declared."""
    schema: tuple[Field, ...] = declared.schema
    ours = {camel_case(field.name): field for field in schema}
    assert ours.keys() == {fact.name for facts in known for fact in facts}, where
    for name, field in ours.items():
        facts = [fact for facts in known for fact in facts if fact.name == name]
        newest = facts[0]
        assert field.versions == newest.versions, f"{where}.{name}"
        assert field.nullable == newest.nullable, f"{where}.{name}"
        assert field.tagged == newest.tagged, f"{where}.{name}"
        assert (field.tag, field.kind, field.element) == (newest.tag, newest.kind, newest.element), f"{where}.{name}"
        assert field.default == newest.default, f"{where}.{name}"
        assert type(field.default) is type(newest.default), f"{where}.{name}"
        assert field.ignorable == newest.ignorable, f"{where}.{name}"
        if field.struct is not None:
            assert field.struct.__name__ in (
                newest.struct,
                f"Request{newest.struct}",
                f"Response{newest.struct}",
                f"Subscription{newest.struct}",
                f"Assignment{newest.struct}",
            )
            _compare_fields(field.struct, [fact.fields for fact in facts], f"{where}.{name}")
