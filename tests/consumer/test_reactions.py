"""Every error code has a reaction, and the ones that differ from the code's own flags are known."""

from __future__ import annotations

import pytest

from pykafka08.consumer.reactions import FAILURES, REACTIONS, Reaction, reaction_to, reaction_to_failure
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    ClosedError,
    ConfigError,
    KafkaError,
    NoBrokersError,
    RemoteProtocolError,
    RequestTimeoutError,
    UnsupportedVersionError,
)


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_each_code_has_a_reaction(code: ErrorCode) -> None:
    reaction = reaction_to(code)
    if code in REACTIONS:
        assert reaction is REACTIONS[code]
    elif code.is_stale_metadata:
        assert reaction is Reaction.REFRESH
    elif code.is_retriable:
        assert reaction is Reaction.BACK_OFF
    else:
        assert reaction is Reaction.RAISE


def test_the_codes_of_a_leader_that_moves_refresh_metadata() -> None:
    for code in (5, 6, 9, 56, 72, 74):
        assert reaction_to(code) is Reaction.REFRESH
    for code in (3, 100, 103, -1):
        assert reaction_to(code) is Reaction.REFRESH_THEN_RAISE
    for code in (70, 71, 75, 78, 106):
        assert reaction_to(code) is Reaction.BACK_OFF
    for code in (2, 76, 4711):
        assert reaction_to(code) is Reaction.RAISE
    assert reaction_to(29) is Reaction.RAISE_ONCE
    assert reaction_to(1) is Reaction.RESET


def test_failures_by_kind() -> None:
    assert reaction_to_failure(UnsupportedVersionError("x")) is Reaction.RAISE
    assert reaction_to_failure(ConfigError("x")) is Reaction.RAISE
    assert reaction_to_failure(RemoteProtocolError("x")) is Reaction.REFRESH_THEN_RAISE
    for error in (NoBrokersError("x"), RequestTimeoutError("x"), ClosedError("x")):
        assert reaction_to_failure(error) is Reaction.REFRESH
    assert FAILURES[-1][0] is KafkaError  # something always matches
