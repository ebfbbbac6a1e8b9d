"""Files that no commit names are deleted only by a process that holds the folder's lock alone."""

from __future__ import annotations

from pathlib import Path

from pykafka08.spark.pipeline.locking import alone_if_possible, shared
from pykafka08.spark.pipeline.stores import local_folder


def test_writers_share_the_folder_and_then_none_is_alone(tmp_path: Path) -> None:
    folder = local_folder(tmp_path)
    with shared(folder), shared(folder), alone_if_possible(folder) as is_alone:
        assert not is_alone
    with shared(folder) as lock, shared(folder):
        assert not lock.make_exclusive()
    with shared(folder) as lock:
        assert lock.make_exclusive()
        with alone_if_possible(folder / "another") as is_alone:
            assert is_alone
    with alone_if_possible(folder) as is_alone:
        assert is_alone
        with alone_if_possible(folder / "another") as is_alone_there:
            assert is_alone_there
