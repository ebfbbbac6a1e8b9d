"""The reader of W1 and W3 reads what was committed, to the end of the log."""

from __future__ import annotations

import anyio
import pytest

from pykafka08 import EmbeddedCluster, Producer
from pykafka08.records.record import TopicPartition
from tests.faults.history import Drained, Polled
from tests.faults.produce import follow
from tests.faults.stage import PATIENT, Stage

pytestmark = pytest.mark.anyio

PLACE = TopicPartition("out", 0)


async def test_it_waits_for_a_transaction_that_holds_up_what_was_committed_behind_it() -> None:
    async with EmbeddedCluster(topics={"out": 1}) as cluster:
        stage = Stage(cluster.bootstrap_servers, 1, 0)
        async with (
            Producer(cluster.bootstrap_servers, transactional_id="left open", **PATIENT) as dead,
            Producer(cluster.bootstrap_servers, transactional_id="whole", **PATIENT) as alive,
        ):
            await dead.transaction().__aenter__()
            await dead.send("out", b"held ")
            async with alive.transaction():
                await alive.send("out", b"seen ")
            stage.finish()
            ends_asked = anyio.Event()
            cluster.faults.run("ListOffsets", ends_asked.set, skip=1)  # the first is about the beginning
            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(lambda: follow(stage, [PLACE], isolation_level="read_committed"))
                    await ends_asked.wait()
                    cluster.expire_transaction("left open")
    events = [event for _, event in stage.history.events]
    assert [event.records for event in events if isinstance(event, Polled)] == [[(1, "seen")]]
    assert events[-1] == Drained("reader", {PLACE: 3})
