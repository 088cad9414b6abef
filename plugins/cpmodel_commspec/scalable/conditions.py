"""Ranks of a line: conditions on the place of a rank, the same for every number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import msgspec
import numpy as np

from callpath_modeler.arrays import BoolArray, Int64Array
from cpmodel_commspec.scalable.forms import Form, Relation
from cpmodel_commspec.scalable.scales import PEER, PLACES, RANK, Scale, places

_NEAR = 4
"""Places from an end of the grid that conditions name."""

_MOST_ATOMS = 3
_MOST_TRIED = 48


class Kind(StrEnum):
    """Comparisons of an atom; n is the size of the grid along the place c."""

    LEAST = "least"
    """c >= k."""
    MOST = "most"
    """c <= k."""
    BEFORE = "before"
    """c <= n - 1 - k."""
    AFTER = "after"
    """c >= n - 1 - k."""
    IS = "is"
    IS_NOT = "is not"
    LAST = "last"
    """c == n - 1 - k."""
    NOT_LAST = "not last"
    REST = "rest"
    """c % m == k."""
    SAME = "same"
    """Equal to another place."""
    OTHER = "other"
    BELOW = "below"
    ABOVE = "above"
    LOWER_HALF = "lower half"
    """2 c + k < n."""
    UPPER_HALF = "upper half"
    MIDDLE = "middle"
    """c == (n + k) / 2."""


class Atom(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One comparison.

    Attributes
    ----------
    place : x, y, z, the rank, or the partner
    k, m : numbers, see `Kind`
    other : the place that it is compared with
    """

    kind: Kind
    place: str
    k: int = 0
    m: int = 0
    other: str = ""

    def holds(self, scale: Scale, of: Mapping[str, Int64Array]) -> BoolArray:
        """Tell for which ranks it holds, by their places."""
        c, k = of[self.place], self.k
        n = scale.processes if self.place in {RANK, PEER} else scale.sizes["xyz".index(self.place)]
        if self.other:
            other = of[self.other]
            compared = {
                Kind.SAME: c == other,
                Kind.OTHER: c != other,
                Kind.BELOW: c < other,
                Kind.ABOVE: c > other,
            }
            return np.asarray(compared[self.kind], np.bool_)
        if self.kind is Kind.REST:
            return np.asarray(c % self.m == k, np.bool_)
        last = n - 1 - k
        single = {
            Kind.LEAST: c >= k,
            Kind.MOST: c <= k,
            Kind.BEFORE: c <= last,
            Kind.AFTER: c >= last,
            Kind.IS: c == k,
            Kind.IS_NOT: c != k,
            Kind.LAST: c == last,
            Kind.NOT_LAST: c != last,
            Kind.LOWER_HALF: 2 * c + k < n,
            Kind.UPPER_HALF: 2 * c >= n,
            Kind.MIDDLE: c == (n + k) // 2,
        }
        return np.asarray(single[self.kind], np.bool_)

    def text(self, names: Mapping[str, str]) -> str:
        """Return the comparison; `names` are those of places and of the sizes along them."""
        c = names[self.place]
        n = names["p" if self.place in {RANK, PEER} else f"size {self.place}"]
        last = f"{n} - {self.k + 1}"
        return {
            Kind.LEAST: f"{c} >= {self.k}",
            Kind.MOST: f"{c} <= {self.k}",
            Kind.BEFORE: f"{c} <= {last}",
            Kind.AFTER: f"{c} >= {last}",
            Kind.IS: f"{c} == {self.k}",
            Kind.IS_NOT: f"{c} != {self.k}",
            Kind.LAST: f"{c} == {last}",
            Kind.NOT_LAST: f"{c} != {last}",
            Kind.REST: f"{c} % {self.m} == {self.k}",
            Kind.SAME: f"{c} == {names.get(self.other, '')}",
            Kind.OTHER: f"{c} != {names.get(self.other, '')}",
            Kind.BELOW: f"{c} < {names.get(self.other, '')}",
            Kind.ABOVE: f"{c} > {names.get(self.other, '')}",
            Kind.LOWER_HALF: f"2 * {c}{f' + {self.k}' * (self.k > 0)} < {n}",
            Kind.UPPER_HALF: f"2 * {c} >= {n}",
            Kind.MIDDLE: f"{c} == {f'({n} + 1)' if self.k else n} / 2",
        }[self.kind]


