"""Every declared message in every version: there and back, and what it refuses."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykafka08.errors import UnsupportedVersionError
from pykafka08.protocol.messages import REGISTRY, Api, ApiKey, request_class, response_class
from pykafka08.protocol.releases import HISTORY
from pykafka08.protocol.schema import Message
from tests.protocol.strategies import ALL_MESSAGES, messages

EVERY_VERSION = [
    pytest.param(message, version, id=f"{message.__name__}-{version}")
    for message in ALL_MESSAGES
    for version in range(message.versions.min, message.versions.max + 1)
]


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION)
def test_round_trip(message: type[Message], version: int) -> None:
    @settings(max_examples=6)
    @given(messages(message, version, message.is_flexible(version)))
    def there_and_back(sent: Message) -> None:
        data = sent.encode(version)
        assert b"".join(sent.encode_parts(version)) == data
        for buffer in (data, bytearray(data), memoryview(data)):
            assert message.decode(buffer, version) == sent
        assert message.decode(b"front" + data, version, 5) == sent
        assert message.decode_start(data + b"rest", version) == (sent, 4)

    there_and_back()


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION)
def test_defaults_go_there_and_back(message: type[Message], version: int) -> None:
    sent = message()
    for field in sent.schema:
        # a few fields are None by default in versions that have no null
        if field.is_in(version) and getattr(sent, field.name) is None and not field.is_nullable(version):
            assert field.kind == "records"
            setattr(sent, field.name, b"")
    assert message.decode(sent.encode(version), version) == sent


@pytest.mark.parametrize("message", ALL_MESSAGES, ids=lambda message: message.__name__)
def test_versions_outside_the_range_are_refused(message: type[Message]) -> None:
    for version in (message.versions.min - 1, message.versions.max + 1):
        with pytest.raises(UnsupportedVersionError, match=f"{message.__name__} has versions {message.versions}"):
            message().encode(version)
        with pytest.raises(UnsupportedVersionError):
            message.decode(b"", version)


@pytest.mark.parametrize("key", list(REGISTRY), ids=lambda key: ApiKey(key).name)
def test_the_registry_knows_both_classes(key: int) -> None:
    api = REGISTRY[key]
    request, response = request_class(key), response_class(key)
    assert (request.api_key, response.api_key, api.key) == (key, key, key)
    assert request.name == response.name == api.name
    assert request.response is response
    assert request().response is response
    assert request.versions == response.versions
    assert request.flexible == response.flexible


def test_the_registry_is_a_mapping() -> None:
    assert len(REGISTRY) == len(list(REGISTRY)) == len(ApiKey)
    assert isinstance(REGISTRY[ApiKey.METADATA], Api)
    with pytest.raises(KeyError):
        REGISTRY[4242]
    with pytest.raises(UnsupportedVersionError, match="4242"):
        request_class(4242)
    with pytest.raises(UnsupportedVersionError, match="4242"):
        response_class(4242)


@settings(max_examples=50)
@given(st.sampled_from(ALL_MESSAGES), st.data())
def test_repr_is_short_and_names_what_is_set(message: type[Message], data: st.DataObject) -> None:
    version = message.versions.max
    made = data.draw(messages(message, version, message.is_flexible(version)))
    text = repr(made)
    assert text.startswith(f"{message.__name__}(")
    for field in made.schema:
        if getattr(made, field.name) != field.new_default():
            assert f"{field.name}=" in text


@pytest.mark.parametrize("key", list(REGISTRY), ids=lambda key: ApiKey(key).name)
def test_the_docstring_tells_the_first_release_of_each_version(key: int) -> None:
    rows = re.findall(r"^ +(\d+)  (\S+)", sys.modules[request_class(key).__module__].__doc__ or "", flags=re.MULTILINE)
    first: dict[int, str] = {}
    for release, versions in HISTORY[ApiKey(key)]:
        for version in range(versions.min, versions.max + 1):
            first.setdefault(version, release)
    declared = request_class(key).versions
    assert rows == [(str(version), first.get(version, "-")) for version in range(declared.min, declared.max + 1)]
