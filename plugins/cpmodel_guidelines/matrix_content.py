"""Matrices of verdicts: guidelines as rows, message sizes as columns.

There is one matrix for each group of functions, such as a library, at each number of processes.
Verifications and the violations of PGMPI's code have the same form here, so that each output is
written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from enum import StrEnum

import numpy as np
from rich.text import Text

from callpath_modeler.diagnostics import Finding
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.table_formats import Cell, Table, findings_json
from callpath_modeler.units import (
    counted,
    parameter_value,
    percent,
    setting_text,
    short_size,
)
from cpmodel_guidelines.answer import MEASURED, MOCK_UP, Judged, MeanOfChecks, Row, Verification
from cpmodel_guidelines.campaigns.campaign import PROCESSES, SIZE, Campaign, plain_size
from cpmodel_guidelines.checks import Group
from cpmodel_guidelines.judge import Slowdown
from cpmodel_guidelines.published import PublishedCheck, published_guidelines, stars
from cpmodel_guidelines.rules import Guideline, GuidelineKind
from cpmodel_guidelines.verification_text import context, header_of, headline, legend

_KINDS = tuple(GuidelineKind)
_ORDER = sorted(GuidelineKind, key=["monotony", "split", "pattern", "processes"].index)
_NO_STAR = "x"


class CellVerdict(StrEnum):
    """Verdict on one cell."""

    VIOLATED = "violated"
    HOLDS = "holds"
    OPEN = "not decided"
    NOT_SHOWN = "no violation"  # a test that cannot show that a guideline holds


@dataclass(frozen=True, slots=True)
class MatrixCell(Slowdown):
    """A guideline at one message size.

    Attributes
    ----------
    verdict : verdict
    rate : error rate at which the guideline is called violated, or the p-value; NaN = no test
    probability : probability of a predicted violation; None = measured
    basis : where the right side comes from
    mark : stars of a violation, or its probability if it is predicted; "" = none
    """

    verdict: CellVerdict
    rate: float
    probability: float | None
    basis: str
    mark: str

    @property
    def is_violated(self) -> bool:
        """Return whether the guideline is violated."""
        return self.verdict is CellVerdict.VIOLATED


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A guideline at all message sizes.

    Attributes
    ----------
    guideline : the guideline
    cells : one per column; None = not measured
    mean : mean of all settings, if it is violated and no single setting is; else None
    """

    guideline: Guideline
    cells: tuple[MatrixCell | None, ...]
    mean: MeanOfChecks | None = None

    @property
    def is_violated(self) -> bool:
        """Return whether the guideline is violated at a size, or in the mean."""
        return self.mean is not None or any(each and each.is_violated for each in self.cells)

    @property
    def verdict(self) -> CellVerdict | None:
        """Return the verdict on all sizes together; None = not measured."""
        if self.is_violated:
            return CellVerdict.VIOLATED
        known = {each.verdict for each in self.cells if each is not None}
        others = (CellVerdict.OPEN, CellVerdict.NOT_SHOWN, CellVerdict.HOLDS)
        return next((each for each in others if each in known), None)

    @property
    def mark(self) -> str:
        """Return the mark of the most certain violation; "" = none."""
        marks = [each.mark for each in self.cells if each is not None]
        marks += [mark_of(self.mean.rate)] if self.mean is not None else []
        return max(marks, key=lambda mark: (mark.count("*"), mark), default="")

    @property
    def worst(self) -> int | None:
        """Return the column of the violation with the largest factor; None = no violation."""
        violated = [k for k, each in enumerate(self.cells) if each and each.is_violated]
        return max(violated, key=lambda k: _factor(self.cells[k]), default=None)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Guidelines of one group, at one number of processes.

    Attributes
    ----------
    group : library or caller of the functions
    at : values of the parameters that are not the columns
    axis : parameter of the columns; "" = none
    columns : its values, ascending
    rows : guidelines, patterns first
    is_predicted : whether models predict the cells
    """

    group: Group
    at: Mapping[str, float]
    axis: str
    columns: tuple[float, ...]
    rows: tuple[MatrixRow, ...]
    is_predicted: bool = False


@dataclass(frozen=True, slots=True)
class ViolatedShare:
    """Number of violated guidelines of a kind, and of all of them."""

    violated: int
    of: int

    def __str__(self) -> str:
        return f"{self.violated}/{self.of}"


def counts_of(matrix: Matrix) -> dict[GuidelineKind, ViolatedShare]:
    """Return the number of violated guidelines of each kind, as the paper of PGMPI counts.

    A guideline is violated if it is at any size. Guidelines about a single function are only
    counted for functions with a pattern.
    """
    kinds: dict[GuidelineKind, list[bool]] = {}
    having = {
        row.guideline.left.function
        for row in matrix.rows
        if row.guideline.kind is GuidelineKind.PATTERN
    }
    for row in matrix.rows:
        kind = row.guideline.kind
        if row.guideline.left.function in having:
            kinds.setdefault(kind, []).append(row.is_violated)
    return {kind: ViolatedShare(sum(kinds[kind]), len(kinds[kind]))
            for kind in _ORDER if kind in kinds}  # fmt: skip


def limited(matrices: Sequence[Matrix], top: int | None) -> tuple[Matrix, ...]:
    """Return the matrices with the `top` worst guidelines of all, in the same order."""
    urgency: dict[Guideline, tuple[bool, float]] = {}
    for row in (row for each in matrices for row in each.rows):
        here = _urgency(row)
        urgency[row.guideline] = min(urgency.get(row.guideline, here), here)
    kept = {*sorted(urgency, key=lambda guideline: urgency[guideline])[:top]}
    return tuple(
        replace(each, rows=tuple(row for row in each.rows if row.guideline in kept))
        for each in matrices
    )


def mark_of(rate: float) -> str:
    """Return the stars of an error rate, or another mark if it is too large for a star.

    >>> mark_of(0.001), mark_of(0.04), mark_of(0.08)
    ('***', '*', 'x')
    """
    return stars(rate) or _NO_STAR


def matrices_of(found: Verification) -> list[Matrix]:
    """Return the matrices of a verification: the measured ones, then the predicted ones."""
    made = _of_judged(found, found.here, {_key(row): row for row in found.rows})
    if found.ahead is not None and not found.is_run:
        made += _of_judged(found, found.ahead, None)
    return made


def published_matrices(campaign: Campaign, checks: Sequence[PublishedCheck]) -> list[Matrix]:
    """Return the matrices of PGMPI's code, with all of its guidelines as rows."""
    of_series: dict[tuple[str, int], list[PublishedCheck]] = {
        series: [] for series in campaign.mpiruns()
    }
    for each in checks:
        of_series[each.library, each.processes].append(each)
    made = []
    for (library, processes), told in sorted(of_series.items()):
        columns = tuple(sorted({each.size for each in told}))
        cells = {(each.guideline, each.size): _published_cell(each) for each in told}
        rows = _rows(published_guidelines(), columns, cells)
        group, at = (library,) if library else (), {PROCESSES: float(processes)}
        made.append(Matrix(group, at, SIZE, columns, rows))
    return made


