"""What holds for a Python worker of Spark as such, whatever its tasks do."""

from __future__ import annotations

import gc
import logging
import sys

from pyspark import TaskContext

from pykafka08.logs import ROOT

__all__ = ["begin_task", "hear_warnings"]

_tasks = 0


def begin_task() -> None:
    """A task of this worker begins; nothing happens outside of one.

    Spark collects garbage after each task, which looks at all that pyspark, pyarrow and we are made of: some 30 ms of
    the processor, more than a small micro-batch is read in.  So what is there when the second task begins, just after
    such a collection, is left out of all later ones.
    """
    global _tasks
    hear_warnings()
    if TaskContext.get() is None:
        return
    _tasks += 1
    if _tasks == 2:
        gc.freeze()


def hear_warnings() -> None:
    """In a process that Spark started, warnings go to standard error, as Python has it where nobody configures logging.

    No application can add a handler there, and the library's own NullHandler would keep them from everybody.
    """
    root = logging.getLogger(ROOT)
    heard = logging.lastResort
    if _is_sparks_process() and heard is not None and heard not in root.handlers:
        root.addHandler(heard)


def _is_sparks_process() -> bool:
    """Spark starts its daemon of workers and its runners beside the driver as ``python -m pyspark.MODULE``."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")
