"""How long one record takes: an awaited send, and the way from one producer to one consumer at a steady rate.

Linger is 0 for all.  The two ends of the way are in one process, so that one clock tells both times.
"""

from __future__ import annotations

import asyncio
import gc
import struct
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio

from benchmarks.jobs import ACKS, Measured, Missing, Stopwatch, Task

__all__ = ["run"]

_STAMP = struct.Struct(">q")
PACE_S = 0.001


def _stamped(value: bytes) -> bytes:
    return _STAMP.pack(time.perf_counter_ns()) + value[_STAMP.size :]


def _age_us(value: bytes) -> int:
    return (time.perf_counter_ns() - _STAMP.unpack_from(value)[0]) // 1000


def _with(measured: Measured, latencies: list[int]) -> Measured:
    return replace(measured, latencies_us=tuple(sorted(latencies)))


async def _one_by_one(task: Task, send: Callable[[bytes], Awaitable[object]]) -> Measured:
    values, _ = task.produced(task.records)
    for value in values[: task.warm_up]:
        await send(value)
    gc.collect()
    latencies, clock = [], time.perf_counter_ns
    watch = Stopwatch()
    for value in values:
        begun = clock()
        await send(value)
        latencies.append((clock() - begun) // 1000)
    return _with(watch.stop(len(values), sum(map(len, values))), latencies)


def _one_by_one_blocking(task: Task, send: Callable[[bytes], object]) -> Measured:
    async def send_now(value: bytes) -> None:
        send(value)

    return asyncio.run(_one_by_one(task, send_now))


class _Pace:
    """When each record is due: as many at each millisecond as the rate asks for."""

    def __init__(self, task: Task) -> None:
        self._values, _ = task.produced(task.warm_up + task.records)
        self._rate = task.rate
        gc.collect()  # now: once records are under way, its pause would be theirs
        self._begun = time.perf_counter()
        self._sent = 0

    def due(self) -> list[bytes]:
        count = int((time.perf_counter() - self._begun) * self._rate) - self._sent
        values = self._values[self._sent : self._sent + count]
        self._sent += len(values)
        return values

    @property
    def is_over(self) -> bool:
        return self._sent >= len(self._values)


class _Arrivals:
    """Counts what arrives; the warm-up's records are not measured."""

    def __init__(self, task: Task) -> None:
        self._left = task.warm_up
        self._wanted = task.records
        self._size = 0
        self.latencies: list[int] = []
        self._watch = Stopwatch()

    def add(self, value: bytes) -> bool:
        """True when all are here."""
        if self._left:
            self._left -= 1
            if not self._left:
                self._watch = Stopwatch()
            return False
        self.latencies.append(_age_us(value))
        self._size += len(value)
        return len(self.latencies) >= self._wanted

    def measured(self) -> Measured:
        return _with(self._watch.stop(len(self.latencies), self._size), self.latencies)


async def _pykafka08(task: Task) -> Measured:
    from pykafka08 import Consumer, Producer, TopicPartition

    async with Producer(bootstrap_servers=task.bootstrap, acks=ACKS, linger_ms=0) as producer:
        if task.way == "send_one":
            return await _one_by_one(task, lambda value: producer.send(task.topic, value))
        partition = TopicPartition(task.topic, 0)
        async with Consumer(bootstrap_servers=task.bootstrap, auto_offset_reset="latest") as consumer:
            consumer.assign([partition])
            await consumer.position(partition)

            async def send_paced() -> None:
                pace = _Pace(task)
                while not pace.is_over:
                    for value in pace.due():
                        producer.enqueue(task.topic, _stamped(value))
                    await anyio.sleep(PACE_S)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send_paced)
                arrivals = _Arrivals(task)
                async for record in consumer:
                    if arrivals.add(record.value or b""):
                        break
                return arrivals.measured()


