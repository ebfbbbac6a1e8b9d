"""One client, one job: ``python -m benchmarks.worker CLIENT JOB BOOTSTRAP TOPIC RECORDS SIZE``.

Prints one line of JSON.  A process of its own, so that no client pays for another's memory, threads or imports.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

from benchmarks.jobs import Task

WARM_UP_RECORDS = 2_000


def main() -> None:
    client, job, bootstrap, topic, records, size = sys.argv[1:7]
    module = import_module(f"benchmarks.clients.{client}_client")
    if job == "describe":
        print(json.dumps({"version": module.VERSION, "settings": module.SETTINGS, "ways": module.WAYS}))
        return
    task = Task(bootstrap, topic, int(records), int(size), min(WARM_UP_RECORDS, int(records)))
    print(json.dumps(module.run(job, task)._asdict()))


if __name__ == "__main__":
    main()
