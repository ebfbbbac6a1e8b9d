"""The command ``pykafka08``: finds the sub-command and imports that one alone.

Not here: what the sub-commands do (``consume``, ``produce``, ``broker``).  Nothing is imported at the top, so that
``--version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

import pykafka08

__all__ = ["main", "unless_interrupted"]

USAGE_TEXT = """\
usage: pykafka08 COMMAND [OPTION]...

commands:
  consume    print the records of a topic, with the options of kafka-console-consumer
  produce    send each line of standard input as a record
  mirror     copy topics, and carry groups over, from any cluster to any other
  zk         show and change what old clusters keep in ZooKeeper
  migrate    move a group's offsets from ZooKeeper to Kafka
  pipeline   topics through Spark into Delta tables and back to Kafka, each input once
  broker     serve Kafka from memory on this machine, playing any release from 0.8.0 to 4.3

options:
  -h, --help     this text; COMMAND --help lists the command's options
  --version      the version of pykafka08

exit status: 0 done, 1 failure while running, 2 wrong usage, 4 no broker reached,
130 and 143 ended by SIGINT and SIGTERM after closing
"""

COMMANDS = ("consume", "produce", "mirror", "migrate", "zk", "pipeline", "broker")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sub-command; the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    first = words[0] if words else ""
    if first in ("-h", "--help"):
        sys.stdout.write(USAGE_TEXT)
        return 0
    if first in ("--version", "-V"):
        sys.stdout.write(f"pykafka08 {pykafka08.__version__}\n")
        return 0
    if first not in COMMANDS:
        sys.stderr.write(USAGE_TEXT)
        sys.stderr.write(f"\npykafka08: {_unknown(first) if first else 'a command is needed'}\n")
        return 2
    return unless_interrupted(lambda: _run(first, words[1:]))


def _unknown(word: str) -> str:
    from difflib import get_close_matches

    nearest = get_close_matches(word, COMMANDS, 1)
    return f"unknown command {word!r:.100}" + (f"; did you mean {nearest[0]!r}?" if nearest else "")


def _run(name: str, words: Sequence[str]) -> int:
    command: Callable[[Sequence[str]], int] = import_module(f"pykafka08.cli.{name}").main
    return command(words)


def unless_interrupted(run: Callable[[], int]) -> int:
    """What ``run`` returns; 130 if Ctrl-C comes while it imports, before it sees to signals itself."""
    try:
        return run()
    except KeyboardInterrupt:
        return 130
