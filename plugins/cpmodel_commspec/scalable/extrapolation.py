"""From traces of several numbers of processes to a specification for any number.

The programs of all ranks of all traces become one. The rounds of its loops may depend on the number
of processes. So loops of different traces become one although their counts differ, and operations
become the only round of a loop that other traces repeat.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable
from callpath_modeler.units import counted
from cpmodel_commspec.checking import differences
from cpmodel_commspec.compression import merging
from cpmodel_commspec.compression.loops import Loop, Node, compress
from cpmodel_commspec.operations import TOGETHER, Traced
from cpmodel_commspec.scalable import conditions
from cpmodel_commspec.scalable.building import Builder, Problem, Programs, UnexplainedError
from cpmodel_commspec.scalable.choice import Choice, Chooser
from cpmodel_commspec.scalable.conditions import Part
from cpmodel_commspec.scalable.expansion import expanded, roundings, scale_at
from cpmodel_commspec.scalable.quantities import Quantity, fit
from cpmodel_commspec.scalable.scales import common_order
from cpmodel_commspec.scalable.specification import (
    Division,
    Group,
    ScalableSpecification,
    kept,
    layouts,
)
from cpmodel_commspec.scalable.tables import Joint, Table, join, tabulated
from cpmodel_commspec.scalable.times import Times, times
from cpmodel_commspec.scalable.tokens import Tokens, tokens
from cpmodel_commspec.simulation.turns import answering, has_no_rule
from cpmodel_commspec.simulation.wildcards import answering_text, marked_as, resolved, suspected

_FEWEST_OF_TESTS = 4
"""Traces of which the largest tests the formulas of the others."""

_ONCE = 1
"""Cost of a loop of one round around lines."""


class ScalableMerger(merging.Merger):
    """Merge of programs.

    Parameters
    ----------
    trace_of : the trace of each program
    free : tokens that ranks of one trace may repeat a different number of times
    """

    gain, gain_of_equal, gain_of_rounds, joins_equal = 4, 1, 1, False

    def __init__(self, trace_of: Sequence[int], free: Collection[int]) -> None:
        self._trace_of, self._free = trace_of, free

    def _place(self, program: merging.Nodes, _length: int, number: int) -> tuple[int, ...]:
        """Return the sort key of a program: the one of most lines, of the largest trace."""
        return -merging.lines_of(program), -self._trace_of[number], number

    def _joins(
        self, one: merging.Nodes, other: merging.Nodes, a: int, b: int
    ) -> list[tuple[merging.Join, int]]:
        """Return the joins that end with the nodes before `a` and `b`, and what each is worth."""
        x, y = one[a - 1], other[b - 1]
        found = super()._joins(one, other, a, b)
        if isinstance(x, merging.Rounds) and not isinstance(y, merging.Rounds):
            for n in range(1, min(b, len(x.body)) + 1):
                gain = self._gain_once(x, other[b - n : b])
                if gain:
                    found.append((merging.Join(a - 1, a, b - n, b), gain))
        if isinstance(y, merging.Rounds) and not isinstance(x, merging.Rounds):
            for n in range(1, min(a, merging.lines_of(one)) + 1):
                gain = self._gain_once(y, one[a - n : a])
                if gain:
                    found.append((merging.Join(a - n, a, b - 1, b), gain))
        return found

    def _gain_once(self, loop: merging.Rounds, nodes: merging.Nodes) -> int:
        """Return what is won if nodes are a round of a loop; 0 if they are not."""
        if any(isinstance(node, merging.Rounds) for node in nodes):
            return 0
        if not self._is_free(loop) and len(nodes) != len(loop.body):
            return 0
        single = merging.as_loop(nodes)
        if not self._may_join(loop, single):
            return 0
        gain, joins = self._longest(loop.body, nodes)
        is_whole = sum(join.d - join.c for join in joins) == len(nodes)
        return gain - _ONCE if is_whole else 0

    def _may_join(self, one: merging.Rounds, other: merging.Rounds) -> bool:
        """Tell whether loops have equal rounds in each trace that has both, or free ones."""
        if self._is_free(one) or self._is_free(other):
            return True
        rounds: dict[int, set[int]] = {}
        for program, count in (*one.counts.items(), *other.counts.items()):
            rounds.setdefault(self._trace_of[program], set()).add(count)
        return all(len(own) == 1 for own in rounds.values())

    def _is_free(self, loop: merging.Rounds) -> bool:
        return any(
            isinstance(node, merging.Line) and node.token in self._free for node in loop.body
        )


def split(
    nodes: Sequence[Node], exponents: Int64Array, families: Collection[int]
) -> tuple[Node, ...]:
    """Return nodes with loops over series of partners apart from the loops around them.

    Folding sees no difference between three times two rounds and six rounds.

    Parameters
    ----------
    exponents : the number of the partner of each operation, once unrolled, [n]
    families : the operations whose partners are series
    """
    found: list[Node] = []
    begin = 0
    for node in nodes:
        length = _length(node)
        if isinstance(node, Loop):
            inner = length // node.count
            body = split(node.body, exponents[begin : begin + inner], families)
            place = _first(node.body, families)
            loop = Loop(node.count, body)
            own = exponents[begin + place : begin + length : inner]
            found.append(_loop(loop, own) if place >= 0 else loop)
        else:
            found.append(node)
        begin += length
    return tuple(found)


def _loop(loop: Loop, exponents: Int64Array) -> Loop:
    """Return a loop in an outer one if its numbers [rounds] start again after some rounds."""
    steps = np.diff(exponents)
    restarts = np.flatnonzero(steps != steps[:1]) + 1
    if not len(restarts):
        return loop
    period = int(restarts[0])
    if period == 1 or loop.count % period or (restarts % period).any():
        return loop
    return Loop(loop.count // period, (Loop(period, loop.body),))


def _first(body: Sequence[Node], families: Collection[int]) -> int:
    """Return the place of the first operation at a power of two in a round; -1 = none."""
    place = 0
    for node in body:
        if not isinstance(node, Loop) and node in families:
            return place
        place += _length(node)
    return -1


def _length(node: Node) -> int:
    return node.count * sum(map(_length, node.body)) if isinstance(node, Loop) else 1


_HINT = (
    "trace further numbers of processes, or write the specification of one with cpmodel trace spec"
)


@dataclass(frozen=True, slots=True)
class Extrapolated:
    """A specification for any number of processes; `times` is None if a trace has none.

    Attributes
    ----------
    traces : those that it is of, the one of fewest processes first; partners take turns
    """

    told: ScalableSpecification
    times: Times | None
    traces: tuple[Traced, ...]


def extrapolate(
    traces: Sequence[Traced], element: int = 0, *, is_named: bool = False
) -> Extrapolated:
    """Return a specification that is exact for all traces, and models of the computation.

    Parameters
    ----------
    traces : three or more of one program, at different numbers of processes
    element : bytes of the elements to which sizes are rounded down; 0 = no size is rounded
    is_named : whether the user knows that receives name their sources unless they are marked

    Raises
    ------
    DataError
        If the traces do not belong together.
    UnexplainedError
        If lines have no formula: it names them.
    """
    if not is_named:
        traces = _with_any_source(traces)
    joint = join([_resolved(one) for one in traces])
    found = _extrapolated(joint, element)
    if len(traces) >= _FEWEST_OF_TESTS:
        _hold_out(joint, element)
    return found


def _hold_out(joint: Joint, element: int) -> None:
    """Raise `DataError` if smaller traces give another program than the largest one."""
    largest = joint.traces[-1]
    try:
        told = _extrapolated(join(joint.traces[:-1]), element).told
        scale = scale_at(told, len(largest.ranks))
        there = expanded(told, scale)
    except DataError:
        # They need the largest trace, and say so.
        return
    if roundings(told, scale):
        return
    for what in differences(there, largest):
        raise DataError(
            f"the smaller traces give another program of p = {len(largest.ranks)} ({what}), so "
            "that their formulas are not those of the program",
            hint=_HINT,
        )


def _extrapolated(joint: Joint, element: int) -> Extrapolated:
    """Return a specification that is exact for all traces."""
    tables, statements = tabulated(joint)
    chooser = Chooser(joint, tables, statements)
    choice = chooser.choice()
    found = tokens(tables, statements, choice, chooser)
    programs, sequences, begins = _programs(joint, tables, found)
    free = [number for number, meaning in enumerate(found.meanings) if meaning.is_free]
    merged = ScalableMerger(programs.trace_of, free).merge(sequences, begins)
    builder = Builder(joint, tables, choice, found, programs, element)
    body = builder.nodes(merged)
    problems = builder.problems
    groups = [
        _group(joint, choice, number, problems) for number in range(len(joint.communicators[0]))
    ]
    shapes = builder.shapes
    grids = _grids(joint, choice, shapes, problems)
    if problems:
        raise UnexplainedError(problems, _HINT)
    told = ScalableSpecification(
        joint.traces[-1].program,
        choice.scales,
        choice.dimensions,
        common_order(choice.scales, choice.dimensions),
        shapes,
        tuple(groups),
        grids,
        body,
        joint.traces[-1].left_out,
    )
    _verify(told, joint)
    return Extrapolated(told, times(joint.traces, choice.scales, builder.lines), joint.traces)


def _with_any_source(traces: Sequence[Traced]) -> Sequence[Traced]:
    """Return traces with the receives marked that answered messages show to be from any source.

    Raises
    ------
    DataError
        If their sources have an order that programs can name, too.
    """
    largest = max(traces, key=lambda one: len(one.ranks))
    told = suspected(largest)
    if told is largest:
        return traces
    marked = [marked_as(one, told.shapes) for one in traces]
    if any(has_no_rule(one, answering(one.shapes, one.ranks)) for one in marked):
        return marked
    paths = sorted(
        {"/".join((*shape.site[1:], shape.call)) for shape in told.shapes if shape.is_any}
    )
    raise DataError(
        f"{answering_text(answering(told.shapes, told.ranks))} in a fixed order, so the traces do "
        "not tell whether its receives name their sources or take the message that arrives first",
        hint=f"if they take the first, add --any-source '{printable(paths[0])}', else "
        "--named-sources",
    )


def _resolved(traced: Traced) -> Traced:
    """Return a trace with the sources of receives from any source.

    Raises
    ------
    DataError
        If the sources depend on the order of messages.
    """
    found = resolved(traced)
    p = len(traced.ranks)
    if found.no_turns:
        raise DataError(
            f"p = {p}: {answering_text(found.answering)}: {found.no_turns}",
            hint="cpmodel trace spec writes one number of processes, in the order of the trace",
        )
    if found.deadlock is not None:
        raise DataError(
            f"p = {p}: the program can hang if messages arrive in another order",
            hint="cpmodel trace spec names the ranks and lines",
        )
    return found.traced


def _programs(
    joint: Joint, tables: Sequence[Table], found: Tokens
) -> tuple[Programs, list[Sequence[Node]], list[list[tuple[int, ...]]]]:
    """Return the different sequences of ranks, folded, and what tells operations apart."""
    trace_of, ranks_of, sequences, begins = (
        [],
        [],
        list[Sequence[Node]](),
        list[list[tuple[int, ...]]](),
    )
    for k, table in enumerate(tables):
        known: dict[bytes, list[int]] = {}
        for rank in range(table.processes):
            own = found.of_traces[k][table.begins[rank] : table.begins[rank + 1]]
            known.setdefault(own.tobytes(), []).append(rank)
        for code, ranks in known.items():
            trace_of.append(k)
            ranks_of.append(np.array(ranks, np.int64))
            rows = np.arange(table.begins[ranks[0]], table.begins[ranks[0] + 1])
            folded = compress(np.frombuffer(code, np.int64).tolist())
            sequences.append(split(folded, found.given[k][rows, 0], found.families))
            begins.append([(x,) for x in _calls(joint, table, k, rows).tolist()])
    return Programs(trace_of, ranks_of), sequences, begins


def _calls(joint: Joint, table: Table, k: int, rows: Int64Array) -> Int64Array:
    """Return the number of each collective call of everybody, [n]; 0 for other operations."""
    everybody = [n for n, one in enumerate(joint.communicators[k]) if len(one.groups) == 1]
    is_call = np.array([x.comm in everybody and x.kind in TOGETHER for x in joint.shapes], np.bool_)
    here = is_call[table.shapes[rows]].astype(np.int64)
    calls: Int64Array = np.cumsum(here) * here
    return calls


def _group(joint: Joint, choice: Choice, number: int, problems: list[Problem]) -> Group:
    """Return the formula of a communicator."""
    ones = [own[number] for own in joint.communicators]
    parts = []
    for one, scale in zip(ones, choice.scales, strict=True):
        everybody = np.arange(scale.processes)
        own = np.isin(everybody, [rank for group in one.groups for rank in group])
        parts.append(Part(scale, everybody, own))
    members = conditions.find(parts, choice.dimensions)
    common = set.intersection(
        *(set(kept(one, scale)) for one, scale in zip(ones, choice.scales, strict=True))
    )
    if members is not None and common:
        return Group(ones[0].name, Division(max(common, key=len)), members)
    laid = [dict(layouts(one)) for one in ones]
    for layout in laid[0]:
        if all(layout in own for own in laid):
            fitted = fit(choice.scales, [own[layout] for own in laid], choice.dimensions)
            if fitted:
                return Group(ones[0].name, Division(None, layout, fitted[0]))
    sizes = (
        f"{counted(len(one.groups), 'group')} at {scale}"
        for one, scale in zip(ones, choice.scales, strict=True)
    )
    problems.append(Problem(0, ones[0].name, "who is in the communicator", ", ".join(sizes)))
    return Group(ones[0].name, Division((0, 1, 2)))


def _grids(
    joint: Joint, choice: Choice, shapes: Sequence[object], problems: list[Problem]
) -> dict[int, tuple[Quantity, ...]]:
    """Return the sizes of Cartesian communicators that calls make."""
    found = {}
    for number, grids in joint.grids.items():
        place = next(
            (k for k, x in enumerate(shapes) if x == joint.shapes[joint.sites[number]]), None
        )
        if place is None or len({len(grid) for grid in grids}) != 1:
            continue
        fitted = [
            fit(choice.scales, sizes, choice.dimensions) for sizes in zip(*grids, strict=True)
        ]
        if all(fitted):
            found[place] = tuple(own[0] for own in fitted)
        else:
            told = ", ".join(
                f"{grid} at {scale}" for grid, scale in zip(grids, choice.scales, strict=True)
            )
            problems.append(Problem(0, joint.shapes[number].call, "sizes of the grid", told))
    return found


def _verify(told: ScalableSpecification, joint: Joint) -> None:
    """Raise `DataError` if the program expands to other operations than a trace has."""
    for one, scale in zip(joint.traces, told.scales, strict=True):
        for what in differences(expanded(told, scale), one):
            raise DataError(f"{scale}: the formulas do not give the trace: {what}", hint=_HINT)