def _key(row: Row) -> tuple[Guideline, Group]:
    return row.guideline, row.group


def _of_judged(
    found: Verification, of: Judged, rows: Mapping[tuple[Guideline, Group], Row] | None
) -> list[Matrix]:
    """Return the matrices of checks; `rows` have the means of measured ones."""
    bench = found.benchmark
    name = bench.size or bench.processes or ""
    axis = bench.axis(name) if name else None
    cells: dict[tuple[Group, tuple[float, ...]], dict[tuple[Guideline, float], MatrixCell]] = {}
    for k, check in enumerate(of.checks):
        setting = check.left.setting
        column = 0.0 if axis is None else setting[axis]
        others = tuple(value for place, value in enumerate(setting) if place != axis)
        here = cells.setdefault((check.group, others), {})
        here[check.guideline, column] = _cell(of, k, is_predicted=rows is None)
    kept = [each for each in bench.names if each != name]
    made = []
    for (group, others), known in sorted(cells.items(), key=lambda item: item[0]):
        columns = tuple(sorted({column for _, column in known}))
        guidelines = dict.fromkeys(guideline for guideline, _ in known)
        ordered = sorted(guidelines, key=lambda each: _KINDS.index(each.kind))
        made_rows = _rows(ordered, columns, known)
        if rows is not None:
            made_rows = tuple(
                _with_mean(row, rows.get((row.guideline, group))) for row in made_rows
            )
        at = dict(zip(kept, others, strict=True))
        made.append(Matrix(group, at, name, columns, made_rows, rows is None))
    return made


