"""Changes of a column's type: which of them keep every value, and the error for the others.

Types have the names of Delta's schemas, such as ``integer`` and ``decimal(10,2)``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import pyarrow as pa

from pykafka08.errors import ConfigError

__all__ = ["WIDER", "Wider", "check_changes", "check_file", "is_widening", "numbers_of"]

Wider = Mapping[str, Collection[str]]
"""Type → wider types that a column of this type may get."""
WIDER: Wider = {
    "byte": {"short", "integer", "long", "double"},
    "short": {"integer", "long", "double"},
    "integer": {"long", "double"},
    "float": {"double"},
}
"""Every ``integer`` has an equal ``double``, but not every ``long`` has one."""
DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
Changes = Mapping[str, tuple[str, str]]
"""Column → its type in the table, and in the settings."""


def is_widening(old: str, new: str, wider: Wider = WIDER) -> bool:
    """Whether every value of the type ``old`` has an equal value of the type ``new``."""
    before, after = DECIMAL.fullmatch(old), DECIMAL.fullmatch(new)
    if before and after:
        return before[2] == after[2] and int(before[1]) < int(after[1])
    return new in wider.get(old, ())


def check_changes(where: str, changes: Changes, wider: Wider) -> None:
    """Raise ConfigError for the first change of a type.  ``where`` is the table's address."""
    for name, (old, new) in changes.items():
        if is_widening(old, new, wider):
            advice = "a run of the stage widens the column: run the pipeline first"
        elif is_widening(new, old, wider):
            advice = f"the column was widened: restart this run with {name} as {old} in the settings"
        else:
            advice = "give the new column another name, or choose another folder"
        raise ConfigError(f"{where}: column {name} is {old} in the table, but {new} in the settings; {advice}")


def numbers_of(schema: pa.Schema) -> dict[str, str]:
    """The columns of a file or table that are numbers, with their Arrow types."""
    return {one.name: str(one.type) for one in schema if _is_number(one.type)}


def check_file(where: str, table: Mapping[str, Collection[str]], file: Mapping[str, str]) -> None:
    """Raise ConfigError if a file has a number of another type than the table, which another process has widened.

    ``table``: column → the types that its files may have; ``file``: the result of :func:`numbers_of`.
    """
    for name, kinds in table.items():
        if name in file and file[name] not in kinds:
            raise ConfigError(
                f"{where}: column {name} is {' or '.join(sorted(kinds))} in the table, but {file[name]} in the files "
                "of this run; another run has widened the column: restart this run with the same settings as the other"
            )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
