"""Running a mirror and telling of it: what ``pykafka08 mirror`` does once its options are understood."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from pykafka08.cli.exits import DONE, FAILED, Interrupt
from pykafka08.cli.notes import note
from pykafka08.cli.progress import shown_size
from pykafka08.errors import MirrorError
from pykafka08.mirror import GroupMove, Mirror, MirrorReport, TopicPlan

__all__ = ["mirror_topics", "shown_plan", "shown_report"]

NOTE_EVERY_S = 5.0


async def mirror_topics(mirror: Mirror, interrupt: Interrupt, *, follows: bool, is_dry: bool, as_json: bool) -> int:
    """The exit status."""
    with interrupt.part():
        async with mirror:
            if is_dry:
                return await _tell_plan(mirror, as_json)
            teller = Teller()
            try:
                await mirror.run(follow=follows, on_progress=teller.tell)
            finally:
                report = mirror.report()
                if report.partitions:
                    print(_json_of(report) if as_json else shown_report(report), flush=True)
            return FAILED if any(move.target_offset is None for move in report.groups) else DONE
    return DONE


async def _tell_plan(mirror: Mirror, as_json: bool) -> int:
    plans = await mirror.plan()
    problem = None
    try:
        found = await mirror.group_offsets([source for plan in plans for source, _ in plan.pairs()])
    except MirrorError as error:
        found, problem = {}, error
    if as_json:
        groups = {group: {f"{tp[0]}-{tp[1]}": offset for tp, offset in each.items()} for group, each in found.items()}
        print(json.dumps({"topics": [_plan_fields(plan) for plan in plans], "groups": groups}), flush=True)
    else:
        print(shown_plan(plans), flush=True)
        for group, offsets in found.items():
            print(f"group {group}: offsets in {len(offsets)} partitions", flush=True)
    if problem is not None:
        raise problem
    return FAILED if any(plan.problem for plan in plans) else DONE


def _plan_fields(plan: TopicPlan) -> dict[str, object]:
    return {name: value for name, value in asdict(replace(plan, refused=None)).items() if name != "refused"}


class Teller:
    """A line on standard error now and again."""

    def __init__(self) -> None:
        self._begun = self._told = time.monotonic()
        self._trouble: str | None = None

    def tell(self, report: MirrorReport) -> None:
        now = time.monotonic()
        if report.trouble is not None and report.trouble != self._trouble:
            note(f"trying again: {report.trouble}")
        self._trouble = report.trouble
        if now - self._told < NOTE_EVERY_S:
            return
        self._told = now
        rate = report.records / max(now - self._begun, 1e-9)
        note(
            f"{report.records:,} records copied, {shown_size(report.size)}, {rate:,.0f} records/s, {report.lag:,} to go"
        )


def shown_plan(plans: Sequence[TopicPlan]) -> str:
    rows = [
        (
            plan.source,
            plan.target,
            str(plan.partitions),
            "is to be made" if not plan.has else "grows" if plan.has < plan.partitions else "is there",
            plan.problem or "",
        )
        for plan in plans
    ]
    return _table(("FROM", "TO", "PARTITIONS", "TARGET", "PROBLEM"), rows)


def shown_report(report: MirrorReport) -> str:
    rows = [
        (
            f"{each.source.topic}-{each.source.partition}",
            f"{each.target.topic}-{each.target.partition}",
            *map(str, (each.copied, each.position, each.lag, each.duplicates, each.lost)),
        )
        for each in report.partitions
    ]
    text = _table(("FROM", "TO", "COPIED", "POSITION", "LAG", "DUPLICATES", "LOST"), rows)
    if report.groups:
        text += "\n\n" + _table(("GROUP", "FROM", "OFFSET", "TO", "OFFSET", "NOTE"), list(map(_move, report.groups)))
    return text


def _move(move: GroupMove) -> tuple[str, ...]:
    return (
        move.group_id,
        f"{move.source.topic}-{move.source.partition}",
        str(move.source_offset),
        f"{move.target.topic}-{move.target.partition}",
        "-" if move.target_offset is None else str(move.target_offset),
        move.why_not or "",
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (heads, *rows)]
    return "\n".join(line.rstrip() for line in lines)


def _json_of(report: MirrorReport) -> str:
    partitions: list[dict[str, Any]] = [each._asdict() for each in report.partitions]
    groups = [each._asdict() for each in report.groups]
    return json.dumps({"partitions": partitions, "groups": groups})
