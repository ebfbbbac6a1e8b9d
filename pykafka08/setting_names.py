"""Names of settings in errors and log lines, as the user wrote them.

In the code each setting has the name of its keyword argument.  A client that was configured by properties carries
:class:`SettingNames` in its configuration, and replaces the names in an error where the error leaves a component.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from pykafka08.errors import KafkaError

__all__ = ["AS_ARGUMENTS", "SettingNames", "words"]

E = TypeVar("E", bound=BaseException)

_WORD = re.compile(r"(?<!\w)(?P<quote>['\"]).*?(?<!\\)(?P=quote)(?!\w)|[a-z][a-z0-9]*(?:_[a-z0-9]+)+", re.DOTALL)
"""A quoted value, such as the name of a topic, or a word with underscores."""


@dataclass(frozen=True)
class SettingNames:
    """``renamed`` maps settings to other names; the others are named as keyword arguments.

    ``phrases`` are pairs: a text about settings, and its replacement.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    phrases: tuple[tuple[str, str], ...] = ()

    def __getitem__(self, setting: str) -> str:
        return self.renamed.get(setting, setting)

    def without(self, settings: Collection[str]) -> SettingNames:
        """A copy that names ``settings`` as keyword arguments."""
        renamed = {setting: name for setting, name in self.renamed.items() if setting not in settings}
        return SettingNames(renamed, tuple(each for each in self.phrases if not words(each[0]) & set(settings)))

    def in_text(self, text: str) -> str:
        """Replace the settings in a text by these names; quoted values are not changed."""
        for phrase, other in self.phrases:
            text = text.replace(phrase, other)
        return _WORD.sub(lambda found: self[found[0]], text) if self.renamed else text

    def in_error(self, error: E) -> E:
        """Replace the settings in an error's text by these names; return the error."""
        if self.renamed and isinstance(error, KafkaError):
            error.args = (self.in_text(error.message), *error.args[1:])
        return error

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Replace the settings in an error that leaves the block by these names."""
        try:
            yield
        except KafkaError as error:
            self.in_error(error)
            raise


def words(text: str) -> set[str]:
    """Words of a text that may be names of settings."""
    return {found[0] for found in _WORD.finditer(text)}


AS_ARGUMENTS = SettingNames()