def _rows(
    guidelines: Sequence[Guideline],
    columns: Sequence[float],
    cells: Mapping[tuple[Guideline, float], MatrixCell],
) -> tuple[MatrixRow, ...]:
    return tuple(
        MatrixRow(each, tuple(cells.get((each, column)) for column in columns))
        for each in guidelines
    )


def _with_mean(row: MatrixRow, told: Row | None) -> MatrixRow:
    mean = None if told is None or told.here is None else told.here.mean
    return row if mean is None else replace(row, mean=mean)


def _cell(of: Judged, check: int, *, is_predicted: bool) -> MatrixCell:
    verdicts = of.verdicts
    verdict = CellVerdict(verdicts.verdict(check).value)
    rate, chance = float(verdicts.rate[check]), float(verdicts.chance[check])
    probability = 1 - chance if is_predicted else None
    mark = percent(1 - chance) if is_predicted else mark_of(rate)
    mark = mark if verdict is CellVerdict.VIOLATED else ""
    factor, low, high = astuple(verdicts.slowdown(check))
    return MatrixCell(factor, low, high, verdict, rate, probability, of.basis[check], mark)


def _published_cell(check: PublishedCheck) -> MatrixCell:
    verdict = CellVerdict.VIOLATED if check.significance else CellVerdict.NOT_SHOWN
    unknown = float("nan")
    basis = MOCK_UP if check.kind is GuidelineKind.PATTERN else MEASURED
    cell = (verdict, check.chance, None, basis, check.significance)
    return MatrixCell(check.factor, unknown, unknown, *cell)


def _factor(cell: MatrixCell | None) -> float:
    factor = np.nan if cell is None else cell.factor
    return float(np.nan_to_num(factor, nan=0.0))


def _urgency(row: MatrixRow) -> tuple[bool, float]:
    """Return the sort key: violated ones first, then the largest factor."""
    chosen = [each for each in row.cells if each and (each.is_violated or not row.is_violated)]
    return not row.is_violated, -max(map(_factor, chosen), default=0.0)


def published_table(campaign: Campaign, checks: Sequence[PublishedCheck]) -> Table:
    """Return one row per violation, with the columns of PGMPI's table first."""
    found = [each for each in checks if each.significance]
    columns: dict[str, list[Cell]] = {
        "start": [plain_size(each.start) for each in found],
        "end": [plain_size(each.end) for each in found],
        "func": [each.function for each in found],
        "name": [str(each.kind) for each in found],
        "significance": [each.significance for each in found],
        "descr": [each.description for each in found],
        "library": [each.library for each in found],
        "p": [each.processes for each in found],
    }
    return Table(columns, {}, published_header(campaign, checks))


def published_header(campaign: Campaign, checks: Sequence[PublishedCheck]) -> dict[str, object]:
    """Return the JSON fields that describe the campaign, with the counts of each series."""
    findings = findings_json(campaign.findings)
    counts = {
        f"{''.join(each.group)}/{each.at[PROCESSES]:.0f}": {
            str(kind): str(count) for kind, count in counts_of(each).items()
        }
        for each in published_matrices(campaign, checks)
    }
    return {"campaign": campaign.name, "compat": "pgmpi", "findings": findings, "counts": counts}


def published_headline(campaign: Campaign, checks: Sequence[PublishedCheck]) -> list[str]:
    """Return the number of violations, and the counts of each library and number of processes."""
    number = sum(bool(each.significance) for each in checks)
    lines = [f"{counted(number, 'violation')} by the rules of PGMPI's code."]
    runs = campaign.mpiruns()
    for each in published_matrices(campaign, checks):
        library, processes = "".join(each.group), int(each.at[PROCESSES])
        told = ", ".join(f"{kind} {count}" for kind, count in counts_of(each).items())
        name = f"{library}, p = {processes}" if library else f"p = {processes}"
        lines.append(f"{name}: {counted(runs[library, processes], 'mpirun')}; {told}")
    return lines


def published_text(
    campaign: Campaign, checks: Sequence[PublishedCheck], style: TextStyle
) -> list[Text]:
    """Return the counts of each library and number of processes, and all violations."""
    first, *others = published_headline(campaign, checks)
    lines = style.lines([first], "bold") + style.lines(others, "dim")
    found = [each for each in checks if each.significance]
    if not found:
        return lines
    columns = [
        TextColumn("", [each.significance for each in found], right=False),
        TextColumn("kind", [str(each.kind) for each in found], right=False),
        TextColumn("p", [str(each.processes) for each in found]),
        TextColumn("medians in s", [each.description for each in found], right=False, droppable=1),
    ]
    names = [[f"{each.library} {each.function}".strip()] for each in found]
    return [*lines, Text(""), *style.table(columns, names, title="guideline")]


