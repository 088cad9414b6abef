"""Generator of a C program for any number of processes, which it takes from MPI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files

import msgspec

from callpath_modeler.errors import DataError
from callpath_modeler.printable import c_comment
from cpmodel_commspec.collectives import Form
from cpmodel_commspec.formulas import variable
from cpmodel_commspec.generators.c.functions import CFunctions
from cpmodel_commspec.generators.statements import operation
from cpmodel_commspec.operations import COLLECTIVES, Kind, Mode, Shape
from cpmodel_commspec.scalable.c_formulas import Formulas
from cpmodel_commspec.scalable.conditions import Condition
from cpmodel_commspec.scalable.forms import Relation
from cpmodel_commspec.scalable.groups import BLOCKS
from cpmodel_commspec.scalable.numbers import Number
from cpmodel_commspec.scalable.places import PEER
from cpmodel_commspec.scalable.scales import AXES, Order
from cpmodel_commspec.scalable.specification import (
    Group,
    Loop,
    Node,
    ScalableSpecification,
    Step,
    walk,
)
from cpmodel_commspec.scalable.text import is_world, summary
from cpmodel_commspec.scalable.times import ENDING, Key, Times
from cpmodel_commspec.text import functions_text

_STEP = "    "
_INSTEAD = "write the program of one number of processes with --at P"
_EVEN = {
    1: "",
    2: "    for (a = 1; p % a || p / a > a; a++)\n        ;\n    b = p / a;\n",
    3: """    for (a = 1;; a++) {
        for (b = 1; b <= a && p % a == 0 && (p / a % b || p / a / b > b); b++)
            ;
        if (p % a == 0 && b <= a)
            break;
    }
    c = p / a / b;
