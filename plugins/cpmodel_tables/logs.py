"""Logs of programs: times by call path, found by the patterns that each program's form declares."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, inf, log10, prod
from pathlib import Path

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import Match, RunSource
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_tables import google_benchmark, hyperfine, kokkos, likwid, sacct, talp
from cpmodel_tables.log_forms import Form, Lines, Repeated, form_of
from cpmodel_tables.results import PROCESSES, THREADS, Results
from cpmodel_tables.text import first_text, opened_lines

_LONGEST = 1_000
"""Largest number of characters of a line; longer lines are skipped."""
_TIME = "time"
"""Group of times, in the patterns of rows."""
_BLANKS = 2
"""Number of blanks of a level of calls."""

_OTHERS = (hyperfine, google_benchmark, kokkos, talp, sacct, likwid)
"""Modules for JSON, CSV, and lists with one line per run."""


class Logs:
    """Reader of logs that programs print, and of results of small benchmarks."""

    def match(self, path: Path) -> Match:
        """Return whether `path` is a log of a known program, by its first block."""
        text = first_text(path)
        found = form_of(text) or any(each.is_one(text) for each in _OTHERS)
        return Match.CONTENT if found else Match.NO

    def runs(self, path: Path) -> Sequence[RunSource]:
        """Return the runs in a log.

        Raises
        ------
        InputError
            If all runs failed or did not end, or if the file is damaged.
        """
        text = first_text(path)
        for other in _OTHERS:
            if other.is_one(text):
                found: Sequence[RunSource] = other.read(path)
                return found
        form = form_of(text)
        if form is None:
            raise InputError(f"{path}: no log of a known program", hint="check the file")
        return read(path, form)


_Key = tuple[int, tuple[str, ...], str]


@dataclass(slots=True)
class _Run:
    """One run in a log.

    Attributes
    ----------
    line : number of its first line
    facts : properties as they are written
    counts : numbers of lines
    values : values by phase, call path and group
    roundings : largest errors of rounding of the values
    """

    line: int
    facts: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    values: dict[_Key, float] = field(default_factory=dict)
    roundings: dict[_Key, float] = field(default_factory=dict)
    phase: int = 0
    has_begun: bool = False
    has_ended: bool = False
    has_failed: bool = False


@dataclass(slots=True)
class _Section:
    """Lines with values, and whether the current line is among them."""

    lines: Lines
    row: re.Pattern[str]
    begin: re.Pattern[str] | None
    end: re.Pattern[str] | None
    is_open: bool
    above: list[str] = field(default_factory=list)


def read(path: Path, form: Form) -> list[RunSource]:
    """Return the runs in a log.

    Raises
    ------
    InputError
        If all runs failed or did not end.
    """
    results = Results(path, form.tool, all_vary=True, is_nested=bool(form.program))
    noticed: list[Finding] = []
    equal: dict[tuple[tuple[str, object], ...], int] = {}
    for run in _runs_of(path, form):
        results.listed += 1
        if run.has_failed or not run.has_ended:
            results.failed += 1
            continue
        facts = _facts(run, form)
        if form.per and not facts.get(form.per):
            raise InputError(
                f"{path}: the log states no number of {form.per}, which its times are divided by",
                hint="copy the whole log",
            )
        divisor = float(str(facts[form.per])) if form.per else 1.0
        key = tuple(facts.items())
        equal[key] = equal.get(key, 0) + 1
        facts["repetition"] = float(equal[key])
        values, negative = _exclusive(run) if form.is_inclusive else (run.values, 0.0)
        if negative:
            message = f"run {results.listed}: down to {negative / divisor:.3g}"
            noticed.append(Finding("CPM105", str(path), message))
        for (phase, names, group), value in values.items():
            title, unit = form.metrics[group]
            above = (f"{form.phase[0]} {phase}",) if run.phase > 1 else ()
            results.add(facts, (*above, *names), title, value / divisor, unit, run.line)
    return results.runs(noticed)


def _facts(run: _Run, form: Form) -> dict[str, object]:
    """Return the properties of a run; those that are whole numbers are numbers."""
    told: dict[str, object] = {"program": run.facts.get("program", form.program)}
    for name, written in run.facts.items():
        if name != "program":
            told[name] = float(written) if written.isdecimal() else written
    told |= {name: float(count) for name, count in run.counts.items()}
    for name, parts in form.products.items():
        if all(isinstance(told.get(part), float) for part in parts):
            told[name] = prod(float(str(told.pop(part))) for part in parts)
    if PROCESSES not in told and THREADS in told:
        # A program without processes scales with its threads.
        told[PROCESSES] = 1.0
    return told


def _exclusive(run: _Run) -> tuple[dict[_Key, float], float]:
    """Return times without those of the call paths below, and the smallest one or 0.

    A difference within the rounding of the log counts as 0.
    """
    below: dict[_Key, tuple[float, float]] = {}
    for (phase, names, group), value in run.values.items():
        above = phase, names[:-1], group
        if group == _TIME and names and above in run.values:
            total, rounding = below.get(above, (0.0, 0.0))
            below[above] = total + value, rounding + run.roundings[phase, names, group]
    exclusive, smallest = dict(run.values), 0.0
    for key, (total, rounding) in below.items():
        own = run.values[key] - total
        is_rounded = abs(own) <= rounding + run.roundings[key]
        smallest = min(smallest, 0.0 if is_rounded else own)
        exclusive[key] = 0.0 if is_rounded else max(own, 0.0)
    return exclusive, smallest


def _rounding(written: str, digits: int) -> float:
    """Return half a unit of the last digit of a number.

    Parameters
    ----------
    written : the number
    digits : number of significant digits; 0 = those that are written

    >>> _rounding("12.50", 0), _rounding("12.5", 6)
    (0.005, 5e-05)
    """
    value = float(written)
    if digits and 0 < value < inf:
        return 0.5 * 10.0 ** (1 + floor(log10(value)) - digits)
    return 0.5 * 10.0 ** -len(written.partition(".")[2])


def _runs_of(path: Path, form: Form) -> Iterator[_Run]:
    """Yield the runs in a log, with those that have no value."""
    limits, found = InputLimits.of(path), 0
    patterns = _Patterns.of(form)
    run, sections = _Run(1, has_ended=not form.finished), _sections(form)
    with opened_lines(path) as text:
        for number, whole in enumerate(text, 1):
            line = whole.rstrip()
            if len(line) > _LONGEST:
                continue
            if patterns.run and patterns.run.search(line):
                if run.values or run.has_begun:
                    yield run
                # Properties above the first run hold for all runs.
                run = _Run(number, dict(run.facts), has_begun=True, has_ended=not form.finished)
                sections = _sections(form)
            patterns.note(run, line)
            for section in sections:
                found += _take(run, section, line, form.metrics)
            limits.check(Work.NAMES, found, "split the log")
    if run.values or run.has_begun or run.has_failed or form.finished:
        yield run


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Compiled patterns of the lines of a form that have no values; None = the form has none."""

    run: re.Pattern[str] | None
    phase: re.Pattern[str] | None
    facts: tuple[re.Pattern[str], ...]
    counted: Mapping[str, re.Pattern[str]]
    finished: re.Pattern[str] | None
    failed: re.Pattern[str] | None

    @classmethod
    def of(cls, form: Form) -> _Patterns:
        """Compile the patterns of a form."""
        return cls(
            run=_compiled(form.run),
            phase=_compiled(form.phase[1]),
            facts=tuple(map(re.compile, form.facts)),
            counted={name: re.compile(line) for name, line in form.counted.items()},
            finished=_compiled(form.finished),
            failed=_compiled(form.failed),
        )

    def note(self, run: _Run, line: str) -> None:
        """Note what a line says of its run."""
        run.phase += bool(self.phase and self.phase.search(line))
        for fact in self.facts:
            if match := fact.search(line):
                _note(run, match.groupdict(), frozenset())
        for name, pattern in self.counted.items():
            run.counts[name] = run.counts.get(name, 0) + bool(pattern.search(line))
        run.has_ended |= bool(self.finished and self.finished.search(line))
        run.has_failed |= bool(self.failed and self.failed.search(line))


