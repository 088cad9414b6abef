"""A specification for people: one line per loop and operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from callpath_modeler.printable import printable
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.layout import wrap
from callpath_modeler.units import counted, interval, percent, quantity
from cpmodel_commspec import formulas
from cpmodel_commspec.collectives import Form
from cpmodel_commspec.communicators import layout, world_of
from cpmodel_commspec.computation import Share
from cpmodel_commspec.conditions import condition
from cpmodel_commspec.formulas import Table, Tables
from cpmodel_commspec.operations import COLLECTIVES, POSTED, Awaited, End, Kind, Mode, Shape
from cpmodel_commspec.specification import Loop, Node, Specification, Step

_MODES = {
    Mode.STANDARD: "",
    Mode.SYNCHRONOUS: "synchronously ",
    Mode.BUFFERED: "buffered ",
}
_STEP = "  "
_SHOWN = 4
"""Functions of a statement that a line shows."""

_LEAST_SHARE = 0.01
"""Share of all computation from which on a line shows it, and of the slowest ranks."""


_USUAL = {
    Kind.SEND: {"MPI_Send", "MPI_Ssend", "MPI_Bsend"},
    Kind.ISEND: {"MPI_Isend", "MPI_Issend", "MPI_Ibsend"},
    Kind.RECV: {"MPI_Recv"},
    Kind.IRECV: {"MPI_Irecv"},
    Kind.EXCHANGE: {"MPI_Sendrecv"},
}


def specification_text(told: Specification, width: int | None) -> list[Text]:
    """Return a specification as lines, wrapped to `width` cells."""
    tables = Tables()
    body = list(_body(told, told.body, (), tables, _LEAST_SHARE * told.computing))
    lines = []
    for line in (*summary(told), *_communicators(told)):
        lines += wrap(line, width, indent=2 * _STEP)
    lines.append(Text())
    for depth, line in body:
        indent = _STEP * depth
        lines += wrap(indent + line, width, indent=indent + 2 * _STEP)
    named = list(tables)
    if named:
        lines.append(Text())
    for table in named:
        for line in _table(table):
            lines += wrap(line, width, indent=2 * _STEP)
    return lines


def summary(told: Specification) -> Iterator[str]:
    """Yield what a specification says in short, and what it does not."""
    name = told.program.rpartition("/")[2] or "communication"
    yield (
        f"{name}: {counted(told.operations, 'operation')} of "
        f"{counted(told.processes, 'rank')} in {counted(told.lines, 'line')}"
    )
    sequences = (
        f"{told.programs} different sequences of operations"
        if told.programs > 1
        else "every rank does the same"
    )
    numbers = f", {counted(told.tabulated, 'number')} in tables" if told.tabulated else ""
    yield f"{counted(told.events, 'event')} in the trace; {sequences}{numbers}"
    if told.is_timed:
        share = told.computing / (told.processes * told.seconds) if told.seconds else 0.0
        yield f"run time {quantity(told.seconds, 's')}, {percent(share)} of it computation"
    if told.from_any_source:
        yield (
            f"{counted(told.from_any_source, 'receive')} from any source; the sources here are one "
            "possible order of messages"
        )
    for what, count in told.left_out.items():
        yield f"left out: {count} {what}"


def _communicators(told: Specification) -> Iterator[str]:
    """Yield who is in each communicator, but for that of all, which is not named."""
    world = world_of(told.communicators, told.processes)
    for number, one in enumerate(told.communicators):
        found, size = layout(one), len(one.groups[0])
        if number == world:
            continue
        if found is None:
            groups = (" ".join(map(str, group)) for group in one.groups)
            yield f"{one.name}: " + " ".join(f"({group})" for group in groups)
        elif len(one.groups) == 1:
            yield f"{one.name}: {counted(size, 'rank')} in order"
        elif size == 1:
            yield f"{one.name}: every rank alone"
        else:
            yield f"{one.name}: {len(one.groups)} groups of {size} ranks, {found[0]}"


def _body(
    told: Specification, nodes: Sequence[Node], around: Sequence[Loop], tables: Tables,
    least: float,
) -> Iterator[tuple[int, str]]:  # fmt: skip
    """Yield lines with their depth; ranks are not named again where all of the loop take part.

    Parameters
    ----------
    least : seconds of all ranks and rounds; less computation than this is not told
    """
    depth = len(around)
    for node in nodes:
        same = depth > 0 and node.ranks == around[-1].ranks
        who = "" if same else f"{_who(node, told.processes)}: "
        if isinstance(node, Loop):
            name = formulas.variable(depth)
            rounds = f"for {name} = 0 to {node.count - 1}"
            counted_ = node.is_counted(depth)
            yield depth, who + (rounds if counted_ else f"repeat {node.count} times")
            yield from _body(told, node.body, (*around, node), tables, least)
            continue
        shape = told.shapes[node.shape]
        place = f", in {functions_text(shape)}" if shape.functions else ""
        call = f" ({printable(shape.call)})" if shape.call and not usual(shape) else ""
        before = _computation(node, least)
        yield depth, f"{who}{_action(told, node, shape, tables)}{call}{place}{before}"


def _computation(step: Step, least: float) -> str:
    """Return the computation before an operation; "" where it does not matter."""
    before = step.computing
    if before is None or before.total < least or not before.total:
        return ""
    first = f" ({_mean(before.first)} in first rounds)" if before.first else ""
    return f", after {_mean(before.usual)} of computation{first}"


def _mean(shares: Sequence[Share]) -> str:
    """Return the mean seconds of a round, from those of the shortest to those of the longest."""
    means = [share.seconds.mean for share in shares]
    low, high = min(means), max(means)
    if low < _LEAST_SHARE * high:
        return f"up to {quantity(high, 's')}"
    if quantity(low, "s") == quantity(high, "s"):
        return quantity(high, "s")
    return interval(low, high, "s")


def functions_text(shape: Shape) -> str:
    """Return the functions that make a call, shortened, in one line."""
    names = [short_name(name) for name in shape.functions]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _who(node: Node, processes: int) -> str:
    if len(node.ranks) == 1 < processes:
        return f"rank {node.ranks[0]}"
    told = condition(node.ranks, processes)
    if not told.listed:
        return formulas.condition(told, formulas.TEXT) or "all"
    parts = [f"{a}" if a == b else f"{a} to {b}" for a, b in formulas.stretches(told.listed)]
    return "ranks " + ", ".join(parts)


def _action(told: Specification, step: Step, shape: Shape, tables: Tables) -> str:
    is_world = shape.comm == world_of(told.communicators, told.processes)
    where = "" if is_world or shape.comm < 0 else told.communicators[shape.comm].name
    numbers = {
        field: formulas.number(expression, step.ranks, tables)
        for field, expression in step.numbers.items()
    }
    peers = {
        field: formulas.partner(told_as, numbers[field]) for field, told_as in step.partners.items()
    }
    return action_text(shape, numbers, peers, where)


def action_text(
    shape: Shape, numbers: Mapping[str, str], peers: Mapping[str, str], where: str
) -> str:
    """Return what an operation does, in words.

    Parameters
    ----------
    numbers, peers : formulas by the fields of the shape
    where : the name of the communicator; "" for the one of all ranks
    """
    if shape.kind is Kind.WAIT:
        return _waiting(shape)
    where = f", on {where}" if where else ""
    if shape.kind is Kind.HANDLE:
        return f"{shape.name}{where}"
    if shape.ends:
        mode = "" if shape.kind is Kind.EXCHANGE or not shape.name else _MODES[Mode(shape.name)]
        never = "" if shape.is_awaited else ", never waited for"
        words = "; ".join(_message(shape, end, numbers, peers[end.peer]) for end in shape.ends)
        exchange = "exchange: " if shape.kind is Kind.EXCHANGE else ""
        return f"{exchange}{mode}{words}{where}{never}"
    start = "start " if shape.kind is Kind.ICOLLECTIVE else ""
    size = f" {numbers['bytes']} bytes" if "bytes" in numbers else ""
    if shape.form is Form.TOTAL:
        size = f", {numbers['bytes']} bytes sent, {numbers['received']} received"
    in_place = " in place" if shape.form is Form.IN_PLACE else ""
    root = f", root {numbers['root']}" if "root" in numbers else ""
    return f"{start}{shape.name}{size}{in_place}{root}{where}"


def usual(shape: Shape) -> bool:
    """Tell whether a line names the MPI function without its name."""
    if shape.kind is Kind.HANDLE:
        return True
    if shape.kind is Kind.WAIT:
        is_one = shape.awaited is Awaited.CHOSEN and len(shape.places) == 1
        usual_names = {"MPI_Wait"} if is_one else {"MPI_Waitall"}
    elif shape.kind in COLLECTIVES:
        start = "I" if shape.kind is Kind.ICOLLECTIVE else ""
        usual_names = {f"MPI_{start}{shape.name}"}
    else:
        usual_names = _USUAL[shape.kind]
    return shape.call.lower() in {name.lower() for name in usual_names}


def _message(shape: Shape, end: End, numbers: Mapping[str, str], peer: str) -> str:
    if end.is_sent:
        verb, who = ("answer with", "") if shape.turn else ("send", f" to {peer}")
    else:
        verb = "receive"
        who = f" from {peer}"
        if shape.has_any_source:
            who = f" from any source{', here ' * bool(peer)}{peer}"
        elif shape.turn:
            who = " from this source"
    start = "start to " if shape.kind in POSTED else ""
    size = f" {numbers[end.bytes]} bytes" if end.bytes in numbers else ""
    return f"{start}{verb}{size}{who}, tag {numbers[end.tag]}"


def _waiting(shape: Shape) -> str:
    order = ", in any order" if shape.is_any_order else ""
    if shape.awaited is not Awaited.CHOSEN:
        return f"wait for {shape.awaited}{order}"
    if not shape.places:
        return "wait for nothing"
    if shape.places == (0,):
        return "wait for the oldest"
    return "wait for numbers " + " ".join(str(place + 1) for place in shape.places) + order


def _table(table: Table) -> Iterator[str]:
    if not table.ranks:
        yield f"{table.name}{_sizes(table.sizes)} = " + " ".join(map(str, table.numbers))
        return
    row = len(table.numbers) // len(table.ranks)
    if row == 1:
        pairs = zip(table.ranks, table.numbers, strict=True)
        yield f"{table.name}[rank] = " + " ".join(f"{rank}:{value}" for rank, value in pairs)
        return
    for k, rank in enumerate(table.ranks):
        numbers = table.numbers[k * row : (k + 1) * row]
        sizes = _sizes(table.sizes[1:])
        yield f"{table.name}[{rank}]{sizes} = " + " ".join(map(str, numbers))


def _sizes(sizes: Sequence[int]) -> str:
    return "".join(f"[{size}]" for size in sizes)
