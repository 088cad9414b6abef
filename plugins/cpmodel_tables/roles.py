"""Parameters, repetitions and metadata of the runs in a table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.readers.base import NUMBER_OF_REPETITION
from callpath_modeler.readers.inference import Decision, Role, infer, named_number
from callpath_modeler.readers.tokens import NameWord, NumberColumn, columns_of, word_of
from cpmodel_tables.grid import Grid
from cpmodel_tables.layout import TableLayout
from cpmodel_tables.text_columns import case_key, case_text, count, joined

_MODELLED = (Role.PARAMETER, Role.DEPENDENT, Role.CONSTANT, Role.UNDECIDED)
_FILLED = 0.5
"""Each run must have rows for more than this share of the call paths."""
_MOST_TEXTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Roles:
    """Properties of the runs in the columns of a table.

    Attributes
    ----------
    parameters : [rows] values by name
    repetition : [rows] number of the repetition, or None
    words : [rows] texts about the runs, by title
    findings : findings about columns with identifiers of runs
    others : uses and reasons of numbers that are no parameters, by title
    """

    parameters: Mapping[str, FloatArray]
    repetition: IntArray | None
    words: Mapping[str, Sequence[str]]
    findings: Sequence[Finding]
    others: Mapping[str, tuple[str, str]]


def roles_of(
    grid: Grid,
    layout: TableLayout,
    path: IntArray,
    numbers: Mapping[str, FloatArray],
    number: IntArray | None,
) -> Roles:
    """Decide which columns are parameters and which ones number the repetitions.

    Parameters
    ----------
    path : [rows] call path and metric of each row
    numbers : columns that may be parameters, by title
    number : [rows] number of the repetition if a column states it; None = no such column
    """
    columns = {layout.names.get(title, title): column for title, column in numbers.items()}
    guessed: list[Finding] = []
    if layout.run is not None:
        varies = any(len(np.unique(own)) > 1 for own in columns.values())
        of_names, guessed = _of_names(grid.texts(layout.run), alone=not varies)
        # Another column may contain the same numbers under a different title.
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
    setting = joined([*parameters.values()], len(path))
    tellers = [columns[name] for name in names if name in gone]
    tellers.sort(key=lambda column: -len(np.unique(column)))
    keys = [key for key in map(case_key, layout.cases) if key in words]
    cases = joined([_codes(words[key]) for key in keys], len(path))
    setting = joined([setting, cases], len(path))
    if number is None and not layout.events:
        candidates = [*tellers, *(_codes(texts) for title, texts in words.items()
                                   if title not in keys)]  # fmt: skip
        number = next((found for each in candidates
                       if (found := _numbered(setting, path, each)) is not None), None)  # fmt: skip
    findings = [
        Finding("CPM141", told.name, f"{told.values} in a column: {told.reason}")
        for each in dropped
        if each.is_doubtful
        for told in (named_number(each),)
    ]
    # --param can turn excluded columns into parameters.
    back = {each.column.label: _as_texts(columns[each.column.label]) for each in dropped
            if each.role is not Role.REPETITION}  # fmt: skip
    others = {each.column.label: _use(each) for each in dropped}
    return Roles(parameters, number, {**back, **words}, [*guessed, *findings], others)


def _use(decision: Decision) -> tuple[str, str]:
    """Return the use of a column that is no parameter, and the reason."""
    return NUMBER_OF_REPETITION if decision.role is Role.REPETITION else "metadata", decision.reason


def _as_texts(column: FloatArray) -> list[str]:
    """Return texts of numbers that convert back to the same numbers."""
    distinct, of_row = np.unique(column, return_inverse=True)
    texts = [str(int(v)) if v.is_integer() else repr(v) for v in distinct.tolist()]
    return [texts[k] for k in of_row.tolist()]


def _is_modelled(decision: Decision) -> bool:
    """Return whether a column is a parameter that does not repeat another one."""
    if decision.role is Role.CONFIRMED:
        return len({*decision.column.values}) == 1
    return decision.role in _MODELLED


def _of_names(texts: Sequence[str], *, alone: bool) -> tuple[dict[str, FloatArray], list[Finding]]:
    """Return the numbers in a column of file names, and findings about ambiguous ones.

    Parameters
    ----------
    alone : whether nothing else distinguishes the runs; then numbers need no word next to them
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
    """Return the columns of texts that have no other use."""
    runs = [layout.run] if layout.run else []
    titles = [*layout.left_out, *layout.metadata, *layout.cases, *runs]
    words: dict[str, Sequence[str]] = {}
    for title in titles:
        cells = grid.columns[title]
        if title in layout.cases:
            cells = [cell if isinstance(cell, str) else case_text(cell) for cell in cells]
        if all(isinstance(cell, str) for cell in cells) and len({*cells}) <= _MOST_TEXTS:
            key = case_key(title) if title in layout.cases else title
            words[key] = [str(cell) for cell in cells]
    return words


def _decided(
    columns: Mapping[str, FloatArray], others: Sequence[IntArray | Sequence[str] | None]
) -> list[Decision]:
    """Decide the roles of columns, given the runs that all columns together distinguish."""
    rows = len(next(iter(columns.values())))
    told = [_codes(each) for each in others if each is not None]
    run = joined([*columns.values(), *told], rows)
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
        # The only number that varies was chosen by the user, even if it counts from 1.
        if each.role is Role.RUN_NUMBER and each.column.word is not NameWord.IDENTIFIER:
            return [_as_column(one) for one in infer(numbers, {}, required=[each.column.label])]
    return decided


def _word(title: str) -> NameWord:
    word = word_of(title)
    return NameWord.OTHER if word is NameWord.NONE else word


def _as_column(decision: Decision) -> Decision:
    """Return the decision for a table, whose titles are deliberate, unlike parts of file names."""
    column = decision.column
    if decision.role is Role.REPETITION and column.word is not NameWord.REPETITION:
        return Decision(
            column, Role.PARAMETER, "a parameter, because its values recur", column.label
        )
    if decision.role is Role.UNUSED and column.word is not NameWord.IDENTIFIER:
        return Decision(column, Role.DEPENDENT, "each scale has its own", column.label)
    return decision


def _codes(cells: IntArray | Sequence[Hashable]) -> IntArray:
    if isinstance(cells, np.ndarray):
        return cells
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(cell, len(known)) for cell in cells], np.intp)


def _numbered(setting: IntArray, path: IntArray, teller: NDArray[Any]) -> IntArray | None:
    """Return a column as numbers from 1 at each setting; None if it does not number repetitions.

    It does if three conditions hold. Some call path has several rows at a setting. No call path has
    two rows with the same number. Each number has rows for most call paths.
    """
    rows = len(setting)
    if count(joined([setting, path], rows)) == rows:
        return None
    if count(joined([setting, path, teller], rows)) < rows:
        return None
    run = joined([setting, teller], rows)
    if rows <= _FILLED * (int(run.max()) + 1) * len(np.unique(path)):
        return None
    _, first = np.unique(run, return_index=True)
    of_setting = setting[first]
    number = np.zeros(len(first), np.intp)
    for k in np.unique(of_setting).tolist():
        here = np.flatnonzero(of_setting == k)
        number[here[np.argsort(teller[first[here]], kind="stable")]] = 1 + np.arange(len(here))
    return np.asarray(number[run], np.intp)
