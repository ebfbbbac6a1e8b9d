import pytest

from pykafka08.records.record import TopicPartition
from pykafka08.spark import offsets_json


def test_topics_and_partitions_are_in_order() -> None:
    offsets = {TopicPartition("b", 10): 1, TopicPartition("b", 2): 2, TopicPartition("a", 0): 3}
    text = offsets_json.write_offsets(offsets)
    assert text == '{"a":{"0":3},"b":{"2":2,"10":1}}'
    assert offsets_json.read_offsets(text) == offsets


def test_a_document_goes_both_ways() -> None:
    offsets = {TopicPartition("t", 1): 2**40, TopicPartition("t", 0): 0}
    document = offsets_json.document(offsets)
    assert document == {"t": {"0": 0, "1": 2**40}}
    assert offsets_json.offsets_of(document) == offsets


def test_earliest_and_latest_are_for_options_alone() -> None:
    assert offsets_json.read_offsets('{"t":{"0":-1,"1":-2}}') == {
        TopicPartition("t", 0): offsets_json.LATEST,
        TopicPartition("t", 1): offsets_json.EARLIEST,
    }
    with pytest.raises(ValueError, match="Expected"):
        offsets_json.offsets_of({"t": {"0": -1}})


@pytest.mark.parametrize("text", ["", "[]", "null", '{"t":1}', '{"t":{"x":1}}', '{"t":{"0":"1"}}', '{"t":{"0":true}}'])
def test_no_offsets(text: str) -> None:
    with pytest.raises(ValueError, match="Expected e"):
        offsets_json.read_offsets(text)


def test_numbers_that_do_not_fit() -> None:
    largest = offsets_json.read_offsets('{"t":{"2147483647":9223372036854775807}}')
    assert largest == {TopicPartition("t", 2**31 - 1): 2**63 - 1}
    for read in (offsets_json.read_offsets, offsets_json.read_timestamps):
        with pytest.raises(ValueError, match="9223372036854775808 for t-3 does not fit in 64 bits"):
            read('{"t":{"3":9223372036854775808}}')
        with pytest.raises(ValueError, match="The partition 2147483648 of topic t does not fit in 32 bits"):
            read('{"t":{"2147483648":0}}')
    with pytest.raises(ValueError, match="The partition 2147483648 of topic t does not fit in 32 bits"):
        offsets_json.read_partitions('{"t":[0,2147483648]}')


def test_partitions() -> None:
    partitions = {TopicPartition("t", 1), TopicPartition("a", 0), TopicPartition("t", 0)}
    text = offsets_json.write_partitions(partitions)
    assert text == '{"a":[0],"t":[0,1]}'
    assert offsets_json.read_partitions(text) == partitions


def test_times() -> None:
    assert offsets_json.read_timestamps('{"t":{"0":5}}') == {TopicPartition("t", 0): 5}
