"""One story of transactions, told in single requests, and what a broker answered to each.

``test_transactions_as_kafka_has_them`` tells it to embedded and to real brokers and compares the answers.
"""

from __future__ import annotations

import time
from typing import Any

import anyio

from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages import REGISTRY
from pykafka08.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pykafka08.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from pykafka08.protocol.messages.end_txn import EndTxnRequest
from pykafka08.protocol.messages.fetch import PartitionData
from pykafka08.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from pykafka08.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from pykafka08.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka08.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from pykafka08.protocol.schema import Request
from pykafka08.protocol.versions import release_named, release_versions
from tests.broker.raw import Raw, batch, decoded, fetch_request

PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
"""Codes that a broker gives while it makes a coordinator or writes markers: asked again until there is another."""

Identity = tuple[int, int]


class Story:
    """Asks one broker; ``lines`` has a line for each answer."""

    def __init__(self, raw: Raw, release: str, topic: str, *, uses_v2: bool) -> None:
        self.raw = raw
        self.topic = topic
        self.transactional_id = f"id of {topic}"
        self.group = f"group of {topic}"
        self.uses_v2 = uses_v2
        self.lines: list[str] = []
        self.sequence = 0
        self._served = release_versions(release_named(release))
        self._most = {"Produce": 11, "EndTxn": 4, "TxnOffsetCommit": 4, "AddPartitionsToTxn": 3, "Fetch": 12}
        if uses_v2:
            self._most = {"Produce": 12, "AddPartitionsToTxn": 3, "Fetch": 12}
        self._most |= {"OffsetFetch": 9, "InitProducerId": 5}

    def version(self, request: type[Request[Any]]) -> int:
        return min(self._served[request.api_key].max, self._most.get(REGISTRY[request.api_key].name, 99))

    async def ask(self, request: Request[Any]) -> Any:
        return await self.raw.ask(request, self.version(type(request)))

    def tell(self, what: str, code: int, *more: object) -> None:
        known = ErrorCode.of(code)
        name = known.name if isinstance(known, ErrorCode) else str(known)
        self.lines.append(" ".join([f"{what}: {name}", *map(str, more)]))

    async def coordinators(self) -> None:
        for kind, key in enumerate((self.group, self.transactional_id)):
            version = self.version(FindCoordinatorRequest)
            for _ in range(200):
                many = version >= 4
                asked = (
                    FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
                    if many
                    else FindCoordinatorRequest(key_type=kind, key=key)
                )
                found = await self.ask(asked)
                code = found.coordinators[0].error_code if many else found.error_code
                if not code:
                    break
                await anyio.sleep(0.1)
            self.tell(f"coordinator {kind}", code)

    async def _until_settled(self, request: Request[Any], code_of: Any) -> Any:
        for _ in range(200):
            answer = await self.ask(request)
            if code_of(answer) not in PASSING:
                break
            await anyio.sleep(0.05)
        return answer

    async def init(
        self, what: str, expected: Identity = (-1, -1), timeout_ms: int = 60_000, name: str | None = None
    ) -> Identity:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id if name is None else name,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        answer: InitProducerIdResponse = await self._until_settled(request, lambda each: each.error_code)
        self.tell(what, answer.error_code, f"epoch {answer.producer_epoch}")
        return answer.producer_id, answer.producer_epoch

    async def add(self, what: str, who: Identity, *partitions: int, topic: str | None = None) -> None:
        topics = [AddPartitionsToTxnTopic(name=self.topic, partitions=list(partitions))]
        if topic is not None:
            topics.append(AddPartitionsToTxnTopic(name=topic, partitions=[0]))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=who[0],
            v3_and_below_producer_epoch=who[1],
            v3_and_below_topics=topics,
        )

        def codes(answer: Any) -> list[int]:
            found = sorted(answer.results_by_topic_v3_and_below, key=lambda each: each.name != self.topic)
            return [each.partition_error_code for result in found for each in result.results_by_partition]

        answer = await self._until_settled(request, lambda each: codes(each)[0])
        for code in codes(answer):
            self.tell(what, code)

    async def produce(
        self, what: str, who: Identity, value: bytes, *, at: int | None = None, is_transactional: bool = True
    ) -> None:
        sequence = self.sequence if at is None else at
        records = batch(
            value,
            producer_id=who[0],
            producer_epoch=who[1],
            base_sequence=sequence,
            is_transactional=is_transactional,
            at_ms=time.time_ns() // 1_000_000,
        )
        request = ProduceRequest(
            transactional_id=self.transactional_id if is_transactional else None,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=0, records=records)])
            ],
        )

        def code_of(answer: Any) -> int:
            return int(answer.responses[0].partition_responses[0].error_code)

        answer = await self._until_settled(request, code_of)
        outcome = answer.responses[0].partition_responses[0]
        self.tell(what, outcome.error_code, f"at {outcome.base_offset}")
        if not outcome.error_code and at is None:
            self.sequence += 1

    async def end(self, what: str, who: Identity, *, commit: bool, name: str | None = None) -> Identity:
        """The identity to go on with."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id if name is None else name,
            producer_id=who[0],
            producer_epoch=who[1],
            committed=commit,
        )
        answer = await self._until_settled(request, lambda each: each.error_code)
        is_bumped = answer.producer_epoch >= 0 and not answer.error_code
        self.tell(what, answer.error_code, *([f"epoch {answer.producer_epoch}"] if is_bumped else []))
        if not answer.error_code:
            await self.settled()
        if is_bumped:
            self.sequence = 0
            return answer.producer_id, answer.producer_epoch
        return who

    async def settled(self) -> None:
        """Wait until markers are written: the last stable offset is the log's end."""
        for _ in range(200):
            data = await self.fetched(0, isolation=1)
            if data.last_stable_offset == data.high_watermark:
                return
            await anyio.sleep(0.05)

    async def fetched(self, offset: int, *, isolation: int) -> PartitionData:
        request = fetch_request(offset, topic=self.topic, isolation_level=isolation, replica_id=-1)
        answer: PartitionData = (await self.ask(request)).responses[0].partitions[0]
        return answer

    async def read(self, what: str, offset: int = 0) -> None:
        """What readers of both kinds get, with the aborted ranges, and the end that ListOffsets tells them."""
        for isolation in (0, 1):
            data = await self.fetched(offset, isolation=isolation)
            offsets = [(record.offset, record.value) for record in decoded(data, offset)]
            values = [value.decode() if len(value or b"") == 1 and value is not None else "*" for _, value in offsets]
            aborted = [each.first_offset for each in data.aborted_transactions or []]
            version = self.version(ListOffsetsRequest)
            asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
            listed = await self.raw.ask(
                ListOffsetsRequest(
                    replica_id=-1,
                    isolation_level=isolation,
                    topics=[ListOffsetsTopic(name=self.topic, partitions=[asked])],
                ),
                version,
            )
            end = listed.topics[0].partitions[0].offset
            self.tell(
                f"{what}, isolation {isolation}", data.error_code, "".join(values), f"aborted {aborted}",
                f"high {data.high_watermark} stable {data.last_stable_offset} end {end}",
            )  # fmt: skip

    async def add_offsets(self, what: str, who: Identity) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id, producer_id=who[0], producer_epoch=who[1], group_id=self.group
        )
        answer = await self._until_settled(request, lambda each: each.error_code)
        self.tell(what, answer.error_code)

    async def commit_offset(
        self, what: str, who: Identity, offset: int, *, member_id: str = "", generation: int = -1
    ) -> None:
        committed = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata="note"
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.group,
            producer_id=who[0],
            producer_epoch=who[1],
            topics=[TxnOffsetCommitRequestTopic(name=self.topic, partitions=[committed])],
        )
        if self.version(TxnOffsetCommitRequest) >= 3:
            request.member_id, request.generation_id = member_id, generation
        answer = await self._until_settled(request, lambda each: each.topics[0].partitions[0].error_code)
        self.tell(what, answer.topics[0].partitions[0].error_code)

    async def offsets(self, what: str) -> None:
        """What the group has committed, without and with waiting for open transactions."""
        version = self.version(OffsetFetchRequest)
        for stable in (False, True) if version >= 7 else (False,):
            if version >= 8:
                group = OffsetFetchRequestGroup(
                    group_id=self.group, topics=[OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])]
                )
                many = await self.raw.ask(OffsetFetchRequest(groups=[group], require_stable=stable), version)
                found = many.groups[0].topics[0].partitions[0]
            else:
                request = OffsetFetchRequest(
                    group_id=self.group,
                    topics=[OffsetFetchRequestTopic(name=self.topic, partition_indexes=[0])],
                )
                if version >= 7:
                    request.require_stable = stable
                found = (await self.raw.ask(request, version)).topics[0].partitions[0]
            self.tell(f"{what}, stable {stable}", found.error_code, f"offset {found.committed_offset}")


