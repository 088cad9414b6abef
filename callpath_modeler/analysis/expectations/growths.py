"""Growths that the expectations of a file state for the call paths of a program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from callpath_modeler.analysis.expectations.expectation import (
    Expectation,
    Expectations,
    GrowthLimit,
)
from callpath_modeler.analysis.ideals import CallPathIdeal
from callpath_modeler.arrays import BoolArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.modeling import Function, Growth
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.pattern import Patterns


def unnamed(
    expectations: Expectations,
    size: int,
    is_about: Callable[[Expectation], bool],
    rows_of: Callable[[Expectation], IntArray],
) -> BoolArray:
    """Return the call paths that no expectation names, [call paths]; ``others`` selects from them.

    Parameters
    ----------
    expectations : all expectations of the file
    size : number of call paths
    is_about : whether an expectation is about the metric
    rows_of : function that returns the call paths of a pattern
    """
    found = np.ones(size, bool)
    for one in expectations.expectations:
        if one.callpath is not None and not one.others and is_about(one):
            found[rows_of(one)] = False
    return found


def growth_ideal(
    expectations: Expectations,
    tree: CallTree,
    parameter: str,
    others: Scaling,
    is_about: Callable[[Expectation], bool],
) -> CallPathIdeal:
    """Return the costs that the growths of a file expect.

    A lower limit (``>=``) expects nothing. An inclusive growth applies to the subtree, and the
    growth of the whole program to all call paths, as far as no expectation is closer to the call
    path. Of several limits of one call path, the slowest growth applies.

    Parameters
    ----------
    expectations : the expectations of a file
    tree : the call tree
    parameter : parameter of the scales; growths in other parameters do not apply
    others : scaling of call paths without a growth
    is_about : whether an expectation is about the metric

    Raises
    ------
    UsageError
        If no growth applies to any call path.
    InputError
        If a pattern of the file is malformed.
    """
    written, patterns = expectations.written, Patterns.of(tree)

    def rows_of(one: Expectation) -> IntArray:
        try:
            return patterns.rows(one.callpath or "**")
        except UsageError as cause:
            written.refuse((*one.place, "callpath"), cause.message, cause.hint or "")

    known: dict[Growth, int] = {}
    texts: list[str] = []
    own = np.full(len(tree), -1)
    below, whole, without = own.copy(), own.copy(), 0
    growths: list[Growth] = []
    free = unnamed(expectations, len(tree), is_about, rows_of)
    for one in expectations.expectations:
        limit = _upper(one, parameter)
        if limit is None or not is_about(one):
            continue
        number = known.setdefault(limit.expected, len(known))
        if number == len(growths):
            growths.append(limit.expected)
            texts.append(limit.expected.text(parameter))
        if one.callpath is None:
            _set_slower(whole, np.arange(len(tree)), number, growths)
            continue
        rows = rows_of(one)
        rows = rows[free[rows]] if one.others else rows
        without += not len(rows)
        _set_slower(below if one.inclusive else own, rows, number, growths)
    for level in tree.levels()[1:]:
        callers = below[tree.parent[level]]
        below[level] = np.where(below[level] < 0, callers, below[level])
    which = np.where(own >= 0, own, np.where(below >= 0, below, whole))
    if not (which >= 0).any():
        raise UsageError(
            f"{written.path} states no growth in {parameter} for these call paths and this metric",
            hint="add [[expect]] with callpath and growth; `cpmodel check` shows what is selected",
        )
    used, number_of = np.unique(which, return_inverse=True)
    first = int(used[0] >= 0)  # -1 comes first, if it occurs
    numbers = used[used >= 0].tolist()
    functions = tuple((texts[number], Function(growth=growths[number])) for number in numbers)
    which = number_of.ravel() + first - 1
    return CallPathIdeal(written.path, functions, which, others, parameter, without)


def _upper(expectation: Expectation, parameter: str) -> GrowthLimit | None:
    """Return the growth limit of an expectation, unless it is a lower one; None = it has none."""
    for one in expectation.criteria:
        if isinstance(one, GrowthLimit) and one.limits.high is not None:
            return one if one.parameter in (None, parameter) else None
    return None


def _set_slower(which: IntArray, rows: IntArray, number: int, growths: list[Growth]) -> None:
    """Set the growth of call paths where they have none or a faster one."""
    is_faster = np.array([growths[number] < growth for growth in growths] + [True])
    which[rows] = np.where(is_faster[which[rows]], number, which[rows])
