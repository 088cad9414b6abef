"""Whether runs that count as one series were made alike: machine, compiler, arguments."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from callpath_modeler.diagnostics import Finding
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.experiment import Run
from callpath_modeler.readers.name_words import NameWord, word_of
from callpath_modeler.units import counted, setting_text

_OF_MACHINES = ("machine", "cluster")
_OF_BUILDS = ("compiler", "compilerversion", "Compiler Name", "Compiler Version", "mpi")
_ARGUMENTS = ("command line", "cmdline")
"""What profiles call the program with its arguments."""
_OTHERS = frozenset({*_OF_MACHINES, *_OF_BUILDS, *_ARGUMENTS, "program", "creator"})
_CHANCE = re.compile(
    r"date|time|host|user|path|output|file|log|pid|seed|version|launch", re.IGNORECASE
)
"""Metadata that differ between runs by chance, or by where they were started."""
_MOST = 3
"""So many values are named."""
_ALL_NEW = 2
"""If more runs than these all differ, they do so by chance."""


def provenance_findings(runs: Sequence[Run]) -> list[Finding]:
    """Say in what runs differ that are taken for scales and repetitions of one program.

    Machines and compilers may differ nowhere. Arguments may change with the scale, so they are
    compared among the repetitions of each point, as are all other metadata whose values recur.
    """
    findings = []
    for key in (*_OF_MACHINES, *_OF_BUILDS):
        told = _odd((run.metadata.get(key, ""), run) for run in runs)
        findings += [Finding("CPM131", key, told)] if told else []
    points: dict[tuple[float, ...], list[Run]] = {}
    for run in runs:
        points.setdefault(tuple(run.parameters.values()), []).append(run)
    for at in points.values():
        told = _odd((_arguments(run.metadata), run) for run in at)
        where = setting_text(at[0].parameters)
        findings += [Finding("CPM131", f"arguments at {where}", told)] if told else []
    return [*findings, *_inputs(runs, [*points.values()])]


def _inputs(runs: Sequence[Run], points: Sequence[Sequence[Run]]) -> list[Finding]:
    """Name the metadata that differ between the runs of a point, and whose values recur."""
    findings = []
    for key in dict.fromkeys(key for run in runs for key in run.metadata):
        if key in _OTHERS or word_of(key) is NameWord.IDENTIFIER or _CHANCE.search(key):
            continue
        count = Counter(run.metadata[key] for run in runs if key in run.metadata)
        if len(count) < 2 or 2 * len(count) > len(runs) or min(count.values()) < 2:
            continue
        mixed = sum(len({run.metadata.get(key) for run in of}) > 1 for of in points)
        if mixed:
            findings.append(_input(key, count, mixed, len(points)))
    return findings


def _input(key: str, count: Counter[str], mixed: int, points: int) -> Finding:
    listed = ", ".join(
        f"{value} in {counted(number, 'run')}" for value, number in count.most_common(_MOST)
    )
    more = f", {len(count) - _MOST} more" if len(count) > _MOST else ""
    if all(_is_number(value) for value in count):
        choice = f"--param '{key}=metadata:{key}' makes it a parameter"
    else:
        chosen = shell_word(f"{key}={count.most_common(1)[0][0]}")
        choice = f"choose with --where {chosen}, or rank each with --group-by {shell_word(key)}"
    return Finding("CPM143", key, f"{listed}{more}, at {mixed} of {points} points; {choice}")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _arguments(metadata: Mapping[str, str]) -> str:
    """Return with what a program was called, without its name; nothing where that is not told."""
    for key in _ARGUMENTS:
        if key in metadata:
            words = metadata[key].strip("[]").replace(",", " ").split()
            return " ".join(words[1:]) or "none"
    return ""


def _odd(told: Iterable[tuple[str, Run]]) -> str:
    """Name values with their runs, the most frequent first; nothing where they are all alike."""
    first: dict[str, Run] = {}
    count: Counter[str] = Counter()
    for value, run in told:
        if value:
            first.setdefault(value, run)
            count[value] += 1
    # Names of containers, or seeds: what is another one in every run tells no two kinds apart.
    always_new = len(count) == sum(count.values()) > _ALL_NEW
    if len(count) < 2 or always_new:
        return ""
    parts = [
        f"{value} in {counted(number, 'run')} (first {first[value].source})"
        for value, number in count.most_common(_MOST)
    ]
    more = [f"{len(count) - _MOST} more"] if len(count) > _MOST else []
    return "; ".join([*parts, *more])
