"""Conditions on ranks that users write, such as ``rank % 4 == 0`` or ``rank > 0 and rank < p / 2``.

Numbers are evaluated in double precision, so no input overflows. A division is rounded down; a
division by zero makes the comparison false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.errors import UsageError
from callpath_modeler.syntax import END, Cursor, ExpressionError

_TOKEN = re.compile(r"(?P<number>\d{1,15})|(?P<word>[A-Za-z]{1,10})|(?P<sign>[=!<>]=|[-+*/%()=<>])")
_LONGEST = 500
_DEEPEST = 20

_Value = Callable[[FloatArray, float], FloatArray]
_Truth = Callable[[FloatArray, float], BoolArray]

_COMPARISONS: Mapping[str, Callable[[FloatArray, FloatArray], BoolArray]] = {
    "==": np.equal,
    "=": np.equal,
    "!=": np.not_equal,
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "<": np.less,
    ">": np.greater,
}
_SUMS: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "+": np.add,
    "-": np.subtract,
}
_PRODUCTS: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "*": np.multiply,
    "/": np.floor_divide,
    "%": np.mod,
}


class _ConditionError(ExpressionError):
    """Syntax error in a condition on ranks."""


@dataclass(frozen=True, slots=True)
class RankCondition:
    """A condition on ranks.

    Attributes
    ----------
    text : the condition as the user wrote it, with single blanks
    """

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", " ".join(self.text.split()))
        _parsed(self.text)

    def of(self, processes: int) -> BoolArray:
        """Return which ranks fulfil the condition, [processes]."""
        ranks = np.arange(processes, dtype=np.float64)
        with np.errstate(all="ignore"):
            return np.broadcast_to(_parsed(self.text)(ranks, float(processes)), ranks.shape)


def rank_condition(text: str, option: str) -> RankCondition:
    """Return the condition in the value of an option.

    Raises
    ------
    UsageError
        If the text is not a condition.
    """
    try:
        return RankCondition(text)
    except _ConditionError as error:
        raise UsageError(f"{option}: {error}", hint=f"e.g. {option} 'rank % 4 == 0'") from None


def _parsed(text: str) -> _Truth:
    if len(text) > _LONGEST:
        raise _ConditionError(text, _LONGEST, f"the condition is longer than {_LONGEST} characters")
    cursor = Cursor(text, _TOKEN, _ConditionError)
    found = _any(cursor)
    if cursor.ahead.kind != END:
        cursor.fail("expected 'and', 'or' or the end")
    return found


def _any(cursor: Cursor) -> _Truth:
    parts = [_all(cursor)]
    while cursor.accept("or"):
        parts.append(_all(cursor))
    return lambda ranks, p: np.logical_or.reduce([part(ranks, p) for part in parts])


def _all(cursor: Cursor) -> _Truth:
    parts = [_comparison(cursor)]
    while cursor.accept("and"):
        parts.append(_comparison(cursor))
    return lambda ranks, p: np.logical_and.reduce([part(ranks, p) for part in parts])


def _comparison(cursor: Cursor) -> _Truth:
    left = _sum(cursor, 0)
    sign = cursor.accept(*_COMPARISONS) or cursor.fail("expected ==, !=, <, <=, > or >=")
    right, compare = _sum(cursor, 0), _COMPARISONS[sign.text]
    return lambda ranks, p: _known(compare, left(ranks, p), right(ranks, p), ranks)


def _known(
    compare: Callable[[FloatArray, FloatArray], BoolArray],
    left: FloatArray,
    right: FloatArray,
    ranks: FloatArray,
) -> BoolArray:
    """Return a comparison for every rank, which is false if a side is not a number."""
    known = np.isfinite(left) & np.isfinite(right)
    return np.broadcast_to(compare(left, right) & known, ranks.shape)


def _sum(cursor: Cursor, depth: int) -> _Value:
    return _chain(cursor, depth, _product, _SUMS)


def _product(cursor: Cursor, depth: int) -> _Value:
    return _chain(cursor, depth, _atom, _PRODUCTS)


def _chain(
    cursor: Cursor,
    depth: int,
    part: Callable[[Cursor, int], _Value],
    signs: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]],
) -> _Value:
    first, more = part(cursor, depth), []
    while sign := cursor.accept(*signs):
        more.append((signs[sign.text], part(cursor, depth)))

    def value(ranks: FloatArray, p: float) -> FloatArray:
        found = first(ranks, p)
        for apply, each in more:
            found = apply(found, each(ranks, p))
        return found

    return value


def _atom(cursor: Cursor, depth: int) -> _Value:
    if depth > _DEEPEST:
        cursor.fail(f"more than {_DEEPEST} parentheses in each other")
    if number := cursor.accept("number"):
        constant = np.float64(number.text)
        return lambda ranks, p: np.asarray(constant)  # noqa: ARG005
    if cursor.accept("("):
        inside = _sum(cursor, depth + 1)
        cursor.expect(")", "expected )")
        return inside
    if cursor.accept("rank"):
        return lambda ranks, p: ranks  # noqa: ARG005
    if cursor.accept("p"):
        return lambda ranks, p: np.asarray(p)  # noqa: ARG005
    return cursor.fail("expected rank, p or a number")
