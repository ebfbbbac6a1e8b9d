"""What the decorators make of a class body, and what encoding refuses."""

from __future__ import annotations

import linecache
import pickle
import traceback
from uuid import UUID

import pytest

from pykafka08.errors import LocalProtocolError, UnsupportedVersionError
from pykafka08.protocol import decoder
from pykafka08.protocol.fields import VersionRange
from pykafka08.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from pykafka08.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka08.protocol.messages.fetch import FetchRequest, FetchResponse, FetchTopic, ForgottenTopic, PartitionData
from pykafka08.protocol.messages.join_group import JoinGroupRequest
from pykafka08.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from pykafka08.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka08.protocol.schema import (
    ZERO_UUID,
    Message,
    Request,
    Struct,
    array,
    float64,
    int8,
    int16,
    int32,
    message,
    records_,
    string,
    struct,
    struct_,
    uint16,
    uint32,
)


def test_class_attributes() -> None:
    assert MetadataRequest.api_key == 3
    assert MetadataRequest.name == "Metadata"
    assert MetadataRequest.versions == VersionRange(0, 13)
    assert MetadataRequest.flexible == 9
    assert MetadataRequest.response is MetadataResponse
    assert (MetadataRequest.is_flexible(8), MetadataRequest.is_flexible(9)) == (False, True)
    assert issubclass(MetadataRequest, Request)


def test_arguments_are_keywords_with_kafkas_defaults() -> None:
    request = MetadataRequest()
    assert request.topics == []
    assert request.allow_auto_topic_creation is True
    assert MetadataResponse().cluster_id is None
    assert MetadataResponse().cluster_authorized_operations == -(2**31)
    assert PartitionProduceData().records is None
    with pytest.raises(TypeError):
        MetadataRequest([])  # type: ignore[misc]
    with pytest.raises(TypeError):
        MetadataRequest(unknown=1)  # type: ignore[call-arg]


def test_lists_and_structs_are_new_for_each_instance() -> None:
    one, other = MetadataRequest(), MetadataRequest()
    assert one.topics is not other.topics
    first, second = PartitionData(), PartitionData()
    assert first.current_leader is not second.current_leader
    decoded = FetchResponse.decode(FetchResponse().encode(12), 12)
    assert decoded.responses is not FetchResponse.decode(FetchResponse().encode(12), 12).responses


def test_instances_have_slots_and_no_hash() -> None:
    request = MetadataRequest()
    assert not hasattr(request, "__dict__")
    with pytest.raises(AttributeError):
        request.topic = []  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        hash(request)


def test_equality_is_by_type_and_fields() -> None:
    assert MetadataRequestTopic(name="a") == MetadataRequestTopic(name="a")
    assert MetadataRequestTopic(name="a") != MetadataRequestTopic(name="b")
    assert MetadataRequestTopic(name="a") != "a"
    assert PartitionProduceData(records=b"x") == PartitionProduceData(records=memoryview(b"x"))
    tagged = MetadataRequestTopic(name="a")
    tagged.unknown_tagged_fields = {7: b"x"}
    assert tagged != MetadataRequestTopic(name="a")


def test_repr_shows_what_is_set_and_cuts_what_is_long() -> None:
    assert repr(MetadataRequest()) == "MetadataRequest()"
    many = MetadataRequest(topics=[MetadataRequestTopic(name=str(number)) for number in range(10)])
    assert repr(many).startswith("MetadataRequest(topics=[MetadataRequestTopic(name='0'), ")
    assert repr(many).endswith(", ... 2 more])")
    assert (
        repr(PartitionProduceData(index=1, records=bytes(100))) == "PartitionProduceData(index=1, records=<100 bytes>)"
    )
    assert repr(PartitionProduceData(records=memoryview(b"ab"))) == "PartitionProduceData(records=b'ab')"
    unknown = MetadataRequest()
    unknown.unknown_tagged_fields = {9: b"z"}
    assert repr(unknown) == "MetadataRequest(unknown_tagged_fields={9: b'z'})"


@pytest.mark.parametrize(("text", "first", "last"), [("0+", 0, 32767), ("3", 3, 3), ("2-5", 2, 5), ("10+", 10, 32767)])
def test_version_ranges(text: str, first: int, last: int) -> None:
    parsed = VersionRange.parse(text)
    assert (parsed.min, parsed.max, str(parsed)) == (first, last, text)
    assert first in parsed
    assert last in parsed
    assert first - 1 not in parsed
    assert "3" not in parsed


@pytest.mark.parametrize("text", ["", "x", "1-", "-1", "1+2", "1.5", "none"])
def test_not_a_version_range(text: str) -> None:
    with pytest.raises(ValueError, match="not a version range"):
        VersionRange.parse(text)


def test_intersections() -> None:
    assert VersionRange(0, 5).intersection(VersionRange(3, 9)) == VersionRange(3, 5)
    assert VersionRange(0, 2).intersection(VersionRange(3, 9)) is None


