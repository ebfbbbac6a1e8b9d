"""Values in a schema registry's wire format, from Confluent's own serializers, as texts; reasons of refused values."""

from __future__ import annotations

import json
import pickle
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.registry.client import RegistryError, SchemaRegistry
from pykafka08.spark.pipeline.registry.decoding import texts
from pykafka08.spark.pipeline.registry.wire_format import BadValueError, message_path
from pykafka08.spark.pipeline.settings import Registry, parse
from tests.spark.pipeline.registry_server import RegistryServer, registry_server

VALUE = SerializationContext("orders", MessageField.VALUE)
COLUMNS = StructType([StructField("id", LongType()), StructField("raw", BinaryType()), StructField("at", StringType())])
ADDRESS = {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
ORDER = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "raw", "type": ["null", "bytes"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "to", "type": "shop.Address"},
    ],
}  # fmt: skip
AT = datetime(2024, 3, 1, 10, tzinfo=timezone.utc)


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


def serialized(registry: RegistryServer, serializer: Callable[[SchemaRegistryClient], Any], value: Any) -> bytes:
    """A value from one of Confluent's serializers."""
    with SchemaRegistryClient({"url": registry.url}) as client:
        made: bytes = serializer(client)(value, VALUE)
    return made


def read(registry: RegistryServer, form: str, *values: bytes | None, reader: str = "") -> list[Any]:
    """Each value as its JSON document, or the reason as text."""
    found = texts(values, Registry(registry.url), form, COLUMNS, reader)
    return [why if text is None else json.loads(text) for text, why in found]


def avro_order(registry: RegistryServer, number: int = 5) -> bytes:
    registry.register("address", json.dumps(ADDRESS))
    schema = Schema(json.dumps(ORDER), "AVRO", [SchemaReference("shop.Address", "address", 1)])
    row = {"id": number, "raw": b"\xff\0", "at": AT, "to": {"city": "Köln"}}
    return serialized(registry, lambda client: AvroSerializer(client, schema), row)


def test_avro_with_a_reference(registry: RegistryServer) -> None:
    value = avro_order(registry)
    (row, none, cut, longer), _ = read(registry, "avro", value, None, value[:-2], value + b"x"), registry.asked
    assert row == {"id": 5, "raw": "/wA=", "at": "2024-03-01T10:00:00+00:00", "to": {"city": "Köln"}}
    assert none is None
    number = int.from_bytes(value[1:5], "big")
    assert cut.startswith(f"not avro of schema {number}: EOFError")
    assert longer == f"not avro of schema {number}: bytes follow the value"


def test_a_schema_is_fetched_once_in_a_process(registry: RegistryServer) -> None:
    values = [avro_order(registry, number) for number in range(5)]
    registry.asked.clear()
    for _ in range(2):
        assert [row["id"] for row in read(registry, "avro", *values)] == [0, 1, 2, 3, 4]
    assert dict(registry.asked) == {"GET /schemas/ids/101": 1, "GET /subjects/address/versions/1": 1}


def test_avro_is_read_with_the_readers_schema(registry: RegistryServer) -> None:
    """Fields by their aliases, with defaults of the reader, and widened types."""
    fields = [
        {"name": "number", "aliases": ["id"], "type": "double"},
        {"name": "kind", "type": "string", "default": "none"},
    ]
    reader = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})
    assert read(registry, "avro", avro_order(registry), reader=reader) == [{"number": 5.0, "kind": "none"}]


def test_json_schema_with_a_reference(registry: RegistryServer) -> None:
    # imported here: the import takes seconds, which would delay the collection of tests in each process
    from confluent_kafka.schema_registry.json_schema import JSONSerializer

    registry.register("city", '{"type": "object", "properties": {"city": {"type": "string"}}}', "JSON")
    schema = {
        "type": "object", "title": "order", "required": ["id"],
        "properties": {"id": {"type": "integer"}, "to": {"$ref": "city.json"}},
    }  # fmt: skip
    whole = Schema(json.dumps(schema), "JSON", [SchemaReference("city.json", "city", 1)])
    order = {"id": 5, "to": {"city": "Köln"}}
    value = serialized(registry, lambda client: JSONSerializer(whole, client), order)
    head, number = value[:5], int.from_bytes(value[1:5], "big")
    broken = [head + b'{"id": "x"}', head + b'{"id": 1, "to": {"city": 2}}', head + b"{", head + b"\xff"]
    row, *refused = read(registry, "json", value, *broken)
    assert row == {"id": 5, "to": {"city": "Köln"}}
    assert refused[:2] == [
        f"not json of schema {number}: $.id: 'x' is not of type 'integer'",
        f"not json of schema {number}: $.to.city: 2 is not of type 'string'",
    ]
    assert [one.partition(":")[0] for one in refused[2:]] == ["not json", "not json"]


