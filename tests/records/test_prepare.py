"""What large batches are decoded with is loaded when a consumer opens: a stream is not held up by an import."""

from __future__ import annotations

import subprocess
import sys

import pytest

_READS_AFTER_PREPARING = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {absent}:
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
from pykafka08.records.batch_records import is_prepared, prepare
from pykafka08.records.compression import Codec
from pykafka08.records.reader import read_batches
from pykafka08.records.writer import encode_batch

if not is_prepared():
    prepare()
assert is_prepared()
values = [b"%090d" % number for number in range(700)]
data = bytes(encode_batch(2, Codec.NONE, timestamps=[1] * len(values), keys=None, values=values))
before = set(sys.modules)
(batch,) = read_batches(data, topic="t", partition=0, fetch_offset=0)
assert batch.values() == values
assert len(list(batch)) == len(values)
print(sorted(set(sys.modules) - before))
"""


@pytest.mark.parametrize("absent", [[], ["pandas"], ["pyarrow"], ["numpy"]], ids=str)
def test_reading_imports_nothing_that_was_not_loaded_before(absent: list[str]) -> None:
    command = [sys.executable, "-c", _READS_AFTER_PREPARING.format(absent=absent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
