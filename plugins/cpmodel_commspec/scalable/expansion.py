"""Expansion of a scalable specification at one number of processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import BoolArray, FloatArray, Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable
from cpmodel_commspec.expressions import size_of
from cpmodel_commspec.operations import FIELDS, Communicator, Recorded, Traced
from cpmodel_commspec.scalable.conditions import Condition, known_places
from cpmodel_commspec.scalable.forms import POWERS, Form, Relation
from cpmodel_commspec.scalable.numbers import Number
from cpmodel_commspec.scalable.quantities import Quantity, Unfit
from cpmodel_commspec.scalable.scales import PEER, Scale, even, features
from cpmodel_commspec.scalable.specification import (
    Loop,
    Node,
    ScalableSpecification,
    Step,
    grouped,
)
from cpmodel_commspec.scalable.times import ENDING, Times
from cpmodel_commspec.simulation.deadlocks import mismatches_of
from cpmodel_commspec.simulation.wildcards import resolved
from cpmodel_commspec.specification import unrolled, walk

_MOST_OPERATIONS = 50_000_000
_MOST_TRIED = 64
"""Numbers of processes below which those are sought at which formulas differ."""


def scale_at(told: ScalableSpecification, processes: int, sizes: Sequence[int] = ()) -> Scale:
    """Return the grid of a number of processes.

    Parameters
    ----------
    sizes : x, y and z as given; () for the grid that the rule of the traces gives

    Raises
    ------
    DataError
        If the sizes do not fit, or if none are given and the traces follow no rule.
    """
    if sizes:
        if size_of(sizes) != processes or min(sizes) < 1:
            raise DataError(
                f"a grid of {' x '.join(map(str, sizes))} has not {processes} processes",
                hint="the product of the sizes has to be the number of processes",
            )
        if len(sizes) != told.dimensions:
            raise DataError(
                f"the grid has {told.dimensions} dimensions, and {len(sizes)} are given",
                hint=f"give {', '.join('xyz'[: told.dimensions])}",
            )
        return Scale(*sizes)
    if told.dimensions == 1:
        return Scale(processes)
    if told.order is None:
        grids = ", ".join(str(scale) for scale in told.scales)
        raise DataError(
            f"the grids of the traces follow no rule ({grids})",
            hint="give the grid: --grid " + ",".join("XYZ"[: told.dimensions]),
        )
    return even(processes, told.dimensions, told.order)


def expanded(told: ScalableSpecification, scale: Scale, times: Times | None = None) -> Traced:
    """Return the operations of all ranks at a scale; receives from any source get theirs.

    Parameters
    ----------
    times : of the computation; without them, operations have no times

    Raises
    ------
    DataError
        If a formula has no value there, or if formulas that fit all traces differ there.
    """
    try:
        made = _Expansion(told, scale, times).traced()
    except _OpenError as cause:
        raise DataError(str(cause), hint=f"{_deciding(told, scale)}{cause.hint}") from None
    found = resolved(made).traced
    if scale not in told.scales:
        for what in mismatches_of(found, found.ranks):
            raise DataError(
                f"{scale}: the formulas do not fit each other: {what}",
                hint=f"add a trace of {scale}, which decides between formulas",
            )
    return found


class _OpenError(DataError):
    """Formulas fit all traces and differ at a scale, or are rounded there in an unknown way."""


def _deciding(told: ScalableSpecification, scale: Scale) -> str:
    """Return the least number of processes at which a trace decides between formulas."""
    traced = {one.processes for one in told.scales}
    for processes in range(min(traced), min(scale.processes, _MOST_TRIED)):
        if processes not in traced and told.order is not None:
            try:
                _Expansion(told, scale_at(told, processes), None).settle(is_whole=True)
            except DataError as cause:
                if isinstance(cause, _OpenError):
                    return f"add a trace of p = {processes}, which decides"
    return f"add a trace of {scale}, which decides"


def roundings(told: ScalableSpecification, scale: Scale) -> list[str]:
    """Return the sizes that are or may be rounded down to whole elements at a scale, in words."""
    found = []
    for line, (node, _) in enumerate(walk(told.body), 1):
        numbers = node.numbers.items() if isinstance(node, Step) else ()
        for field, number in numbers:
            # A line without ranks there may have no value.
            with suppress(Unfit):
                base, where = number.base, f"line {line} ({_name(told, node)})"
                if base.is_part(scale) and not base.is_rounding:
                    found.append(
                        f"{where}: {base} is {base.value(scale)} bytes, but if the program divides "
                        f"elements of {base.unit} bytes, as its sizes in the traces permit, "
                        f"{_first(told, base, scale)}"
                    )
                if base.is_rounded(scale):
                    exact, size = float(base.exact(scale)), base.value(scale)
                    found.append(
                        f"{where}: {field} is {exact:.1f}, rounded down to {size}, which is whole "
                        f"elements of {base.unit} bytes"
                    )
    return found


def _first(told: ScalableSpecification, base: Quantity, scale: Scale) -> str:
    """Return the least number of processes at which a trace shows how a size is divided."""
    traced = {one.processes for one in told.scales}
    for processes in range(min(traced), scale.processes):
        with suppress(DataError, Unfit):
            if processes not in traced and base.is_part(scale_at(told, processes)):
                return f"a trace of p = {processes} decides"
    return f"a trace of {scale} decides"


@dataclass
class _Known:
    """The common part of all operations of a node: its ranks, and the rounds of each rank."""

    chosen: BoolArray
    rounds: Int64Array


_Where: TypeAlias = "Sequence[tuple[int, tuple[int, ...], dict[str, Int64Array]]]"
"""Ranks, their rounds of loops around, and their partners."""

_Row: TypeAlias = Callable[[int, Step, tuple[int, ...]], npt.NDArray[Any]]
"""From a rank, a step and the rounds of loops around to the rows of all rounds."""


class _Expansion:
    def __init__(self, told: ScalableSpecification, scale: Scale, times: Times | None) -> None:
        self._told, self._scale, self._times = told, scale, times
        self._bands = {} if times is None else times.bands(scale)
        self._lines: dict[int, int] = {}
        p, *traced = (one.processes for one in (scale, *told.scales))
        self._classes: dict[int, Int64Array] = {}
        self._ranks = np.arange(scale.processes)
        self._has_elements = told.has_elements
        self._is_cut = bool(p & (p - 1)) and not any(x & (x - 1) for x in traced)
        self._known: dict[int, _Known] = {}
        self._chosen: dict[tuple[int, str], Number] = {}
        for line, (node, _) in enumerate(walk(told.body), 1):
            self._lines[id(node)] = line
            try:
                self._known[id(node)] = self._know(node)
            except Unfit as cause:
                raise self._refusal(line, node, cause) from None

    def traced(self) -> Traced:
        """Return the operations of all ranks."""
        communicators = tuple(self._communicator(k) for k in range(len(self._told.groups)))
        total = sum(self._operations(self._told.body))
        if total > _MOST_OPERATIONS:
            raise DataError(
                f"{self._scale}: {total} operations are more than {_MOST_OPERATIONS}",
                hint="choose fewer processes, or write the program for any number",
            )
        self.settle()
        ranks = tuple(self._of_rank(rank) for rank in self._ranks.tolist())
        shapes = list(self._told.shapes)
        for number, sizes in self._told.grids.items():
            grid = tuple(size.value(self._scale) for size in sizes)
            shapes[number] = msgspec.structs.replace(shapes[number], grid=grid)
        return Traced(
            self._told.program, 0, tuple(shapes), communicators, ranks, dict(self._told.left_out)
        )

    def _know(self, node: Node) -> _Known:
        forms = tuple(node.forms.values()) if isinstance(node, Step) else ()
        of = known_places(self._scale, self._ranks, forms)
        chosen = node.condition.holds(self._scale, of)
        for other in node.condition.others:
            differs = chosen != other.holds(self._scale, of)
            if differs.any():
                raise self._ambiguous(node, _text(node.condition), _text(other))
        rounds = np.ones(len(self._ranks), np.int64)
        if isinstance(node, Loop):
            n = len(self._ranks)
            of = features(self._scale, self._ranks, ())

            def counted(number: Number) -> Int64Array:
                own = number.values(self._scale, of, n)
                if (own[chosen] < 0).any():
                    raise Unfit(f"rounds are {int(own[chosen].min())}")
                return own

            rounds = counted(self._settled(node, node.rounds, counted))
        elif self._scale.x % self._scale.y and Form(Relation.TRANSPOSED) in forms:
            raise Unfit("x is no multiple of y, so that places have no transposed ones")
        return _Known(chosen, rounds)

    def _settled(self, node: Node, number: Number, of: Callable[[Number], Int64Array]) -> Number:
        """Return the number that fits all traces and has values here.

        Raises
        ------
        _OpenError
            If several have, and the values differ.
        Unfit
            If none has.
        """
        found: list[tuple[Number, Int64Array]] = []
        reasons = []
        for one in (number, *number.others):
            try:
                found.append((one, of(one)))
            except Unfit as cause:
                reasons.append(cause)
                if cause.is_open and found:
                    raise self._ambiguous(node, str(found[0][0]), str(one)) from None
        if not found or (reasons and reasons[0].is_open):
            raise reasons[0]
        for other, own in found[1:]:
            if (own != found[0][1]).any():
                raise self._ambiguous(node, str(found[0][0]), str(other))
        return found[0][0]

    def settle(self, *, is_whole: bool = False) -> None:
        """Choose between numbers that fit all traces; compute also those without others if whole.

        Raises
        ------
        DataError
            If numbers differ here, or if none has a value.
        """
        for node, around in walk(self._told.body):
            if not isinstance(node, Step):
                continue
            ranks = np.flatnonzero(self._known[id(node)].chosen).tolist()
            peers: list[dict[str, Int64Array]] = [{} for _ in ranks]
            counts = [tuple(int(self._known[id(x)].rounds[r]) for x in around) for r in ranks]
            fields = self._fields(node)
            most = max(
                (k for k, x in enumerate(fields, 1) if is_whole or node.numbers[x].others),
                default=0,
            )
            for field in fields[:most]:
                where = list(zip(ranks, counts, peers, strict=True))

                try:
                    everybody = partial(self._columns, node, field, where)
                    chosen = self._settled(node, node.numbers[field], everybody)
                    self._chosen[id(node), field] = chosen
                    if field in node.forms:
                        for rank, count, own in where:
                            own[field] = self._column(node, field, chosen, rank, count, own)
                except Unfit as cause:
                    raise self._refusal(self._lines[id(node)], node, cause) from None

    def _columns(self, step: Step, field: str, where: _Where, number: Number) -> Int64Array:
        parts = [self._column(step, field, number, *at) for at in where]
        return np.concatenate([np.empty(0, np.int64), *parts])

    @staticmethod
    def _fields(step: Step) -> list[str]:
        """Return the fields of a step, partners first, because other numbers depend on them."""
        return sorted(step.numbers, key=lambda name: name not in step.forms)

    def _column(
        self, step: Step, field: str, number: Number, rank: int, counts: tuple[int, ...],
        peers: Mapping[str, Int64Array],
    ) -> Int64Array:  # fmt: skip
        """Return a field of a rank in all rounds.

        Raises
        ------
        Unfit
            If a value is out of range.
        """
        n = size_of(counts)
        ranks = np.full(n, rank)
        of: dict[str, Int64Array] = {}
        if number.features:
            of = features(self._scale, ranks, list(np.indices(counts).reshape(len(counts), n)))
            end = next((x for x in self._told.shapes[step.shape].ends if field in x), None)
            if end is not None and end.peer in peers:
                of[PEER] = peers[end.peer]
            in_tree = any(form.relation in POWERS for form in step.forms.values())
            if field in {"bytes", "received"} and in_tree and self._is_cut:
                raise Unfit("sizes in a tree of another number than a power of two are in no trace")
        base = number.base
        if self._has_elements and base.is_part(self._scale) and not base.is_rounding:
            raise Unfit(f"{base} is no whole number of elements of {base.unit} bytes", is_open=True)
        column = number.values(self._scale, of, n)
        if field in step.forms:
            column = step.forms[field].peers(self._scale, ranks, column)
            if (column < 0).any():
                raise Unfit(f"rank {rank} has no partner")
        elif (column < 0).any() or (field == "root" and (column >= self._scale.processes).any()):
            raise Unfit(f"{field} is {int(column.min() if (column < 0).any() else column.max())}")
        return column

    def _operations(self, nodes: Sequence[Node]) -> list[int]:
        """Return the operations of all ranks in each node."""
        found = []
        for node in nodes:
            known = self._known[id(node)]
            if isinstance(node, Step):
                found.append(int(known.chosen.sum()))
            else:
                most = int((known.rounds * known.chosen).max(initial=0))
                found.append(most * sum(self._operations(node.body)))
        return found

    def _communicator(self, number: int) -> Communicator:
        group = self._told.groups[number]
        of = known_places(self._scale, self._ranks, ())
        members = self._ranks[group.members.holds(self._scale, of)]
        try:
            colors = group.division.colors(self._scale)
        except Unfit as cause:
            raise DataError(
                f"{self._scale}: {group.name}: {cause}", hint="choose another number of processes"
            ) from None
        return Communicator(group.name, grouped(colors, members) if len(members) else ())

    def _of_rank(self, rank: int) -> Recorded:
        rows = self._unrolled(rank, self._operation, (1 + len(FIELDS),))
        shapes, values = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1:])
        if self._times is None:
            return Recorded(shapes, values)
        seconds = self._unrolled(rank, self._seconds, dtype=np.float64)
        last = self._seconds_of(ENDING, self._ranks, rank, ())
        # Nobody has measured the calls.
        return Recorded(shapes, values, seconds, np.zeros(len(shapes)), float(last[0]))

    def _unrolled(
        self, rank: int, row: _Row, width: tuple[int, ...] = (), dtype: npt.DTypeLike = np.int64
    ) -> npt.NDArray[Any]:
        def rounds_of(node: Node) -> int | None:
            known = self._known[id(node)]
            return int(known.rounds[rank]) if known.chosen[rank] else None

        body, own = self._told.body, partial(row, rank)
        rows: npt.NDArray[Any] = unrolled(body, rounds_of, own, width, dtype)[0]
        return rows

    def _seconds(self, rank: int, step: Step, counts: tuple[int, ...]) -> FloatArray:
        chosen = np.flatnonzero(self._known[id(step)].chosen)
        return self._seconds_of(self._lines[id(step)], chosen, rank, counts)

    def _seconds_of(
        self, line: int, ranks: Int64Array, rank: int, counts: tuple[int, ...]
    ) -> FloatArray:
        assert self._times is not None
        if line not in self._classes:
            self._classes[line] = self._times.classes(line, self._scale, ranks)
        classes = self._classes[line]
        group = classes[np.searchsorted(ranks, rank)]
        members = ranks[classes == group]
        place = int(np.searchsorted(members, rank))
        return self._times.seconds(self._bands, line, int(group), place, len(members), counts)

    def _operation(self, rank: int, step: Step, counts: tuple[int, ...]) -> Int64Array:
        rows = np.zeros((size_of(counts), 1 + len(FIELDS)), np.int64)
        rows[:, 0] = step.shape
        peers: dict[str, Int64Array] = {}
        for field in self._fields(step):
            number = self._chosen.get((id(step), field), step.numbers[field])
            try:
                column = self._column(step, field, number, rank, counts, peers)
            except Unfit as cause:
                raise self._refusal(self._lines[id(step)], step, cause) from None
            if field in step.forms:
                peers[field] = column
            rows[:, 1 + FIELDS.index(field)] = column
        return rows

    def _ambiguous(self, node: Node, one: str, other: str) -> DataError:
        return _OpenError(
            f"{self._scale}: line {self._lines[id(node)]} ({_name(self._told, node)}): "
            f"{one} and {other} fit all traces, and differ here",
            hint="",
        )

    def _refusal(self, line: int, node: Node, cause: Unfit) -> DataError:
        told = f"{self._scale}: line {line} ({_name(self._told, node)}): {cause}"
        if cause.is_open:
            return _OpenError(told, hint=", or give --element if it is a size")
        return DataError(told, hint="choose another number of processes or grid, or add its trace")


def _name(told: ScalableSpecification, node: Node) -> str:
    step = node
    while isinstance(step, Loop):
        step = step.body[0]
    shape = told.shapes[step.shape]
    path = "/".join((*shape.site[1:], shape.call or shape.name or str(shape.kind)))
    return printable(path) if step is node else f"loop around {printable(path)}"


def _text(condition: Condition) -> str:
    return condition.text(TEXT_NAMES) or "everybody"


TEXT_NAMES = {
    "rank": "rank", "x": "ix", "y": "iy", "z": "iz", "peer": "partner",
    "p": "p", "size x": "x", "size y": "y", "size z": "z",
}  # fmt: skip
"""Names of places and sizes in texts and programs."""
