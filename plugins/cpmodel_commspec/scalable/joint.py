"""Traces of several numbers of processes with common shapes and communicators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.units import counted
from cpmodel_commspec.compression.alignment import statements
from cpmodel_commspec.operations import Communicator, Recorded, Shape, Traced

_FEWEST = 3
_HINT = "give traces of one program, with one input, at three or more numbers of processes"


@dataclass(frozen=True, slots=True)
class Joint:
    """Traces with common definitions, the one of fewest processes first.

    Attributes
    ----------
    shapes : of all traces; a Cartesian communicator has no sizes
    sites : for each shape, the shape that stands for its statement, [shapes]
    communicators : of each trace, in a common order
    grids : sizes of the Cartesian communicators that a shape makes, by trace
    """

    traces: tuple[Traced, ...]
    shapes: tuple[Shape, ...]
    sites: Int64Array
    communicators: tuple[tuple[Communicator, ...], ...]
    grids: dict[int, tuple[tuple[int, ...], ...]]


def join(traces: Sequence[Traced]) -> Joint:
    """Return traces with common definitions.

    Raises
    ------
    DataError
        If the traces are too few, of equal numbers of processes, or of different programs.
    """
    ordered = sorted(traces, key=lambda one: len(one.ranks))
    sizes = [len(one.ranks) for one in ordered]
    _check_sizes(sizes)
    order = _communicator_order(ordered)
    shapes: dict[Shape, int] = {}
    joined, grids = [], dict[int, dict[int, tuple[int, ...]]]()
    for k, one in enumerate(ordered):
        comm = {old: new for new, old in enumerate(order[k])}
        number = []
        for shape in one.shapes:
            key = msgspec.structs.replace(shape, comm=comm.get(shape.comm, -1), grid=())
            number.append(shapes.setdefault(key, len(shapes)))
            if (
                shape.grid
                and grids.setdefault(number[-1], {}).setdefault(k, shape.grid) != shape.grid
            ):
                raise DataError(
                    f"{shape.call} makes grids of different sizes at p = {sizes[k]}", hint=_HINT
                )
        renumbered = np.array(number, np.int64)
        ranks = tuple(replace(x, shapes=renumbered[x.shapes]) for x in one.ranks)
        joined.append(
            replace(one, ranks=ranks, communicators=tuple(one.communicators[j] for j in order[k]))
        )
    common = tuple(shapes)
    joined = [replace(one, shapes=common) for one in joined]
    _check_programs(joined)
    sites = statements(_together(joined))
    whole = {
        k: tuple(of[j] for j in range(len(joined)))
        for k, of in grids.items()
        if len(of) == len(joined)
    }
    return Joint(tuple(joined), common, sites, tuple(one.communicators for one in joined), whole)


def _check_sizes(sizes: Sequence[int]) -> None:
    for one, other in pairwise(sizes):
        if one == other:
            raise DataError(f"two traces have {one} processes", hint=_HINT)
    if len(sizes) < _FEWEST:
        raise DataError(
            f"{counted(len(sizes), 'trace')} are too few: two give a formula and a third tests it"
            if len(sizes) > 1
            else "one trace is too few: two give a formula and a third tests it",
            hint=_HINT,
        )
    if sizes[0] < 2:
        raise DataError("a trace has only one process, so that nobody communicates", hint=_HINT)


def _communicator_order(traces: Sequence[Traced]) -> list[list[int]]:
    """Return for each trace its communicators in the common order: by name, or as defined."""
    names = [[one.name for one in trace.communicators] for trace in traces]
    if all(set(found) == set(names[0]) for found in names):
        return [[found.index(name) for name in names[0]] for found in names]
    if len({len(found) for found in names}) == 1:
        return [list(range(len(found))) for found in names]
    few, many = min(names, key=len), max(names, key=len)
    p = [len(traces[names.index(found)].ranks) for found in (few, many)]
    raise DataError(
        f"{counted(len(few), 'communicator')} at p = {p[0]} and {len(many)} at p = {p[1]}",
        hint=_HINT,
    )


def _check_programs(traces: Sequence[Traced]) -> None:
    """Raise `DataError` if most statements of a trace are in no other one."""
    called = []
    for one in traces:
        used = np.unique(np.concatenate([x.shapes for x in one.ranks]))
        called.append(
            {(one.shapes[k].kind, one.shapes[k].call, one.shapes[k].site) for k in used.tolist()}
        )
    for one, own in zip(traces, called, strict=True):
        shared = own & set().union(*(other for other in called if other is not own))
        if 2 * len(shared) < len(own):
            raise DataError(
                f"the trace of p = {len(one.ranks)} is of another program: "
                f"{len(own) - len(shared)} of {len(own)} calls are in no other trace",
                hint=_HINT,
            )


def _together(traces: Sequence[Traced]) -> Traced:
    """Return the traces as one, the ranks of each after those of the one before."""
    ranks: list[Recorded] = []
    groups: list[list[tuple[int, ...]]] = [[] for _ in traces[0].communicators]
    for one in traces:
        begin = len(ranks)
        for k, communicator in enumerate(one.communicators):
            groups[k] += [tuple(begin + rank for rank in group) for group in communicator.groups]
        ranks += one.ranks
    named = zip(traces[0].communicators, groups, strict=True)
    made = tuple(Communicator(one.name, tuple(found)) for one, found in named)
    return replace(traces[0], ranks=tuple(ranks), communicators=made)