async def tell(raw: Raw, release: str, topic: str, *, uses_v2: bool) -> list[str]:
    """The whole story, on a broker that leads all of ``topic`` (two partitions) and coordinates everything."""
    story = Story(raw, release, topic, uses_v2=uses_v2)
    await raw.ask(MetadataRequest(topics=None), 1)
    await story.coordinators()
    await _beginnings(story)
    who = await story.init("first identity")
    who = await _nothing_in_it(story, who)
    who = await _one_transaction(story, who)
    who = await _offsets(story, who)
    who = await _an_abort(story, who)
    await _a_zombie(story, who)
    return story.lines


async def _beginnings(story: Story) -> None:
    await story.init("no name", name="")
    await story.init("time-out of an hour", timeout_ms=3_600_000)
    await story.init("time-out of nothing", timeout_ms=0)
    await story.end("end of an unknown id", (1, 0), commit=True, name="unknown " + story.topic)
    await story.init("the wrong half of an identity", (7, -1)) if story.version(InitProducerIdRequest) >= 3 else None


async def _nothing_in_it(story: Story, who: Identity) -> Identity:
    await story.end("commit of nothing", who, commit=True)
    who = await story.end("abort of nothing", who, commit=False)
    await story.add("partition of another id", (who[0] + 1000, who[1]), 0)
    await story.add("partition of another epoch", (who[0], who[1] + 1), 0)
    await story.add("partition that is not there", who, 0, topic="no-such-topic")
    if story.version(ProduceRequest) >= 11:
        await story.produce("record of another id", (who[0] + 1000, who[1]), b"x", at=0)
        await story.produce("record of another epoch", (who[0], who[1] + 1), b"x", at=0)
    if 11 <= story.version(ProduceRequest) < 12:
        await story.produce("record of no transaction", who, b"x", at=0)
    return who


