"""Which topics a wildcard subscription means: white lists and black lists of regular expressions.  Pure.

Not here: the expressions themselves (``java_regex``), where they are written down (``nodes``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pykafka08.records.topic_name import INTERNAL_TOPICS
from pykafka08.zookeeper.java_regex import translate

__all__ = ["PATTERNS", "TopicFilter"]

PATTERNS = ("white_list", "black_list")
"""The kinds of wildcard, as a member's registration names them."""


class TopicFilter:
    """A white list takes the topics whose whole name matches, a black list those whose name does not.

    ``text`` is Java's syntax; commas separate alternatives, spaces and surrounding quotes do not count.  ConfigError
    if it is no regular expression, or one that cannot be told in Python's syntax.
    """

    def __init__(self, pattern: str, text: str) -> None:
        self.pattern = pattern
        self.regex = cleaned(text)
        self._is_white = pattern == "white_list"
        self._expression = translate(self.regex)

    def allows(self, topic: str, *, excludes_internal: bool) -> bool:
        if excludes_internal and topic in INTERNAL_TOPICS:
            return False
        return (self._expression.fullmatch(topic) is not None) is self._is_white

    def choose(self, topics: Iterable[str], *, excludes_internal: bool) -> list[str]:
        """Those of the topics that it means, sorted."""
        return sorted(each for each in topics if self.allows(each, excludes_internal=excludes_internal))

    def __repr__(self) -> str:
        return f"{self.pattern} {self.regex!r}"


def cleaned(text: str) -> str:
    """The expression as it is registered and matched."""
    joined = text.strip().replace(",", "|").replace(" ", "")
    return re.sub(r"""^["']+|["']+$""", "", joined)