class Condition(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The ranks of a line: those for which all atoms hold, or those for which some atom does not.

    Attributes
    ----------
    others : further conditions that fit the traces as well
    """

    atoms: tuple[Atom, ...] = ()
    is_negated: bool = False
    others: tuple[Condition, ...] = ()

    def holds(self, scale: Scale, of: Mapping[str, Int64Array]) -> BoolArray:
        """Tell for which ranks it holds, by their places."""
        found: BoolArray = np.ones(len(of[RANK]), np.bool_)
        for atom in self.atoms:
            found = found & atom.holds(scale, of)
        return ~found if self.is_negated else found

    def text(self, names: Mapping[str, str]) -> str:
        """Return the condition; "" for everybody."""
        text = " && ".join(atom.text(names) for atom in self.atoms)
        return f"!({text})" if self.is_negated else text


@dataclass(frozen=True, slots=True)
class Part:
    """The ranks of a line in a trace.

    Attributes
    ----------
    domain : the ranks that may, [n]
    chosen : which of them do, [n]
    """

    scale: Scale
    domain: Int64Array
    chosen: BoolArray


def find(parts: Sequence[Part], dimensions: int, forms: Sequence[Form] = ()) -> Condition | None:
    """Return the simplest condition for all traces; None if no condition fits.

    Parameters
    ----------
    forms : of the partners, which may have to exist
    """
    target = np.concatenate([part.chosen for part in parts])
    if target.all():
        return Condition()
    known = [_known(part, forms) for part in parts]

    def column(atoms: Sequence[Atom]) -> BoolArray:
        held = [
            Condition(tuple(atoms)).holds(part.scale, of)
            for part, of in zip(parts, known, strict=True)
        ]
        found: BoolArray = np.concatenate(held)
        return found

    natural = _existing(forms, dimensions)
    if natural and (column(natural) == target).all():
        return Condition(natural)
    atoms: dict[bytes, list[tuple[float, Atom]]] = {}
    columns: dict[bytes, BoolArray] = {}
    for cost, atom in _atoms(dimensions, forms):
        found = column((atom,))
        columns.setdefault(found.tobytes(), found)
        atoms.setdefault(found.tobytes(), []).append((cost, atom))
    for wanted, is_negated in ((target, False), (~target, True)):
        made = _conjunction(wanted, atoms, columns, is_negated=is_negated)
        if made is not None:
            return made
    return None


def _conjunction(
    wanted: BoolArray, atoms: Mapping[bytes, list[tuple[float, Atom]]], columns: Mapping[bytes,
    BoolArray], *, is_negated: bool,
) -> Condition | None:  # fmt: skip
    """Return the cheapest atoms that hold together for exactly those wanted."""
    around = [key for key, found in columns.items() if (found | ~wanted).all()]
    around.sort(key=lambda key: _cheapest(atoms[key]))
    for count in range(1, _MOST_ATOMS + 1):
        best: tuple[float, tuple[bytes, ...]] | None = None
        for chosen in combinations(around[:_MOST_TRIED] if count > 1 else around, count):
            together = columns[chosen[0]]
            for key in chosen[1:]:
                together = together & columns[key]
            if (together == wanted).all():
                cost = sum(_cheapest(atoms[key]) for key in chosen)
                if best is None or cost < best[0]:
                    best = cost, chosen
        if best is not None:
            return _made([atoms[key] for key in best[1]], is_negated=is_negated)
    return None


def _cheapest(own: Sequence[tuple[float, Atom]]) -> float:
    return min(cost for cost, _ in own)


def _made(chosen: Sequence[list[tuple[float, Atom]]], *, is_negated: bool) -> Condition:
    """Return the condition of the cheapest of equal atoms, with those of the same cost."""
    cheapest = [sorted(own, key=lambda pair: pair[0]) for own in chosen]
    main = tuple(own[0][1] for own in cheapest)
    others = []
    for k, own in enumerate(cheapest):
        for cost, atom in own[1:]:
            if cost == own[0][0]:
                others.append(Condition((*main[:k], atom, *main[k + 1 :]), is_negated))
    return Condition(main, is_negated, tuple(others))


def known_places(scale: Scale, ranks: Int64Array, forms: Sequence[Form]) -> dict[str, Int64Array]:
    """Return the places of ranks [n] by name, with the partner where no number gives it."""
    of = places(scale, ranks)
    if len(forms) == 1 and forms[0].relation is Relation.TRANSPOSED:
        of[PEER] = forms[0].peers(scale, ranks, np.zeros_like(ranks))
    return of


def _known(part: Part, forms: Sequence[Form]) -> dict[str, Int64Array]:
    return known_places(part.scale, part.domain, forms)


def _existing(forms: Sequence[Form], dimensions: int) -> tuple[Atom, ...]:
    """Return the condition that partners at distances exist, where the ends do not meet."""
    atoms: dict[Atom, None] = {}
    for form in forms:
        if form.relation not in {Relation.GRID, Relation.LINE}:
            continue
        for k, step in enumerate(form.step):
            is_line = form.relation is Relation.LINE or dimensions == 1
            place = RANK if is_line else "xyz"[k]
            if step and not form.wraps[k]:
                kind = Kind.LEAST if step < 0 else Kind.BEFORE
                atoms[Atom(kind, place, abs(step) if step < 0 else step)] = None
    return tuple(atoms)


def _atoms(dimensions: int, forms: Sequence[Form]) -> Iterator[tuple[float, Atom]]:
    """Yield atoms with their costs."""
    natural = set(_existing(forms, dimensions))
    axes = PLACES[1 : dimensions + 1] if dimensions > 1 else ()
    for place in (*axes, RANK):
        for cost, atom in _of_place(place):
            yield (0.5 if atom in natural else cost), atom
    if any(form.relation is Relation.CHILD for form in forms):
        for k in (1, 2):
            yield 0.5, Atom(Kind.LOWER_HALF, RANK, k)
    pairs = [*combinations(axes, 2)]
    if any(form.relation is Relation.TRANSPOSED for form in forms):
        pairs.append((PEER, RANK))
    for one, other in pairs:
        cost = 1.0 if one == PEER else 3.0
        for kind in (Kind.SAME, Kind.OTHER, Kind.BELOW, Kind.ABOVE):
            yield cost, Atom(kind, one, other=other)


_TO_ENDS = (Kind.IS, Kind.LAST, Kind.IS_NOT, Kind.NOT_LAST)


def _of_place(place: str) -> Iterator[tuple[float, Atom]]:
    """Yield atoms about one place with their costs."""
    for k in range(_NEAR):
        ends = [Atom(Kind.LEAST, place, k + 1), Atom(Kind.BEFORE, place, k + 1)]
        ends += [Atom(kind, place, k) for kind in _TO_ENDS]
        ends += [Atom(kind, place, k) for kind in (Kind.MOST, Kind.AFTER) if k]
        yield from ((1.0 + k, atom) for atom in ends)
    yield from ((3.0 + m, Atom(Kind.REST, place, k, m)) for m in (2, 3, 4) for k in range(m))
    halves = [Atom(kind, place) for kind in (Kind.LOWER_HALF, Kind.UPPER_HALF, Kind.MIDDLE)]
    yield from ((4.0, atom) for atom in (*halves, Atom(Kind.MIDDLE, place, 1)))