def test_values_nested_too_deeply_are_refused(registry: RegistryServer) -> None:
    number = registry.register("n", "{}", "JSON")
    endless = registry.register("e", '{"$ref": "#"}', "JSON")
    found = read(registry, "json", number.to_bytes(5, "big") + b"[" * 100_000, endless.to_bytes(5, "big") + b"1")
    assert found == [
        "not json: the value is nested too deeply",
        f"not json of schema {endless}: value or schema is nested too deeply",
    ]
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    number = registry.register("a", json.dumps(node))
    (reason,) = read(registry, "avro", number.to_bytes(5, "big") + b"\x02" * 2_000 + b"\0")
    assert reason == f"not avro of schema {number}: the value is nested too deeply"


PATTERNED = {
    "properties": {"name": {"pattern": r"^\p{Lu}[\w\-]*$"}, "link": {"pattern": r"^https?:\/\/[^\/]+$"}},
    "patternProperties": {r"^x\-\d+$": {"type": "integer"}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"name": "Åse-1", "link": "https://x", "x-1": 1}, ""),
        ({"name": "åse"}, r"$.name: 'åse' does not match '^\\p{Lu}[\\w\\-]*$'"),
        ({"link": "https://x/y"}, r"$.link: 'https://x/y' does not match '^https?:\\/\\/[^\\/]+$'"),
        ({"x-1": "a"}, "$['x-1']: 'a' is not of type 'integer'"),
        ({"x-١": 1, "y": 2}, "$: Additional properties are not allowed ('x-١', 'y')"),  # noqa: RUF001
    ],
)
def test_patterns_are_regular_expressions_of_ecma_262(
    registry: RegistryServer, value: dict[str, Any], reason: str
) -> None:
    number = registry.register("a", json.dumps(PATTERNED), "JSON")
    (found,) = read(registry, "json", number.to_bytes(5, "big") + json.dumps(value).encode())
    assert found == (f"not json of schema {number}: {reason}" if reason else value)


def test_a_schema_with_an_invalid_pattern_is_refused(registry: RegistryServer) -> None:
    wrong = registry.register("a", json.dumps({"properties": {"a": {"pattern": "("}}}), "JSON")
    (found,) = read(registry, "json", wrong.to_bytes(5, "big") + b'{"a": "x"}')
    assert found.startswith(f"schema {wrong} cannot be used: '(' is not a 'regex'")


def test_json_keeps_all_digits(registry: RegistryServer) -> None:
    number = registry.register("n", "{}", "JSON")
    text = b'{"id": 0.12345678901234567890123}'
    ((found, _),) = texts([number.to_bytes(5, "big") + text], Registry(registry.url), "json", COLUMNS)
    assert found == text.decode()


def proto_files() -> tuple[FileDescriptorProto, FileDescriptorProto]:
    """``money.proto``, and ``order.proto`` with a message inside another."""
    money = FileDescriptorProto(name="money.proto", package="shop", syntax="proto3")
    money.message_type.add(name="Money").field.add(name="cents", number=1, label=1, type=3)
    order = FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    order.dependency.extend(["money.proto", "google/protobuf/timestamp.proto"])
    order.message_type.add(name="Other")
    outer = order.message_type.add(name="Outer")
    entry = outer.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=9)
    entry.field.add(name="value", number=2, label=1, type=3)
    inner = outer.nested_type.add(name="Order")
    kinds: list[tuple[str, int, int, str]] = [  # name, label (3: repeated), type (3: int64, 11: message)
        ("id", 1, 3, ""), ("raw", 1, 12, ""), ("at", 1, 11, ".google.protobuf.Timestamp"),
        ("price", 1, 11, ".shop.Money"), ("more", 3, 9, ""), ("tags", 3, 11, ".shop.Outer.TagsEntry"),
    ]  # fmt: skip
    for number, (name, label, kind, of) in enumerate(kinds, 1):
        inner.field.add(name=name, number=number, label=label, type=kind, type_name=of or None)  # type: ignore[arg-type]
    return money, order


