"""The drafting tool: what it writes today has the structure of what is committed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pykafka08.protocol.messages import REGISTRY, request_class
from pykafka08.protocol.schema import Field
from tests.conformance.kafka_json import MAVEN_TIMEOUT_S, fetch_jar

TOOL = Path(__file__).parents[2] / "tools" / "draft_messages.py"


def _shape(schema: tuple[Field, ...]) -> list[Any]:
    names = [name for name in Field.__slots__ if name != "struct"]
    return [
        [getattr(field, name) for name in names] + [_shape(field.struct.schema) if field.struct else None]
        for field in schema
    ]


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"drafted_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.needs_maven
@pytest.mark.timeout(2 * MAVEN_TIMEOUT_S)
def test_drafts_have_the_structure_of_the_committed_files(tmp_path: Path) -> None:
    kept = tmp_path / "metadata.py"
    kept.write_text("# not to be touched\n")
    jars = [fetch_jar("3.9.2"), fetch_jar("4.3.0")]
    subprocess.run([sys.executable, TOOL, tmp_path, *jars], check=True, capture_output=True)
    assert kept.read_text() == "# not to be touched\n"
    kept.unlink()
    subprocess.run([sys.executable, TOOL, tmp_path, *jars], check=True, capture_output=True)
    for key, api in REGISTRY.items():
        drafted = _load(tmp_path / f"{api.module.rpartition('.')[2]}.py")
        for committed in (request_class(key), request_class(key).response):
            draft = getattr(drafted, committed.__name__)
            assert _shape(draft.schema) == _shape(committed.schema), committed.__name__
            assert (draft.versions, draft.flexible, draft.api_key) == (committed.versions, committed.flexible, key)


def test_the_tool_says_how_it_is_used() -> None:
    done = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "OUT_DIR" in done.stderr
