"""A specification for any number of processes, for people: one line per loop and operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

import numpy as np
from msgspec.structs import replace
from rich.text import Text

from callpath_modeler.arrays import Int64Array
from callpath_modeler.diagnostics import Finding
from callpath_modeler.printable import printable
from callpath_modeler.report.layout import wrap
from callpath_modeler.units import counted, interval, quantity
from cpmodel_commspec.formulas import variable
from cpmodel_commspec.operations import Shape
from cpmodel_commspec.scalable.conditions import Condition, known_places
from cpmodel_commspec.scalable.expansion import TEXT_NAMES
from cpmodel_commspec.scalable.extrapolation import Extrapolated
from cpmodel_commspec.scalable.forms import Relation, form_text
from cpmodel_commspec.scalable.scales import AXES, Order, Scale
from cpmodel_commspec.scalable.specification import (
    Group,
    Loop,
    Node,
    ScalableSpecification,
    Step,
)
from cpmodel_commspec.scalable.times import Key
from cpmodel_commspec.specification import walk
from cpmodel_commspec.text import action_text, functions_text, usual

_STEP = "  "
_SHARE = 0.05
"""Share of the longest computation, below which a line is not told."""

_GROWS = 1.2
"""Growth of the computation of one rank that is told."""

_LEAST = 1e-6
"""Seconds, below which a line is not told."""


def scalable_text(told: ScalableSpecification, width: int | None) -> list[Text]:
    """Return a specification as lines, wrapped to `width` cells."""
    lines = []
    for line in (*summary(told), *(_group(group, told.dimensions) for group in _named(told))):
        lines += wrap(line, width, indent=2 * _STEP)
    lines.append(Text())
    for depth, line in _body(told, told.body, 0):
        indent = _STEP * depth
        lines += wrap(indent + line, width, indent=indent + 2 * _STEP)
    return lines


def summary(told: ScalableSpecification) -> Iterator[str]:
    """Yield what a specification says in short."""
    name = told.program.rpartition("/")[2] or "communication"
    traces = ", ".join(str(scale.processes) for scale in told.scales)
    lines = counted(told.lines, "line")
    yield f"{name}: {lines} that fit any number of processes, exact for p = {traces}"
    if told.dimensions > 1:
        grids = ", ".join(
            f"({', '.join(map(str, x.sizes[: told.dimensions]))})" for x in told.scales
        )
        rule = {
            Order.UP: "the most even grid, the smallest size first",
            Order.DOWN: "the most even grid, the largest size first",
            None: "no rule",
        }[told.order]
        axes = ", ".join(AXES[: told.dimensions])
        ranks = "ix + x * iy" if told.dimensions == 2 else "ix + x * (iy + y * iz)"
        yield f"grid ({axes}): {grids} in the traces ({rule}); rank = {ranks}"
    for what, count in told.left_out.items():
        yield f"left out: {count} {what}"


def _named(told: ScalableSpecification) -> Iterator[Group]:
    """Yield the communicators that are not of all ranks."""
    yield from (group for group in told.groups if not is_world(group, told.dimensions))


def is_world(group: Group, dimensions: int) -> bool:
    """Tell whether a communicator has all ranks."""
    kept = group.division.kept
    return kept is not None and set(range(dimensions)) <= set(kept) and not group.members.atoms


def _group(group: Group, dimensions: int) -> str:
    condition = words(group.members)
    who = f" ({condition})" if condition else ""
    if group.division.kept is None:
        number = group.division.number
        what = (
            f"blocks of {number} ranks"
            if group.division.layout == "blocks"
            else f"every {number}th rank"
        )
        return f"{group.name}: {what}{who}"
    axes = [AXES[k] for k in group.division.kept if k < dimensions]
    return (
        f"{group.name}: ranks along {' and '.join(axes)}{who}"
        if axes
        else f"{group.name}: every rank alone"
    )


def bands_text(extrapolated: Extrapolated, scale: Scale) -> Iterator[str]:
    """Yield the predicted computation of each line of weight, with its band."""
    if extrapolated.times is None:
        return
    told = extrapolated.told
    bands = extrapolated.times.bands(scale).values()
    most = max(band.value for band in bands)
    for band in bands:
        ranks = _ranks(extrapolated, band.key, scale)
        if band.value < max(_SHARE * most, _LEAST) or not len(ranks):
            continue
        value = quantity(band.value, "s")
        about = f" ({interval(band.low, band.high, 's')})" if isfinite(band.high) else ""
        where = _where(told, band.key) + _who(ranks, scale)
        which = {None: "", True: ", first round", False: ", further rounds"}[band.key.is_first]
        yield f"{scale}: computes {value}{about} {where}{which}: {band.formula}"


def _line(told: ScalableSpecification, key: Key) -> Step | None:
    node = [node for node, _ in walk(told.body)][key.line - 1] if key.line else None
    return node if isinstance(node, Step) else None


def _where(told: ScalableSpecification, key: Key) -> str:
    step = _line(told, key)
    if step is None:
        return "after the last line"
    call = told.shapes[step.shape].call or told.shapes[step.shape].name
    return f"before line {key.line} ({printable(call)})"


def _ranks(extrapolated: Extrapolated, key: Key, scale: Scale) -> Int64Array:
    """Return the ranks of a class of a line."""
    assert extrapolated.times is not None
    ranks, step = np.arange(scale.processes), _line(extrapolated.told, key)
    if step is not None:
        forms = tuple(step.forms.values())
        ranks = ranks[step.condition.holds(scale, known_places(scale, ranks, forms))]
    found: Int64Array = ranks[extrapolated.times.classes(key.line, scale, ranks) == key.group]
    return found


def _who(ranks: Int64Array, scale: Scale) -> str:
    if len(ranks) == scale.processes:
        return ""
    return f" on rank {ranks[0]}" if len(ranks) == 1 else f" on {len(ranks)} ranks"


def growing(extrapolated: Extrapolated, scale: Scale) -> Iterator[Finding]:
    """Yield the computation of single ranks that grows with the number of processes."""
    if extrapolated.times is None:
        return
    last = extrapolated.told.scales[-1]
    before = extrapolated.times.bands(last)
    for key, band in extrapolated.times.bands(scale).items():
        ranks = _ranks(extrapolated, key, scale)
        if len(ranks) == 1 and band.value > max(_GROWS * before[key].value, _LEAST):
            where = _where(extrapolated.told, key)
            now, then = (quantity(x.value, "s") for x in (band, before[key]))
            what = f"rank {ranks[0]} computes {now} {where}, and {then} at {last}"
            yield Finding("CPM159", str(scale), what)


def words(condition: Condition) -> str:
    """Return who takes part, "" for everybody."""
    return condition.text(TEXT_NAMES).replace(" && ", " and ").replace("!(", "not (")


def _body(
    told: ScalableSpecification, nodes: Sequence[Node], depth: int
) -> Iterator[tuple[int, str]]:
    for node in nodes:
        condition = words(node.condition)
        who = f"{condition}: " if condition else "all: " * (not depth)
        if isinstance(node, Loop):
            name = variable(depth)
            last = replace(node.rounds, base=node.rounds.base.plus(-1))
            rounds = f"for {name} = 0 to {last}"
            yield depth, who + (rounds if node.is_counted(name) else f"repeat {node.rounds} times")
            yield from _body(told, node.body, depth + 1)
            continue
        shape = told.shapes[node.shape]
        place = f", in {functions_text(shape)}" if shape.functions else ""
        call = f" ({printable(shape.call)})" if shape.call and not usual(shape) else ""
        yield depth, f"{who}{_action(told, node, shape)}{call}{place}"


def _action(told: ScalableSpecification, step: Step, shape: Shape) -> str:
    group = told.groups[shape.comm] if shape.comm >= 0 else None
    where = group.name if group is not None and not is_world(group, told.dimensions) else ""
    numbers = {field: str(number) for field, number in step.numbers.items()}
    peers = {}
    for field, form in step.forms.items():
        peers[field] = (
            ""
            if form.relation is Relation.ANY
            else form_text(form, numbers[field], told.dimensions)
        )
        if form.relation is Relation.ANY:
            end = next(end for end in shape.ends if end.peer == field)
            del numbers[end.bytes]
    return action_text(shape, numbers, peers, where)
