"""Names of settings in errors and log lines, as the user wrote them.

Code names each setting as the keyword argument that it is.  A client whose settings came from properties carries
:class:`SettingNames` in its configuration, and translates its errors where they leave the part that raised them.
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

    ``phrases`` are texts about settings, and what to say in their place.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    phrases: tuple[tuple[str, str], ...] = ()

    def __getitem__(self, setting: str) -> str:
        return self.renamed.get(setting, setting)

    def without(self, settings: Collection[str]) -> SettingNames:
        """These names, but those of ``settings``, which are named as keyword arguments."""
        renamed = {setting: name for setting, name in self.renamed.items() if setting not in settings}
        return SettingNames(renamed, tuple(each for each in self.phrases if not words(each[0]) & set(settings)))

    def in_text(self, text: str) -> str:
        """The text with the settings by these names; quoted values stay as they are."""
        for phrase, other in self.phrases:
            text = text.replace(phrase, other)
        return _WORD.sub(lambda found: self[found[0]], text) if self.renamed else text

    def in_error(self, error: E) -> E:
        """The error itself, whose text names the settings by these names."""
        if self.renamed and isinstance(error, KafkaError):
            error.args = (self.in_text(error.message), *error.args[1:])
        return error

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Errors of the block name the settings by these names."""
        try:
            yield
        except KafkaError as error:
            self.in_error(error)
            raise


def words(text: str) -> set[str]:
    """The words of a text that may be settings."""
    return {found[0] for found in _WORD.finditer(text)}


AS_ARGUMENTS = SettingNames()
