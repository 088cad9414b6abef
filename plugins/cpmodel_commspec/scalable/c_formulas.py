"""Formulas of scalable specifications in C."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm

from cpmodel_commspec.generators.functions import Functions
from cpmodel_commspec.scalable.conditions import Condition
from cpmodel_commspec.scalable.forms import Form, Relation
from cpmodel_commspec.scalable.numbers import Number
from cpmodel_commspec.scalable.places import BITS, NEIGHBOURS, PEER, RANK, ZEROS
from cpmodel_commspec.scalable.quantities import Basis, Quantity, Term
from cpmodel_commspec.scalable.scales import AXES

NAMES = {
    "rank": "rank", "x": "ix", "y": "iy", "z": "iz",
    "p": "p", "size x": "x", "size y": "y", "size z": "z",
}  # fmt: skip
"""Variables of the program for places and sizes."""

_CALLS = {ZEROS: "zero_bits", BITS: "bits", NEIGHBOURS: "neighbours"}


class Formulas:
    """Writer of formulas; `functions` notes the functions that they call."""

    def __init__(self, functions: Functions, dimensions: int) -> None:
        self._functions, self._dimensions = functions, dimensions

    def quantity(self, told: Quantity, line: int) -> str:
        """Return a formula of the number of processes and the grid."""
        is_plain = all(term.denominator == 1 and min(term.basis.powers) >= 0 for term in told.terms)
        if is_plain and not told.is_quotient:
            return self._sum(told.terms, 1, (0, 0, 0), line)
        below = lcm(*(term.denominator for term in told.terms))
        most = [max(-min(0, term.basis.powers[k]) for term in told.terms) for k in range(3)]
        powers = (most[0], most[1], most[2])
        above = self._sum(told.terms, below, powers, line)
        under = self._product(below, powers)
        if told.is_quotient:
            return f"({above}) / ({self._product(below * told.unit, powers)}) * {told.unit}"
        self._functions.use("whole")
        return f"whole({above}, {under}, {told.unit}, {line})"

    def number(self, told: Number, line: int, features: Mapping[str, str] | None = None) -> str:
        """Return a number; `features` are formulas of features that have no variable."""
        text = self.quantity(told.base, line)
        for name, factor in told.factors.items():
            feature = self.feature(name, features or {})
            constant = factor.constant
            if constant in {1, -1}:
                text += f" {'+' if constant == 1 else '-'} {feature}"
            else:
                text += f" + {_grouped(self.quantity(factor, line))} * {feature}"
        text = text.removeprefix("0 + ") if told.factors else text
        if told.modulus is None:
            return text
        self._functions.use("turn")
        return f"turn({text}, {self.quantity(told.modulus, line)})"

    def feature(self, name: str, features: Mapping[str, str]) -> str:
        """Return the formula of a feature."""
        if name in features:
            return features[name]
        if name in _CALLS:
            self._functions.use(_CALLS[name])
            return f"{_CALLS[name]}()"
        return NAMES.get(name, name)

    def condition(self, told: Condition, peer: str = "") -> str:
        """Return who takes part; "" for everybody."""
        return told.text({**NAMES, PEER: peer})

    def partner(self, form: Form, number: str, line: int) -> str:
        """Return the rank of a partner."""
        relation = form.relation
        if relation is Relation.GRID and self._dimensions > 1:
            self._functions.use("rank_at")
            places = [_moved(f"i{axis}", step) for axis, step in zip(AXES, form.step, strict=True)]
            return f"rank_at({', '.join(places)})"
        if relation in {Relation.GRID, Relation.LINE}:
            text = _moved(RANK, form.step[0])
            if form.wraps[0]:
                self._functions.use("turn")
                return f"(int)turn({text}, p)"
            return text
        if relation is Relation.TRANSPOSED:
            self._functions.use("transposed")
            return "transposed()"
        group = _grouped(number)
        if relation in {Relation.AHEAD, Relation.AHEAD_POWER, Relation.BEHIND_POWER}:
            self._functions.use("turn")
            text = {
                Relation.AHEAD: f"rank + {group}",
                Relation.AHEAD_POWER: f"rank + (1L << {group})",
                Relation.BEHIND_POWER: f"rank - (1L << {group})",
            }[relation]
            return f"(int)turn({text}, p)"
        text = {
            Relation.RANK: number,
            Relation.LAST: f"p - 1 - {group}",
            Relation.XOR: f"rank ^ {group}",
            Relation.XOR_POWER: f"rank ^ (1L << {group})",
            Relation.MIRRORED: "p - 1 - rank",
        }[relation]
        self._functions.use("within")
        return f"within({text}, {line})"

    def _sum(
        self, terms: tuple[Term, ...], below: int, powers: tuple[int, int, int], line: int
    ) -> str:
        """Return the sum of terms, times `below` and powers of x, y and z."""
        text = ""
        for term in terms:
            factor = term.numerator * (below // term.denominator)
            if term.basis.is_log:
                product = f"{self._logarithm(term.basis, line)}"
                product = _times(factor, _times_powers(product, powers, self._dimensions))
            else:
                raised = [a + b for a, b in zip(term.basis.powers, powers, strict=True)]
                product = self._product(factor, (raised[0], raised[1], raised[2]))
            text += (
                f" - {product[1:]}"
                if text and product.startswith("-")
                else f" + {product}"
                if text
                else product
            )
        return text or "0"

    def _logarithm(self, basis: Basis, line: int) -> str:
        self._functions.use("logarithm")
        return f"logarithm({self._product(1, basis.powers)}, {line})"

    def _product(self, factor: int, powers: tuple[int, int, int]) -> str:
        names = _powers(powers, self._dimensions)
        if not names:
            return f"{factor}L" if abs(factor) > 2**31 - 1 else str(factor)
        return _times(factor, " * ".join(names))


def _powers(powers: tuple[int, int, int], dimensions: int) -> list[str]:
    """Return the factors of a product of powers; equal powers of all sizes are those of p."""
    own = powers[:dimensions]
    if len(set(own)) == 1:
        return ["p"] * own[0]
    return [axis for axis, power in zip(AXES, own, strict=False) for _ in range(power)]


def _times_powers(product: str, powers: tuple[int, int, int], dimensions: int) -> str:
    return " * ".join([product, *_powers(powers, dimensions)])


def _times(factor: int, product: str) -> str:
    if factor == 1:
        return product
    return f"-{product}" if factor == -1 else f"{factor} * {product}"


def _moved(name: str, step: int) -> str:
    if not step:
        return name
    return f"{name} {'+' if step > 0 else '-'} {abs(step)}"


def _grouped(text: str) -> str:
    return f"({text})" if " " in text else text
