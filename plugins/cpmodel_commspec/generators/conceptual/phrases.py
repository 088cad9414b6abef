"""Phrases and statements of coNCePTuaL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable
from cpmodel_commspec import expressions, formulas
from cpmodel_commspec.conditions import Interval, condition
from cpmodel_commspec.expressions import RANK, Expression, Partner, Relation, choose, rank_digits
from cpmodel_commspec.generators.statements import INSTEAD_OR_IN_C

_MOST_BRANCHES = 100
"""Numbers of a table; the language has no tables, so each is a part of a formula."""

_SHORTEST_RANGE = 3


class Conditionals:
    """Tables as conditional formulas: ``(5 IF t = 0 OTHERWISE 7)``."""

    def lookup(self, expression: Expression, ranks: Sequence[int], rank: str) -> str:
        """Return the formula of the summand from the table of an expression.

        Raises
        ------
        DataError
            If it is too long.
        """
        if len(set(expression.table)) > _MOST_BRANCHES:
            raise DataError(
                f"no program: coNCePTuaL has no tables, and {len(expression.table)} numbers follow "
                "no formula",
                hint=INSTEAD_OR_IN_C,
            )
        table = np.array(expression.table, np.int64).reshape(expression.sizes)
        return _chosen(table, expression.axes, ranks, rank)


def _chosen(table: Int64Array, axes: Sequence[int], ranks: Sequence[int], rank: str) -> str:
    if table.ndim == 0:
        return str(int(table))
    is_rank = axes[0] == RANK
    name = rank if is_rank else formulas.variable(axes[0])
    keys = list(ranks) if is_rank else list(range(len(table)))
    places: dict[bytes, list[int]] = {}
    for place, part in enumerate(table):
        places.setdefault(part.tobytes(), []).append(place)
    # The part of most places holds for all others.
    *others, last = sorted(places.values(), key=len)
    formula = _chosen(table[last[0]], axes[1:], ranks, rank)
    for group in others:
        part = _chosen(table[group[0]], axes[1:], ranks, rank)
        one_of = member(name, [keys[place] for place in group])
        formula = f"({part} IF {one_of} OTHERWISE {formula})"
    return formula


def member(name: str, values: Sequence[int]) -> str:
    """Return the condition that a variable is one of some numbers."""
    if len(values) == 1:
        return f"{name} = {values[0]}"
    parts, loose = [], list[int]()
    for first, last in formulas.stretches(values):
        if last - first >= _SHORTEST_RANGE - 1:
            parts.append(f"{{{first}, ..., {last}}}")
        else:
            loose += range(first, last + 1)
    if loose:
        parts.append(f"{{{', '.join(map(str, loose))}}}")
    return f"{name} IS IN {', '.join(parts)}"


def tasks(ranks: Sequence[int], processes: int, name: str = "t") -> str:
    """Return the phrase of a set of tasks; `name` is the variable of several tasks."""
    if len(ranks) == processes:
        return f"ALL TASKS {name}"
    if len(ranks) == 1:
        return f"TASK {ranks[0]}"
    return f"TASKS {name} SUCH THAT {predicate(ranks, processes, name)}"


def everyone(ranks: Sequence[int], processes: int) -> str:
    """Return the phrase of a set of tasks in a statement that needs no variable for all tasks."""
    return "ALL TASKS" if len(ranks) == processes else tasks(ranks, processes)


def predicate(ranks: Sequence[int], processes: int, name: str = "t") -> str:
    """Return the condition that tells some tasks from all others."""
    told = condition(ranks, processes)
    if told.listed:
        return member(name, told.listed)
    if not told.is_negated:
        return " /\\ ".join(_interval(one, name) for one in told.intervals)
    return " \\/ ".join(part for one in told.intervals for part in _outside(one, name))


def _place(told: Interval, name: str) -> str:
    place = name if told.unit == 1 else f"{name} / {told.unit}"
    if not told.size:
        return place
    return f"{place} MOD {told.size}" if told.unit == 1 else f"({place}) MOD {told.size}"


def _interval(told: Interval, name: str) -> str:
    place, low, high = _place(told, name), told.low or 0, told.high
    if high is None and told.size:
        high = told.size - 1
    if low == high:
        if told.unit == 1 and told.size == 2:
            return f"{name} IS {'ODD' if low else 'EVEN'}"
        if told.unit == 1 and told.size and low == 0:
            return f"{told.size} DIVIDES {name}"
        return f"{place} = {low}"
    if told.low is None:
        return f"{place} <= {high}"
    if told.high is None:
        return f"{place} >= {low}"
    return f"{place} >= {low} /\\ {place} <= {high}"


def _outside(told: Interval, name: str) -> list[str]:
    place = _place(told, name)
    if told.low is not None and told.low == told.high:
        return [f"{place} <> {told.low}"]
    parts = []
    if told.low is not None:
        parts.append(f"{place} < {told.low}")
    if told.high is not None:
        parts.append(f"{place} > {told.high}")
    return parts


def number(values: Int64Array, ranks: Sequence[int], name: str = "t") -> str:
    """Return the formula of numbers [ranks x rounds of each loop]."""
    found = expressions.find(values, ranks)
    return shown(found, ranks, name)


def shown(found: Expression, ranks: Sequence[int], name: str = "t") -> str:
    """Return the formula of an expression."""
    if found.rank == 1 and found.base and not found.axes and not any(found.steps):
        return f"{name} {'+' if found.base > 0 else '-'} {abs(found.base)}"
    return formulas.number(found, ranks, Conditionals(), name)


def factor(formula: str) -> str:
    """Return a formula that can be a factor."""
    return formula if formula.isalnum() or _is_closed(formula) else f"({formula})"


def _is_closed(formula: str) -> bool:
    """Tell whether the first parenthesis ends at the end."""
    depth = 0
    for place, sign in enumerate(formula):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return place > 0 and place == len(formula) - 1
    return False


def target(senders: Sequence[int], receivers: Int64Array, processes: int) -> str | None:
    """Return the formula of the task that each sender sends to.

    Parameters
    ----------
    receivers : [senders x rounds of each loop]

    Returns
    -------
    None if no formula tells them together
    """
    ranks = np.repeat(np.array(senders, np.int64), receivers[0].size)
    partner = choose(ranks, receivers.ravel(), processes)
    if partner.relation is not Relation.TORUS:
        return number(receivers, senders)
    numbers = partner.number(ranks, receivers.ravel()).reshape(receivers.shape)
    found = expressions.find(numbers, senders)
    if len(partner.dimensions) == 1:
        return f"(t + {factor(shown(found, senders))}) MOD num_tasks"
    if set(partner.dimensions) == {2}:
        return f"t XOR {factor(shown(found, senders))}"
    return _on_torus(partner, found)


def _on_torus(partner: Partner, found: Expression) -> str | None:
    if found.rank or found.axes or any(found.steps):
        return None
    steps = rank_digits(np.array([found.base]), partner.dimensions)[:, 0].tolist()
    parts, unit = [], 1
    for size, step in zip(partner.dimensions, steps, strict=True):
        place = "t" if unit == 1 else f"t / {unit}"
        digit = f"({place} + {step}) MOD {size}" if step else f"({place}) MOD {size}"
        parts.append(digit if unit == 1 else f"(({digit}) * {unit})")
        unit *= size
    return " + ".join(f"({part})" for part in parts)


_STEP = "  "


@dataclass(slots=True)
class PakinStatement:
    """A statement, or a loop if it has a body.

    Attributes
    ----------
    comments : lines before it
    """

    text: str
    comments: list[str] = field(default_factory=list)
    body: list[PakinStatement] | None = None

    @property
    def is_said(self) -> bool:
        """True if the program has a line for it."""
        return bool(self.text)


def statement_lines(statement: PakinStatement, depth: int, end: str) -> Iterator[str]:
    """Yield the lines of a statement.

    Parameters
    ----------
    depth : loops around
    end : what follows the statement: a period, THEN, or nothing
    """
    indent = _STEP * depth
    yield from (f"{indent}# {printable(comment)}" for comment in statement.comments)
    if statement.body is None:
        if statement.text:
            yield f"{indent}{statement.text}{end}"
        return
    yield f"{indent}{statement.text} {{"
    last = max((k for k, one in enumerate(statement.body) if one.is_said), default=-1)
    for k, one in enumerate(statement.body):
        yield from statement_lines(one, depth + 1, " THEN" if k < last and one.is_said else "")
    yield f"{indent}}}{end}"


def comments_of(body: Sequence[PakinStatement]) -> list[PakinStatement]:
    """Return the comments of a loop that says nothing."""
    return [PakinStatement("", one.comments) for one in body]
