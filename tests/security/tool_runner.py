"""Console tools run one after the other in copies of one process, which imports what the tools before have imported.

Most of the time of a tool goes by with imports.

with Tools() as tools:
    ended = tools.run(["consume", ...], given="text for its standard input")
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from tempfile import TemporaryFile
from types import TracebackType
from typing import TextIO

__all__ = ["Tools"]


class Tools:
    """A process that imports the tools, and forks for each run of one."""

    def __enter__(self) -> Tools:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def run(self, words: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
        """Run ``pykafka08 WORD...`` to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([words, given]) + "\n")
        self._process.stdin.flush()
        status, out, err = json.loads(self._process.stdout.readline())
        return subprocess.CompletedProcess(["pykafka08", *words], status, out, err)


def serve() -> None:
    """Run the commands that standard input has, a line each."""
    while line := sys.stdin.readline():
        words, given = json.loads(line)
        with TemporaryFile() as stdin, TemporaryFile() as out, TemporaryFile() as err, TemporaryFile("w+") as modules:
            stdin.write(given.encode())
            stdin.seek(0)
            child = os.fork()
            if child == 0:
                be_tool(words, (stdin.fileno(), out.fileno(), err.fileno()), modules)
            _, ended = os.waitpid(child, 0)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode())
            modules.seek(0)
            for name in modules.read().split():
                with suppress(ImportError):
                    import_module(name)
        sys.stdout.write(json.dumps([os.waitstatus_to_exitcode(ended), *texts]) + "\n")
        sys.stdout.flush()


def be_tool(words: list[str], files: tuple[int, int, int], modules: TextIO) -> None:
    """Run the tool, write the names of the modules that it has imported, and end the process."""
    from pykafka08.cli.main import main

    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - as long as the process
    status = 1
    try:
        status = main(words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - as the interpreter does at its end
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        modules.write("\n".join(name for name in sys.modules if not name.startswith("__")))
        modules.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
