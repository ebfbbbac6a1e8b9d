"""Our assignors against Kafka's own, which read our subscriptions and whose assignments we read.

Range and round robin must agree to the partition.  Sticky ones must be as even and as sticky; among equals they may
choose others, where Java's order is that of a hash map.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from pykafka08.group.assignors import ASSIGNORS, Assignment, GroupMember, TopicPartition
from pykafka08.group.subscription import decode_assignment, decode_member, encode_subscription
from pykafka08.protocol.messages.join_group import JoinGroupResponseMember
from tests.brokers.jars import java_command, quick_flags, resolve

RELEASES = ("2.8.2", "4.3.1")
CASES = 40
STICKY = ("sticky", "cooperative-sticky")

pytestmark = [pytest.mark.needs_maven, pytest.mark.timeout(300)]


class Case(NamedTuple):
    name: str
    partitions: dict[str, int]
    members: list[JoinGroupResponseMember]
    before: Assignment

    def line(self) -> str:
        counts = ",".join(f"{topic}={count}" for topic, count in self.partitions.items())
        members = (f"{each.member_id}|{each.group_instance_id or '-'}|{each.metadata.hex()}" for each in self.members)
        return " ".join(["assign", self.name, counts, *members])

    def ours(self) -> Assignment:
        return ASSIGNORS[self.name].assign([decode_member(each) for each in self.members], self.partitions)

    @property
    def wants_the_same(self) -> bool:
        return len({decode_member(each).topics for each in self.members}) == 1


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ask_java(release: str, lines: Sequence[str]) -> list[str]:
    source = Path(__file__).with_name("JavaAssignors.java")
    # What the assignors log would stand between the answers.
    quiet = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-Dlog4j2.level=OFF"]
    command = [java_command(), *quick_flags(), *quiet, "-cp", f"{resolve(release)}/*", str(source)]
    run = subprocess.run(
        command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=200, check=True
    )
    answers = run.stdout.splitlines()
    assert len(answers) == len(lines), run.stderr[-2000:]
    return answers


def told_by_java(answer: str) -> Assignment:
    pairs = (word.split("=") for word in answer.split(" "))
    return {member_id: sorted(decode_assignment(bytes.fromhex(data))) for member_id, data in pairs}


def a_case(name: str, rng: random.Random) -> Case:
    """A group as it joins: new, or after an assignment of ours and a change."""
    topics = ["a", "b", "c", "d"][: rng.randint(1, 4)]
    partitions = {topic: rng.randint(1, 8) for topic in topics}
    is_mixed = rng.random() < 0.5
    ids = [f"{rng.choice('xyz')}-{number}" for number in range(rng.randint(1, 6))]

    def wants() -> frozenset[str]:
        return frozenset(rng.sample(topics, rng.randint(1, len(topics))) if is_mixed else topics)

    members = [GroupMember(each, wants(), instance_id=f"i{each}" if rng.random() < 0.3 else None) for each in ids]
    before: Assignment = {}
    if rng.random() < 0.7:
        before = ASSIGNORS[name].assign(members, partitions)
        stay = [each for each in members if rng.random() < 0.8] or members[:1]
        members = stay + [GroupMember(f"new-{n}", wants()) for n in range(rng.randint(0, 2))]
        before = {each.member_id: before[each.member_id] for each in stay}
    return Case(name, partitions, [_joining(name, each, before.get(each.member_id, [])) for each in members], before)


def _joining(name: str, member: GroupMember, held: list[TopicPartition]) -> JoinGroupResponseMember:
    assignor = ASSIGNORS[name]
    generation = 3 if held else -1
    owned = held if assignor.is_cooperative else []
    metadata = encode_subscription(
        member.topics, owned, generation if owned else -1, assignor.user_data(held, generation)
    )
    return JoinGroupResponseMember(member_id=member.member_id, group_instance_id=member.instance_id, metadata=metadata)


def kept(case: Case, assignment: Assignment) -> int:
    return sum(len(set(mine) & set(assignment.get(member_id, []))) for member_id, mine in case.before.items())


def loads(assignment: Assignment) -> list[int]:
    return sorted(map(len, assignment.values()))


def test_assignments(release: str) -> None:
    rng = random.Random(f"assignors of {release}")
    cases = [a_case(name, rng) for name in ASSIGNORS for _ in range(CASES)]
    for case, answer in zip(cases, ask_java(release, [case.line() for case in cases]), strict=True):
        ours, theirs = case.ours(), told_by_java(answer)
        if case.name not in STICKY:
            assert ours == theirs, case.line()
        elif case.wants_the_same:
            assert (kept(case, ours), loads(ours)) == (kept(case, theirs), loads(theirs)), case.line()
            if not case.before and release == RELEASES[-1]:  # 2.8 deals out in the order of its hash map
                assert ours == theirs, case.line()
        elif not case.before or case.name == "sticky":
            spread = [sum(load * load for load in loads(each)) for each in (ours, theirs)]
            assert spread[0] <= spread[1], case.line()


def test_user_data(release: str) -> None:
    held = [TopicPartition("t", 0), TopicPartition("t", 2), TopicPartition("u-v", 1)]
    words = ",".join(f"{topic}-{partition}" for topic, partition in held)
    answers = ask_java(release, [f"userdata {name} 7 {words}" for name in STICKY])
    for name, answer in zip(STICKY, answers, strict=True):
        theirs = bytes.fromhex(answer)
        ours = ASSIGNORS[name].user_data(held, 7)
        assert ours is not None
        if name == "sticky":  # Java writes the topics in any order
            assert sorted(ours) == sorted(theirs)
            assert len(ours) == len(theirs)
        else:
            assert ours == theirs