""",
}
_DOUBLINGS, _PER_DOUBLING = 17, 4
"""Numbers of processes with predicted times: up to 131072."""

_MOST_DEPTH = 8
"""Loops in each other, whose variables differ from x, y and z."""


def scalable_source(told: ScalableSpecification, times: Times | None = None) -> str:
    """Return the program; with `times`, it computes as long as the models predict.

    Raises
    ------
    DataError
        If the program cannot express an operation.
    """
    functions = CFunctions(can_lower=False)
    own = files("cpmodel_commspec.scalable").joinpath("functions.c").read_text(encoding="utf-8")
    functions.read(own)
    writer = _Writer(told, functions, times)
    body = "".join(writer.statements(told.body, 1))
    if times is not None:
        body += f"{_STEP}compute({ENDING}, predicted[{times.keys.index(Key(ENDING))}]);\n"
    check = "".join(writer.checks())
    communicators = "".join(writer.communicators())
    functions.use("reasons")
    begin = functions.text("scalable_begin").replace(
        "@communicators@", str(max(1, len(told.groups)))
    )
    parts = [
        _heading(told),
        begin,
        *functions.used(),
        *([predicted_times(told, times, functions.text("predicted_times"))] if times else []),
        f"static void make_communicators(void)\n{{\n{communicators}}}\n",
        _check(check),
        f"static void communicate(void)\n{{\n{body}}}\n",
        _end(told, functions.text("scalable_end"), is_timed=times is not None),
    ]
    return "\n".join(parts)


class _Writer:
    """Writer of statements, checks and communicators."""

    def __init__(
        self, told: ScalableSpecification, functions: CFunctions, times: Times | None
    ) -> None:
        self._rows = {} if times is None else {key: k for k, key in enumerate(times.keys)}
        self._told, self._functions = told, functions
        self._formulas = Formulas(functions, told.dimensions)
        self._lines = {id(node): line for line, (node, _) in enumerate(walk(told.body), 1)}

    def statements(self, nodes: Sequence[Node], depth: int) -> Iterator[str]:
        """Yield the statements of nodes."""
        if depth > _MOST_DEPTH:
            raise DataError("no program: loops lie in each other too deeply", hint=_INSTEAD)
        indent = _STEP * depth
        for node in nodes:
            line = self._lines[id(node)]
            guard = self._guard(node, line)
            if isinstance(node, Loop):
                name, rounds = variable(depth - 1), self._formulas.number(node.rounds, line)
                yield f"{indent}{guard}for (long {name} = 0; {name} < {rounds}; {name}++) {{\n"
                yield from self.statements(node.body, depth + 1)
                yield f"{indent}}}\n"
                continue
            shape = self._told.shapes[node.shape]
            words = functions_text(shape)
            place = f" /* {c_comment(words)} */" if words else ""
            call = self._timed(self._call(node, shape, line), line, depth)
            yield f"{indent}{guard}{call}{place}\n"

    def _timed(self, call: str, line: int, depth: int) -> str:
        """Return a call with the computation before it."""
        if Key(line) in self._rows:
            row = str(self._rows[Key(line)])
        elif Key(line, True) in self._rows:
            first, usual = self._rows[Key(line, True)], self._rows[Key(line, False)]
            row = f"{variable(depth - 2)} == 0 ? {first} : {usual}"
        else:
            return call
        return f"LINE({line}, {row}, {call});"

    def _guard(self, node: Node, line: int) -> str:
        peer = ""
        if isinstance(node, Step) and len(node.forms) == 1:
            [(field, form)] = node.forms.items()
            if form.relation is Relation.TRANSPOSED:
                peer = self._formulas.partner(
                    form, self._formulas.number(node.numbers[field], line), line
                )
        formula = self._formulas.condition(node.condition, peer)
        return f"if ({formula}) " if formula else ""

    def _call(self, step: Step, shape: Shape, line: int) -> str:
        where = "/".join((*shape.site[1:], shape.call))
        if shape.name == Mode.BUFFERED:
            raise DataError(
                f"no program: {where} sends with a buffer of unknown size", hint=_INSTEAD
            )
        if shape.kind in COLLECTIVES and shape.form is Form.TOTAL:
            raise DataError(
                f"no program: {where} moves different sizes on different ranks", hint=_INSTEAD
            )
        if shape.kind is Kind.HANDLE:
            return self._handle(step, shape, line)
        peers, known = {}, {}
        for field, form in step.forms.items():
            if form.relation is Relation.ANY:
                continue
            peers[field] = self._formulas.partner(
                form, self._formulas.number(step.numbers[field], line), line
            )
            known[PEER] = peers[field]
        numbers = {
            field: self._formulas.number(number, line, known)
            for field, number in step.numbers.items()
            if field not in step.forms
        }
        if len(peers) < len(step.forms):
            return self._from_any(shape, numbers, where)
        return operation(self._functions, shape, numbers, peers, "MPI_PROC_NULL")

    def _from_any(self, shape: Shape, numbers: dict[str, str], where: str) -> str:
        if shape.kind is Kind.EXCHANGE:
            raise DataError(
                f"no program: {where} exchanges messages with any source", hint=_INSTEAD
            )
        name = "start_to_receive_any" if shape.kind is Kind.IRECV else "receive_any"
        return self._functions.call(name, str(shape.comm), numbers["tag"])

    def _handle(self, step: Step, shape: Shape, line: int) -> str:
        from cpmodel_commspec.generators.statements import HANDLES

        name = HANDLES.get(shape.name.lower(), "duplicate")
        if name != "cart_create":
            return self._functions.call(name, str(shape.comm))
        sizes = self._told.grids.get(step.shape, ())
        grid = [self._formulas.quantity(size, line) for size in sizes]
        lengths = ", ".join(f"abs((int)({size}))" for size in grid)
        periodic = ", ".join(f"{size} < 0" for size in grid)
        return self._functions.call(
            name, str(shape.comm), str(len(grid)), f"(int[]){{{lengths}}}", f"(int[]){{{periodic}}}"
        )

    def checks(self) -> Iterator[str]:
        """Yield statements that note what p does not permit, and the room for messages."""
        seen: set[str] = set()
        for node, around in walk(self._told.body):
            for text in self._checks(node, around):
                if text not in seen:
                    seen.add(text)
                    yield f"{_STEP}{text}\n"

    def _checks(self, node: Node, around: tuple[Loop, ...]) -> Iterator[str]:
        line = self._lines[id(node)]
        numbers = [node.rounds] if isinstance(node, Loop) else list(node.numbers.values())
        if isinstance(node, Step) and any(
            x.relation is Relation.TRANSPOSED for x in node.forms.values()
        ):
            yield f"if (x % y)\n        refuse({line}, TRANSPOSED);"
        for number in numbers:
            for quantity in number.quantities():
                text = self._formulas.quantity(quantity, line)
                if "logarithm(" in text or ("whole(" in text and not quantity.unit):
                    yield f"(void)({text});"
            for other in number.others:
                one = self._formulas.quantity(number.base, line)
                yield self._functions.call(
                    "same", one, self._formulas.quantity(other, line), str(line)
                )
        for alternative in node.condition.others:
            yield from self._same(node.condition, alternative, line)
        if isinstance(node, Step):
            yield from self._room(node, around, line)

    def _same(self, one: Condition, other: Condition, line: int) -> Iterator[str]:
        first, second = self._formulas.condition(one), self._formulas.condition(other)
        if first and second and "partner" not in first + second:
            yield self._functions.call("same", f"({first})", f"({second})", str(line))

    def _room(self, step: Step, around: tuple[Loop, ...], line: int) -> Iterator[str]:
        shape = self._told.shapes[step.shape]
        times = (
            self._size(self._told.groups[shape.comm], line) if shape.kind in COLLECTIVES else "1"
        )
        last = {
            variable(depth): f"({self._formulas.number(loop.rounds, line)} - 1)"
            for depth, loop in enumerate(around)
        }
        for field in ("bytes", "received"):
            number = step.numbers.get(field)
            if number is None:
                continue
            for told in {str(x): x for x in (number, _least(number))}.values():
                text = self._formulas.number(told, line, last)
                yield self._functions.call("need", text, times, str(line))

    def _size(self, group: Group, line: int) -> str:
        """Return the number of ranks in a communicator."""
        division = group.division
        if division.kept is None:
            number = self._formulas.quantity(division.number, line)
            return number if division.layout == BLOCKS else f"p / ({number})"
        sizes = [AXES[k] for k in division.kept if k < self._told.dimensions]
        return " * ".join(sizes) or "1" if len(sizes) < self._told.dimensions else "p"

    def communicators(self) -> Iterator[str]:
        """Yield statements that make the communicators."""
        for number, group in enumerate(self._told.groups):
            if is_world(group, self._told.dimensions):
                yield f"{_STEP}keep({number}, MPI_COMM_WORLD);\n"
                continue
            self._functions.use("divide")
            color = self._color(group)
            condition = self._formulas.condition(group.members)
            if condition:
                color = f"{condition} ? {color} : -1"
            yield f"{_STEP}divide({number}, {color}, rank); /* {c_comment(group.name)} */\n"

    def _color(self, group: Group) -> str:
        division = group.division
        if division.kept is None:
            number = self._formulas.quantity(division.number, 0)
            return f"(int)(rank {'/' if division.layout == BLOCKS else '%'} ({number}))"
        self._functions.use("rank_at")
        places = ["0" if k in division.kept else f"i{axis}" for k, axis in enumerate(AXES)]
        return f"rank_at({', '.join(places)})"


def _least(number: Number) -> Number:
    """Return a number without its features, which may decrease it."""
    return msgspec.structs.replace(number, factors={}, modulus=None)


def predicted_times(told: ScalableSpecification, times: Times, text: str) -> str:
    """Return the part of a program with the predicted seconds of each line."""
    points = 1 + _DOUBLINGS * _PER_DOUBLING
    root = 2 ** (1 / _PER_DOUBLING)
    found = times.values([root**k for k in range(points)])
    rows = (f"    {{{', '.join(f'{x:.4g}' for x in row)}}},\n" for row in found.tolist())
    values = {
        "lines": str(told.lines),
        "points": str(points),
        "per_doubling": str(_PER_DOUBLING),
        "root": repr(root),
        "rows": "".join(rows),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _check(statements: str) -> str:
    return (
        "/* Return 0 if every formula has a value, or the exit status. */\n"
        "static int check(void)\n{\n    long worst;\n" + statements
        + "    PMPI_Allreduce(&wrong, &worst, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);\n"
        "    if (worst && rank == 0)\n"
        '        fprintf(stderr, "%ld processes (%ld x %ld x %ld): line %ld: %s\\n", p, x, y, z,\n'
        "                (worst - 1) / REASONS, reasons[(worst - 1) % REASONS]);\n"
        "    return worst ? 2 : 0;\n}\n"
    )  # fmt: skip


def _heading(told: ScalableSpecification) -> str:
    lines = [
        *summary(told),
        "",
        "    mpicc -O2 -o communicate THIS_FILE.c",
        "    mpirun -n P ./communicate"
        + f" --grid {','.join('XYZ'[: told.dimensions])}" * (told.dimensions > 1),
        "",
        "Without a grid, the program takes the most even one."
        * (told.dimensions > 1 and told.order is not None),
    ]
    return "/*\n" + "".join(f" * {c_comment(line)}".rstrip() + "\n" for line in lines) + " */"


def _end(told: ScalableSpecification, text: str, *, is_timed: bool) -> str:
    n = told.dimensions
    sizes = ["a", "b", "c"][:n]
    falling = sizes if told.order is Order.DOWN else sizes[::-1]
    order = [
        f"    {axis} = {size};\n" for axis, size in zip(AXES, [*falling, "1", "1"], strict=False)
    ]
    values = {
        "even": _EVEN[n] if told.order is not None else "",
        "order": "".join(order),
        "has_rule": str(int(n == 1 or told.order is not None)),
        "scan": ",".join(["%ld"] * n),
        "given": ", ".join(f"&given[{k}]" for k in range(n)),
        "dimensions": str(n),
        "axes": ",".join("XYZ"[:n]),
        "start_timers": f"{_STEP}start_timers();\n" * is_timed,
        "print_times": f"{_STEP}print_times();\n" * is_timed,
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text