def _compiled(pattern: str) -> re.Pattern[str] | None:
    return re.compile(pattern) if pattern else None


def _sections(form: Form) -> list[_Section]:
    return [
        _Section(
            lines,
            re.compile(lines.row),
            _compiled(lines.begin),
            _compiled(lines.end),
            is_open=not lines.begin,
        )
        for lines in form.lines
    ]


def _take(run: _Run, section: _Section, line: str, metrics: Mapping[str, object]) -> int:
    """Take the values of a line that is a row of a section; return their number."""
    if section.begin and section.begin.search(line):
        section.is_open, section.above = True, []
        return 0
    match = section.row.search(line) if section.is_open else None
    if match is None:
        if section.is_open and section.end and section.end.search(line):
            section.is_open = not section.begin
        return 0
    groups = match.groupdict()
    names = _names(section, groups)
    taken = 0
    for group in metrics:
        written = groups.get(group)
        if written is None:
            continue
        try:
            value = float(written) * section.lines.factor
        except ValueError:
            continue
        key = max(run.phase, 1), names, group
        is_sum = section.lines.repeated is Repeated.SUM
        run.values[key] = run.values.get(key, 0.0) + value if is_sum else value
        rounding = _rounding(written, section.lines.digits) * section.lines.factor
        run.roundings[key] = run.roundings.get(key, 0.0) + rounding if is_sum else rounding
        taken += 1 + len(names)
    _note(run, groups, metrics)
    return taken


def _names(section: _Section, groups: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the call path of a row, below the program."""
    if groups.get("name") is None:
        return section.lines.below
    name = section.lines.written.format(**groups)
    indent = groups.get("indent")
    if indent is None:
        return (*section.lines.below, name)
    depth = len(indent) // _BLANKS
    section.above = [*section.above[:depth], name]
    return (*section.lines.below, *section.above)


_NO_FACTS = frozenset({"name", "indent"})


def _note(run: _Run, groups: Mapping[str, str | None], values: Collection[str]) -> None:
    """Note the properties of a run in the groups of a line, without the groups `values`."""
    for name, written in groups.items():
        if not (written is None or name in values or name in _NO_FACTS or name.startswith("_")):
            run.facts[name] = re.sub(r"\s+", "", written)
