"""Answers that are too large or impossible: errors at once that name the fault, the place and the setting."""

from __future__ import annotations

import anyio
import pytest

from pykafka08 import Consumer, EmbeddedCluster, Producer
from pykafka08.cluster.client import Client, Purpose
from pykafka08.consumer import reactions as consumer_reactions
from pykafka08.errors import KafkaError, NoBrokersError, RemoteProtocolError, ResponseTooLargeError, TransportError
from pykafka08.group import reactions as group_reactions
from pykafka08.producer import reactions as producer_reactions
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykafka08.records.record import TopicPartition
from tests.connection.answers import Asked, answer_to, metadata, topic, usual_answer
from tests.connection.peers import Caller, config, peer

pytestmark = pytest.mark.anyio

SOON = 20
"""Seconds within which a call must raise; its own deadline is an hour."""

LASTING = {"default_api_timeout_ms": 3_600_000, "request_timeout_ms": 3_600_000}


async def large(caller: Caller) -> None:
    """A broker whose Metadata answer has more than 4,000 bytes."""
    while (asked := await caller.request()) is not None:
        answer = usual_answer(asked, "2.8", caller.address)
        if asked.name == "Metadata" and asked.request.topics:
            answer = answer_to(asked, metadata([(1, *caller.address)], [topic("t", [1] * 300)]))
        assert answer is not None
        await caller.send(answer)


async def test_metadata_above_the_limit_is_raised_at_once() -> None:
    async with peer(large) as address:
        settings = config(address, receive_message_max_bytes=4_000, **LASTING)
        with anyio.fail_after(SOON):
            async with Client(settings) as client:
                with pytest.raises(ResponseTooLargeError, match="receive_message_max_bytes=4000") as caught:
                    await client.wait_for_topics(["t"])
                assert f"{address[0]}:{address[1]}" in str(caught.value.broker)
                assert caught.value.api == "Metadata"


async def test_a_fetch_above_the_limit_is_raised_at_once() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers) as producer:
            await producer.send("t", b"v" * 60_000)
        with anyio.fail_after(SOON):
            async with Consumer(
                bootstrap_servers=cluster.bootstrap_servers, receive_message_max_bytes=50_000, **LASTING
            ) as consumer:
                consumer.assign([TopicPartition("t", 0)])
                await consumer.seek_to_beginning()
                with pytest.raises(ResponseTooLargeError, match="receive_message_max_bytes=50000") as caught:
                    await consumer.getone()
                assert (caught.value.topic, caught.value.partition, caught.value.api) == ("t", 0, "Fetch")
                assert caught.value.broker is not None


async def test_a_large_answer_to_request_any_is_raised_at_once() -> None:
    async with peer(large) as address:
        settings = config(address, receive_message_max_bytes=4_000, **LASTING)
        with anyio.fail_after(SOON):
            async with Client(settings) as client:
                with pytest.raises(ResponseTooLargeError):
                    await client.request_any(MetadataRequest(topics=[MetadataRequestTopic(name="t")]))


async def test_impossible_metadata_of_the_bootstrap_server_is_raised_at_once() -> None:
    def forged(asked: Asked, caller: Caller) -> MetadataResponse:
        made = metadata([(1, *caller.address)])
        if asked.header.api_version > 1:
            made.brokers[0].node_id = -7
        return made

    async def play(caller: Caller) -> None:
        while (asked := await caller.request()) is not None:
            usual = usual_answer(asked, "2.8", caller.address)
            assert usual is not None
            await caller.send(answer_to(asked, forged(asked, caller)) if asked.name == "Metadata" else usual)

    async with peer(play) as address:
        with anyio.fail_after(SOON), pytest.raises(NoBrokersError) as caught:
            async with Client(config(address, **LASTING)):
                pass
        (cause,) = caught.value.causes.values()
        assert isinstance(cause, RemoteProtocolError)
        assert "broker -7" in str(cause)
        assert cause.broker == f"{address[0]}:{address[1]}"


async def test_a_peer_that_closes_each_connection_after_the_handshake_is_dialled_with_growing_pauses() -> None:
    dials = 0

    async def play(caller: Caller) -> None:
        nonlocal dials
        dials += 1
        if caller.number == 1:
            await caller.serve("2.8")  # closes the connection on ListOffsets, which has no answer
        else:
            await caller.greet("2.8")
            await caller.request()

    async with peer(play) as address:
        async with Client(config(address, reconnect_backoff_ms=10, reconnect_backoff_max_ms=1_000)) as client:
            connection = client._connections.existing(client.metadata.brokers[1], Purpose.CONTROL)
            assert connection is not None
            await connection.aclose()
            start, before = anyio.current_time(), dials
            for _ in range(6):
                with pytest.raises(TransportError):
                    await client.request(1, MetadataRequest(topics=[]), timeout=30)
            assert anyio.current_time() - start > 0.8 * 0.010 * (1 + 2 + 4 + 8 + 16)
            assert 1 <= dials - before <= 7


async def test_impossible_metadata_is_named_at_the_deadline() -> None:
    answered = 0

    async def play(caller: Caller) -> None:
        nonlocal answered
        while (asked := await caller.request()) is not None:
            answer = usual_answer(asked, "2.8", caller.address)
            if asked.name == "Metadata" and asked.request.topics:
                made = metadata([(1, *caller.address)], [topic("t", [1])])
                made.topics[0].partitions[0].partition_index = -3
                answer = answer_to(asked, made)
                answered += 1
            assert answer is not None
            await caller.send(answer)

    async with peer(play) as address, Client(config(address)) as client:
        with anyio.fail_after(SOON):
            client.use_topics(["t"])
            while answered < 1:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        with pytest.raises(KafkaError, match="partition -3") as caught:
            await client.wait_for_topics(["t"], timeout=0.3)
        assert f"{address[0]}:{address[1]}" in str(caught.value)
        assert "did not" not in str(caught.value)
        assert client.metadata.partitions("t") == ()


def test_every_reaction_table_raises_an_answer_that_is_too_large() -> None:
    error = ResponseTooLargeError("too large")
    assert consumer_reactions.reaction_to_failure(error) is consumer_reactions.Reaction.RAISE
    for api in group_reactions.Api:
        assert group_reactions.reaction_to_failure(api, error) is group_reactions.Reaction.FAIL
    assert producer_reactions.reaction_to_error(error) is producer_reactions.Reaction.FAIL
    assert producer_reactions.leaves_doubt(error), "the records may be in the log"