SIGNS = {
    CellVerdict.HOLDS: "·",
    CellVerdict.OPEN: "?",
    CellVerdict.NOT_SHOWN: "·",
}
"""Signs of cells without a violation."""

_BYTES = frozenset({SIZE, "bytes", "msize", "message_size", "msg_size"})
"""Parameters with numbers of bytes."""


@dataclass(frozen=True, slots=True)
class MatrixContent:
    """What an output of matrices says.

    Attributes
    ----------
    name : name of the experiment or campaign
    headline : the most important sentence
    context : what was measured, one line each
    matrices : one for each group and number of processes, as many rows as requested
    counts : violated guidelines by kind, of all rows of each matrix
    notes : explanations
    header : fields of the JSON object
    findings : data quality findings
    """

    name: str
    headline: str
    context: tuple[str, ...]
    matrices: tuple[Matrix, ...]
    counts: tuple[Mapping[GuidelineKind, ViolatedShare], ...]
    notes: tuple[str, ...]
    header: Mapping[str, object]
    findings: tuple[Finding, ...]


def content_of(found: Verification, style: TextStyle, top: int | None = None) -> MatrixContent:
    """Return the content for a verification.

    Parameters
    ----------
    top : number of guidelines; None = all
    """
    every = matrices_of(found)
    bench = found.benchmark
    notes = [*_signs(every, found.method.rate), *legend(found, style)]
    return MatrixContent(
        bench.experiment.name,
        headline(found),
        (context(found),),
        limited(every, top),
        tuple(map(counts_of, every)),
        tuple(notes),
        header_of(found),
        found.findings,
    )


def published_content(
    campaign: Campaign, checks: Sequence[PublishedCheck], top: int | None = None
) -> MatrixContent:
    """Return the content for the violations of PGMPI's code."""
    every = published_matrices(campaign, checks)
    first, *others = published_headline(campaign, checks)
    return MatrixContent(
        campaign.name,
        first,
        tuple(others),
        limited(every, top),
        tuple(map(counts_of, every)),
        (*_signs(every, 0.05), "Stars are p-values of single tests: no error rate is controlled."),
        published_header(campaign, checks),
        campaign.findings,
    )


def title_of(matrix: Matrix) -> str:
    """Return the group and the setting of a matrix as text."""
    parts = ["/".join(matrix.group), setting_text(matrix.at)]
    said = ", ".join(part for part in parts if part) or "all functions"
    return f"{said}, predicted" if matrix.is_predicted else said


def labels_of(matrix: Matrix) -> list[str]:
    """Return the titles of the columns."""
    shown = short_size if matrix.axis.lower() in _BYTES else parameter_value
    return [shown(value) for value in matrix.columns]


def probability_text(cell: MatrixCell) -> str:
    """Return the probability of a predicted violation as text; "" = not known."""
    chance = cell.probability
    if chance is None or np.isnan(chance):
        return ""
    return percent(min(chance, 0.99))


def _signs(matrices: Sequence[Matrix], rate: float) -> Iterator[str]:
    """Yield the explanations of the signs that occur."""
    cells = [each for matrix in matrices for row in matrix.rows for each in row.cells if each]
    marks, verdicts = {each.mark for each in cells}, {each.verdict for each in cells}
    said = "*, **, ***: violated, at error rates of 5 %, 1 % and 0.1 %"
    yield f"{said}; x: at {percent(rate)}" if "x" in marks else said
    words = {
        CellVerdict.HOLDS: "holds",
        CellVerdict.OPEN: "not decided",
        CellVerdict.NOT_SHOWN: "no violation is shown",
    }
    signs = [f"{SIGNS[each]}: {words[each]}" for each in SIGNS if each in verdicts]
    yield "; ".join([*signs, "blank: not measured"])
    if any(matrix.is_predicted for matrix in matrices):
        yield "Predicted cells have the probability of a violation in percent."
    yield (
        "Longer messages: the column is the shorter size. In pieces: it is the whole size. Counts: "
        "functions with a pattern, and patterns."
    )
