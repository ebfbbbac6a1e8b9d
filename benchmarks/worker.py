"""One client, one turn: ``python -m benchmarks.worker`` reads a task as JSON, and prints what was measured as JSON.

A process of its own, so that no client pays for another's memory, threads or imports.  ``describe`` in place of the
task prints the client's version, settings and ways.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

from benchmarks.jobs import Missing, Task

LATENCY_WAYS = ("send_one", "end_to_end")


def main() -> None:
    if sys.argv[1] == "describe":
        module = import_module(f"benchmarks.clients.{sys.argv[2]}_client")
        print(json.dumps({"version": module.VERSION, "settings": module.SETTINGS, "ways": module.MEANINGS}))
        return
    task = Task.from_json(sys.argv[1])
    if task.tree is not None:
        sys.path.insert(0, task.tree)
    kind = "latency" if task.way in LATENCY_WAYS else f"{task.client}_client"
    try:
        print(import_module(f"benchmarks.clients.{kind}").run(task).to_json())
    except Missing as missing:
        print(json.dumps({"missing": str(missing)}))


if __name__ == "__main__":
    main()
