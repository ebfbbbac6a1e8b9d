"""What a killed session has left behind is removed by the next one; what a living one has is not."""

from __future__ import annotations

import os

import pytest

from tests.brokers.containers import create, docker, image, state
from tests.brokers.processes import start_time
from tests.compose.files import PROJECT, SESSION, end_leftovers

pytestmark = [pytest.mark.compose, pytest.mark.timeout(300)]


def test_only_leftovers_are_removed() -> None:
    pid = os.getpid()
    name = image("0.8.2.2")
    living = create(name, "--label", f"{PROJECT}={SESSION}-{pid}-{start_time(pid)}-2-8", ROLE="network")
    killed = create(name, "--label", f"{PROJECT}={SESSION}-{pid}-1-2-8", ROLE="network")
    foreign = create(name, "--label", f"{PROJECT}=docker", ROLE="network")
    try:
        end_leftovers()
        assert [state(each) for each in (living, killed, foreign)] == ["created", "gone", "created"]
    finally:
        docker("rm", "--force", living, foreign)
