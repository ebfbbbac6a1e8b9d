r"""Regular expressions of ``java.util.regex`` in Python's syntax, as far as names of topics need them.  Pure.

A group's members evaluate each other's wildcards, so that an expression must mean what it means to a JVM.  Names of
topics are ASCII, which makes every character class a set of at most 128: classes are computed, with Java's unions
and intersections, and written out.  Atomic groups and possessive quantifiers are native from Python 3.11 on; before,
they are a look-ahead and a reference to what it found.

Refused with a ConfigError that names the construct: what neither side would take, ``\G``, ``\R``, ``\X``, ``\N{..}``,
the flag ``x``, look-behinds of variable width, and, on Python 3.10, numbered references beside atomic groups.
"""

from __future__ import annotations

import re
import string
import sys
from collections.abc import Mapping
from functools import lru_cache

from pykafka08.errors import ConfigError

__all__ = ["translate"]

HAS_ATOMIC = sys.version_info >= (3, 11)

Chars = frozenset[int]


def _chars(text: str) -> Chars:
    return frozenset(map(ord, text))


ALL: Chars = frozenset(range(128))
UPPER, LOWER, DIGIT = _chars(string.ascii_uppercase), _chars(string.ascii_lowercase), _chars(string.digits)
ALPHA, PUNCTUATION = UPPER | LOWER, _chars(string.punctuation)
SPACE, BLANK = _chars(" \t\n\x0b\f\r"), _chars(" \t")
CONTROL = frozenset(range(32)) | {127}
SYMBOLS = _chars("$+<=>^`|~")

SHORTHANDS: Mapping[str, Chars] = {
    "d": DIGIT,
    "s": SPACE,
    "w": ALPHA | DIGIT | _chars("_"),
    "h": BLANK,
    "v": _chars("\n\x0b\f\r"),
}
PROPERTIES: Mapping[str, Chars] = {
    **dict.fromkeys(("lower", "ll", "lowercase", "javalowercase"), LOWER),
    **dict.fromkeys(("upper", "lu", "uppercase", "javauppercase"), UPPER),
    **dict.fromkeys(("alpha", "l", "lc", "alphabetic", "letter", "latin", "javaletter"), ALPHA),
    **dict.fromkeys(("digit", "n", "nd", "javadigit"), DIGIT),
    **dict.fromkeys(("alnum", "ld", "javaletterordigit"), ALPHA | DIGIT),
    "punct": PUNCTUATION,
    "p": PUNCTUATION - SYMBOLS,
    "punctuation": PUNCTUATION - SYMBOLS,
    "s": SYMBOLS,
    "graph": ALPHA | DIGIT | PUNCTUATION,
    "print": ALPHA | DIGIT | PUNCTUATION | {32},
    "blank": BLANK,
    "space": SPACE,
    "white_space": SPACE,
    **dict.fromkeys(("cntrl", "cc", "control"), CONTROL),
    **dict.fromkeys(("xdigit", "hex_digit"), _chars(string.hexdigits)),
    **dict.fromkeys(("ascii", "basic_latin", "basiclatin"), ALL),
}
"""By lower-case name, without Java's prefixes ``Is`` and ``In``; the ASCII part of each."""

CONTROL_ESCAPES = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}
ASSERTIONS = {"b": r"\b", "B": r"\B", "A": r"\A", "z": r"\Z", "Z": r"\Z"}
QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})([?+]?)")
GROUP_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
GROUP_NAME = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
IGNORED_FLAGS = frozenset("duU")
"""Line ends, and letters beyond ASCII: no matter in the name of a topic."""