async def _aiokafka(task: Task) -> Measured:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    async with AIOKafkaProducer(bootstrap_servers=task.bootstrap, acks=ACKS, linger_ms=0) as producer:
        if task.way == "send_one":
            return await _one_by_one(task, lambda value: producer.send_and_wait(task.topic, value))
        partition = TopicPartition(task.topic, 0)
        async with AIOKafkaConsumer(bootstrap_servers=task.bootstrap, auto_offset_reset="latest") as consumer:
            consumer.assign([partition])
            await consumer.position(partition)

            async def send_paced() -> None:
                pace = _Pace(task)
                while not pace.is_over:
                    for value in pace.due():
                        await producer.send(task.topic, _stamped(value))
                    await asyncio.sleep(PACE_S)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send_paced)
                arrivals = _Arrivals(task)
                async for record in consumer:
                    if arrivals.add(record.value):
                        break
                return arrivals.measured()


def _confluent(task: Task) -> Measured:
    from confluent_kafka import Consumer, Producer, TopicPartition

    settings = {"bootstrap.servers": task.bootstrap, "socket.nagle.disable": True}
    if task.way == "aio_send_one":
        return asyncio.run(_confluent_aio(task, settings))
    producer = Producer({**settings, "acks": ACKS, "linger.ms": 0})
    if task.way == "send_one":

        def send(value: bytes) -> None:
            producer.produce(task.topic, value, on_delivery=lambda error, message: None)
            while len(producer):
                producer.poll(1.0)

        return _one_by_one_blocking(task, send)
    consumer = Consumer({**settings, "group.id": "benchmark", "enable.auto.commit": False})
    end = consumer.get_watermark_offsets(TopicPartition(task.topic, 0), timeout=20)[1]
    consumer.assign([TopicPartition(task.topic, 0, end)])

    sender = _paced_thread(task, lambda value: producer.produce(task.topic, value), lambda: producer.poll(0))
    arrivals = _Arrivals(task)
    while True:
        message = consumer.poll(1.0)
        if message is not None and arrivals.add(message.value() or b""):
            break
    measured = arrivals.measured()
    sender.join()
    consumer.close()
    return measured


def _paced_thread(task: Task, send: Callable[[bytes], object], after: Callable[[], object]) -> threading.Thread:
    """A thread that sends what is due each millisecond, and calls ``after`` then."""

    def send_paced() -> None:
        pace = _Pace(task)
        while not pace.is_over:
            for value in pace.due():
                send(_stamped(value))
            after()
            time.sleep(PACE_S)

    thread = threading.Thread(target=send_paced)
    thread.start()
    return thread


async def _confluent_aio(task: Task, settings: dict[str, Any]) -> Measured:
    try:
        from confluent_kafka.aio import AIOProducer
    except ImportError:
        raise Missing("confluent_kafka.aio") from None

    async with AIOProducer({**settings, "acks": ACKS, "linger.ms": 0}, batch_size=1) as producer:

        async def send(value: bytes) -> object:
            delivered = await producer.produce(task.topic, value)
            while not delivered.done():
                await producer.poll(1.0)  # else it looks for what was delivered once a second
            return await delivered

        return await _one_by_one(task, send)


def _kafka_python(task: Task) -> Measured:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    producer = KafkaProducer(bootstrap_servers=task.bootstrap, acks=ACKS, linger_ms=0, enable_idempotence=False)
    try:
        if task.way == "send_one":
            return _one_by_one_blocking(task, lambda value: producer.send(task.topic, value).get(30))
        partition = TopicPartition(task.topic, 0)
        consumer = KafkaConsumer(bootstrap_servers=task.bootstrap)
        consumer.assign([partition])
        consumer.seek_to_end(partition)
        consumer.position(partition)
        sender, arrivals = (
            _paced_thread(task, lambda value: producer.send(task.topic, value), lambda: None),
            _Arrivals(task),
        )
        for record in consumer:
            if arrivals.add(record.value):
                break
        measured = arrivals.measured()
        sender.join()
        consumer.close()
        return measured
    finally:
        producer.close()


def run(task: Task) -> Measured:
    asynchronous: dict[str, Any] = {"pykafka08": _pykafka08, "aiokafka": _aiokafka}
    if task.client in asynchronous:
        return anyio.run(asynchronous[task.client], task, backend_options={"use_uvloop": task.loop == "uvloop"})
    return {"confluent": _confluent, "kafka_python": _kafka_python}[task.client](task)
