"""Every error code has a reaction: listed, or by the flags of the code."""

from __future__ import annotations

import pytest

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    ClientFailedError,
    ClosedError,
    ConfigError,
    KafkaError,
    LocalProtocolError,
    RemoteProtocolError,
    RequestTimeoutError,
    TransportError,
    UnsupportedVersionError,
    broker_error,
)
from pykafka08.producer.reactions import REACTIONS, Reaction, is_repeated, reaction_to_code, reaction_to_error

EXPECTED = {
    Reaction.ACKNOWLEDGE: {0, 46},
    Reaction.RETRY_ONCE: {2},
    Reaction.SPLIT: {10, 18},
    Reaction.RENUMBER: {45, 59},
    Reaction.NEW_IDENTITY: {47, 49, 90},
    Reaction.SEND_PLAIN: {43},
    Reaction.REFRESH_AND_RETRY: {3, 5, 6, 9, 13, 56, 72, 74, 80, 83, 84, 100, 103},
    Reaction.RETRY: {7, 14, 15, 16, 19, 20, 41, 51, 70, 71, 75, 78, 88, 89, 106, 122, 123, 133},
}


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_each_code(code: ErrorCode) -> None:
    expected = next((reaction for reaction, codes in EXPECTED.items() if int(code) in codes), Reaction.FAIL)
    assert reaction_to_code(int(code)) is expected
    if code not in REACTIONS:
        assert (expected is Reaction.FAIL) == (not code.is_retriable)


def test_a_code_that_is_not_known_fails() -> None:
    assert reaction_to_code(9999) is Reaction.FAIL


@pytest.mark.parametrize(
    ("error", "reaction"),
    [
        (TransportError("refused"), Reaction.REFRESH_AND_RETRY),
        (RequestTimeoutError("no answer"), Reaction.REFRESH_AND_RETRY),
        (RemoteProtocolError("damaged"), Reaction.REFRESH_AND_RETRY),
        (ClosedError("connection closed"), Reaction.RETRY),
        (UnsupportedVersionError("old"), Reaction.FAIL),
        (LocalProtocolError("no bytes"), Reaction.FAIL),
        (ConfigError("no"), Reaction.FAIL),
        (ClientFailedError("died"), Reaction.FAIL),
        (broker_error(6), Reaction.REFRESH_AND_RETRY),
        (broker_error(29), Reaction.FAIL),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_way_to_get_no_answer(error: KafkaError, reaction: Reaction) -> None:
    assert reaction_to_error(error) is reaction


def test_only_the_same_code_is_a_repetition() -> None:
    assert is_repeated(broker_error(2), broker_error(2))
    assert not is_repeated(broker_error(2), broker_error(7))
    assert not is_repeated(broker_error(2), None)
    assert not is_repeated(broker_error(2), TransportError("closed"))