def test_a_set_field_that_the_version_lacks_is_refused() -> None:
    with pytest.raises(
        UnsupportedVersionError, match=r"MetadataRequest\.allow_auto_topic_creation is set, but version 3"
    ):
        MetadataRequest(allow_auto_topic_creation=False).encode(3)
    with pytest.raises(UnsupportedVersionError, match=r"JoinGroupRequest\.group_instance_id is set"):
        JoinGroupRequest(group_instance_id="a").encode(4)
    with pytest.raises(UnsupportedVersionError, match=r"FetchRequest\.forgotten_topics_data is set"):
        FetchRequest(forgotten_topics_data=[ForgottenTopic(topic="a")]).encode(6)


def test_an_ignorable_field_is_left_out() -> None:
    assert MetadataResponse(throttle_time_ms=5, cluster_id="c").encode(0) == MetadataResponse().encode(0)
    assert MetadataRequestTopic(name="a", topic_id=UUID(int=1)).schema[0].ignorable


def test_unknown_tagged_fields_need_a_flexible_version() -> None:
    request = MetadataRequest()
    request.unknown_tagged_fields = {3: b"abc", 1: b""}
    data = request.encode(9)
    assert data.endswith(bytes.fromhex("0201000303616263"))
    assert MetadataRequest.decode(data, 9) == request
    with pytest.raises(UnsupportedVersionError, match="unknown_tagged_fields is set, but version 8"):
        request.encode(8)


def test_null_before_the_version_that_has_it() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"MetadataRequest\.topics must not be None before version 1"):
        MetadataRequest(topics=None).encode(0)
    assert MetadataRequest(topics=None).encode(1) == b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("made", "version", "text"),
    [
        (
            MetadataRequest(topics=[MetadataRequestTopic(name=None)]),
            9,
            r"MetadataRequestTopic\.name must not be None before",
        ),
        (
            MetadataRequest(topics=[MetadataRequestTopic(name=7)]),
            1,
            r"MetadataRequestTopic\.name must be a str, not int",
        ),  # type: ignore[arg-type]
        (MetadataRequest(topics=[MetadataRequestTopic(name=b"x")]), 1, r"\.name must be a str, not bytes"),  # type: ignore[arg-type]
        (
            MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32768)]),
            1,
            r"\.name is 32768 bytes of UTF-8; at most 32767",
        ),
        (
            MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32768)]),
            9,
            r"\.name is 32768 bytes of UTF-8; at most 32767",
        ),
        (MetadataRequest(topics=[MetadataRequestTopic(name="\ud800")]), 1, r"\.name holds surrogates"),
        (MetadataRequest(topics=["a"]), 1, r"MetadataRequest\.topics needs a struct, not str"),  # type: ignore[list-item]
        (MetadataRequest(topics=5), 1, r"\.topics must be a list, not int"),  # type: ignore[arg-type]
        (ProduceRequest(acks=70000), 3, r"ProduceRequest\.acks must be between -32768 and 32767, not 70000"),
        (ProduceRequest(acks=1.5), 3, r"ProduceRequest\.acks must be an int, not float"),  # type: ignore[arg-type]
        (ProduceRequest(timeout_ms=None), 3, r"ProduceRequest\.timeout_ms must not be None"),  # type: ignore[arg-type]
        (FetchRequest(max_wait_ms=2**31, topics=[]), 12, r"max_wait_ms must be between -2147483648 and 2147483647"),
        (SaslAuthenticateRequest(auth_bytes="text"), 2, r"auth_bytes must be bytes-like, not str"),  # type: ignore[arg-type]
        (
            MetadataResponse(brokers=[MetadataResponseBroker(port=2**40)]),
            1,
            r"MetadataResponseBroker\.port must be between",
        ),
        (MetadataResponse(topics=[MetadataResponseTopic(topic_id="x")]), 10, "topic_id"),  # type: ignore[arg-type]
        (CreateTopicsRequest(topics=[CreatableTopic(configs=None)]), 5, r"CreatableTopic\.configs must not be None"),  # type: ignore[arg-type]
        (FetchRequest(topics=[FetchTopic(partitions=[None])]), 4, r"FetchTopic\.partitions needs a struct, not None"),  # type: ignore[list-item]
        (AddPartitionsToTxnRequest(v3_and_below_topics=None), 1, r"v3_and_below_topics must not be None"),  # type: ignore[arg-type]
    ],
)
def test_values_that_do_not_fit(made: Message, version: int, text: str) -> None:
    with pytest.raises((LocalProtocolError, UnsupportedVersionError), match=text) as caught:
        made.encode(version)
    assert type(made).__name__ in str(caught.value)
    assert f"version {version}" in str(caught.value)
    assert caught.value.api == made.name


def test_records_are_not_copied() -> None:
    records = bytearray(b"r" * 5000)
    request = ProduceRequest(
        topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(records=records)])]
    )
    assert any(part is records for part in request.encode_parts(9))
    data = request.encode(9)
    decoded = ProduceRequest.decode(data, 9).topic_data[0].partition_data[0].records
    assert isinstance(decoded, memoryview)
    assert decoded.obj is data
    assert decoded == records


