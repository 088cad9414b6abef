"""The grid of every trace, and the form of every partner: those that need the fewest lines.

Each form of a statement costs the number of lines that it needs: one for each number in any trace.
The cheapest grids win: those with the least sum of costs of their cheapest forms. With equal costs,
grids of fewer dimensions win, and then those of `MPI_Dims_create`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from math import inf

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.expressions import LEAST_SERIES
from cpmodel_commspec.operations import Communicator
from cpmodel_commspec.scalable.forms import (
    ALONG,
    POWERS,
    Form,
    Relation,
    Step3,
    distances,
    is_step,
    numbers,
    wrapped,
)
from cpmodel_commspec.scalable.quantities import fit
from cpmodel_commspec.scalable.scales import Scale, common_order, factorisations
from cpmodel_commspec.scalable.specification import kept, layouts
from cpmodel_commspec.scalable.tables import Joint, Messages, Statement, Table

_MOST_NUMBERS = 32
"""Numbers of one form; a form with more tells nothing."""

_FORMULA, _SERIES, _FAMILY = 1.2, 1.4, 1.5
"""Cost of a partner by a formula of p, by the round, or by a power of two."""

_UNEXPLAINED = 10.0
_DIMENSION, _NO_RULE = 0.25, 2.0
_PLAIN = (Relation.GRID, Relation.LINE, Relation.RANK, Relation.LAST, Relation.MIRRORED,
          Relation.TRANSPOSED, Relation.XOR, Relation.PARENT, Relation.CHILD)  # fmt: skip
_EACH = 0.01
"""Cost of a form beyond that of the form before it; with equal costs, the first form wins."""


@dataclass(frozen=True, slots=True)
class Told:
    """How the partners of one end of a statement are told.

    Attributes
    ----------
    cost : lines
    is_valued : whether a formula gives the number of each message, and not its line
    is_series : whether a rank has a message with one partner after the other
    """

    relation: Relation
    cost: float
    is_valued: bool = False
    is_series: bool = False


@dataclass(frozen=True)
class Family:
    """Statements of one shape with partners at powers of two, as rounds of a loop.

    Attributes
    ----------
    statements : the members
    relations : of each end
    rounds : of each trace
    """

    statements: tuple[int, ...]
    relations: tuple[Relation, ...]
    rounds: tuple[int, ...]


@dataclass
class Choice:
    """Grids and forms.

    Attributes
    ----------
    scales : of each trace
    dimensions : of the grids
    told : by statement, the form of each end
    families : members told by powers of two
    """

    scales: tuple[Scale, ...]
    dimensions: int
    told: dict[int, tuple[Told, ...]] = field(default_factory=dict)
    families: list[Family] = field(default_factory=list)


class Chooser:
    """Costs of forms for candidate grids; what was computed once is kept."""

    def __init__(
        self, joint: Joint, tables: Sequence[Table], statements: Sequence[Statement]
    ) -> None:
        self._joint, self._tables = joint, tables
        self._processes = [table.processes for table in tables]
        self._ends: dict[int, tuple[Messages, ...]] = {}
        self._is_any: dict[tuple[int, int], bool] = {}
        self._of_shape: dict[int, list[int]] = {}
        for number, (shape, _) in enumerate(statements):
            about = joint.shapes[shape]
            if about.ends:
                self._of_shape.setdefault(shape, []).append(number)
                self._ends[number] = tuple(Messages(tables, number, end) for end in about.ends)
                for k, end in enumerate(about.ends):
                    self._is_any[number, k] = about.is_any and not end.is_sent
        self._statements = statements
        self._known: dict[tuple[object, ...], frozenset[object] | None] = {}
        self._free = {
            (number, k): self._independent(number, k)
            for number, ends in self._ends.items()
            for k in range(len(ends))
        }
        self._families = {shape: self._family(members) for shape, members in self._of_shape.items()}

    def choice(self) -> Choice:
        """Return the cheapest grids, and the forms for them."""
        best: tuple[float, Choice] | None = None
        needs_grid = bool(self._ends) or any(len(x) > 1 for x in self._joint.communicators)
        for dimensions in (1, 2, 3) if needs_grid else (1,):
            for grid in factorisations(self._processes[-1], dimensions):
                if dimensions > 1 and 1 in grid:
                    continue
                found = self._completed(Scale(*grid), dimensions)
                cost = self._total(found) + _DIMENSION * dimensions
                cost += (common_order(found, dimensions) is None) * _NO_RULE
                if best is None or cost < best[0] - 1e-9:
                    best = cost, Choice(found, dimensions)
        assert best is not None
        return self._with_forms(best[1])

    def messages(self, statement: int) -> tuple[Messages, ...]:
        """Return the messages of the ends of a statement."""
        return self._ends.get(statement, ())

    def serves(self, statement: int) -> bool:
        """Tell whether all messages of a statement are with ranks whose partners take turns."""
        ends = self._ends.get(statement, ())
        turned = [k for k, shape in enumerate(self._joint.shapes) if shape.turn]
        masters = [np.unique(x.ranks[np.isin(x.shapes, turned)]) for x in self._tables]
        return bool(turned and ends) and all(
            np.isin(own, served).all()
            for one in ends
            for own, served in zip(one.peers, masters, strict=True)
        )

    def steps(
        self, statement: int, end: int, relation: Relation, scales: Sequence[Scale]
    ) -> list[Step3]:
        """Return the distances of a statement at the largest scale, in their order."""
        messages = self._ends[statement][end]
        last = max(messages.used())
        scale = _as_line(scales[last]) if relation is Relation.LINE else scales[last]
        found = distances(scale, *messages.in_order[last]).T
        return [(a, b, c) for a, b, c in dict.fromkeys(map(tuple, found.tolist()))]

    def _completed(self, largest: Scale, dimensions: int) -> tuple[Scale, ...]:
        """Return the grids of all traces that fit best to that of the largest."""
        chosen: dict[int, Scale] = {len(self._processes) - 1: largest}
        for k, processes in enumerate(self._processes[:-1]):
            grids = [Scale(*grid) for grid in factorisations(processes, dimensions)]
            if len(grids) > 1:
                costs = [
                    (self._cost({k: grid, len(self._processes) - 1: largest})
                     + (common_order((grid, largest), dimensions) is None) * _DIMENSION)
                    for grid in grids
                ]  # fmt: skip
                chosen[k] = grids[int(np.argmin(costs))]
            else:
                chosen[k] = grids[0]
        return tuple(chosen[k] for k in range(len(self._processes)))

    def _total(self, scales: Sequence[Scale]) -> float:
        return self._cost(dict(enumerate(scales)))

    def _cost(self, scales: Mapping[int, Scale]) -> float:
        total = self._cost_of_communicators(scales)
        for shape, members in self._of_shape.items():
            costs = {number: self._cost_of(number, scales) for number in members}
            alone = sum(costs.values())
            family = self._families[shape]
            if family is not None:
                rest = sum(
                    cost for number, cost in costs.items() if number not in family.statements
                )
                alone = min(alone, rest + self._cost_of_family(family, scales))
            total += alone
        return total

    def _cost_of(self, number: int, scales: Mapping[int, Scale]) -> float:
        return sum(self._best(number, k, scales).cost for k in range(len(self._ends[number])))

    @staticmethod
    def _cost_of_family(family: Family, scales: Mapping[int, Scale]) -> float:
        extents = [rounds_of([scales[k] for k in scales], chosen) for chosen in _products()]
        rounds: list[int | None] = [family.rounds[k] for k in scales]
        return _FAMILY + (0.0 if rounds in extents else 2.0)

    def _cost_of_communicators(self, scales: Mapping[int, Scale]) -> float:
        total = 0.0
        for number in range(len(self._joint.communicators[0])):
            groups = {k: self._joint.communicators[k][number] for k in scales}
            common = set.intersection(*(self._kept(k, groups[k], scales[k]) for k in scales))
            if not common:
                laid = set.intersection(
                    *({name for name, _ in layouts(one)} for one in groups.values())
                )
                total += 1.0 if laid else _UNEXPLAINED
        return total

    def _kept(self, k: int, one: Communicator, scale: Scale) -> set[tuple[int, ...]]:
        key = "kept", k, one.name, scale
        if key not in self._known:
            self._known[key] = frozenset(kept(one, scale))
        return set(self._known[key] or ())  # type: ignore[arg-type]

    def _best(self, number: int, end: int, scales: Mapping[int, Scale]) -> Told:
        """Return the cheapest form of an end."""
        if self._joint.shapes[self._statements[number].shape].turn:
            return Told(Relation.OTHER, _SERIES, is_valued=True, is_series=True)
        if self._is_any[number, end]:
            return Told(Relation.ANY, 1.0)
        best = self._free[number, end]
        for k, relation in enumerate(_PLAIN):
            cost = self._lines(number, end, relation, scales) + k * _EACH
            if cost < best.cost:
                best = Told(relation, cost)
        for relation in ALONG:
            if best.cost > _SERIES and self._is_series(number, end, relation, scales):
                best = Told(relation, _SERIES, is_valued=True, is_series=True)
        return best

    def _is_series(
        self, number: int, end: int, relation: Relation, scales: Mapping[int, Scale]
    ) -> bool:
        """Tell whether partners on grids follow each other evenly along one dimension."""
        messages = self._ends[number][end]
        found = [np.empty(0, np.int64)] * len(messages.rows)
        for k, scale in scales.items():
            own = numbers(relation, scale, *messages.in_order[k])
            if own is None:
                return False
            found[k] = own
        # A row is much shorter than the order of ranks.
        return messages.is_series(found, LEAST_SERIES - 1)

    def _lines(
        self, number: int, end: int, relation: Relation, scales: Mapping[int, Scale]
    ) -> float:
        """Return the number of lines of a form."""
        used = [k for k in self._ends[number][end].used() if k in scales]
        if not used:
            return 1.0
        if relation in {Relation.GRID, Relation.LINE}:
            last = max(used)
            parts = [
                self._unmatched(number, end, relation, k, scales[k], last, scales[last])
                for k in used
            ]
        else:
            parts = [self._numbers(number, end, relation, k, scales[k]) for k in used]
        total: set[object] = set()
        for part in parts:
            if part is None or len(part) > _MOST_NUMBERS:
                return inf
            total |= part
        return float(len(total))

    def _numbers(
        self, number: int, end: int, relation: Relation, k: int, scale: Scale
    ) -> frozenset[object] | None:
        key = number, end, relation, k, scale if relation is Relation.TRANSPOSED else None
        if key not in self._known:
            messages = self._ends[number][end]
            found = numbers(relation, scale, messages.ranks[k], messages.peers[k])
            self._known[key] = None if found is None else frozenset(np.unique(found).tolist())
        return self._known[key]

    def _steps(
        self, number: int, end: int, relation: Relation, k: int, scale: Scale
    ) -> frozenset[object] | None:
        scale = _as_line(scale) if relation is Relation.LINE else scale
        key = number, end, Relation.GRID, k, scale
        if key not in self._known:
            messages = self._ends[number][end]
            found = np.unique(distances(scale, messages.ranks[k], messages.peers[k]), axis=1).T
            few = len(found) <= _MOST_NUMBERS
            self._known[key] = frozenset(map(tuple, found.tolist())) if few else None
        return self._known[key]

    def _unmatched(
        self, number: int, end: int, relation: Relation, k: int, scale: Scale, last: int,
        largest: Scale,
    ) -> frozenset[object] | None:  # fmt: skip
        """Return the distances of the largest trace, and those of another that it does not have."""
        steps = self._steps(number, end, relation, last, largest)
        if k == last or steps is None:
            return steps
        scale = _as_line(scale) if relation is Relation.LINE else scale
        key = number, end, relation, k, scale, last, largest
        if key not in self._known:
            messages = self._ends[number][end]
            ranks, peers = messages.ranks[k], messages.peers[k]
            missing = np.ones(len(ranks), np.bool_)
            for step in steps:
                missing &= is_step(scale, ranks, peers, step) == 0  # type: ignore[arg-type]
            rest = np.unique(distances(scale, ranks[missing], peers[missing]), axis=1).T
            self._known[key] = steps | frozenset(map(tuple, rest.tolist()))
        return self._known[key]

    def _independent(self, number: int, end: int) -> Told:
        """Return the cheapest form that does not depend on the grid and has a formula."""
        messages = self._ends[number][end]
        used = list(messages.used())
        best = Told(Relation.RANK, inf)
        lines = [Scale(p) for p in self._processes]
        for relation in (Relation.AHEAD, Relation.RANK, Relation.XOR):
            found = [
                numbers(relation, lines[k], messages.ranks[k], messages.peers[k]) for k in used
            ]
            sets = [np.unique(x) for x in found if x is not None]
            if all(len(x) == 1 for x in sets):
                values = [int(x[0]) for x in sets]
                if len(set(values)) > 1 and fit([lines[k] for k in used], values, 1):
                    best = min(best, Told(relation, _FORMULA, is_valued=True), key=lambda x: x.cost)
        for relation in (Relation.RANK, Relation.AHEAD, Relation.XOR):
            found = [numbers(relation, lines[k], *messages.in_order[k]) for k in range(len(lines))]
            given = [x if x is not None else np.empty(0, np.int64) for x in found]
            if best.cost > _SERIES and messages.is_series(given):
                best = Told(relation, _SERIES, is_valued=True, is_series=True)
        return best

    def _family(self, members: Sequence[int]) -> Family | None:
        """Return the statements of a shape with partners at powers of two that grow with p."""
        ends = len(self._ends[members[0]])
        shape = self._joint.shapes[self._statements[members[0]].shape]
        if shape.turn or any(self._is_any[members[0], k] for k in range(ends)):
            return None
        for relations in product(sorted(POWERS, key=list(Relation).index), repeat=ends):
            chosen, exponents = [], dict[int, set[int]]()
            tags: dict[int, set[int]] = {}
            for number in members:
                found = self._exponents(number, relations)
                if found is None:
                    continue
                chosen.append(number)
                for k, own in found.items():
                    exponents.setdefault(k, set()).update(own)
                    for exponent in own:
                        tags.setdefault(exponent, set()).add(self._statements[number].tag)
            rounds = tuple(len(exponents.get(k, ())) for k in range(len(self._tables)))
            dense = all(exponents.get(k, set()) == set(range(n)) for k, n in enumerate(rounds))
            if dense and len(set(rounds)) > 1 and _is_even(tags):
                return Family(tuple(chosen), relations, rounds)
        return None

    def _exponents(self, number: int, relations: Sequence[Relation]) -> dict[int, set[int]] | None:
        found: dict[int, set[int]] = {}
        for end, relation in enumerate(relations):
            for k in self._ends[number][end].used():
                own = self._numbers(number, end, relation, k, Scale(self._processes[k]))
                if own is None:
                    return None
                found.setdefault(k, set()).update(own)  # type: ignore[arg-type]
        return found or None

    def _with_forms(self, choice: Choice) -> Choice:
        scales = dict(enumerate(choice.scales))
        for shape, members in self._of_shape.items():
            family = self._families[shape]
            if family is not None:
                alone = sum(self._cost_of(number, scales) for number in family.statements)
                if self._cost_of_family(family, scales) < alone:
                    choice.families.append(family)
            for number in members:
                ends = range(len(self._ends[number]))
                choice.told[number] = tuple(self._best(number, k, scales) for k in ends)
        for family in choice.families:
            for number in family.statements:
                choice.told[number] = tuple(
                    Told(x, _FAMILY, is_valued=True) for x in family.relations
                )
        return choice


def _as_line(scale: Scale) -> Scale:
    return Scale(scale.processes)


def _products() -> Iterator[tuple[int, ...]]:
    for n in (3, 1, 2):
        yield from combinations(range(3), n)


def rounds_of(scales: Sequence[Scale], chosen: Sequence[int]) -> list[int | None]:
    """Return the logarithm of a product of sizes at each scale; None where it is not whole."""
    found: list[int | None] = []
    for scale in scales:
        size = 1
        for k in chosen:
            size *= scale.sizes[k]
        bits = size.bit_length() - 1
        found.append(bits if size == 1 << bits else None)
    return found


def _is_even(tags: Mapping[int, set[int]]) -> bool:
    """Tell whether tags grow evenly with the exponent, one tag each."""
    if any(len(own) != 1 for own in tags.values()):
        return False
    found = [next(iter(tags[k])) for k in sorted(tags)]
    return len({b - a for a, b in pairwise(found)}) <= 1


def form_of(
    messages: Messages, relation: Relation, step: Step3, scales: Sequence[Scale],
    chosen: Sequence[Int64Array],
) -> Form:  # fmt: skip
    """Return the form of a line at a distance, with the dimensions in which messages wrap.

    Parameters
    ----------
    chosen : of each trace, the messages of the line among those of the statement, [n]
    """
    wraps = [False, False, False]
    for k, rows in enumerate(chosen):
        if len(rows):
            scale = _as_line(scales[k]) if relation is Relation.LINE else scales[k]
            ranks, peers = (column[rows] for column in messages.in_order[k])
            found = wrapped(scale, ranks, peers, step)
            wraps = [a or b for a, b in zip(wraps, found, strict=True)]
    return Form(relation, step, (wraps[0], wraps[1], wraps[2]))
