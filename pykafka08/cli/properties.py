"""Arguments of the tools: ``name=value`` pairs, and bytes as the shell gave them."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka08.errors import ConfigError

__all__ = ["bytes_of", "parse_pairs"]


def parse_pairs(texts: Iterable[str]) -> dict[str, str]:
    """``["a=b", "c"]`` as ``{"a": "b", "c": ""}``; the last one of a name wins."""
    texts = list(texts)
    for text in texts:
        if not text.partition("=")[0].strip():
            raise ConfigError(f"{str(text)!r} is not of the form name=value")
    return {name.strip(): value for name, _, value in (text.partition("=") for text in texts)}


def bytes_of(text: str) -> bytes:
    """The bytes of an argument as the shell gave them, whatever they are."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ConfigError(f"{text!r:.100} cannot be written as UTF-8") from error
