"""Values of the processes of call paths, as text and as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil

import numpy as np
from rich.cells import cell_len

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.profile.runs import Run
from callpath_modeler.profile.schema import Topology
from callpath_modeler.readers.process_values import ProcessValues
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle, aligned, shorten
from callpath_modeler.report.outlined_view import short_names
from callpath_modeler.report.table_formats import Cell, Table, provenance
from callpath_modeler.studies.process_profile import (
    FALSE_RATE,
    LEAST,
    NotJudged,
    ProcessDistribution,
    ProcessProfile,
    agreement,
    distribution,
)
from callpath_modeler.units import counted, factor_text, percent, setting_text

_WIDTH = 100
"""Width of charts where the style sets none."""
_BARS = 8
"""Largest number of bars of the histogram."""
_LISTED = 8
"""Largest number of outlying processes in text; tables have all."""
_FEW = 5
"""Largest number of repetitions that have lines of their own."""
_NAMED = 10
"""Largest number of ranks that a sentence names."""
_TALLEST = 24
"""Largest number of lines of a grid."""
_LEVELS, _LEVELS_ASCII = "▁▂▃▄▅▆▇█", "123456789"
_NOTHING, _NOTHING_ASCII = "·", "0"
"""Mark of a process without cost."""
_UNKNOWN = "?"
"""Mark of a process without a valid value."""
_AGREE, _DISAGREE = 0.5, 0.2
"""Rank correlation from which on repetitions agree, and below which they do not."""


def process_text(profile: ProcessProfile, *, style: TextStyle = DEFAULT_STYLE) -> list[str]:
    """Return the values of processes: answer, statistics, histogram, ranks, outlying ranks."""
    shown = _Shown(profile, style)
    parts = [
        shown.head(),
        shown.statistics(),
        shown.histogram(),
        shown.ranks(),
        shown.grid(),
        shown.outliers(),
        shown.notes(),
    ]
    lines = [line for part in parts if part for line in ("", *part)]
    return [line.plain for line in style.lines(lines[1:])]


def process_sentences(profile: ProcessProfile, *, style: TextStyle = DEFAULT_STYLE) -> list[str]:
    """Return the answer in sentences: what is shown, and which ranks are outlying."""
    shown = _Shown(profile, style)
    return [shown.what(), shown.headline()]


@dataclass(frozen=True)
class _Shown:
    """Values of processes in a style of text."""

    profile: ProcessProfile
    style: TextStyle

    @cached_property
    def repetitions(self) -> FloatArray:
        return self.profile.of_repetitions()

    @cached_property
    def found(self) -> ProcessDistribution:
        return self.profile.distribution()

    @property
    def values(self) -> FloatArray:
        """Medians of the repetitions, [processes]."""
        return self.found.values

    @cached_property
    def numbers(self) -> IntArray:
        """Ranks, ascending, [processes]."""
        return self.profile.ranks

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Node of each process; "" = not known, or all processes are on one node."""
        known = self.profile.nodes()
        return known if len({*known}) > 1 else ("",) * len(known)

    @property
    def width(self) -> int:
        return max(20, self.style.width or _WIDTH)

    def amount(self, value: float) -> str:
        return self.style.amount(value, self.profile.metric.unit)

    # Sentences

    def head(self) -> list[str]:
        profile, tree = self.profile, self.profile.experiment.tree
        row, count = int(profile.rows[0]), len(profile.rows)
        mark = f"   @{tree.id_of(row)}"
        of = "" if count == 1 else f"sum of {counted(count, 'call path')}, the first is "
        if self.style.width is None or self.style.full_names:
            path = tree.path(row)
        else:
            room = self.width - cell_len(of) - cell_len(mark)
            path = shorten(short_names(tree.names(row)), max(20, room), self.style.say("…"))
        return [f"{of}{path}{mark}", self.what(), self.headline()]

    def what(self) -> str:
        """Return the metric, the scale and the repetitions of the values."""
        profile, runs = self.profile, len(self.profile.values)
        which = "inclusive" if profile.inclusive else "exclusive"
        at = f", {setting_text(profile.at)}" if profile.at else ""
        several = f": median of {runs} repetitions" if runs > 1 else ""
        return f"{profile.metric.name} of each process, {which}{at}{several}"

    def headline(self) -> str:
        """Return the answer: which ranks are outlying."""
        found, valid = self.found, self.found.valid
        positive = int(np.count_nonzero(valid > 0))
        if positive <= 1 < len(valid) or not positive:
            return self._of_few(positive)
        if found.reason is NotJudged.EQUAL:
            same = int(np.count_nonzero(found.values == found.most_common))
            return (
                f"{same} of {self._processes(len(valid))} have the same value, "
                f"{self.amount(found.most_common)}."
            )
        if found.reason is NotJudged.FEW:
            few = f"{self._processes(positive)} with a cost {'is' if positive == 1 else 'are'}"
            return f"{few} too few to call a rank outlying: the rule needs {LEAST}."
        outlying = self.numbers[found.outlying]
        if len(outlying):
            are = "is" if len(outlying) == 1 else "are"
            return f"{len(outlying)} of {len(valid)} ranks {are} outlying: {_listed(outlying)}."
        span = self.style.interval(float(valid.min()), float(valid.max()), self.profile.metric.unit)
        return f"No rank is outlying: {span} over {self._processes(len(valid))}."

    def _of_few(self, positive: int) -> str:
        """Return the answer for one process with a cost, or none."""
        valid = self.found.valid
        if not len(valid):
            return "No process has a valid value."
        if not positive:
            return f"No process of {len(valid)} has a cost here."
        rank = int(self.numbers[int(np.nanargmax(self.values))])
        return f"Only rank {rank} of {self._processes(len(valid))} has a cost here."

    def _processes(self, count: int) -> str:
        return f"{count} process" + "es" * (count != 1)

    def notes(self) -> list[str]:
        profile, found, lines = self.profile, self.found, []
        zeros = self.numbers[found.values == 0]
        if len(zeros) and found.valid.any():
            has = "has" if len(zeros) == 1 else "have"
            # Sums of threads have zero for values that are not valid.
            invalid = any(each.findings for each in profile.values)
            none = "no cost or no valid value" if invalid else "no cost"
            lines.append(f"{self._processes(len(zeros))} {has} {none} here: {_listed(zeros)}.")
        unknown = self.numbers[np.isnan(found.values)]
        if len(unknown):
            has = "has" if len(unknown) == 1 else "have"
            told = f"{self._processes(len(unknown))} {has} no valid value: {_listed(unknown)}."
            lines.append(told)
        if found.reason is NotJudged.EQUAL:
            others = (found.values > 0) & (found.values != found.most_common)
            if others.any():
                lines.append(f"Other values: {_listed(self.numbers[others])}.")
        if any((each.threads > 1).any() for each in profile.values):
            is_one = profile.metric.can_be_run_time
            of = "its longest thread" if is_one else "the sum of its threads"
            lines.append(f"The value of a process is that of {of}.")
        return [*lines, *(f"not shown: {run}: {why}" for run, why in profile.skipped.items())]

    # Tables

    def statistics(self) -> list[str]:
        found, valid = self.found, self.found.valid
        if not len(valid):
            return []
        low, high = int(np.nanargmin(found.values)), int(np.nanargmax(found.values))
        times = f"{factor_text(float(valid.max()) / found.mean)} × the mean" if found.mean else ""
        rows = [
            ("", "value", "rank", "node", ""),
            ("minimum", *self._place(low), ""),
            ("median", self.amount(found.median), "", "", ""),
            ("mean", self.amount(found.mean), "", "", ""),
            ("maximum", *self._place(high), times),
        ]
        return aligned(_filled(rows), numbers=True)

    def _place(self, process: int) -> tuple[str, str, str]:
        """Return value, rank and node of a process."""
        value = self.amount(float(self.values[process]))
        return value, str(self.numbers[process]), self.nodes[process]

    def histogram(self) -> list[str]:
        """Return the number of processes in intervals of equal width."""
        valid = self.found.valid
        if len(valid) < 2 or valid.min() == valid.max():
            return []
        bars = min(_BARS, max(4, ceil(np.log2(len(valid))) + 1))
        count, edges = np.histogram(valid, bars)
        unit = self.profile.metric.unit
        spans = [self.style.interval(a, b, unit) for a, b in pairwise(edges.tolist())]
        spans = [self.style.say(span) for span in spans]
        label, digits = max(map(cell_len, spans)), len(str(count.max()))
        room = max(1, min(50, self.width - label - digits - 6))
        full = "#" if self.style.ascii_only else "█"
        lines = ["processes by value"]
        for span, number in zip(spans, count.tolist(), strict=True):
            # A bar of one mark at least, because one process may be all that matters.
            bar = full * (max(1, round(room * number / int(count.max()))) if number else 0)
            pad = " " * (label - cell_len(span))
            lines.append(f"  {pad}{span}  {number:>{digits}} {bar}".rstrip())
        return lines

    def outliers(self) -> list[str]:
        found = self.found
        places = np.flatnonzero(found.outlying)
        if found.reason is not None:
            return []
        unit = self.profile.metric.unit
        rule = (
            f"A rank is outlying outside of {self.style.interval(found.low, found.high, unit)}. "
            f"If all processes have equal noise, this happens in at most {percent(FALSE_RATE)} of "
            "call paths."
        )
        if not len(places):
            return [rule]
        distance = np.abs(np.log(found.values[places] / found.median))
        places = places[np.argsort(-distance, kind="stable")]
        runs, often = len(self.profile.values), self.profile.times_outlying()
        rows = [("rank", "node", "value", "of the median", "repetitions" * (runs > 1))]
        for place in places[:_LISTED].tolist():
            value, rank, node = self._place(place)
            ratio = f"{factor_text(float(self.values[place]) / found.median)} ×"
            rows.append((rank, node, value, ratio, f"{often[place]} of {runs}" * (runs > 1)))
        lines = aligned(_filled(rows), numbers=True)
        left = len(places) - _LISTED
        lines += [f"{counted(left, 'more outlying rank')}; -f csv lists all"] * (left > 0)
        return [*lines, *self._of_nodes(places), rule]

    def _of_nodes(self, places: IntArray) -> list[str]:
        """Return the nodes on which most processes are outlying."""
        all_of = Counter(self.nodes)
        if len(all_of) < 2:
            return []
        outlying = Counter(self.nodes[place] for place in places.tolist())
        return [
            f"node {node}: {count} of its {self._processes(all_of[node])} are outlying"
            for node, count in outlying.most_common(_LISTED)
            if node and 2 * count > all_of[node] > 1
        ]

    # Charts over ranks

    def ranks(self) -> list[str]:
        """Return one line of marks over the ranks, and one for each of a few repetitions."""
        valid = self.found.valid
        if len(self.values) < 2 or not len(valid) or not valid.max() > 0:
            return []
        labels, rows = ["median"], [self.values]
        if 1 < len(self.repetitions) <= _FEW:
            runs = self.profile.experiment.runs
            labels += [f"r{runs[number].repetition}" for number in self.profile.runs]
            rows += list(self.repetitions)
        labels = labels if len(rows) > 1 else [""]
        left = max(map(len, labels)) + 2 if len(rows) > 1 else 2
        each = ceil(len(self.values) / (self.width - left - 1))
        largest = float(np.nanmax(np.stack(rows)))
        span = f"ranks {self.numbers[0]} … {self.numbers[-1]}, marks from 0 to "
        head = [f"{span}{self.amount(largest)}"]
        if each > 1:
            head = [f"{head[0]}; each mark is the maximum of {each} ranks"]
        lines = [
            f"{label:<{left}}" + self._marks(_maxima(row, each), largest)
            for label, row in zip(labels, rows, strict=True)
        ]
        return [*head, *lines, *self._repetitions()]

    def _marks(self, values: FloatArray, largest: float) -> str:
        """Return one mark per value, from 0 to the largest value."""
        ascii_only = self.style.ascii_only
        levels = _LEVELS_ASCII if ascii_only else _LEVELS
        nothing = _NOTHING_ASCII if ascii_only else _NOTHING
        level = np.clip(np.ceil(np.nan_to_num(values) / largest * len(levels)), 1, len(levels))
        return "".join(
            _UNKNOWN if np.isnan(value) else levels[int(at) - 1] if value > 0 else nothing
            for value, at in zip(values.tolist(), level, strict=True)
        )

    def _repetitions(self) -> list[str]:
        """Return whether the same ranks are slow in all repetitions."""
        found = agreement(self.repetitions)
        if np.isnan(found):
            return []
        largest = "slowest" if self.profile.metric.is_time else "largest"
        if found >= _AGREE:
            words = f"the same ranks are {largest} in most repetitions"
        elif found < _DISAGREE:
            words = f"other ranks are {largest} in each repetition"
        else:
            words = f"repetitions agree in part on the {largest} ranks"
        return [f"rank correlation of repetitions {found:.2f}: {words}"]

    def grid(self) -> list[str]:
        """Return the values in the first Cartesian topology that fits the width."""
        last = self.profile.values[-1]
        if not np.array_equal(last.ranks, self.numbers) or not np.nanmax(self.values) > 0:
            return []
        for topology in last.placement.topologies:
            lines = self._grid_of(topology)
            if lines:
                return lines
        return []

    def _grid_of(self, topology: Topology) -> list[str]:
        """Return planes of a topology, or [] if it does not fit."""
        sizes = np.array(topology.dimensions)
        kept = np.flatnonzero(sizes > 1)
        if not 2 <= len(kept) <= 3:
            return []
        planes, height, breadth = ([1] * (3 - len(kept)) + sizes[kept].tolist())[-3:]
        wide = 2 if 2 * breadth + 2 <= self.width else 1
        across = max(1, (self.width - 2) // (wide * breadth + 2))
        if wide * breadth + 2 > self.width or ceil(planes / across) * (height + 1) > _TALLEST:
            return []
        cells = np.full((planes, height, breadth), np.nan)
        at = [topology.coordinates[:, k] for k in kept]
        cells[(*[np.zeros(len(self.values), np.intp)] * (3 - len(kept)), *at)] = self.values
        largest = float(np.nanmax(self.values))
        of = " x ".join(map(str, topology.dimensions))
        down, right = kept[-2:].tolist()
        lines = [f"{topology.name}, {of}: dimension {down} down, dimension {right} to the right"]
        for first in range(0, planes, across):
            part = range(first, min(first + across, planes))
            if planes > 1:
                named = (f"{kept[0]}={plane}".ljust(wide * breadth)[: wide * breadth + 1]
                         for plane in part)  # fmt: skip
                lines.append("  " + "  ".join(named).rstrip())
            for row in range(height):
                marks = (self._marks(cells[plane, row], largest) for plane in part)
                lines.append("  " + "  ".join("".join(m * wide for m in line) for line in marks))
        return lines


def _maxima(values: FloatArray, each: int) -> FloatArray:
    """Return the largest of every `each` values; NaN = no valid value."""
    padded = np.append(values, np.full(-len(values) % each, np.nan)).reshape(-1, each)
    return np.asarray(np.fmax.reduce(padded, axis=1))


def _filled(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return rows of cells without the columns that are empty below the header."""
    kept = [k for k in range(len(rows[0])) if any(row[k] for row in rows[1:])]
    return [tuple(row[k] for k in kept) for row in rows]


def _listed(ranks: IntArray) -> str:
    """Return ranks as text, with ranges; of many ranks, the first ones."""
    starts = np.flatnonzero(np.diff(ranks, prepend=-2) != 1)
    ends = np.append(starts[1:], len(ranks)) - 1
    texts = [
        str(ranks[a]) if a == b else f"{ranks[a]}, {ranks[b]}" if b == a + 1 else
        f"{ranks[a]} to {ranks[b]}"
        for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
    ]  # fmt: skip
    if len(texts) <= _NAMED:
        return ", ".join(texts)
    left = len(ranks) - int(ends[_NAMED - 1]) - 1
    return f"{', '.join(texts[:_NAMED])} and {left} more"


def process_table(profile: ProcessProfile) -> Table:
    """Return one row per repetition and rank; the header has the answer."""
    experiment, tree = profile.experiment, profile.experiment.tree
    runs = [
        (experiment.runs[k], each) for k, each in zip(profile.runs, profile.values, strict=True)
    ]

    def joined(cells: Callable[[Run, ProcessValues], Iterable[Cell]]) -> list[Cell]:
        return [cell for run, each in runs for cell in cells(run, each)]

    columns = {
        "run": joined(lambda run, each: [run.source] * len(each)),
        "repetition": joined(lambda run, each: [run.repetition] * len(each)),
        "rank": joined(lambda _, each: each.ranks.tolist()),
        "node": joined(lambda _, each: [node or None for node in each.placement.nodes]),
        "value": joined(lambda _, each: each.values.tolist()),
        "threads": joined(lambda _, each: each.threads.tolist()),
        "thread_min": joined(lambda _, each: each.lowest.tolist()),
        "thread_max": joined(lambda _, each: each.highest.tolist()),
        "outlying": joined(lambda _, each: distribution(each.values).outlying.tolist()),
    }
    found = profile.distribution()
    unit = profile.metric.unit
    units = {} if unit == "1" else dict.fromkeys(("value", "thread_min", "thread_max"), unit)
    ids = tree.ids()
    header = {
        **provenance(experiment, profile.findings),
        "callpaths": [tree.path(int(row)) for row in profile.rows],
        "ids": [f"@{ids[row]}" for row in profile.rows],
        "metric": profile.metric.name,
        "inclusive": profile.inclusive,
        "at": dict(profile.at),
        "median": found.median,
        "mean": found.mean,
        "outlying": profile.ranks[found.outlying].tolist(),
        "limits": [found.low, found.high],
        "false_rate": FALSE_RATE,
        "agreement": agreement(profile.of_repetitions()),
        "skipped": dict(profile.skipped),
    }
    return Table(columns, units, header)
