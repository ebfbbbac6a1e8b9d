"""A test that hangs fails, shows where, and the tests after it run: on both event loops."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = """
import anyio, pytest
from tests import deadlines

deadlines.SHARE = 0.02  # cancelled after a second; pytest-timeout would interfere a busy machine's minute later

pytestmark = pytest.mark.anyio

@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param

async def wait_for_nothing():
    await anyio.Event().wait()

@pytest.mark.timeout(50)
async def test_hangs(anyio_backend):
    await wait_for_nothing()

@pytest.mark.timeout(50)
async def test_hangs_in_a_task(anyio_backend):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.sleep_forever)

async def test_ends(anyio_backend):
    await anyio.sleep(0)
"""


def test_hanging_tests_fail_and_the_rest_runs(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.deadlines",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--timeout=60",
    ]
    # Where CI is set, pytest prints each reason twice: the summary is no longer cut to the line's width.
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    environment["PYTHONPATH"] = str(ROOT)
    run = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 failed, 2 passed" in run.stdout, run.stdout
    assert run.stdout.count("was cancelled") == 4
    assert "in wait_for_nothing" in run.stdout
    assert "from pytest-timeout" not in run.stdout
