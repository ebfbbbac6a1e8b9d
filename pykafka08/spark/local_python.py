"""The Python of Spark's workers on this machine: one that imports the pyspark which is installed, not its zip.

Spark puts ``python/lib/pyspark.zip`` first on the path of each Python process that it starts.  An archive has no
compiled modules, so that each process compiles its own: 0.5 to 0.7 s before it does anything, and a query over Kafka
starts several.  Where pip has installed pyspark the same sources lie there compiled.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from pykafka08.spark.launchers import write_launcher

__all__ = ["local_python"]

LAUNCHER = """\
#!/bin/sh
# Written by pykafka08: what pip has installed is compiled, pyspark.zip is not.
path=
IFS=:
set -f
for entry in $PYTHONPATH; do
  case $entry in
    {archives}) ;;
    *) path=$path:$entry ;;
  esac
done
PYTHONPATH=${{path#:}}
export PYTHONPATH
exec {python} "$@"
"""


def local_python(environment: Mapping[str, str] = os.environ) -> str:
    """What ``PYSPARK_PYTHON`` should name where the workers run on the driver's machine (``local[*]``).

    This interpreter, started so that pyspark comes from where it is installed; the interpreter itself where that is not
    as pip does it.  The workers have the same modules in either case, only sooner.
    """
    archives = _archives()
    if os.name == "nt" or not archives:
        return sys.executable
    text = LAUNCHER.format(
        archives="|".join(shlex.quote(str(each)) for each in archives), python=shlex.quote(sys.executable)
    )
    return str(write_launcher("python3", text, environment))


def _archives() -> list[Path]:
    """Those of the installed pyspark, of which site-packages has the same modules."""
    try:
        import pyspark
    except ImportError:
        return []
    if find_spec("py4j") is None:
        return []
    library = Path(pyspark.__file__).parent / "python" / "lib"
    return sorted([*library.glob("pyspark.zip"), *library.glob("py4j-*-src.zip")])
