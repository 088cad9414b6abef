"""Numbers of repetitions of all cells of a campaign, with their table and their lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from callpath_modeler.errors import UsageError, nearest_or_all
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.table_formats import Cell as TableCell
from callpath_modeler.report.table_formats import Table, findings_json
from callpath_modeler.units import counted, decimal_of, parameter_value
from cpmodel_guidelines.campaigns.campaign import Campaign, Cell, Detail, Measurement, plain_size
from cpmodel_guidelines.statistics.repetition_count import (
    CRITERIA,
    Criterion,
    RepetitionCount,
    batches,
    repetition_count,
)

_MOST_WINDOW = 10_000
_MOST_REPETITIONS = 10**7
_HINT = "e.g. --nrep rse=0.025,cov_mean=0.01/20"


@dataclass(frozen=True, slots=True)
class CellRepetitions:
    """Number of repetitions of one cell: the largest one of its mpiruns.

    Attributes
    ----------
    library, processes, cell : what was measured
    mpiruns : number of mpiruns
    largest : result of the mpirun that needs the most repetitions
    is_predicted : whether the benchmark predicted the number itself
    """

    library: str
    processes: int
    cell: Cell
    mpiruns: int
    largest: RepetitionCount
    is_predicted: bool


def parse_criteria(text: str) -> tuple[Criterion, ...]:
    """Return criteria such as ``rse=0.025,cov_mean=0.01/20``, where 20 is the window.

    Raises
    ------
    UsageError
        If the text is malformed.

    Examples
    --------
    >>> parse_criteria("rse=0.025,cov_mean=0.01/20")[1]
    Criterion(name='cov_mean', threshold=0.01, window=20)
    """
    found = []
    for part in text.split(","):
        name, sign, rest = (each.strip() for each in part.partition("="))
        threshold, slash, window = rest.partition("/")
        if name not in CRITERIA:
            raise UsageError(
                f"--nrep: unknown criterion {name!r}", hint=nearest_or_all(name, CRITERIA)
            )
        if not sign or bool(slash) != bool(window):
            raise UsageError(f"--nrep {part!r} is malformed", hint=_HINT)
        limit = _number(threshold)
        width = 10 if not window else int(_number(window))
        if not 0 < limit < 1 or not 2 <= width <= _MOST_WINDOW:
            raise UsageError(
                f"--nrep {part!r}: the threshold is not between 0 and 1, or the window is below 2",
                hint=_HINT,
            )
        found.append(Criterion(name, limit, width))
    if len({each.name for each in found}) < len(found):
        raise UsageError(f"--nrep {text!r} names a criterion twice", hint=_HINT)
    return tuple(found)


def parse_batches(text: str) -> list[int]:
    """Return the numbers of repetitions after each batch, from ``MIN,MAX,STEP``.

    Raises
    ------
    UsageError
        If the text is malformed.
    """
    parts = text.split(",")
    numbers = [int(part) for part in parts if part.isascii() and part.isdigit() and len(part) < 9]
    if len(parts) != 3 or len(numbers) != 3 or not 1 <= numbers[0] <= numbers[1]:
        raise UsageError(f"--nrep-batches {text!r} is malformed", hint="e.g. 10,1000,5")
    if numbers[2] < 1 or numbers[1] > _MOST_REPETITIONS:
        raise UsageError(f"--nrep-batches {text!r} is out of range", hint="e.g. 10,1000,5")
    return batches(*numbers)


def _number(text: str) -> float:
    try:
        return decimal_of(text)
    except ValueError:
        raise UsageError(f"--nrep: {text!r} is not a number", hint=_HINT) from None


def repetitions_of(
    campaign: Campaign, criteria: Sequence[Criterion], after: Sequence[int]
) -> list[CellRepetitions]:
    """Return the numbers of repetitions of all cells.

    Numbers that the benchmark predicted itself are used as they are. Otherwise, the observed times
    are used.

    Raises
    ------
    UsageError
        If the files have neither predictions nor observations.
    """
    cells: dict[tuple[str, int, Cell], list[Measurement]] = {}
    for each in campaign.measurements:
        if each.predicted is not None or each.detail <= Detail.COPIED_OBSERVATIONS:
            cells.setdefault((*each.series, each.cell), []).append(each)
    if not cells:
        raise UsageError(
            "--nrep needs observed times, and these files have medians or means",
            hint="give raw files of ReproMPI, or the output of its predictions",
        )
    return [
        CellRepetitions(
            *key,
            len(every),
            max((_count(each, criteria, after) for each in every), key=lambda found: found.count),
            all(each.predicted is not None for each in every),
        )
        for key, every in cells.items()
    ]


def _count(
    each: Measurement, criteria: Sequence[Criterion], after: Sequence[int]
) -> RepetitionCount:
    if each.predicted is not None:
        return each.predicted
    return repetition_count(each.times, criteria, after)


def repetitions_table(campaign: Campaign, found: Sequence[CellRepetitions]) -> Table:
    """Return one row per cell. The first three columns are an input file of ReproMPI."""
    columns: dict[str, list[TableCell]] = {
        "function": [each.cell.function for each in found],
        "size": [plain_size(each.cell.size) for each in found],
        "nrep": [each.largest.count for each in found],
        "met": [each.largest.is_met for each in found],
        "library": [each.library for each in found],
        "p": [each.processes for each in found],
        "mpiruns": [each.mpiruns for each in found],
        "predicted": [each.is_predicted for each in found],
    }
    for name in CRITERIA:
        if any(name in each.largest.values for each in found):
            columns[name] = [each.largest.values.get(name) for each in found]
    findings = findings_json(campaign.findings)
    return Table(columns, {}, {"campaign": campaign.name, "findings": findings})


def repetitions_text(found: Sequence[CellRepetitions], style: TextStyle) -> list[Text]:
    """Return a headline and one line per cell."""
    unmet = sum(not each.largest.is_met for each in found)
    said = f"{counted(len(found), 'cell')}: at most {max(each.largest.count for each in found)}"
    said += " repetitions."
    if unmet:
        verb = "does" if unmet == 1 else "do"
        said += f" {unmet} of them {verb} not meet all criteria: measure more repetitions."
    columns = [
        TextColumn("size", [parameter_value(each.cell.size) for each in found]),
        TextColumn("nrep", [str(each.largest.count) for each in found]),
        TextColumn("met", ["yes" if each.largest.is_met else "no" for each in found], right=False),
        TextColumn("p", [str(each.processes) for each in found], droppable=1),
        TextColumn("mpiruns", [str(each.mpiruns) for each in found], droppable=2),
    ]
    names = [[f"{each.library} {each.cell.function}".strip()] for each in found]
    body = style.table(columns, names, title="function")
    return [*style.lines([said], "bold"), Text(""), *body]