@lru_cache(maxsize=1024)
def translate(text: str) -> re.Pattern[str]:
    """The expression, to be used with ``fullmatch``."""
    try:
        return re.compile(_Translator(text).translated(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"{text!r} cannot be used as a regular expression: {error}") from None


class _Translator:
    """One pass over the text; ``out`` grows piece by piece, and an atom is all pieces from where it began."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._out: list[str] = []
        self._open: list[tuple[int, int, bool, bool]] = []
        """Of each group that is open: where it begins in ``out``, flag groups to close with it, is it atomic, and was
        case ignored before it."""
        self._ignores_case = False
        self._flag_groups = 0
        self._atom: int | None = None
        """Where in ``out`` the atom begins that a quantifier would repeat."""
        self._marks = 0
        self._has_references = False

    def translated(self) -> str:
        while self._at < len(self._text):
            self._next()
        if self._open:
            raise self._refused("a group is not closed")
        if self._marks and self._has_references:
            raise self._refused("numbered references beside atomic groups need Python 3.11")
        return "".join(self._out) + ")" * self._flag_groups

    def _refused(self, why: str) -> ConfigError:
        return ConfigError(f"{self._text!r} cannot be used as a regular expression: {why}, at position {self._at}")

    def _next(self) -> None:
        char = self._text[self._at]
        if char == "(":
            self._group()
        elif char == ")":
            self._close()
        elif char == "[":
            self._put_atom(self._shown(self._class()))
        elif char == "\\":
            self._escape()
        elif char in "*+?{":
            self._quantifier()
        elif char in "|^$":
            self._at += 1
            self._out.append(char)
            self._atom = None
        else:
            self._at += 1
            self._put_atom("." if char == "." else re.escape(char))

    def _put_atom(self, piece: str) -> None:
        self._atom = len(self._out)
        self._out.append(piece)

    # Groups

    def _group(self) -> None:
        text, at = self._text, self._at
        if flags := GROUP_FLAGS.match(text, at):
            self._flags(flags)
            return
        is_atomic = text.startswith("(?>", at)
        if named := GROUP_NAME.match(text, at):
            piece, self._at = f"(?P<{named[1]}>", named.end()
        elif is_atomic:
            piece, self._at = ("(?>" if HAS_ATOMIC else "(?:"), at + 3
        elif opening := next((each for each in ("(?=", "(?!", "(?<=", "(?<!") if text.startswith(each, at)), None):
            piece, self._at = opening, at + len(opening)
        elif text.startswith("(?", at):
            raise self._refused("the group is of an unknown kind")
        else:
            piece, self._at = "(", at + 1
        self._begin(piece, is_atomic=is_atomic)

    def _begin(self, piece: str, *, is_atomic: bool = False) -> None:
        self._open.append((len(self._out), self._flag_groups, is_atomic, self._ignores_case))
        self._flag_groups = 0
        self._out.append(piece)
        self._atom = None

    def _flags(self, match: re.Match[str]) -> None:
        on, off = (set(each or "") - IGNORED_FLAGS for each in match.groups()[:2])
        if (on | off) - set("ims"):
            raise self._refused(f"the flags {match[0]!r} are not served")
        self._at = match.end()
        piece = "(?" + "".join(sorted(on)) + ("-" + "".join(sorted(off)) if off else "") + ":"
        if match[3] == ":":
            self._begin(piece)
            self._ignores_case = "i" in on or ("i" not in off and self._ignores_case)
            return
        # To the end of the group around it, over its alternatives too: "a(?i)b|c" is "a(?i:b)|(?i:c)".
        is_in_midst = match.start() > 0 and self._text[match.start() - 1] not in "(|"
        if is_in_midst and (on or off) and _alternative_follows(self._text, self._at):
            raise self._refused("flags in the midst of an alternative, with others behind it")
        self._out.append(piece)
        self._flag_groups += 1
        self._ignores_case = "i" in on or ("i" not in off and self._ignores_case)
        self._atom = None

    def _close(self) -> None:
        if not self._open:
            raise self._refused("a parenthesis is closed that was not opened")
        self._at += 1
        start, outer_flag_groups, is_atomic, self._ignores_case = self._open.pop()
        self._out.append(")" * self._flag_groups + ")")
        self._flag_groups = outer_flag_groups
        self._atom = start
        if is_atomic and not HAS_ATOMIC:
            self._make_atomic(start, "")

    def _make_atomic(self, start: int, quantifier: str) -> None:
        atom = "".join(self._out[start:]) + quantifier
        self._marks += 1
        mark = f"_atomic{self._marks}"
        self._out[start:] = [f"(?:(?=(?P<{mark}>{atom}))(?P={mark}))"]

    def _quantifier(self) -> None:
        match = QUANTIFIER.match(self._text, self._at)
        if match is None or self._atom is None:
            raise self._refused("there is nothing to repeat" if self._atom is None else "'{' begins no count")
        self._at = match.end()
        start, self._atom = self._atom, None
        if match[1] == "+" and not HAS_ATOMIC:
            self._make_atomic(start, match[0][:-1])
        else:
            self._out.append(match[0])

    # Escapes

    def _escape(self) -> None:
        text, at = self._text, self._at
        letter = text[at + 1 : at + 2]
        if letter == "Q":
            for char in self._quoted():
                self._put_atom(re.escape(char))
        elif letter in ASSERTIONS and letter:
            self._at += 2
            self._out.append(ASSERTIONS[letter])
            self._atom = None
        elif letter.isdigit() and letter != "0":
            self._has_references = True
            self._at += 2
            self._put_atom(f"(?:\\{letter})")
        elif letter == "k" and (named := re.compile(r"\\k<([a-zA-Z][a-zA-Z0-9]*)>").match(text, at)):
            self._at = named.end()
            self._put_atom(f"(?P={named[1]})")
        else:
            self._put_atom(self._shown(self._both_cases(self._escaped_set())))

    def _quoted(self) -> str:
        end = self._text.find(r"\E", self._at + 2)
        quoted = self._text[self._at + 2 : end if end >= 0 else None]
        self._at = end + 2 if end >= 0 else len(self._text)
        return quoted

    def _escaped_set(self) -> Chars:
        r"""What an escape stands for, inside a class or out of it; a code beyond ASCII stands for nothing."""
        text, at = self._text, self._at
        letter = text[at + 1 : at + 2]
        if not letter:
            raise self._refused("it ends in a backslash")
        if (code := _code(text, at)) is not None:
            self._at, number = code
            return frozenset({number}) & ALL
        if letter.lower() in SHORTHANDS:
            self._at += 2
            return SHORTHANDS[letter] if letter.islower() else ALL - SHORTHANDS[letter.lower()]
        if letter in "pP":
            return self._property()
        if letter in CONTROL_ESCAPES:
            self._at += 2
            return frozenset({CONTROL_ESCAPES[letter]})
        if letter.isalnum():
            raise self._refused(f"the escape \\{letter} is not served")
        self._at += 2
        return _chars(letter) & ALL

    def _property(self) -> Chars:
        match = re.compile(r"\\([pP])(?:\{(?:\w+=)?(\w+)\}|([A-Z]))").match(self._text, self._at)
        if match is None:
            raise self._refused("a property has no name")
        name = (match[2] or match[3]).lower()
        found = PROPERTIES.get(name)
        if found is None and name.startswith(("is", "in")):
            found = PROPERTIES.get(name[2:])
        if found is None:
            raise self._refused(f"the property {match[0]} is not served")
        self._at = match.end()
        return ALL - found if match[1] == "P" else found

    # Character classes

    def _class(self) -> Chars:
        """``[...]`` from its bracket: members, ranges, classes inside, and intersections of all that."""
        self._at += 1
        is_negated = self._text.startswith("^", self._at)
        self._at += is_negated
        result: Chars | None = None
        members: Chars = frozenset()
        is_first = True
        while True:
            if self._at >= len(self._text):
                raise self._refused("a character class is not closed")
            if self._text[self._at] == "]" and not is_first:
                self._at += 1
                break
            if self._text.startswith("&&", self._at):
                self._at += 2
                result = members if result is None and not is_first else (result or ALL) & (members or ALL)
                members = frozenset()
            else:
                members |= self._both_cases(self._member())
            is_first = False
        result = members if result is None else result & members
        return ALL - result if is_negated else result

    def _both_cases(self, chars: Chars) -> Chars:
        if not self._ignores_case:
            return chars
        return frozenset(ord(each) for code in chars for each in (chr(code).lower(), chr(code).upper()))

    def _shown(self, chars: Chars) -> str:
        return f"(?-i:{_written(chars)})" if self._ignores_case else _written(chars)

    def _member(self) -> Chars:
        text = self._text
        if text[self._at] == "[":
            return self._class()
        if text.startswith(r"\Q", self._at):
            return _chars(self._quoted()) & ALL
        low = self._one()
        is_range = text.startswith("-", self._at) and text[self._at + 1 : self._at + 2] not in ("]", "[", "")
        if not is_range:
            return low
        self._at += 1
        high = self._one()
        if len(low) != 1 or len(high) != 1 or min(high) < min(low):
            raise self._refused("a range has no sense")
        return frozenset(range(min(low), min(high) + 1))

    def _one(self) -> Chars:
        char = self._text[self._at]
        if char == "\\":
            return self._escaped_set()
        self._at += 1
        return _chars(char) & ALL


CODES = re.compile(r"\\(?:x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|0([0-3]?[0-7]{1,2})|c([@-_a-z]))")


def _code(text: str, at: int) -> tuple[int, int] | None:
    """The end of an escape that gives a character's number, and that number."""
    match = CODES.match(text, at)
    if match is None:
        return None
    wide, two, four, octal, control = match.groups()
    if control is not None:
        return match.end(), ord(control) ^ 64
    if octal is not None:
        return match.end(), int(octal, 8)
    return match.end(), int(wide or two or four, 16)


def _written(chars: Chars) -> str:
    """The set in Python's syntax."""
    if chars == ALL:
        return r"[\x00-\x7f]"
    if not chars:
        return r"(?!)"
    if len(chars) == 1:
        return re.escape(chr(min(chars)))
    ordered = sorted(chars)
    runs: list[list[int]] = []
    for each in ordered:
        if runs and each == runs[-1][1] + 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    return "[" + "".join(f"\\x{low:02x}-\\x{high:02x}" for low, high in runs) + "]"


def _alternative_follows(text: str, at: int) -> bool:
    """Does a ``|`` follow in the group that is open at ``at``?"""
    depth = 0
    while at < len(text) and depth >= 0:
        char = text[at]
        if char == "|" and depth == 0:
            return True
        depth += (char == "(") - (char == ")")
        at += 2 if char == "\\" else 1
    return False
