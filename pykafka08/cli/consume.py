"""``pykafka08 consume`` and ``pykafka08-console-consumer``: the records of a topic on standard output.

Options and output are those of Kafka's own console consumer, 0.10 to 4.3.  Here: from the command line to the plan;
what carries it out is imported when it is known that there is something to do, so that ``--help`` answers at once.
Nothing heavy is imported at the top, so that Ctrl-C is heard.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pykafka08.cli.main import unless_interrupted

__all__ = ["console_consumer", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """``pykafka08 consume``."""
    return _main("pykafka08 consume", arguments)


def console_consumer(arguments: Sequence[str] | None = None) -> int:
    """``pykafka08-console-consumer``."""
    return unless_interrupted(partial(_main, "pykafka08-console-consumer", arguments))


def _main(prog: str, arguments: Sequence[str] | None) -> int:
    from pykafka08.cli.plan import consumer_parser, plan_of, record_format_of
    from pykafka08.errors import ConfigError

    parser = consumer_parser(prog)
    options = parser.parse_args(arguments)
    from pykafka08.cli.exits import run

    try:
        if options.zookeeper is not None:
            from pykafka08.cli.old_consumer import copy_old_records, old_plan

            return run(
                prog, partial(copy_old_records, old_plan(options, record_format_of(options))), options.verbose, options
            )
        plan = plan_of(options)
    except ConfigError as error:
        parser.refuse(error, options)
    from pykafka08.cli.copying import copy_records

    return run(prog, partial(copy_records, plan), options.verbose, options)
