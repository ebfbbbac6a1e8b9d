"""What a command found out, as a table for people or as JSON for programs."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from pykafka08.cli.streams import standard_output

__all__ = ["print_json", "print_rows", "table"]

Row = Mapping[str, object]


async def print_rows(rows: Iterable[Row], columns: Sequence[str], *, as_json: bool) -> None:
    """As JSON a list of objects, which may have more keys than the table has columns."""
    listed = list(rows)
    if as_json:
        await print_json(listed)
    else:
        await standard_output().write(table(listed, columns).encode())


async def print_json(value: object) -> None:
    """Indented, and ended by a newline."""
    text = json.dumps(value, indent=2, ensure_ascii=True)
    await standard_output().write(f"{text}\n".encode())


def table(rows: Iterable[Row], columns: Sequence[str]) -> str:
    """A line of names and a line for each row; numbers stand to the right, nothing is ``-``."""
    listed = list(rows)
    cells = [[_shown(row.get(name)) for name in columns] for row in listed]
    widths = [max(map(_width, [name, *(line[index] for line in cells)])) for index, name in enumerate(columns)]
    is_right = [_are_numbers([row.get(name) for row in listed]) for name in columns]
    lines = [[name.upper() for name in columns], *cells]
    return "".join(_line(line, widths, is_right) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], is_right: Sequence[bool]) -> str:
    padded = [
        " " * (width - _width(cell)) + cell if right else cell + " " * (width - _width(cell))
        for cell, width, right in zip(cells, widths, is_right, strict=True)
    ]
    return "  ".join(padded).rstrip() + "\n"


def _are_numbers(values: Sequence[object]) -> bool:
    """Whether there is a number among them, and nothing else."""
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(value, int) and not isinstance(value, bool) for value in present)


def _shown(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        text = ",".join(map(str, value)) or "-"
    elif isinstance(value, dict):
        text = ",".join(f"{name}={each}" for name, each in value.items()) or "-"
    else:
        text = str(value)
    return printable(text)


def printable(text: str) -> str:
    """Without characters that would move the terminal's cursor."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in "FW" else 1 for each in text)