def test_tracebacks_show_the_generated_source() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        ProduceRequest(acks=70000).encode(3)
    cause = caught.value.__cause__
    assert cause is not None
    lines = "".join(traceback.format_exception(cause))
    assert "<pykafka08 encoder of ProduceRequest version 3>" in lines
    assert "item.acks" in lines
    linecache.checkcache()
    assert linecache.getline("<pykafka08 encoder of ProduceRequest version 3>", 1).startswith("def ")


@struct
class Inner(Struct):
    """Kinds that Kafka's own messages use little or not at all."""

    small: int = uint16(versions="1+")
    large: int = uint32()
    share: float = float64(default=0.5)


@message(versions="0-2", flexible="2+")
class Sample(Message):
    """A message of this test's own."""

    inner: Inner = struct_(Inner)
    maybe: Inner | None = struct_(Inner, nullable="1+", default=None, versions="1+")
    names: list[str] | None = array(string, nullable="0+", default=None)
    tagged_names: list[str] = array(string, versions="2+", tag=1, tagged="2+")
    tagged_inner: Inner = struct_(Inner, versions="2+", tag=0, tagged="2+")
    tagged_number: int = int16(versions="1+", default=-1, tag=2, tagged="2+")
    maybe_tagged: str | None = string(versions="2+", nullable="2+", default=None, tag=5, tagged="2+")
    data: bytes | bytearray | memoryview | None = records_(nullable="0+")


@pytest.mark.parametrize(
    ("made", "version", "expected"),
    [
        (Sample(), 0, "000000003fe0000000000000ffffffffffffffff"),
        (Sample(names=["a"], data=b"xy"), 0, "000000003fe000000000000000000001000161000000027879"),
        (
            Sample(maybe=Inner(small=2), tagged_number=3),
            1,
            "0000000000003fe0000000000000010002000000003fe0000000000000ffffffff0003ffffffff",
        ),
        (Sample(), 2, "0000000000003fe000000000000000ff000000"),
        (
            Sample(tagged_number=3, tagged_inner=Inner(large=1), tagged_names=["b"], maybe_tagged="c", names=[]),
            2,
            "0000000000003fe000000000000000ff010004000f0000000000013fe00000000000000001030202620202000305020263",
        ),
    ],
)
def test_kinds_and_tags_on_the_wire(made: Sample, version: int, expected: str) -> None:
    assert made.encode(version).hex() == expected
    assert Sample.decode(bytes.fromhex(expected), version) == made


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (Sample(inner=Inner(large=-1)), r"Inner\.large must be between 0 and 4294967295, not -1"),
        (Sample(inner=Inner(small=65536)), r"Inner\.small must be between 0 and 65535"),
        (Sample(inner=Inner(share="x")), r"Inner\.share must be a float, not str"),  # type: ignore[arg-type]
        (Sample(names=["a", 5]), r"Sample\.names at index 1 must be a str, not int"),  # type: ignore[list-item]
        (Sample(inner=None), r"Sample\.inner needs a struct, not None"),  # type: ignore[arg-type]
        (Sample(data="text"), r"Sample\.data must be bytes-like, not str"),  # type: ignore[arg-type]
        (Sample(tagged_names=["a", None]), r"Sample\.tagged_names"),  # type: ignore[list-item]
    ],
)
def test_what_does_not_fit_is_named(made: Sample, text: str) -> None:
    with pytest.raises(LocalProtocolError, match=text):
        made.encode(2)


def test_specifiers_take_only_what_they_know() -> None:
    with pytest.raises(TypeError):
        int8(nullable="0+")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="not a version range"):
        int32(versions="soon")


def test_decoded_uuids_are_uuids_in_every_way() -> None:
    wanted = UUID("12345678-9abc-def0-1234-56789abcdef0")
    asked = MetadataRequestTopic(topic_id=wanted, name="t")
    frame = MetadataRequest(topics=[asked, MetadataRequestTopic(name="u")]).encode(12)
    topics = MetadataRequest.decode(frame, 12).topics
    assert topics is not None
    found = topics[0].topic_id
    assert type(found) is UUID
    assert (found, str(found), hash(found), repr(found)) == (wanted, str(wanted), hash(wanted), repr(wanted))
    assert found.is_safe is wanted.is_safe
    assert pickle.loads(pickle.dumps(found)) == wanted
    assert topics[1].topic_id is ZERO_UUID


def decoded_ids(ids: list[UUID]) -> list[UUID]:
    frame = MetadataRequest(topics=[MetadataRequestTopic(topic_id=each, name="t") for each in ids]).encode(12)
    return [topic.topic_id for topic in MetadataRequest.decode(frame, 12).topics or []]


def test_equal_ids_are_one_object_and_no_more_are_kept_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "_MOST_KNOWN", 100)
    decoder._KNOWN_UUIDS.clear()
    ids = [UUID(int=number + 1) for number in range(150)]
    first, again = decoded_ids(ids[:80]), decoded_ids(ids[:80])
    assert first == ids[:80]
    assert all(one is other for one, other in zip(first, again, strict=True))
    assert decoded_ids(ids) == ids
    assert len(decoder._KNOWN_UUIDS) <= 100
