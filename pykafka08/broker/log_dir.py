"""The directory that keeps a cluster's state over restarts: a journal, and a directory for each partition.

Stored: the cluster id, topics with ids and configs, records, log start offsets, leader epochs, committed offsets,
producer ids, transactions, dynamic configs.  Members of groups are not stored: they join again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from pykafka08.broker.cluster_state import ClusterState
from pykafka08.broker.groups import CommittedOffset
from pykafka08.broker.journal import Journal, JournalDamagedError, read_journal
from pykafka08.broker.log import PartitionLog
from pykafka08.broker.log_files import OpenFiles, SegmentFiles, load_log
from pykafka08.broker.offsets_v0 import MemoryOffsets
from pykafka08.broker.transaction import Transaction
from pykafka08.errors import ConfigError

__all__ = ["LogDir"]

JOURNAL, FRESH_JOURNAL, LOCK = "cluster.journal", "cluster.new", ".lock"
FORMAT = 1


class LogDir:
    """Stores ``state`` in the directory ``path``."""

    def __init__(self, path: str | os.PathLike[str], state: ClusterState) -> None:
        self._path = Path(path)
        self._state = state
        self._files = OpenFiles()
        self._lock = -1
        self._journal = Journal(self._path / JOURNAL, partial(_snapshot, state))
        self._starts: dict[tuple[str, int], int] = {}
        self._deleted: set[tuple[str, int]] = set()
        self._replays: dict[str, Callable[..., object]] = {
            "cluster": self._cluster,
            "topic": self._topic,
            "partition": self._partition,
            "deleted_topic": self._deleted_topic,
            "epoch": self._epoch,
            "start": self._start,
            "offset": self._offset,
            "offset_v0": self._offset_v0,
            "deleted_offset": state.groups.delete_offset,
            "deleted_group": state.groups.delete,
            "pending_offset": self._pending_offset,
            "taken_offsets": state.groups.pending_offsets.take,
            "transaction": self._transaction,
            "producer_id": self._producer_id,
            "configs": self._configs,
        }
        self._transactions: dict[str, Transaction] = {}

    def open(self) -> None:
        """Restore the state of an earlier process, and store all changes from now on.

        ConfigError if the directory cannot be used.
        """
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            self._check_own()
            self._take_lock()
            self._restore()
        except OSError as error:
            raise ConfigError(f"log_dir={str(self._path)!r}: {error.strerror or error}") from error
        except JournalDamagedError as error:
            raise ConfigError(f"log_dir={str(self._path)!r}: {error}; use another directory") from error

    def close(self) -> None:
        self._journal.close()
        self._files.close_all()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _check_own(self) -> None:
        """Refuse a directory with files of other programs: directories of partitions are written and deleted here."""
        if not (self._path / JOURNAL).exists():
            foreign = sorted(path.name for path in self._path.iterdir() if path.name not in (LOCK, FRESH_JOURNAL))
            if foreign:
                raise ConfigError(
                    f"log_dir={str(self._path)!r} has no {JOURNAL} and is not empty (it has {foreign[0]!r:.100}): "
                    "name a new directory"
                )

    def _take_lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows
            return
        self._lock = os.open(self._path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise ConfigError(f"log_dir={str(self._path)!r} is in use by another broker") from error

    def _restore(self) -> None:
        state = self._state
        for kind, *facts in read_journal(self._path / JOURNAL):
            self._replays[kind](*facts)
        for transaction in self._transactions.values():
            state.transactions.restore(transaction)
        for topic in state.topics:
            topic.configs_changed()
            if not topic.partitions:  # the process ended while the topic was made
                state.delete_topic(topic)
            for partition in topic.partitions:
                self._load(partition.log)
                partition.leader_epoch = max(partition.leader_epoch, partition.log.last_epoch)
                state.log_manager.bound_memory()
        for name, index in self._deleted:  # the process ended before their files were deleted
            if state.topics.find_partition(name, index) is None:
                shutil.rmtree(self._path / f"{name}-{index}", ignore_errors=True)
        self._keep()

    def _keep(self) -> None:
        """Store all changes from now on."""
        state, note = self._state, self._journal.note
        state.topics.prepare_log = self._prepare
        noting = [state, state.topics, *state.topics, state.groups, state.groups.pending_offsets, state.transactions]
        for each in (*noting, state.configs):
            each.note = note
        if isinstance(state.groups.offsets_v0, MemoryOffsets):
            state.groups.offsets_v0.note = note
        self._journal.rewrite()

    def _directory(self, log: PartitionLog) -> Path:
        return self._path / f"{log.topic}-{log.partition}"

    def _prepare(self, log: PartitionLog) -> None:
        shutil.rmtree(self._directory(log), ignore_errors=True)
        log.files = SegmentFiles(self._directory(log), log, self._files, self._journal.note)

    def _load(self, log: PartitionLog) -> None:
        directory = self._directory(log)
        lost = load_log(log, directory, self._starts.get((log.topic, log.partition), 0))
        if lost:
            self._state.log.warning(
                "damaged end of a log cut off",
                topic=log.topic,
                partition=log.partition,
                bytes=lost,
                log_end_offset=log.end_offset,
            )
        log.files = SegmentFiles(directory, log, self._files, self._journal.note)

    # -- entries of the journal, replayed

    def _cluster(self, format_number: int, cluster_id: str) -> None:
        if format_number != FORMAT:
            raise ConfigError(f"log_dir={str(self._path)!r} has format {format_number}; this release reads {FORMAT}")
        self._state.cluster_id = cluster_id

    def _topic(self, name: str, topic_id: str, config: dict[str, str]) -> None:
        self._state.topics.restore(name, UUID(topic_id), config)

    def _partition(self, name: str, index: int, replicas: list[int]) -> None:
        topic = self._state.topics.find(name)
        there = [node_id for node_id in replicas if node_id in self._state.nodes]
        if topic is not None:
            self._state.topics.restore_partition(topic, index, there or [min(self._state.nodes)])

    def _deleted_topic(self, name: str) -> None:
        topic = self._state.topics.find(name)
        if topic is not None:
            self._deleted.update((name, partition.index) for partition in topic.partitions)
            self._state.delete_topic(topic)
        for key in [key for key in self._starts if key[0] == name]:
            del self._starts[key]

    def _epoch(self, name: str, index: int, epoch: int) -> None:
        partition = self._state.topics.find_partition(name, index)
        if partition is not None:
            partition.leader_epoch = epoch

    def _start(self, name: str, index: int, offset: int) -> None:
        self._starts[name, index] = offset

    def _offset(self, group_id: str, topic: str, partition: int, *committed: Any) -> None:
        self._state.groups.commit(group_id, topic, partition, CommittedOffset(*committed))

    def _offset_v0(self, group_id: str, topic: str, partition: int, *committed: Any) -> None:
        self._state.groups.offsets_v0.commit(group_id, topic, partition, CommittedOffset(*committed))

    def _pending_offset(
        self, group_id: str, producer_id: int, epoch: int, topic: str, partition: int, *committed: Any
    ) -> None:
        pending = self._state.groups.pending_offsets
        pending.add(group_id, producer_id, epoch, topic, partition, CommittedOffset(*committed))

    def _transaction(self, *facts: Any) -> None:
        transaction = Transaction.of_facts(*facts)
        self._transactions[transaction.transactional_id] = transaction

    def _producer_id(self, following: int) -> None:
        self._state.following_producer_id = following

    def _configs(self, brokers: Any, groups: Any, client_metrics: Any) -> None:
        configs = self._state.configs
        configs.brokers, configs.groups, configs.client_metrics = brokers, groups, client_metrics
        configs.changed()


def _snapshot(state: ClusterState) -> Iterator[tuple[object, ...]]:
    """The entries from which the state is restored."""
    yield "cluster", FORMAT, state.cluster_id
    yield "producer_id", state.following_producer_id
    yield "configs", state.configs.brokers, state.configs.groups, state.configs.client_metrics
    for topic in state.topics:
        yield "topic", topic.name, topic.topic_id.hex, topic.config
        for partition in topic.partitions:
            place = topic.name, partition.index
            yield "partition", *place, partition.replicas
            yield "epoch", *place, partition.leader_epoch
            yield "start", *place, partition.log.start_offset
    for group_id, offsets in state.groups.all_offsets.items():
        for (name, index), committed in offsets.items():
            yield "offset", group_id, name, index, *committed
    v0 = state.groups.offsets_v0
    for group_id, offsets in v0.by_group.items() if isinstance(v0, MemoryOffsets) else ():
        for (name, index), committed in offsets.items():
            yield "offset_v0", group_id, name, index, *committed
    yield from state.groups.pending_offsets.entries()
    for transaction in state.transactions:
        yield "transaction", *transaction.facts()
