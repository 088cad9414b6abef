"""Content of a matrix output, whatever its form and its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.diagnostics import Finding
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.units import (
    parameter_value,
    percent,
    setting_text,
    short_size,
    signed_percent,
)
from cpmodel_guidelines.answer import Verification
from cpmodel_guidelines.campaigns.campaign import Campaign
from cpmodel_guidelines.campaigns.conversion import SIZE
from cpmodel_guidelines.matrix import (
    CellVerdict,
    Matrix,
    MatrixCell,
    ViolatedShare,
    counts_of,
    limited,
    matrices_of,
    published_matrices,
)
from cpmodel_guidelines.published import PublishedCheck
from cpmodel_guidelines.published_report import published_header, published_headline
from cpmodel_guidelines.rules import GuidelineKind
from cpmodel_guidelines.table import header_of
from cpmodel_guidelines.text import context, headline, legend

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


def interval_text(cell: MatrixCell) -> str:
    """Return the interval of the slowdown as text; "" = not known."""
    if np.isnan(cell.low):
        return ""
    return f"{signed_percent(cell.low - 1)} … {signed_percent(cell.high - 1)}"


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
