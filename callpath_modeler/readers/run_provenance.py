"""Findings about runs of one series that differ in machine, compiler, arguments or inputs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from callpath_modeler.diagnostics import Finding
from callpath_modeler.numerals import decimal_of
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.runs import Run, case_findings, names_a_case
from callpath_modeler.readers.tokens import NameWord, word_of
from callpath_modeler.units import counted, setting_text

_OF_MACHINES = ("machine", "cluster")
_OF_BUILDS = ("compiler", "compilerversion", "Compiler Name", "Compiler Version", "mpi")
ENVIRONMENT = (*_OF_MACHINES, *_OF_BUILDS)
"""Keys of the metadata for the machine and the build."""
_ARGUMENTS = ("command line", "cmdline")
"""Keys of the metadata for the program and its arguments."""
_OTHERS = frozenset({*_OF_MACHINES, *_OF_BUILDS, *_ARGUMENTS, "program", "creator"})
_CHANCE = re.compile(
    r"date|time|host|user|path|output|file|log|pid|seed|version|launch", re.IGNORECASE
)
"""Keys of metadata that vary by chance, or with the place of the start."""
_MOST = 3
"""Maximum number of values in a finding."""
_ALL_NEW = 2
"""If more than this number of runs all differ in a value, they differ by chance."""


def provenance_findings(runs: Sequence[Run]) -> list[Finding]:
    """Return findings about differences between the runs of one series.

    Machines and compilers are compared between all runs. Arguments may depend on the scale, so they
    are compared among the repetitions of each point. The same holds for other metadata with
    recurring values.
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
    """Return findings about metadata with recurring values that differ within a point."""
    findings: list[Finding] = []
    cases: list[str] = []
    for key in dict.fromkeys(key for run in runs for key in run.metadata):
        if is_of_chance(key):
            continue
        count = Counter(run.metadata[key] for run in runs if key in run.metadata)
        if len(count) < 2 or 2 * len(count) > len(runs) or min(count.values()) < 2:
            continue
        mixed = sum(len({run.metadata.get(key) for run in of}) > 1 for of in points)
        if mixed and names_a_case(key) and not all(map(is_number, count)):
            cases.append(key)
        elif mixed:
            findings.append(_input(key, count, mixed, len(points)))
    return [*case_findings(cases, runs), *findings]


def _input(key: str, count: Counter[str], mixed: int, points: int) -> Finding:
    listed = ", ".join(
        f"{value} in {counted(number, 'run')}" for value, number in count.most_common(_MOST)
    )
    more = f", {len(count) - _MOST} more" if len(count) > _MOST else ""
    if all(is_number(value) for value in count):
        choice = f"--param '{key}=metadata:{key}' makes it a parameter"
    else:
        chosen = shell_word(f"{key}={count.most_common(1)[0][0]}")
        choice = f"choose with --where {chosen}, or rank each with --group-by {shell_word(key)}"
    return Finding("CPM143", key, f"{listed}{more}, at {mixed} of {points} points; {choice}")


def is_of_chance(key: str) -> bool:
    """Return whether an entry of the metadata varies by chance, or has a comparison of its own."""
    is_identifier = word_of(key) is NameWord.IDENTIFIER
    return key in _OTHERS or is_identifier or _CHANCE.search(key) is not None


def is_number(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return math.isfinite(decimal_of(text))
    except ValueError:
        return False


def _arguments(metadata: Mapping[str, str]) -> str:
    """Return the arguments of the program, without its name; "" = not known."""
    for key in _ARGUMENTS:
        if key in metadata:
            words = metadata[key].strip("[]").replace(",", " ").split()
            return " ".join(words[1:]) or "none"
    return ""


def _odd(told: Iterable[tuple[str, Run]]) -> str:
    """Return the distinct values with their runs, the most frequent first; "" = all are equal."""
    first: dict[str, Run] = {}
    count: Counter[str] = Counter()
    for value, run in told:
        if value:
            first.setdefault(value, run)
            count[value] += 1
    # A value that differs in every run, such as a container name or a seed, means nothing.
    always_new = len(count) == sum(count.values()) > _ALL_NEW
    if len(count) < 2 or always_new:
        return ""
    parts = [
        f"{value} in {counted(number, 'run')} (first {first[value].source})"
        for value, number in count.most_common(_MOST)
    ]
    more = [f"{len(count) - _MOST} more"] if len(count) > _MOST else []
    return "; ".join([*parts, *more])
