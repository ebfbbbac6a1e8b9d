"""What a run of everything must hold, and what it says at its end: nothing is left out, or fails, in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.open_sockets import OPENERS

TESTS = Path(__file__).parent
LAST_LINES = 40
"""Of each failure, repeated at the very end: of a long log often only that is to be seen."""


@pytest.hookimpl(tryfirst=True)  # before what is no part of this run is left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a run of everything in which a file of tests has none."""
    if {Path(config.invocation_params.dir, one) for one in config.args} <= {TESTS, TESTS.parent}:
        silent = sorted(set(TESTS.rglob("test_*.py")) - {item.path for item in items})
        if silent:
            names = ", ".join(str(path.relative_to(TESTS.parent)) for path in silent)
            raise pytest.UsageError(f"no test was collected from {names}")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The end of each failure again, after the slowest tests and all that was skipped."""
    failed = [report for kind in ("error", "failed") for report in terminalreporter.getreports(kind)]
    if failed:
        terminalreporter.section("what failed")
    for report in failed:
        terminalreporter.write_sep("_", f"{report.nodeid} ({getattr(report, 'when', 'collect')})")
        for line in report.longreprtext.splitlines()[-LAST_LINES:]:
            terminalreporter.line(line)
        openers = [text for title, text in report.sections if title == OPENERS]
        for line in "\n".join(openers).splitlines():
            terminalreporter.line(line)
