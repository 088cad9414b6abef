"""Filter files of Score-P: functions that the next measurement does not record."""

from __future__ import annotations

from collections.abc import Iterable

from callpath_modeler.analysis.refinement import Refinement, SmallFunction
from callpath_modeler.printable import in_one_line
from callpath_modeler.units import counted, percent

KEYWORDS = frozenset({
    "SCOREP_FILE_NAMES_BEGIN", "SCOREP_FILE_NAMES_END", "SCOREP_REGION_NAMES_BEGIN",
    "SCOREP_REGION_NAMES_END", "EXCLUDE", "INCLUDE", "MANGLED", "DEMANGLED",
})  # fmt: skip
"""Words of the grammar; any other word in a block is a pattern."""

_ESCAPED = frozenset("*?[]#\\ \t")
"""Characters of patterns of the shell, of comments, and blanks, which end a pattern."""


def filter_text(found: Refinement) -> str:
    """Return the filter file, in the grammar of Score-P.

    Linker names come in a list of their own, because one name in the source may stand for several
    functions. A filter without functions is valid, and excludes nothing.
    """
    excluded = found.excluded
    fitted = found.ranking.fitted
    visits = found.visits - found.visits_after
    share = percent(visits / found.visits) if found.visits else percent(0.0)
    lines = [
        f"# cpmodel refine: {in_one_line(fitted.experiment.name)}",
        f"# {counted(len(excluded), 'function')} with {share} of the visits",
        "SCOREP_REGION_NAMES_BEGIN",
        *_rules("EXCLUDE", (each for each in excluded if not each.region.mangled)),
        *_rules("EXCLUDE MANGLED", (each for each in excluded if each.region.mangled)),
        "SCOREP_REGION_NAMES_END",
    ]
    return "".join(f"{line}\n" for line in lines)


def _rules(words: str, functions: Iterable[SmallFunction]) -> list[str]:
    listed = sorted(functions, key=lambda each: each.filter_name)
    patterns = [f"    {pattern(each.filter_name)}{_comment(each)}" for each in listed]
    return [f"  {words}", *patterns] if patterns else []


def _comment(function: SmallFunction) -> str:
    """Return the name in the source, if the pattern is a linker name."""
    name = function.region.name
    return f" # {in_one_line(name)}" if name != function.filter_name else ""


def pattern(name: str) -> str:
    r"""Return the pattern that matches only `name`, which has only characters that can be printed.

    >>> pattern("operator*"), pattern("int f(int)"), pattern("EXCLUDE")
    ('operator\\*', 'int\\ f(int)', '\\EXCLUDE')
    """
    escaped = "".join(f"\\{sign}" if sign in _ESCAPED else sign for sign in name)
    # A backslash before a letter has no effect but to tell the name from a word of the grammar.
    return f"\\{escaped}" if escaped in KEYWORDS else escaped