def test_protobuf_with_a_reference_and_a_message_within_another(registry: RegistryServer) -> None:
    pool = DescriptorPool()
    pool.AddSerializedFile(TIMESTAMP.serialized_pb)
    for file in proto_files():
        pool.AddSerializedFile(file.SerializeToString())
    kind: Any = GetMessageClass(pool.FindMessageTypeByName("shop.Outer.Order"))
    message = kind(id=1 << 60, raw=b"\xff\0", price={"cents": 7}, more=["a", "b"], tags={"x": 1})
    message.at.FromDatetime(AT)
    whole = serialized(registry, lambda client: ProtobufSerializer(kind, client), message)
    header, payload = whole[:5], message.SerializeToString()
    assert whole.endswith(payload)
    by_java = header + b"\x04\x02\x00" + payload  # it does not count the entries of maps
    values = [whole, header + b"\x00", header + b"\x02\x12", header + b"\x04\x02\x02\xff"]
    row, empty, no_message, broken = read(registry, "protobuf", *values)
    assert row == {
        "id": 1 << 60, "raw": "/wA=", "at": "2024-03-01T10:00:00Z", "price": {"cents": 7}, "more": ["a", "b"],
        "tags": {"x": 1},
    }  # fmt: skip
    number = int.from_bytes(header[1:], "big")
    assert read(registry, "protobuf", by_java) == [row]
    assert empty == {}
    assert no_message == f"schema {number} has no message with the indexes [9]"
    assert broken.startswith(f"not protobuf of schema {number}: ")
    assert read(registry, "protobuf", header + b"\x04\x02\x00") == [
        {"id": 0, "raw": "", "at": None, "price": None, "more": [], "tags": {}}
    ]
    assert registry.asked[f"GET /schemas/ids/{number}?format=serialized"] == 1


def test_protobuf_of_the_first_message_is_one_byte(registry: RegistryServer) -> None:
    money, _ = proto_files()
    pool = DescriptorPool()
    pool.AddSerializedFile(money.SerializeToString())
    kind: Any = GetMessageClass(pool.FindMessageTypeByName("shop.Money"))
    value = serialized(registry, lambda client: ProtobufSerializer(kind, client), kind(cents=-3))
    assert value[5] == 0
    assert read(registry, "protobuf", value) == [{"cents": -3}]


@pytest.mark.parametrize(
    ("value", "scale", "read_as"),
    [
        (b"\xfe\x0c", 2, {"price": "-5.00"}),
        (b"\x05", -2, {"price": "500"}),
        (b"\x01", 1 << 30, "a Decimal of 1 bytes with the scale 1073741824; both may be at most 1000"),
        (b"\x01" * 2000, 0, "a Decimal of 2000 bytes with the scale 0; both may be at most 1000"),
    ],
)
def test_a_decimal_has_bounds(registry: RegistryServer, value: bytes, scale: int, read_as: object) -> None:
    decimal = FileDescriptorProto(name="confluent/type/decimal.proto", package="confluent.type", syntax="proto3")
    message = decimal.message_type.add(name="Decimal")
    message.field.add(name="value", number=1, label=1, type=12)
    message.field.add(name="scale", number=3, label=1, type=5)
    order = FileDescriptorProto(name="order.proto", syntax="proto3", dependency=[decimal.name])
    of_price = ".confluent.type.Decimal"
    order.message_type.add(name="Order").field.add(name="price", number=1, label=1, type=11, type_name=of_price)
    pool = DescriptorPool()
    for file in (decimal, order):
        pool.AddSerializedFile(file.SerializeToString())
    kind: Any = GetMessageClass(pool.FindMessageTypeByName("Order"))
    number = registry.register("d", b64encode(order.SerializeToString()).decode(), "PROTOBUF")
    payload = kind(price={"value": value, "scale": scale}).SerializeToString()
    assert read(registry, "protobuf", number.to_bytes(5, "big") + b"\0" + payload) == [read_as]