async def _one_transaction(story: Story, who: Identity) -> Identity:
    if not story.uses_v2:
        await story.add("partition", who, 0)
        await story.add("partition again", who, 0)
    await story.produce("record", who, b"a")
    await story.produce("record again", who, b"a", at=0)
    await story.produce("record outside", who, b"x", at=1, is_transactional=False)
    await story.produce("record after a gap", who, b"x", at=7)
    await story.read("open")
    before = who
    who = await story.end("commit", who, commit=True)
    await story.read("committed")
    if story.uses_v2:
        assert await story.end("commit again, as before", before, commit=True) == who
        await story.end("abort instead, as before", before, commit=False)
        await story.produce("late record of the one before", before, b"x", at=1)
        story.sequence = 0
    await story.end("commit again", who, commit=True)
    if not story.uses_v2:
        await story.end("abort instead", who, commit=False)
        if story.version(ProduceRequest) >= 11:
            await story.produce("record of no transaction", who, b"x", at=1)
    return who


async def _offsets(story: Story, who: Identity) -> Identity:
    if story.version(AddOffsetsToTxnRequest) >= 3 and not story.uses_v2:
        await story.commit_offset("offset of no transaction", who, 5)
    await story.offsets("before")
    if not story.uses_v2:
        await story.add_offsets("group of another id", (who[0] + 1000, who[1]))
        await story.add_offsets("group of another epoch", (who[0], who[1] + 1))
        await story.add_offsets("group", who)
    if story.version(TxnOffsetCommitRequest) >= 3:
        await story.commit_offset("offset of no member", who, 5, member_id="nobody", generation=1)
    await story.commit_offset("offset", who, 5)
    await story.offsets("open")
    who = await story.end("commit of offsets", who, commit=True)
    for _ in range(100):
        if "offset 5" in await _last_offset(story):
            break
        await anyio.sleep(0.05)
    await story.offsets("committed")
    return who


async def _last_offset(story: Story) -> str:
    count = len(story.lines)
    await story.offsets("look")
    line = story.lines[count]
    del story.lines[count:]
    return line


async def _an_abort(story: Story, who: Identity) -> Identity:
    if not story.uses_v2:
        await story.add("partition of the next", who, 0)
    await story.produce("record of the next", who, b"b")
    await story.produce("second record of the next", who, b"c")
    who = await story.end("abort", who, commit=False)
    await story.read("aborted")
    await story.read("aborted, from its middle", 3)
    return who


async def _a_zombie(story: Story, who: Identity) -> None:
    if not story.uses_v2:
        await story.add("partition of the last", who, 0)
    await story.produce("record of the last", who, b"d")
    new = await story.init("the next producer")
    assert new[0] == who[0]
    await story.settled()
    await story.read("fenced")
    await story.produce("record of the zombie", who, b"x")
    if not story.uses_v2:
        await story.add("partition of the zombie", who, 0)
        await story.add_offsets("group of the zombie", who)
    await story.commit_offset("offset of the zombie", who, 9)
    await story.end("commit of the zombie", who, commit=True)
    if story.version(InitProducerIdRequest) >= 3:
        await story.init("the zombie wants an epoch", who)
        newer = await story.init("the next epoch", new)
        assert await story.init("the next epoch again", new) == newer
        await story.init("another id wants an epoch", (new[0] + 1000, 0))
        new = newer
    story.sequence = 0
    if not story.uses_v2:
        await story.add("partition of the new one", new, 0)
    await story.produce("record of the new one", new, b"e")
    await story.end("commit of the new one", new, commit=True)
    await story.read("in the end")
