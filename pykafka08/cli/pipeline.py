"""``pykafka08 pipeline``: topics of any clusters through Spark into Delta tables and back to Kafka, each input once.

This module has the options and the output.  ``pykafka08.spark.pipeline``, of the extra ``pipeline``, has the actions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykafka08.cli.notes import note
from pykafka08.cli.options import new_parser
from pykafka08.errors import ConfigError, KafkaError, NoBrokersError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pykafka08.spark.pipeline.settings import Pipeline

__all__ = ["main"]

PROG = "pykafka08 pipeline"
EPILOG = """\
docs/pipeline.md describes CONFIG.toml.  A pipeline that is run again continues where it stopped.
exit status: 0 done, 1 a stage failed or verify found something wrong, 2 wrong usage or settings,
             3 a bound of [alerts] is exceeded (run, status --check), 4 no broker reached
"""
DONE, FAILED, USAGE, ALERT, NO_BROKER, INTERRUPTED = 0, 1, 2, 3, 4, 130


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        from pykafka08.spark.pipeline import settings
        from pykafka08.spark.pipeline.old_layout import check_layout

        if options.action == "init":
            return _init(options)
        pipeline = settings.read(options.config)
        if options.action != "convert":
            check_layout(pipeline)
        return ACTIONS[options.action](pipeline, options)
    except ImportError as error:
        note(f"{PROG}: {error}; pip install 'pykafka08[pipeline]'")
        return USAGE
    except ConfigError as error:
        for line in str(error).splitlines():  # one for each setting
            note(f"{PROG}: {line}")
        return USAGE
    except NoBrokersError as error:
        note(f"{PROG}: {error}")
        return NO_BROKER
    except KafkaError as error:
        note(f"{PROG}: {error}")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = new_parser(PROG, "Kafka to Delta tables and back by Spark: bronze, silver, gold, dead letters.", EPILOG)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    texts = {
        "plan": "print what a run would read: tasks, records, bytes, expected duration",
        "run": "run the stages until all input is read, or without end with --follow",
        "validate": "check the settings, the clusters, the topics and a worker",
        "verify": "prove from offsets and rows that no record is lost or doubled",
        "backfill": "compute days of silver and gold again from bronze",
        "convert": "make Delta tables of a folder of an earlier version",
        "profile": "nulls, distinct values, bounds and most frequent values of each column of silver",
        "status": "lag, throughput and last batch of each stage, and of the partitions with the largest lag",
    }
    _add_init(actions)
    made = {name: actions.add_parser(name, help=text, description=text) for name, text in texts.items()}
    for one in made.values():
        one.add_argument("config", metavar="CONFIG.toml")
    made["run"].add_argument("--follow", action="store_true", help="all stages at once, until Ctrl-C or SIGTERM")
    made["run"].add_argument("--stage", action="append", default=[], metavar="NAME", help="this stage only")
    made["run"].add_argument("--no-compaction", action="store_true", help="leave small files as they are")
    made["run"].add_argument("--no-charts", action="store_true", help="draw no picture of the run")
    made["status"].add_argument("--all", action="store_true", help="every partition, also those without lag")
    made["status"].add_argument("--check", action="store_true", help="status 3 if a bound of [alerts] is exceeded")
    made["verify"].add_argument(
        "--kafka", action="store_true", help="count the ranges in Kafka, too, where there are holes"
    )
    _add_profile(made["profile"])
    for name, text in (("--from", "first day, event time in UTC"), ("--to", "last day")):
        made["backfill"].add_argument(name, dest=f"day_{name[2:]}", type=_day, metavar="YYYY-MM-DD", help=text)
    text = "in place of days: compute all windows of this aggregate again, after a change of its settings"
    made["backfill"].add_argument("--restate", default="", metavar="NAME", help=text)
    return parser


def _add_init(actions: Any) -> None:
    text = "look at topics and write a commented CONFIG.toml for them; a file is never overwritten"
    init = actions.add_parser("init", help=text, description=text)
    init.add_argument("--bootstrap-server", default="", metavar="HOST:PORT,...", help="brokers of the cluster")
    init.add_argument("--topic", action="append", required=True, metavar="NAME", help="once or more often")
    init.add_argument("--command-config", default="", metavar="FILE", help="properties of the cluster, as TLS and SASL")
    init.add_argument("--avro-schema", default="", metavar="FILE", help="the values are Avro of this schema")
    init.add_argument("--output", default="pipeline.toml", metavar="CONFIG.toml", help="default: pipeline.toml")


def _add_profile(action: argparse.ArgumentParser) -> None:
    action.add_argument("--json", action="store_true", help="one JSON document in place of a table")
    action.add_argument("--top", type=int, default=5, metavar="N", help="the number of frequent values, default: 5")
    action.add_argument("--from", dest="day_from", type=_day, metavar="YYYY-MM-DD", help="first day, event time in UTC")
    action.add_argument("--to", dest="day_to", type=_day, metavar="YYYY-MM-DD", help="last day")


def _init(options: argparse.Namespace) -> int:
    from pykafka08.spark.pipeline.guessing import guess, sample, toml_of
    from pykafka08.spark.pipeline.settings import source_of

    path = Path(options.output)
    if path.exists():
        raise ConfigError(f"{path} exists; choose another file with --output")
    source = source_of(options.bootstrap_server, options.topic, options.command_config, path.parent.resolve())
    records = sample(source)
    schema = str(Path(options.avro_schema).resolve()) if options.avro_schema else ""
    found = guess(records, schema)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(toml_of(found, source, "out", len(records)))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    _say(f"{path}: {found.format}, by {len(records):,} records; event time: {found.event_time}")
    for name, kind in found.columns.items():
        _say(f"  {name} {kind}")
    for one in found.notes:
        _say(one)
    return DONE


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole day, as 2013-03-01") from error


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _plan(pipeline: Pipeline, options: argparse.Namespace) -> int:
    from pykafka08.spark.pipeline.planning import plan_sources, plan_stages
    from pykafka08.spark.pipeline.validating import check_offline

    check_offline(pipeline)
    sources = plan_sources(pipeline)
    for one in sources:
        by = "by the last run" if one.is_rate_known else "at a usual rate; no run has shown it yet"
        lost = f", {one.lost:,} more are deleted already" if one.lost else ""
        size = f", about {_size(one.bytes)} in Kafka" if one.bytes else ""
        task_size = f", {_size(one.bytes_per_task)}" if one.bytes else ""
        _say(
            f"ingest-{one.source}: {one.offsets:,} offsets in {one.partitions} partitions{size}{lost}; {one.batches} "
            f"batches of {one.tasks} tasks, up to {one.offsets_per_task:,} offsets{task_size} each; "
            f"about {one.seconds:,.0f} s ({by})"
        )
    for stage in plan_stages(pipeline, sources):
        there = stage.waiting
        more = "what comes of the stages before it" if stage.more is None else f"up to {stage.more:,} rows to come"
        known = f"; about {stage.seconds:,.0f} s (by the last run)" if stage.seconds is not None else ""
        files = f"{there.files:,} files, {there.tasks:,} tasks"
        _say(f"{stage.stage}: {there.rows:,} rows, {_size(there.bytes)} in {files}, and {more}{known}")
    return DONE


def _size(count: int) -> str:
    """Bytes, to be read by people."""
    value, unit = next(((count / least, unit) for least, unit in UNITS if count >= least), (count, "B"))
    return f"{value:,.1f} {unit}" if unit != "B" else f"{count} B"


UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def _validate(pipeline: Pipeline, options: argparse.Namespace) -> int:
    from pykafka08.spark.pipeline.stages import stages
    from pykafka08.spark.pipeline.starting import extent, start_of, started
    from pykafka08.spark.pipeline.validating import check_offline, reach_catalog, reach_registry, reach_sinks

    check_offline(pipeline)
    for name, source in pipeline.sources.items():
        _, end = extent(source)
        if started(pipeline, source) is None:
            start_of(source)  # raises where `starting` means nothing
        _say(f"sources.{name}: {len(end)} partitions of {len({tp.topic for tp in end})} topics")
    for line in (*reach_catalog(pipeline), *reach_sinks(pipeline), *reach_registry(pipeline)):
        _say(line)
    from pykafka08.spark.pipeline.decoding import columns_of
    from pykafka08.spark.pipeline.running import validated
    from pykafka08.spark.pipeline.workers import try_server, try_workers

    spark, _ = validated(pipeline)
    try:
        if pipeline.spark.is_connect:
            _say(try_server(spark, pipeline.spark.master, is_local=pipeline.root.is_local))
        else:
            _say(try_workers(spark, is_local=pipeline.root.is_local))
        columns = columns_of(pipeline.decode)  # Spark alone reads the schema
    finally:
        spark.stop()
    _say(f"columns: {', '.join(columns)}")
    _say(f"stages: {', '.join(one.name for one in stages(pipeline))}")
    return DONE


def _run(pipeline: Pipeline, options: argparse.Namespace) -> int:
    from pykafka08.spark.pipeline.running import run
    from pykafka08.spark.pipeline.validating import check_offline

    check_offline(pipeline)
    is_done = run(
        pipeline,
        options.stage,
        is_following=options.follow,
        compacts=not options.no_compaction,
        draws=not options.no_charts,
        say=_say,
    )
    return _alert(pipeline) if is_done else FAILED


def _alert(pipeline: Pipeline) -> int:
    """Compare with the bounds; a line for each that is passed, and the webhook is told."""
    from pykafka08.spark.pipeline.alerts import alerts, send

    passed = alerts(pipeline)
    for one in passed:
        _say(f"ALERT {one.stage}: {one.text} (alerts.{one.bound})")
    failure = send(pipeline, passed) if passed else ""
    if failure:
        note(f"{PROG}: {failure}")
    return ALERT if passed else DONE


def _verify(pipeline: Pipeline, options: argparse.Namespace) -> int:
    from pykafka08.spark.pipeline.session import session
    from pykafka08.spark.pipeline.verifying import verify

    spark = session(pipeline)
    is_right = True
    try:
        for finding in verify(spark, pipeline, against_kafka=options.kafka):
            is_right = is_right and finding.is_right
            _say(f"{'ok   ' if finding.is_right else 'WRONG'} {finding.stage}: {finding.text}")
    finally:
        spark.stop()
    return DONE if is_right else FAILED


def _backfill(pipeline: Pipeline, options: argparse.Namespace) -> int:
    from pyspark.errors import PySparkException

    from pykafka08.spark.pipeline.backfilling import backfill, check_days
    from pykafka08.spark.pipeline.restating import check_name, restate
    from pykafka08.spark.pipeline.session import session
    from pykafka08.spark.pipeline.tables.table import LeaseLostError

    days = [one for one in (options.day_from, options.day_to) if one is not None]
    if len(days) != (0 if options.restate else 2):
        raise ConfigError("backfill: choose the days with --from and --to, or an aggregate with --restate")
    if options.restate:
        check_name(pipeline, options.restate)
    else:
        check_days(*days)
    spark = session(pipeline)
    try:
        for one in backfill(spark, pipeline, *days) if days else [restate(spark, pipeline, options.restate)]:
            _say(f"{one.table}: {one.rows_before:,} rows replaced by {one.rows_after:,}")
    except (LeaseLostError, PySparkException) as error:
        note(f"{PROG}: {error}")
        return FAILED
    finally:
        spark.stop()
    return DONE


def _convert(pipeline: Pipeline, options: argparse.Namespace) -> int:
    from pykafka08.spark.pipeline.converting import convert
    from pykafka08.spark.pipeline.session import session

    with ExitStack() as stack:

        def start() -> SparkSession:
            spark = session(pipeline)
            stack.callback(spark.stop)
            return spark

        convert(start, pipeline, _say)
    return DONE


def _profile(pipeline: Pipeline, options: argparse.Namespace) -> int:
    from pykafka08.spark.pipeline.profiling import as_json, as_table, profile
    from pykafka08.spark.pipeline.session import session

    if not 1 <= options.top <= 1000:
        raise ConfigError(f"--top: {options.top} is not between 1 and 1000")
    spark = session(pipeline)
    try:
        found = profile(spark, pipeline, options.top, options.day_from, options.day_to)
    finally:
        spark.stop()
    if options.json:
        _say(as_json(pipeline.name, found))
        return DONE
    _say(f"{pipeline.name}: {found[0].rows:,} rows of silver; distinct and frequent values are approximate")
    for line in as_table(found):
        _say(line)
    return DONE


def _status(pipeline: Pipeline, options: argparse.Namespace) -> int:
    from pykafka08.spark.pipeline.leasing import holders
    from pykafka08.spark.pipeline.retaining import removals
    from pykafka08.spark.pipeline.status import status

    at_work = "; ".join(f"at work: {one}" for one in holders(pipeline.root))
    _say(f"{pipeline.name}: {at_work or 'nothing runs'}")
    now = datetime.now(timezone.utc)
    found = status(pipeline)
    for one in found:
        batch = "-" if one.batch is None else str(one.batch)
        late = f", {one.late:,} updates later than the watermark" if one.late else ""
        last = f"batch {batch}, last rows {_ago(one.at, now)}"
        _say(f"{one.stage}: lag {one.lag}, {_rate(one.rows_per_second)}, {last}{late}")
        shown = [each for each in one.partitions if each.lag or options.all]
        for each in shown if options.all else shown[:WORST]:
            tp = each.partition
            rate = _rate(each.rows_per_second)
            _say(f"  {tp.topic}-{tp.partition}: lag {each.lag:,} offsets, next {each.offset:,}, {rate}")
        if len(shown) > WORST and not options.all:
            _say(f"  and {len(shown) - WORST:,} partitions that are behind less; --all shows them")
    for line in _expectations(pipeline):
        _say(line)
    for removal in removals(pipeline):
        _say(f"retention of {removal}")
    refusal = next((one.refusal for one in found if one.refusal is not None), None)
    if refusal is not None:
        raise refusal
    return _alert(pipeline) if options.check else DONE


def _expectations(pipeline: Pipeline) -> Iterator[str]:
    """For each expectation, the rows that did not meet it in the newest run and in all runs."""
    from pykafka08.spark.pipeline.expectations import expectations, of_newest_run, of_runs
    from pykafka08.spark.pipeline.status import runs

    read, newest = of_newest_run(pipeline)
    every = of_runs(runs(pipeline))
    for one in expectations(pipeline.decode) if every else ():
        batches = [each for each in every if one.reason in each.counts]
        in_all = f"{sum(each.counts[one.reason] for each in batches):,} of {sum(each.read for each in batches):,}"
        yield f"{one.reason} ({one.level}): {newest[one.reason]:,} of {read:,} rows in the newest run, {in_all} in all"


WORST = 5
"""So many partitions of a source, the ones most behind, are shown without ``--all``."""


def _rate(rows_per_second: float | None) -> str:
    return "-" if rows_per_second is None else f"{rows_per_second:,.0f} rows/s"


def _ago(at: datetime | None, now: datetime) -> str:
    if at is None:
        return "-"
    age = max(timedelta(), now - at)
    return f"{timedelta(seconds=int(age.total_seconds()))} ago ({at:%Y-%m-%dT%H:%M:%SZ})"


ACTIONS: dict[str, Callable[[Pipeline, argparse.Namespace], int]] = {
    "plan": _plan,
    "validate": _validate,
    "run": _run,
    "verify": _verify,
    "backfill": _backfill,
    "convert": _convert,
    "profile": _profile,
    "status": _status,
}
