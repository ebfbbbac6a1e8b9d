"""docs/settings.md names every setting with its default, and none that is not there."""

from __future__ import annotations

import ast
import re
from dataclasses import MISSING
from itertools import pairwise
from pathlib import Path

from pykafka08.config import ClientConfig, ConsumerConfig, ProducerConfig, setting_fields
from pykafka08.group.settings import GroupConfig
from pykafka08.producer.partitioners import PARTITIONERS
from pykafka08.security import settings
from pykafka08.security.settings import SecurityConfig

PAGE = (Path(__file__).parent.parent / "docs" / "settings.md").read_text(encoding="utf-8")
SECURITY = Path(settings.__file__)
SETTINGS = PAGE.partition("## Names in other clients")[0]


def documented() -> dict[str, str]:
    """Setting -> default, as the page's tables have them."""
    found: dict[str, str] = {}
    for names, defaults in re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", SETTINGS, re.MULTILINE):
        found.update(
            zip(re.findall(r"`(\w+)`", names), re.split("(?<=`), (?=`)|(?<=required), ", defaults), strict=True)
        )
    return found


def test_every_setting_is_there_with_its_default() -> None:
    kinds = (ClientConfig, ProducerConfig, GroupConfig, ConsumerConfig)
    settings = setting_fields(*kinds)
    expected = {
        name: "required" if field.default is MISSING else f"`{field.default!r}`" for name, field in settings.items()
    }
    assert documented() == expected


def test_security_settings_mean_what_their_docstrings_say() -> None:
    """A row may say more after a semicolon."""
    body = next(each for each in ast.parse(SECURITY.read_text(encoding="utf-8")).body if is_config(each)).body  # type: ignore[attr-defined]
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", SETTINGS, re.MULTILINE))
    checked = 0
    for setting, text in pairwise(body):
        if isinstance(setting, ast.AnnAssign) and isinstance(text, ast.Expr):
            name = ast.unparse(setting.target)
            if name not in SecurityConfig.names():
                continue
            assert f"{plain(rows[name])};".startswith(f"{plain(ast.literal_eval(text.value))};"), name
            checked += 1
    assert checked > 40


def is_config(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and node.name == SecurityConfig.__name__


def plain(text: str) -> str:
    """The words of a docstring or a row, without marks of code."""
    return " ".join(re.sub(r":class:`~[\w.]*\.(\w+)`", r"\1", text).replace("`", "").split()).rstrip(".").lower()


def test_every_partitioner_is_named() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("Partitioners:") : PAGE.index("## Consumer")]))
    assert named == set(PARTITIONERS)