def test_a_protobuf_schema_that_lacks_a_file_or_is_a_text(registry: RegistryServer) -> None:
    _, order = proto_files()
    lacking = registry.register("a", b64encode(order.SerializeToString()).decode(), "PROTOBUF")
    text = registry.register("b", 'syntax = "proto3"; message A {}', "PROTOBUF")
    found = read(registry, "protobuf", *(number.to_bytes(5, "big") + b"\0" for number in (lacking, text, lacking)))
    assert "it imports money.proto, and has no reference of this name" in found[0]
    assert "the registry must support format=serialized" in found[1]
    assert found[2] == found[0]
    assert registry.asked[f"GET /schemas/ids/{lacking}?format=serialized"] == 1


@pytest.mark.parametrize(
    ("payload", "path", "rest"),
    [
        (b"\x00ab", (0,), b"ab"),
        (b"\x02\x00", (0,), b""),
        (b"\x06\x02\x80\x02\x04z", (1, 128, 2), b"z"),
    ],
)
def test_message_indexes(payload: bytes, path: tuple[int, ...], rest: bytes) -> None:
    assert message_path(payload) == (path, rest)


@pytest.mark.parametrize("payload", [b"", b"\x80", b"\x01", b"\x04\x00", b"\xff\xff\xff\xff\xff\x01", b"\xfe\x7f"])
def test_broken_message_indexes(payload: bytes) -> None:
    with pytest.raises(BadValueError, match="broken message indexes"):
        message_path(payload)


def test_what_is_not_in_the_wire_format_or_has_no_schema_is_refused(registry: RegistryServer) -> None:
    number = registry.register("a", "{}", "JSON")
    unknown = b"\0\0\0\x27\x0fx"
    found = read(registry, "avro", b"", b"{}", b"\0\0\0\0", b"\1abcdef", unknown, unknown, number.to_bytes(5, "big"))
    assert found == [
        "not in a schema registry's wire format: 0 bytes, at least 5 needed",
        "not in a schema registry's wire format: 2 bytes, at least 5 needed",
        "not in a schema registry's wire format: 4 bytes, at least 5 needed",
        "not in a schema registry's wire format: the first byte is 1, not 0",
        "schema 9999 is not in the schema registry",
        "schema 9999 is not in the schema registry",
        f"schema {number} is JSON, not AVRO",
    ]
    assert registry.asked["GET /schemas/ids/9999"] == 1


def test_a_registry_that_is_away_ends_the_batch(registry: RegistryServer) -> None:
    value = avro_order(registry, 7)
    pauses: list[float] = []
    registry.failing = [503, 500]
    settings = Registry(registry.url, basic_auth_user_info="me:hidden-word")
    schema = SchemaRegistry(settings, pauses.append).schema(101, "avro")
    assert (schema.kind, [name for name, _ in schema.references], pauses) == ("AVRO", ["shop.Address"], [0.5, 1.0])
    registry.failing = [503] * 3
    other = Registry(registry.url + "/", basic_auth_user_info="me:hidden-word")
    words = rf"decode\.registry: {registry.url}/: schema 101 cannot be fetched: status 503"
    with pytest.raises(RegistryError, match=words) as caught:
        SchemaRegistry(other, pauses.append).schema(int.from_bytes(value[1:5], "big"), "avro")
    assert "hidden-word" not in str(caught.value)
    with pytest.raises(RegistryError, match=r"http://127\.0\.0\.1:1: schema 101 cannot be fetched: ConnectError"):
        SchemaRegistry(Registry("http://127.0.0.1:1"), pauses.append).schema(101, "avro")


