"""The turns of one player: ``python -m benchmarks.worker CLIENT WAY [TREE]``.

Says ``ready`` when the client is imported, then reads tasks as JSON, a line each, and answers each with a line of JSON:
what was measured, or what is ``missing`` or ``failed``.  Every turn is a process of its own, forked from this one: no
client pays for another's memory, threads or imports, and no turn waits for imports that another has made.
``describe CLIENT`` prints the client's version, settings and ways, and ends.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.jobs import TURN_TIMEOUT_S, Measured, Missing, Task

LATENCY_WAYS = ("send_one", "aio_send_one", "end_to_end")

Run = Callable[[Task], Measured]


def main() -> None:
    if sys.argv[1] == "describe":
        module = import_module(f"benchmarks.clients.{sys.argv[2]}_client")
        print(json.dumps({"version": module.VERSION, "settings": module.SETTINGS, "ways": module.MEANINGS}))
        return
    client, way, *tree = sys.argv[1:]
    sys.path[:0] = tree
    try:
        run, broken = _imported(client, way), ""
    except Exception as error:
        run, broken = None, _text(error)
    print("ready", flush=True)
    for line in sys.stdin:
        told = {"failed": broken} if run is None else _forked(run, Task.from_json(line))
        print(json.dumps(told), flush=True)


def _imported(client: str, way: str) -> Run:
    """What plays turns of this way, with all imported that it needs."""
    module = import_module(f"benchmarks.clients.{client}_client")
    prepare = getattr(module, "prepare", None)
    if prepare is not None:
        prepare(way)
    run: Run = import_module("benchmarks.clients.latency").run if way in LATENCY_WAYS else module.run
    return run


def _forked(run: Run, task: Task) -> dict[str, Any]:
    """A turn in a process of its own, and what it told."""
    if not task.is_read:
        task.profile.pool()  # kept for the next turn
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _turn_and_exit(run, task, writing)
    os.close(writing)
    with open(reading) as pipe:
        told = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGALRM:
        return {"failed": f"not done after {TURN_TIMEOUT_S} s"}
    if code:
        return {"failed": f"exit code {code}"}
    found: dict[str, Any] = json.loads(told)
    return found


def _turn_and_exit(run: Run, task: Task, writing: int) -> None:
    code = 1
    try:
        signal.alarm(TURN_TIMEOUT_S)
        gc.collect()  # what is shared with the parent is copied now, and not by a collection that is measured
        with open(writing, "w") as pipe:
            pipe.write(_told(run, task))
        code = 0
    finally:
        os._exit(code)


def _told(run: Run, task: Task) -> str:
    try:
        return run(task).to_json()
    except Missing as missing:
        return json.dumps({"missing": str(missing)})
    except Exception as error:
        return json.dumps({"failed": _text(error)})


def _text(error: BaseException) -> str:
    """The first cause, where tasks failed as a group."""
    while getattr(error, "exceptions", ()):
        error = error.exceptions[0]  # type: ignore[attr-defined]
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
