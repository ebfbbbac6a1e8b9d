"""Well-formed answers with impossible values are protocol errors, and change no state."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pykafka08 import ClientFailedError, EmbeddedCluster, Producer, RemoteProtocolError
from pykafka08.broker.cluster_state import ClusterState
from tests.producer.clusters import FAST

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("setting", [{}, {"enable_idempotence": True}, {"transactional_id": "the-id"}], ids=str)
async def test_a_producer_id_below_zero_is_an_error(setting: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClusterState, "new_producer_id", lambda self: -1)
    async with EmbeddedCluster(1, topics={"t": 1}) as cluster:
        with anyio.fail_after(30), pytest.raises(RemoteProtocolError, match="producer id -1") as raised:
            async with Producer(cluster.bootstrap_servers, **FAST, **setting) as producer:
                await producer.send("t", b"v")
        assert not isinstance(raised.value, ClientFailedError)
        assert str(cluster.brokers[0].port) in (raised.value.broker or "")
        assert raised.value.api == "InitProducerId"
        assert cluster.records("t", 0) == []
