r"""Java's regular expressions that Rust's engine matches alike, written for it.

Both take the first alternative that leads to a match, and as much as they can.

| Rust | Java | guard |
|---|---|---|
| ``.`` is all but a newline | all but five line terminators | a class |
| ``\d``, ``\w`` and ``\s`` of Unicode | of ASCII | classes |
| ``$`` is the end | or before a line terminator at the end | an optional one; never behind ``\r`` |
| no empty match right behind another | there is | none that may be empty is replaced |
| a backslash, lost where DataFusion makes LIKE of a pattern | itself | declined |
| ``&&``, ``--``, ``[a[b]]`` in classes | other ones | every sign by its number |

Declined: what looks ahead or back, flags, ``\b``, ``\p``, possessive quantifiers, groups that are
repeated and captured or may be empty, control characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from pennon.predicate.semantics import Declined

_ENDS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES: Final = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\x{20}\t\n\x{0B}\x{0C}\r"}
_QUANTIFIER: Final = re.compile(r"(?:([*+?])|\{(\d{1,2})(?:(,)(\d{1,2})?)?\})(\??)")
# By a backslash, by a class of one sign, or as it is.
_STATED_SIGN: Final = re.compile(r"\\([^A-Za-z0-9\\])|\[([^\\\[\]^&])\]|([^\\])")
_SPECIAL: Final = frozenset(r"\^$.|?*+()[]{}")
_SPACE: Final = 32
_LINE_ENDS: Final = "\x85\u2028\u2029"


@dataclass(slots=True)
class JavaPattern:
    r"""A pattern in Rust's form.

    Args:
        text: The pattern, as Java reads it.

    Raises:
        Declined: Both engines are not known to match alike.

    Example:
        >>> JavaPattern("^https?://([a-z]+)").rust
        '^https?\\x{3A}\\x{2F}\\x{2F}([a-z]+)'
    """

    text: str
    rust: str = ""
    groups: int = 0
    least: int = 0
    is_anchored: bool = False
    has_end: bool = False
    _at: int = field(default=0)
    _cuts: int = field(default=0)
    _repeats_groups: bool = field(default=False)
    _matched: str = field(default="")
    _end: str = field(default="")

    def __post_init__(self) -> None:
        """Read the whole pattern."""
        if any(ord(sign) < _SPACE or sign in _LINE_ENDS for sign in self.text):
            raise self._declined()
        if self.text.startswith("^"):
            self.is_anchored = True
            self._at = 1
        self.has_end = self.text.endswith("$") and not self.text.endswith("\\$")
        last = len(self.text) - self.has_end
        written, self.least, takes_return = self._alternatives(last)
        if self._at != last or (self.has_end and takes_return):
            raise self._declined()
        if self._cuts > 1 and (self.is_anchored or self.has_end):
            raise self._declined()
        self._matched = written
        self._end = rf"(\r\n|[{_ENDS}])?\z" if self.has_end else ""
        self.rust = ("^" if self.is_anchored else "") + written + self._end

    def _declined(self) -> Declined:
        return Declined(why=f"the regular expression {self.text}")

    def _peek(self, last: int) -> str:
        return self.text[self._at] if self._at < last else ""

    def _alternatives(self, last: int) -> tuple[str, int, bool]:
        """Read alternatives: their form, the least length, whether one may end with a return."""
        alternatives = [self._sequence(last)]
        while self._peek(last) == "|":
            self._at += 1
            alternatives.append(self._sequence(last))
        self._cuts = len(alternatives)
        text = "|".join(written for written, _, _ in alternatives)
        return (
            text,
            min(least for _, least, _ in alternatives),
            any(ends for *_, ends in alternatives),
        )

    def _sequence(self, last: int) -> tuple[str, int, bool]:
        written, least, ends = "", 0, False
        while self._peek(last) not in ("", "|", ")"):
            text, size, takes_return, is_captured = self._atom(last)
            quantifier = _QUANTIFIER.match(self.text, self._at, last)
            fewest = 1
            if quantifier is not None:
                sign, low, _, _, _ = quantifier.groups()
                is_group = text.startswith("(")
                self._repeats_groups |= is_captured and sign != "?"
                if is_group and size == 0:
                    raise self._declined()
                fewest = {"*": 0, "+": 1, "?": 0}[sign] if sign else int(low)
                text += quantifier.group()
                self._at = quantifier.end()
                if self._peek(last) in ("*", "+", "?", "{"):
                    raise self._declined()
            written += text
            least += size * fewest
            # behind what may be missing, what is before it ends the match
            ends = takes_return or (ends and size * fewest == 0)
        return written, least, ends

    def _atom(self, last: int) -> tuple[str, int, bool, bool]:
        """Read one: its form, its least length, whether it may end with a return, captures."""
        character = self._peek(last)
        self._at += 1
        if character == "(":
            return self._group(last)
        if character == "[":
            return self._class(last)
        if character == ".":
            return f"[^{_ENDS}]", 1, False, False
        if character == "\\":
            letter = self._peek(last)
            self._at += 1
            if letter.lower() in _CLASSES and letter:
                is_not = letter.isupper()
                text = f"[{'^' if is_not else ''}{_CLASSES[letter.lower()]}]"
                return text, 1, letter in "sDW", False
            # DataFusion makes LIKE of some patterns, and escapes no backslash there.
            if letter in ("", "\\") or letter.isalnum() or not letter.isascii():
                raise self._declined()
            return _number(letter), 1, False, False
        if character in _SPECIAL:
            raise self._declined()
        return _number(character), 1, False, False

    def _group(self, last: int) -> tuple[str, int, bool, bool]:
        is_captured = not self.text.startswith("?:", self._at)
        if not is_captured:
            self._at += 2
        elif self._peek(last) == "?":
            raise self._declined()
        else:
            self.groups += 1
        written, least, ends = self._alternatives(last)
        if self._peek(last) != ")":
            raise self._declined()
        self._at += 1
        return f"({'' if is_captured else '?:'}{written})", least, ends, is_captured

    def _class(self, last: int) -> tuple[str, int, bool, bool]:
        close = self.text.find("]", self._at, last)
        inner = self.text[self._at : close]
        is_not = inner.startswith("^")
        inner = inner.removeprefix("^")
        if close < 0 or not inner or re.search(r"[\[\\&]", inner):
            raise self._declined()
        parts, at = "", 0
        while at < len(inner):
            is_range = at + 2 < len(inner) and inner[at + 1] == "-"
            if is_range:
                if inner[at] > inner[at + 2]:
                    raise self._declined()
                parts += f"{_number(inner[at])}-{_number(inner[at + 2])}"
                at += 3
            else:
                parts += _number(inner[at])
                at += 1
        self._at = close + 1
        return f"[{'^' if is_not else ''}{parts}]", 1, is_not, False

    def extraction(self, group: int) -> tuple[str, str]:
        """Write a form of the whole text, and what of it a group has matched first.

        Raises:
            Declined: A group that there is not, or that is repeated.
        """
        if not 0 <= group <= self.groups or self._repeats_groups:
            raise self._declined()
        start = "^" if self.is_anchored else "^(?s:.*?)"
        match = f"({self._matched})"
        return f"{start}{match}{self._end or '(?s:.*)'}", f"${{{group + 1}}}"

    def replacement(self, text: str) -> str:
        """Write what matches are replaced by.

        Raises:
            Declined: A group that there is not, an escape, or matches that may be empty or end
                before what the end of the pattern leaves.
        """
        is_cut_off = self.has_end and not self.is_anchored
        if self.least == 0 or is_cut_off or self._repeats_groups or "\\" in text:
            raise self._declined()
        pieces = re.split(r"\$(\d)(?!\d)", text)
        if any("$" in piece for piece in pieces[::2]):
            raise self._declined()
        # The whole match has what is left behind it in Rust's form.
        first = 1 if self.has_end else 0
        if not all(first <= int(number) <= self.groups for number in pieces[1::2]):
            raise self._declined()
        written = "".join(f"${{{piece}}}" if at % 2 else piece for at, piece in enumerate(pieces))
        return written + (f"${{{self.groups + 1}}}" if self.has_end else "")


def _number(character: str) -> str:
    is_plain = character.isascii() and (character.isalnum() or character == "_")
    return character if is_plain else f"\\x{{{ord(character):X}}}"


def plain_text(pattern: str) -> str:
    r"""Give the text that is all that a pattern of Java matches.

    Raises:
        Declined: It has signs that stand for others, or none.

    Example:
        >>> plain_text("-"), plain_text(r"\."), plain_text("[|]")
        ('-', '.', '|')
    """
    signs = list(_STATED_SIGN.finditer(pattern))
    is_whole = "".join(sign.group() for sign in signs) == pattern
    if not signs or not is_whole or not _SPECIAL.isdisjoint(sign.group() for sign in signs):
        raise Declined(why=f"the regular expression {pattern}")
    return "".join(sign[sign.lastindex or 0] for sign in signs)
