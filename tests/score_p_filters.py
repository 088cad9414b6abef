"""The published grammar of Score-P's filter files, and the matching of names.

A file is a sequence of words. `#` begins a comment unless a backslash precedes it. Blanks and line
breaks end a word unless a backslash precedes a blank. A block of regions consists of EXCLUDE and
INCLUDE lists, whose words are patterns of the shell. MANGLED makes the patterns of a list match
linker names. Later rules have priority.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass

KEYWORDS = {
    "SCOREP_FILE_NAMES_BEGIN", "SCOREP_FILE_NAMES_END", "SCOREP_REGION_NAMES_BEGIN",
    "SCOREP_REGION_NAMES_END", "EXCLUDE", "INCLUDE", "MANGLED", "DEMANGLED",
}  # fmt: skip


class FilterSyntaxError(ValueError):
    pass


@dataclass(frozen=True)
class Rule:
    pattern: str
    excludes: bool
    mangled: bool

    def matches(self, name: str, mangled: str) -> bool:
        text = mangled if self.mangled else name
        return re.fullmatch(_expression(self.pattern), text, re.DOTALL) is not None


def _expression(pattern):
    """Return the regular expression of a pattern of fnmatch(3), which unescapes by backslash."""
    parts, at = [], 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            if at + 1 == len(pattern):
                raise FilterSyntaxError(f"{pattern}: ends with a backslash")
            parts.append(re.escape(pattern[at + 1]))
            at += 2
        elif sign == "[":
            end = pattern.find("]", at + 2)
            if end < 0:
                parts.append(re.escape(sign))
                at += 1
            else:
                parts.append(fnmatch.translate(pattern[at : end + 1])[4:-3])
                at = end + 1
        else:
            parts.append({"*": ".*", "?": "."}.get(sign, re.escape(sign)))
            at += 1
    return "".join(parts)


def words(text):
    """Return the words of a file; an error for a line that ends with a backslash."""
    found = []
    for line in text.splitlines():
        code = re.split(r"(?<!\\)#", line, maxsplit=1)[0]
        if code.endswith("\\"):
            raise FilterSyntaxError(f"escaped line break: {line!r}")
        found += [word for word in re.split(r"(?<!\\)[ \t]", code) if word]
    return found


def rules(text):
    """Return the rules on regions in a file."""
    found, inside, mode, mangled = [], False, None, False
    for word in words(text):
        if word == "SCOREP_REGION_NAMES_BEGIN" and not inside:
            inside, mode, mangled = True, None, False
        elif word == "SCOREP_REGION_NAMES_END" and inside:
            inside = False
        elif word in {"EXCLUDE", "INCLUDE"} and inside:
            mode, mangled = word, False
        elif word in {"MANGLED", "DEMANGLED"} and mode is not None:
            mangled = word == "MANGLED"
        elif word in KEYWORDS or mode is None or not inside:
            raise FilterSyntaxError(f"unexpected word: {word!r}")
        else:
            found.append(Rule(word, mode == "EXCLUDE", mangled))
    if inside:
        raise FilterSyntaxError("the block does not end")
    return found


def excluded(found, name, mangled):
    """Return whether a region is excluded; the last rule that matches decides."""
    last = [rule.excludes for rule in found if rule.matches(name, mangled or name)]
    return bool(last) and last[-1]
