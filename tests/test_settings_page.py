"""docs/settings.md names every setting with its default, and none that is not there."""

from __future__ import annotations

import re
from dataclasses import MISSING
from pathlib import Path

from pykafka08.config import ClientConfig, ConsumerConfig, ProducerConfig, setting_fields
from pykafka08.group.settings import GroupConfig
from pykafka08.producer.partitioners import PARTITIONERS

PAGE = (Path(__file__).parent.parent / "docs" / "settings.md").read_text(encoding="utf-8")
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


def test_every_partitioner_is_named() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE[PAGE.index("Partitioners:") : PAGE.index("## Consumer")]))
    assert named == set(PARTITIONERS)
