"""From the brokers to standard output: what ``consume`` does once its options are understood."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from itertools import islice

import anyio

from pykafka08.cli.exits import DONE, Interrupt, run_until
from pykafka08.cli.notes import note
from pykafka08.cli.plan import Plan
from pykafka08.cli.printer import Printer
from pykafka08.cli.progress import Progress
from pykafka08.cli.streams import OutputClosedError, standard_output
from pykafka08.consumer.consumer import Consumer
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import CorruptRecordError, KafkaError, RecordTooLargeError, UnknownTopicError, broker_error
from pykafka08.records.record import TopicPartition

__all__ = ["copy_records"]

MISSING_AFTER_S = 2
"""A topic that is just being made is not worth a word."""


async def copy_records(plan: Plan, interrupt: Interrupt) -> int:
    """Until the plan is carried out, a signal comes, or nobody reads standard output any more."""
    output, progress = standard_output(), Progress.on_terminal(unless_output=True)
    printer, is_read = Printer(plan, output, progress), True
    try:
        with interrupt.part():
            is_read = await run_until(output.wait_closed, partial(_copy, plan, printer)) is not None
    except OutputClosedError:
        is_read = False
    except KafkaError:
        is_read = printer.records > 0  # else the error is all there is to say
        raise
    finally:
        progress.clear()
        if is_read:
            note(f"Processed a total of {printer.records} messages")
    return DONE


async def _copy(plan: Plan, printer: Printer) -> int:
    """Open a consumer on what the plan names, and print: how many records."""
    whole_topics = () if plan.topic is None or plan.partition is not None else (plan.topic,)
    consumer = Consumer(*whole_topics, pattern=plan.pattern, **plan.settings)
    async with AsyncExitStack() as opened:
        watch = partial(_tell_if_missing, consumer, plan.topic)
        await run_until(watch, partial(opened.enter_async_context, consumer))
        if plan.topic is not None and plan.partition is not None:
            partition = TopicPartition(plan.topic, plan.partition)
            await run_until(watch, partial(_check_partition, consumer, partition))
            consumer.assign([partition])
            if plan.offset is not None:
                await consumer.seek(partition, plan.offset)
        await _print_all(plan, consumer, printer)
    return printer.records


async def _tell_if_missing(consumer: Consumer, topic: str | None) -> None:
    """A note when the cluster has said that it has no such topic; then wait for the caller to end this."""
    is_told = topic is None
    while not is_told:
        await anyio.sleep(MISSING_AFTER_S)
        try:
            await consumer.partitions_for_topic(topic or "", timeout=0)
        except UnknownTopicError:
            is_told = True
            note(f"topic {topic!r} does not exist yet; waiting for it")
        except KafkaError:
            continue  # not connected yet, or not answered: opening the consumer will say so
    await anyio.sleep_forever()


async def _check_partition(consumer: Consumer, tp: TopicPartition) -> None:
    """Without it a partition that is not there would look like one without records."""
    known = await consumer.partitions_for_topic(tp.topic)
    if tp.partition not in known:
        text = f"the topic has {len(known)} partition(s), counted from 0"
        raise broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text, topic=tp.topic, partition=tp.partition)


async def _print_all(plan: Plan, consumer: Consumer, printer: Printer) -> None:
    """Until the count or the idle time is reached."""
    batches = consumer.batches()
    while not printer.is_done:
        with anyio.move_on_after(plan.idle_s) as idle:
            try:
                batch = await anext(batches)
            except (CorruptRecordError, RecordTooLargeError) as error:
                await _skip(plan, consumer, error)
                continue
        if idle.cancelled_caught:
            note(f"no record for {plan.idle_s:g} s")
            return
        before = printer.records
        await printer.print(batch)
        printed = printer.records - before
        consumer.acknowledge(batch if printed == len(batch) else next(islice(batch, printed - 1, None)))


async def _skip(plan: Plan, consumer: Consumer, error: CorruptRecordError | RecordTooLargeError) -> None:
    """Continue after a damaged or too large batch, with --skip-message-on-error and if its end is known."""
    if not plan.skips_errors or error.topic is None or error.partition is None or error.next_offset is None:
        raise error
    note(f"skipped: {error}")
    await consumer.seek(TopicPartition(error.topic, error.partition), error.next_offset)
