"""Numbers as functions of the place of a rank, of rounds and of the number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import gcd

import msgspec
import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array
from cpmodel_commspec.scalable.blocks import Block, blocks
from cpmodel_commspec.scalable.quantities import Quantity, Unfit, fit, power, whole
from cpmodel_commspec.scalable.scales import AXES, CHILDREN, PEER, RANK, Scale

_MOST_FEATURES = 3
_MOST_SHIFTS = 40
_MOST_OTHERS = 64
_SAMPLE = 300
"""Values that a solution is guessed from; it is tested on all."""

_FACTORS = (1, -1, 2, -2)
"""Factors of features in numbers that start again after some steps."""


class Number(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A number: a base, features times factors, and a block.

    Attributes
    ----------
    base : a formula of the scale
    factors : by the names of features
    modulus, divisor : the sum is the remainder or the result of a division by it, if it is there
    block : the bytes of an uneven block, if it is there
    shift : variable of a loop that doubles (1) or halves (-1) the number in each round
    others : further numbers that fit the traces as well
    """

    base: Quantity
    factors: Mapping[str, Quantity] = {}
    modulus: Quantity | None = None
    divisor: Quantity | None = None
    block: Block | None = None
    shift: tuple[str, int] | None = None
    others: tuple[Number, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The features that it depends on."""
        block, shift = self.block, [] if self.shift is None else [self.shift[0]]
        turn = [] if block is None or block.turn is None else [block.turn[0]]
        return (*self.factors, *([block.place] if block and block.place else []), *turn, *shift)

    def values(self, scale: Scale, features: Mapping[str, Int64Array], n: int) -> Int64Array:
        """Return the numbers [n] of operations with features [n].

        Raises
        ------
        Unfit
            If a formula has no whole value at the scale.
        """
        found = np.full(n, self.base.value(scale), np.int64)
        for name, factor in self.factors.items():
            found += factor.value(scale) * features[name]
        if self.modulus is not None:
            found %= self.modulus.value(scale)
        if self.divisor is not None:
            found //= self.divisor.value(scale)
        if self.shift is not None:
            name, sign = self.shift
            if sign > 0:
                return found << features[name]
            if (found % (self.base.unit << features[name])).any():
                reason = "is halved to parts of elements, and no trace tells how it is rounded"
                raise Unfit(f"{self.base} {reason}", is_open=True)
            return found >> features[name]
        return found if self.block is None else found + self.block.values(scale, features)

    def quantities(self) -> Iterator[Quantity]:
        """Yield its formulas."""
        yield self.base
        yield from self.factors.values()
        yield from (x for x in (self.modulus, self.divisor) if x is not None)
        if self.block is not None:
            yield self.block.unit

    def __str__(self) -> str:
        """Return the formula."""
        if self.block is not None:
            unit = grouped_text(str(self.block.unit))
            place = self.block.turned(_NAMES.get(self.block.place, self.block.place))
            return self.block.text(unit, f"({place}) % p" if self.block.turn else place)
        text = str(self.base)
        for name, factor in self.factors.items():
            text = _added(text, str(factor), _NAMES.get(name, name))
        if self.shift is not None:
            return f"{grouped_text(text)} {'<<' if self.shift[1] > 0 else '>>'} {self.shift[0]}"
        for sign, by in (("%", self.modulus), ("/", self.divisor)):
            if by is not None:
                return f"{grouped_text(text)} {sign} {grouped_text(str(by))}"
        return text


_NAMES = {**{axis: f"i{axis}" for axis in AXES}, PEER: "partner"}
"""Names of places in texts, beside those of sizes."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Numbers in a trace.

    Attributes
    ----------
    values : [n]
    features : by name, [n]
    """

    scale: Scale
    values: Int64Array
    features: Mapping[str, Int64Array]


@dataclass(frozen=True, slots=True)
class Misfit:
    """The reason why a number has no formula, in words."""

    reason: str


def find(
    samples: Sequence[Sample], dimensions: int, names: Sequence[str], *, is_size: bool = False,
    is_rounds: bool = False, unit: int = 0, loops: Sequence[str] = (),
) -> Number | Misfit:  # fmt: skip
    """Return the simplest number that is exact for all samples.

    Parameters
    ----------
    names : the features that it may depend on, the likely ones first
    loops : those that are rounds
    is_size, unit : whether it is a number of bytes, and of elements of how many
    is_rounds : whether it counts rounds over powers of two
    """
    samples = [one for one in samples if len(one.values)]
    if not samples:
        return Number(whole(0))
    used = [
        x for x in names if any((one.features[x] != one.features[x][0]).any() for one in samples)
    ]

    def divided(turns: Sequence[str] = ()) -> list[Number]:
        scales, values = [one.scale for one in samples], [one.values for one in samples]
        found = blocks(scales, values, [one.features for one in samples], used, dimensions, turns)
        return [Number(whole(0), block=one) for one in found] if is_size else []

    for count in range(min(_MOST_FEATURES, len(used)) + 1):
        found = [
            one
            for chosen in combinations(used, count)
            for one in _linear(
                samples, chosen, dimensions, is_size=is_size, is_rounds=is_rounds, unit=unit
            )
        ]
        if found:
            # A block is simpler than a sum.
            shares = divided() if len(found[0].base.terms) > 1 else []
            return _with_others([*shares, *found])
    turns = [name for name in loops if name in used]
    shares = divided() or _shifted(samples, used, turns, dimensions, unit) * is_size
    shares = shares or (divided(turns) if turns else [])
    if shares:
        return _with_others(shares)
    found_last = _cyclic(samples, used, dimensions) or _shared(samples, dimensions)
    return found_last or Misfit(_unlike(samples))


def _shifted(
    samples: Sequence[Sample],
    names: Sequence[str],
    loops: Sequence[str],
    dimensions: int,
    unit: int,
) -> list[Number]:
    """Return the sizes that are doubled or halved in each round of a loop."""
    found = []
    element = unit or gcd(16, *(gcd(*np.unique(one.values).tolist()) for one in samples))
    for name, sign in product(loops, (1, -1)):
        once = []
        for one in samples:
            rounds = np.minimum(one.features[name], _MOST_SHIFTS)
            values = one.values >> rounds if sign > 0 else one.values << rounds
            if ((values << rounds if sign > 0 else values >> rounds) != one.values).any():
                break
            once.append(Sample(one.scale, values, one.features))
        else:
            rest = [x for x in names if x != name]
            number = find(once, dimensions, rest, is_size=True, unit=unit)
            if isinstance(number, Number) and number.block is None and number.modulus is None:
                found += [
                    msgspec.structs.replace(
                        x, base=msgspec.structs.replace(x.base, unit=element), shift=(name, sign),
                        others=(),
                    )
                    for x in (number, *number.others)
                    if x.block is None
                ]  # fmt: skip
    return found


def _with_others(found: Sequence[Number]) -> Number:
    # A tree receives from the parent, and sends to its children in a loop.
    found = sorted(found, key=lambda one: (CHILDREN in one.factors) is (len(one.factors) == 1))
    return msgspec.structs.replace(found[0], others=tuple(found[1 : 1 + _MOST_OTHERS]))


def _linear(
    samples: Sequence[Sample], chosen: Sequence[str], dimensions: int, *, is_size: bool,
    is_rounds: bool, unit: int,
) -> Iterator[Number]:  # fmt: skip
    """Yield the sums of features that are exact for all samples."""
    solved = []
    for one in samples:
        solved.append(_solved(one, chosen))
        if solved[-1] is None:
            return
    scales = [one.scale for one in samples]
    bases, factors = [own[0] for own in solved if own], [own[1] for own in solved if own]
    found: dict[str, list[Quantity]] = {}
    for name in chosen:
        known = {
            scale: own[name] for scale, own in zip(scales, factors, strict=True) if name in own
        }
        fitted = fit([*known], [*known.values()], dimensions) if len(known) > 1 else []
        if not fitted:
            return
        found[name] = fitted
        for k, one in enumerate(samples):
            if name not in factors[k]:
                # The trace has one value of the feature, so that it does not show the factor.
                bases[k] -= fitted[0].value(one.scale) * int(one.features[name][0])
    fitted = fit(scales, bases, dimensions, only_logs=True) if is_rounds else []
    fitted = fitted or fit(scales, bases, dimensions, is_size=is_size, unit=unit)
    for base, *own in product(fitted, *found.values()):
        yield Number(base, dict(zip(found, own, strict=True)))


def _solved(one: Sample, chosen: Sequence[str]) -> tuple[int, dict[str, int]] | None:
    """Return base and factors of a trace, exact for all its values; the factors that it shows."""
    shown = [name for name in chosen if (one.features[name] != one.features[name][0]).any()]
    n = len(one.values)
    rows = np.unique(np.linspace(0, n - 1, min(_SAMPLE, n)).astype(np.int64))
    columns: list[FloatArray] = [np.ones(len(rows))]
    columns += [one.features[name][rows].astype(np.float64) for name in shown]
    matrix = np.stack(columns, axis=1)
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        return None
    solution = np.linalg.lstsq(matrix, one.values[rows].astype(np.float64), rcond=None)[0]
    base, *factors = (int(x) for x in np.round(solution))
    total = np.full(n, base, np.int64)
    for name, factor in zip(shown, factors, strict=True):
        total += factor * one.features[name]
    if (total != one.values).any():
        return None
    return base, dict(zip(shown, factors, strict=True))


def _cyclic(samples: Sequence[Sample], names: Sequence[str], dimensions: int) -> Number | None:
    """Return a number that starts again after as many steps as the grid is long."""
    axes = [own for n in range(1, dimensions + 1) for own in combinations("xyz"[:dimensions], n)]
    moduli = [power(dimensions, *own) for own in axes]
    moduli.append(moduli[-1].plus(-1))
    for count in (1, 2):
        for chosen in combinations(names, count):
            for factors in product(_FACTORS, repeat=count):
                sums = [
                    one.values
                    - sum(f * one.features[name] for f, name in zip(factors, chosen, strict=True))
                    for one in samples
                ]
                for modulus in moduli:
                    base = _common_rest(samples, sums, modulus)
                    if base is not None:
                        told = {name: whole(f) for name, f in zip(chosen, factors, strict=True)}
                        return Number(whole(base), told, modulus)
    return None


def _shared(samples: Sequence[Sample], dimensions: int) -> Number | None:
    """Return the rounds of all ranks but one, which take turns until a total is reached."""
    bases = []
    for one in samples:
        ranks, others = one.features.get(RANK, one.values), one.scale.processes - 1
        base = int(one.values.sum()) + others - 1 + int(ranks[0])
        if len(ranks) != others or ((base - ranks) // others != one.values).any():
            return None
        bases.append(base)
    fitted = fit([one.scale for one in samples], bases, dimensions)
    others_ = power(dimensions, "p").plus(-1)
    found = [Number(base, {RANK: whole(-1, dimensions)}, divisor=others_) for base in fitted]
    return _with_others(found) if found else None


def _common_rest(
    samples: Sequence[Sample], sums: Sequence[Int64Array], modulus: Quantity
) -> int | None:
    """Return the number that sums leave in a division, if there is one for all traces."""
    rests = set()
    for one, total in zip(samples, sums, strict=True):
        m = modulus.value(one.scale)
        rest = total % m
        if (rest != rest[0]).any() or (one.values < 0).any() or (one.values >= m).any():
            return None
        # Small numbers below zero are likelier than those just below the modulus.
        rests.add(int(rest[0]) if 2 * rest[0] < m or rest[0] < 2 else int(rest[0]) - m)
    return rests.pop() if len(rests) == 1 else None


def _unlike(samples: Sequence[Sample]) -> str:
    """Return the values of each trace, in words."""
    parts = []
    for one in samples:
        low, high = int(one.values.min()), int(one.values.max())
        parts.append(f"{low} at {one.scale}" if low == high else f"{low} to {high} at {one.scale}")
    return ", ".join(parts)


def _added(text: str, factor: str, name: str) -> str:
    sign = "+"
    if factor.startswith("-"):
        sign, factor = "-", factor[1:]
    product = name if factor == "1" else f"{grouped_text(factor)} * {name}"
    if text == "0":
        return product if sign == "+" else f"-{product}"
    return f"{text} {sign} {product}"


def grouped_text(text: str) -> str:
    """Return a formula that can be a factor."""
    return f"({text})" if " " in text else text
