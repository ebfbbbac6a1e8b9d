"""SECURITY.md names tests that exist, and each promise has one."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
PROMISES, FAILURES = PAGE.split("## Failures")
ROWS = re.findall(r"^\| (?!promise |---)(.+) \| (.+) \|$", PROMISES, re.MULTILINE)
ROWS += re.findall(r"^\| (?!failure |---)([^|]+) \| (.+)\|$", FAILURES, re.MULTILINE)


def test_every_promise_has_tests_that_exist() -> None:
    assert len(ROWS) > 8
    for promise, proof in ROWS:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", proof)
        assert named or proof == "`make check`", promise
        for path, function in named:
            text = (ROOT / path).read_text(encoding="utf-8")
            assert not function or re.search(rf"^(async )?def {function}\(", text, re.MULTILINE), (path, function)


def test_the_page_invents_no_address() -> None:
    assert "@" not in PAGE
    assert "://" not in PAGE
