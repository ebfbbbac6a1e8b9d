"""What some tests need beyond Python, and the one line said for all those that cannot run without it.

A test names its need with a marker. Without the programs it is skipped, unless `PYKAFKA08_REQUIRE_BROKERS=1`, as in
`.ci/run`: then it fails.
"""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple

import pytest


class Need(NamedTuple):
    """Programs that must be on the path, and what they are for."""

    programs: tuple[str, ...]
    purpose: str


NEEDS = {
    "brokers": Need(("java", "mvn"), "real brokers"),
    "needs_maven": Need(("java", "mvn"), "the files inside Kafka's own jars"),
    "kcat": Need(("kcat",), "kcat as a peer"),
}
REQUIRE = "PYKAFKA08_REQUIRE_BROKERS"
"""Environment variable; 1 turns every such skip into a failure."""


def missing(marker: str, brokers: str) -> str | None:
    """Why tests with this marker cannot run here; None when they can."""
    need = NEEDS[marker]
    if marker == "brokers" and brokers == "none":
        return f"needs {need.purpose}, switched off by --brokers=none"
    absent = [program for program in need.programs if shutil.which(program) is None]
    return f"needs {need.purpose}, and there is no {' and no '.join(absent)} on PATH" if absent else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--brokers",
        choices=["jars", "none"],
        default="jars",
        help="jars (default): tests with real brokers start them from published jars; none: they are skipped",
    )


@pytest.hookimpl(tryfirst=True)  # before any fixture of the test is set up
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in NEEDS:
        if item.get_closest_marker(marker) is None:
            continue
        reason = missing(marker, item.config.getoption("--brokers"))
        if reason is None:
            continue
        if os.environ.get(REQUIRE) == "1":
            pytest.fail(f"{reason}; {REQUIRE}=1 forbids to skip it", pytrace=False)
        pytest.skip(reason)  # all from this line: pytest reports them as one