def test_credentials(registry: RegistryServer) -> None:
    avro_order(registry)
    registry.authorization = "Basic bWU6aGlkZGVuLXdvcmQ="
    with pytest.raises(RegistryError, match=r"status 401: set basic_auth_user_info or bearer_auth_token"):
        SchemaRegistry(Registry(registry.url)).schema(100, "avro")
    user = Registry(registry.url, basic_auth_user_info="me:hidden-word")
    assert SchemaRegistry(user).schema(100, "avro").kind == "AVRO"
    registry.authorization = "Bearer token-word"
    bearer = Registry(registry.url, bearer_auth_token="token-word")
    assert SchemaRegistry(bearer).types() == ["JSON", "PROTOBUF", "AVRO"]
    assert "word" not in repr(user) + repr(bearer) + repr([user.basic_auth_user_info, bearer.bearer_auth_token])
    assert pickle.loads(pickle.dumps(user)) == user


def test_an_address_that_is_not_a_registrys(registry: RegistryServer) -> None:
    registry.failing = [404]
    with pytest.raises(RegistryError, match=r"status 404: set url to the address of a schema registry"):
        SchemaRegistry(Registry(registry.url)).schema(100, "avro")


def test_tls_with_a_ca_of_ones_own(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with registry_server(context) as registry:
        trusted = Registry(registry.url, ssl_ca_location=str(tmp_path / "ca.pem"))
        assert SchemaRegistry(trusted).types() == ["JSON", "PROTOBUF", "AVRO"]
        with pytest.raises(RegistryError, match=r"cannot be fetched: ConnectError: .*certificate"):
            SchemaRegistry(Registry(registry.url), lambda _: None).types()


GOOD = """
name = "orders"
folder = "out"
[sources.old]
bootstrap_servers = "old:9092"
topics = ["orders"]
[decode]
format = "avro"
schema = "id BIGINT"
event_time = "_timestamp"
registry = "http://registry:8081"
"""


def test_settings(tmp_path: Path) -> None:
    assert parse(GOOD, tmp_path).decode.registry == Registry("http://registry:8081")
    (tmp_path / "registry.properties").write_text(
        "schema.registry.url=https://registry\nschema.registry.basic.auth.user.info=${env:WHO}\n"
        "basic.auth.credentials.source=USER_INFO\nschema.registry.ssl.ca.location=/etc/ca.pem\n"
        "config.providers=env\nconfig.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHO", "me:hidden-word")
        pipeline = parse(_with('registry = { properties = "registry.properties" }'), tmp_path)
    registry = pipeline.decode.registry
    assert registry is not None
    assert (registry.url, registry.basic_auth_user_info) == ("https://registry", "me:hidden-word")
    assert registry.ssl_ca_location == "/etc/ca.pem"
    assert "hidden-word" not in repr(pipeline)


def _with(registry: str) -> str:
    return GOOD.replace('registry = "http://registry:8081"', registry)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_with('registry = "registry:8081"'), "decode.registry.url: 'registry:8081' is not an address such as ht"),
        (_with('registry = "http://me:hidden@registry"'), "decode.registry.url: the address has credentials; move"),
        (_with('registry = "http://registry?token=hidden"'), "decode.registry.url: 'http://registry' is followed by"),
        (_with("registry = 3"), "decode.registry: a table is wanted, not 3"),
        (_with("registry = {}"), "decode.registry.url: missing"),
        (_with('registry = { url = "http://a", user = "b" }'), "decode.registry.user: unknown; there are url, basic"),
        (_with('registry = { properties = "none" }'), "decode.registry: .*none"),
        (_with('registry = { url = "http://a", basic_auth_user_info = 3 }'), "auth_user_info: text is wanted, not \\*"),
        (_with('registry = { url = "http://a", basic_auth_user_info = "a", bearer_auth_token = "c" }'), "only one of"),
        (_with('registry = { url = "http://a", bearer_auth_token = "hidden\\n" }'), "auth_token: has a space, a"),
        (_with('registry = { url = "http://a", bearer_auth_token = "hiddén" }'), "auth_token: has a space, a"),
        (_with(""), "decode.avro_schema: needed for avro, unless decode.registry has"),
        (_with("").replace('"avro"', '"protobuf"'), "decode.registry: needed for protobuf"),
        (GOOD.replace('"avro"', '"csv"'), "decode.registry: has schemas for json, avro, protobuf, not for csv"),
        (GOOD + "avro_header_bytes = 5", "decode.avro_header_bytes: not used with decode.registry"),
    ],
)  # fmt: skip
def test_wrong_settings(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        parse(text, tmp_path)
    assert "hidden" not in str(caught.value)
