"""What holds for a Python worker of Spark as such, whatever its tasks do."""

from __future__ import annotations

import gc

from pyspark import TaskContext

__all__ = ["begin_task"]

_tasks = 0


def begin_task() -> None:
    """A task of this worker begins; nothing happens outside of one.

    Spark collects garbage after each task, which looks at all that pyspark, pyarrow and we are made of: some 30 ms of
    the processor, more than a small micro-batch is read in.  So what is there when the second task begins, just after
    such a collection, is left out of all later ones.
    """
    global _tasks
    if TaskContext.get() is None:
        return
    _tasks += 1
    if _tasks == 2:
        gc.freeze()
