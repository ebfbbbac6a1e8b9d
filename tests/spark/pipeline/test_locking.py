"""Files of nobody are deleted by one who is alone in the folder, and by no other."""

from __future__ import annotations

from pathlib import Path

from pykafka08.spark.pipeline.locking import alone_if_possible, shared


def test_writers_share_the_folder_and_then_none_is_alone(tmp_path: Path) -> None:
    with shared(tmp_path), shared(tmp_path), alone_if_possible(tmp_path) as is_alone:
        assert not is_alone
    with shared(tmp_path) as lock, shared(tmp_path):
        assert not lock.is_alone_now()
    with shared(tmp_path) as lock:
        assert lock.is_alone_now()
        with alone_if_possible(tmp_path / "another") as is_alone:
            assert is_alone
    with alone_if_possible(tmp_path) as is_alone:
        assert is_alone
        with alone_if_possible(tmp_path / "another") as is_alone_there:
            assert is_alone_there
