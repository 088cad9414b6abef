"""Numbers, partners and conditions as formulas of the language in which they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from cpmodel_commspec.conditions import Condition, Interval
from cpmodel_commspec.expressions import RANK, Expression, Partner, Relation

_LOOP_VARIABLES = "ijkmnuvwxyz"


class Dialect(NamedTuple):
    """The words of a language where languages differ."""

    quotient: str = "/"
    conjunction: str = " && "
    disjunction: str = " || "
    negation: str = "!({})"


C = Dialect()
PYTHON = Dialect("//", " and ", " or ", "not ({})")
TEXT = Dialect("/", " and ", " or ", "not ({})")


def variable(depth: int) -> str:
    """Return the name of the variable of a loop, 0 for the outermost."""
    if depth < len(_LOOP_VARIABLES):
        return _LOOP_VARIABLES[depth]
    return f"i{depth}"


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers that formulas look up.

    Attributes
    ----------
    ranks : whose rows there are, if the first axis counts ranks; else ()
    sizes, numbers : as those of an `Expression`
    """

    name: str
    ranks: tuple[int, ...]
    sizes: tuple[int, ...]
    numbers: tuple[int, ...]


@dataclass(slots=True)
class Tables:
    """The tables that formulas refer to, each once."""

    _known: dict[tuple[tuple[int, ...], ...], Table] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Table]:
        return iter(self._known.values())

    def lookup(self, expression: Expression, ranks: Sequence[int], rank: str) -> str:
        """Return the formula of what the table of an expression adds."""
        by_rank = tuple(ranks) if expression.axes[0] == RANK else ()
        key = by_rank, expression.sizes, expression.table
        table = self._known.get(key)
        if table is None:
            name = f"table{len(self._known) + 1}"
            table = self._known[key] = Table(name, *key)
        places = [rank if axis == RANK else variable(axis) for axis in expression.axes]
        return table.name + "".join(f"[{place}]" for place in places)


class Lookup(Protocol):
    """The way in which a language looks up the numbers of tables."""

    def lookup(self, expression: Expression, ranks: Sequence[int], rank: str) -> str:
        """Return the formula of what the table of an expression adds."""
        ...


def number(expression: Expression, ranks: Sequence[int], tables: Lookup, rank: str = "rank") -> str:
    """Return the formula of a number.

    Parameters
    ----------
    ranks : who takes part in the operation
    rank : the variable that holds the rank
    """
    terms = [(expression.rank, rank)]
    terms += [(step, variable(depth)) for depth, step in enumerate(expression.steps)]
    if expression.axes:
        terms.append((1, tables.lookup(expression, ranks, rank)))
    return _sum(expression.base, terms)


def is_mixed(told: Partner) -> bool:
    """Tell whether partners are those on a grid that takes more than a formula to tell."""
    return len(told.dimensions) > 1 and set(told.dimensions) != {2}


def partner(told: Partner, formula: str) -> str:
    """Return the formula of the partner that the number of a formula tells."""
    if told.relation is Relation.RANK:
        return formula
    if told.relation is Relation.DISTANCE:
        return f"rank - {formula[1:]}" if formula.startswith("-") else f"rank + {formula}"
    sizes = told.dimensions
    if is_mixed(told):
        return f"neighbour {formula} on the torus {' x '.join(map(str, sizes))}"
    if len(sizes) == 1:
        return f"(rank + {formula}) % {sizes[0]}"
    return f"rank ^ ({formula})" if " " in formula else f"rank ^ {formula}"


def condition(told: Condition, words: Dialect = C) -> str:
    """Return the formula of who takes part; "" for everybody."""
    if told.listed:
        parts = (_stretch(first, last, words) for first, last in stretches(told.listed))
        return words.disjunction.join(parts)
    formula = words.conjunction.join(_interval(one, words) for one in told.intervals)
    if not told.is_negated:
        return formula
    one = told.intervals[0]
    if len(told.intervals) == 1 and one.low == one.high:
        return f"{_place(one, words)} != {one.low}"
    return words.negation.format(formula)


def stretches(ranks: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last of ranks that follow each other."""
    found: list[tuple[int, int]] = []
    for rank in ranks:
        if found and found[-1][1] == rank - 1:
            found[-1] = found[-1][0], rank
        else:
            found.append((rank, rank))
    return found


def _sum(base: int, terms: Sequence[tuple[int, str]]) -> str:
    formula = str(base) if base or not any(factor for factor, _ in terms) else ""
    for factor, name in terms:
        if factor:
            product = name if abs(factor) == 1 else f"{abs(factor)} * {name}"
            sign = "-" if factor < 0 else "+"
            formula += f" {sign} {product}" if formula else f"-{product}" * (factor < 0) or product
    return formula


def _place(told: Interval, words: Dialect) -> str:
    place = "rank" if told.unit == 1 else f"rank {words.quotient} {told.unit}"
    return f"{place} % {told.size}" if told.size else place


def _interval(told: Interval, words: Dialect) -> str:
    place = _place(told, words)
    if told.low is None:
        return f"{place} <= {told.high}" if told.high else f"{place} == 0"
    if told.high is None and not (told.size and told.low == told.size - 1):
        return f"{place} >= {told.low}"
    if told.high in (None, told.low):
        return f"{place} == {told.low}"
    return f"{place} >= {told.low}{words.conjunction}{place} <= {told.high}"


def _stretch(first: int, last: int, words: Dialect) -> str:
    if first == last:
        return f"rank == {first}"
    return f"(rank >= {first}{words.conjunction}rank <= {last})"
