"""Parameters, repetitions and texts of the runs of a table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.diagnostics import Finding
from callpath_modeler.readers.columns import NumberColumn, columns_of
from callpath_modeler.readers.inference import Decision, Role, infer
from callpath_modeler.readers.name_words import NameWord, word_of
from callpath_modeler.readers.undecided_numbers import named_number
from cpmodel_tables.grid import Grid
from cpmodel_tables.layout import TableLayout

Index = NDArray[np.intp]
Numbers = NDArray[np.float64]

_MODELLED = (Role.PARAMETER, Role.DEPENDENT, Role.CONSTANT, Role.UNDECIDED)
_FILLED = 0.5
"""Each run has rows for more than this share of the call paths."""
_MOST_TEXTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Roles:
    """What the columns of a table say of its runs.

    Attributes
    ----------
    parameters : [rows], by name
    repetition : [rows] number of the repetition, or None
    words : texts about the runs, [rows], by title
    findings : columns that hold identifiers of runs
    """

    parameters: Mapping[str, Numbers]
    repetition: Index | None
    words: Mapping[str, Sequence[str]]
    findings: Sequence[Finding]


def roles_of(
    grid: Grid,
    layout: TableLayout,
    path: Index,
    numbers: Mapping[str, Numbers],
    number: Index | None,
) -> Roles:
    """Decide which columns are parameters and which tell repetitions apart.

    Parameters
    ----------
    path : [rows] call path and metric of each row
    numbers : columns that may be parameters, by title
    number : [rows] numbers of the repetitions, where a column states them
    """
    columns = dict(numbers)
    guessed: list[Finding] = []
    if layout.run is not None:
        varies = any(len(np.unique(own)) > 1 for own in columns.values())
        of_names, guessed = _of_names(grid.texts(layout.run), alone=not varies)
        # A column may state the same number under another title.
        columns = {title: own for title, own in columns.items() if title in of_names
                   or not any(np.array_equal(own, each) for each in of_names.values())}  # fmt: skip
        columns = {**of_names, **columns}
    words = _words(grid, layout)
    if grid.parameters or not columns:
        decided: list[Decision] = []
    else:
        decided = _decided(columns, [number, *words.values()])
    dropped = [each for each in decided if not _is_modelled(each)]
    names = [*columns]
    gone = {names[k] for k, each in enumerate(decided) if not _is_modelled(each)}
    parameters = {name: column for name, column in columns.items() if name not in gone}
    setting = _joined([*parameters.values()], len(path))
    tellers = [columns[name] for name in names if name in gone]
    tellers.sort(key=lambda column: -len(np.unique(column)))
    if number is None:
        candidates = [*tellers, *(_codes(texts) for texts in words.values())]
        number = next((found for each in candidates
                       if (found := _numbered(setting, path, each)) is not None), None)  # fmt: skip
    findings = [
        Finding("CPM141", told.name, f"{told.values} in a column: {told.reason}")
        for each in dropped
        if each.is_doubtful
        for told in (named_number(each),)
    ]
    # --param can bring back what is none of the parameters.
    back = {each.column.label: _as_texts(columns[each.column.label]) for each in dropped
            if each.role is not Role.REPETITION}  # fmt: skip
    return Roles(parameters, number, {**back, **words}, [*guessed, *findings])


def _as_texts(column: Numbers) -> list[str]:
    """Return numbers as texts that are the same numbers."""
    distinct, of_row = np.unique(column, return_inverse=True)
    texts = [str(int(v)) if v.is_integer() else repr(v) for v in distinct.tolist()]
    return [texts[k] for k in of_row.tolist()]


def _is_modelled(decision: Decision) -> bool:
    """Tell whether a column is a parameter; what repeats another one is none."""
    if decision.role is Role.CONFIRMED:
        return len({*decision.column.values}) == 1
    return decision.role in _MODELLED


def _of_names(texts: Sequence[str], *, alone: bool) -> tuple[dict[str, Numbers], list[Finding]]:
    """Return the numbers in names of files, which a column holds, and those in doubt.

    Parameters
    ----------
    alone : nothing else tells the runs apart: then numbers apart from their words count, too
    """
    distinct = [*dict.fromkeys(texts)]
    number = {text: k for k, text in enumerate(distinct)}
    row = np.array([number[text] for text in texts], np.intp)
    columns = columns_of([[*reversed(text.split("/"))] for text in distinct])
    columns = [column for column in columns if None not in column.values]
    found = {column.label: column for column in columns if column.joined}
    findings = []
    if alone and all(len({*column.values}) < 2 for column in found.values()):
        loose = [column for column in columns if not column.joined]
        for each in infer(loose, {}):
            if each.role is Role.PARAMETER:
                found[each.name] = each.column
                told = named_number(each)
                message = f"{told.values} in names in a column: {told.reason}"
                findings += [Finding("CPM142", told.name, message)] if each.is_doubtful else []
    values = {name: np.array(each.values, np.float64)[row] for name, each in found.items()}
    return values, findings


def _words(grid: Grid, layout: TableLayout) -> dict[str, Sequence[str]]:
    """Return the columns of texts that nothing else is made of."""
    titles = [*layout.left_out, *layout.metadata, *([layout.run] if layout.run else [])]
    words: dict[str, Sequence[str]] = {}
    for title in titles:
        cells = grid.columns[title]
        if all(isinstance(cell, str) for cell in cells) and len({*cells}) <= _MOST_TEXTS:
            words[title] = [str(cell) for cell in cells]
    return words


def _decided(
    columns: Mapping[str, Numbers], others: Sequence[Index | Sequence[str] | None]
) -> list[Decision]:
    """Decide the roles of columns by the runs that all columns together tell apart."""
    rows = len(next(iter(columns.values())))
    told = [_codes(each) for each in others if each is not None]
    run = _joined([*columns.values(), *told], rows)
    _, first = np.unique(run, return_index=True)
    first.sort()
    numbers = [
        NumberColumn(name, _word(name), tuple(values[first].tolist()), place="a column")
        for name, values in columns.items()
    ]
    decided = [_as_column(each) for each in infer(numbers, {})]
    if any(each.role is Role.PARAMETER for each in decided):
        return decided
    for each in decided:
        # The only number that varies is designed, although it counts from 1.
        if each.role is Role.RUN_NUMBER and each.column.word is not NameWord.IDENTIFIER:
            return [_as_column(one) for one in infer(numbers, {}, required=[each.column.label])]
    return decided


def _word(title: str) -> NameWord:
    word = word_of(title)
    return NameWord.OTHER if word is NameWord.NONE else word


def _as_column(decision: Decision) -> Decision:
    """Return the decision about a column of a table: a title is no accident as a name is."""
    column = decision.column
    if decision.role is Role.REPETITION and column.word is not NameWord.REPETITION:
        return Decision(
            column, Role.PARAMETER, "a parameter, because its values recur", column.label
        )
    if decision.role is Role.UNUSED and column.word is not NameWord.IDENTIFIER:
        return Decision(column, Role.DEPENDENT, "each scale has its own", column.label)
    return decision


def _joined(columns: Sequence[Numbers | Index], rows: int) -> Index:
    """Return a number per row, the same for rows that agree in all columns."""
    joined = np.zeros(rows, np.intp)
    for column in columns:
        own = np.unique(column, return_inverse=True)[1]
        joined = np.unique(joined * (int(own.max()) + 1) + own, return_inverse=True)[1]
    return joined


def _codes(cells: Index | Sequence[Hashable]) -> Index:
    if isinstance(cells, np.ndarray):
        return cells
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(cell, len(known)) for cell in cells], np.intp)


def _numbered(setting: Index, path: Index, teller: NDArray[Any]) -> Index | None:
    """Return a column that is numbered from 1 at each setting, if it tells repetitions apart.

    They do if some call path has several rows at a setting, no call path has several rows of one
    value, and each value has rows for most call paths.
    """
    rows = len(setting)
    if len(np.unique(_joined([setting, path], rows))) == rows:
        return None
    if len(np.unique(_joined([setting, path, teller], rows))) < rows:
        return None
    run = _joined([setting, teller], rows)
    if rows <= _FILLED * (int(run.max()) + 1) * len(np.unique(path)):
        return None
    _, first = np.unique(run, return_index=True)
    of_setting = setting[first]
    number = np.zeros(len(first), np.intp)
    for k in np.unique(of_setting).tolist():
        here = np.flatnonzero(of_setting == k)
        number[here[np.argsort(teller[first[here]], kind="stable")]] = 1 + np.arange(len(here))
    return np.asarray(number[run], np.intp)
