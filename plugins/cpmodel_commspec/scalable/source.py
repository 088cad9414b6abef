"""Generator of a C program for any number of processes, which it takes from MPI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from math import lcm

import msgspec

from callpath_modeler.errors import DataError
from callpath_modeler.printable import c_comment
from cpmodel_commspec.collectives import Form as CollectiveForm
from cpmodel_commspec.formulas import variable
from cpmodel_commspec.generators import c_program
from cpmodel_commspec.generators.statements import HANDLES, Functions, operation
from cpmodel_commspec.operations import COLLECTIVES, Kind, Mode, Shape
from cpmodel_commspec.scalable.blocks import Block, Rule
from cpmodel_commspec.scalable.conditions import Condition
from cpmodel_commspec.scalable.forms import ALONG, Form, Relation
from cpmodel_commspec.scalable.numbers import Number, grouped_text
from cpmodel_commspec.scalable.quantities import LOG2, Basis, Quantity, Term
from cpmodel_commspec.scalable.scales import AXES, CALLS, PEER, RANK, Order, Scale, even
from cpmodel_commspec.scalable.specification import (
    BLOCKS,
    Group,
    Loop,
    Node,
    ScalableSpecification,
    Step,
)
from cpmodel_commspec.scalable.text import is_world, summary
from cpmodel_commspec.scalable.times import ENDING, Key, Times
from cpmodel_commspec.specification import walk
from cpmodel_commspec.text import functions_text

NAMES = {
    "rank": "rank", "x": "ix", "y": "iy", "z": "iz",
    "p": "p", "size x": "x", "size y": "y", "size z": "z",
}  # fmt: skip
"""Variables of the program for places and sizes."""


class Formulas:
    """Writer of formulas; `functions` notes the functions that they call."""

    def __init__(self, functions: Functions, told: ScalableSpecification) -> None:
        self._functions, self._dimensions = functions, told.dimensions
        self._has_elements = told.has_elements

    def quantity(self, told: Quantity, line: int) -> str:
        """Return a formula of the number of processes and the grid."""
        is_plain = all(term.denominator == 1 and min(term.basis.powers) >= 0 for term in told.terms)
        if is_plain:
            return self._sum(told.terms, 1, (0, 0, 0), line)
        below = lcm(*(term.denominator for term in told.terms))
        most = [max(-min(0, term.basis.powers[k]) for term in told.terms) for k in range(3)]
        powers = (most[0], most[1], most[2])
        above = self._sum(told.terms, below, powers, line)
        under = self._product(below, powers)
        self._functions.use("whole")
        unit = told.unit if told.is_rounding or self._has_elements else 1
        return f"whole({above}, {under}, {unit}, {int(told.is_rounding)}, {line})"

    def number(self, told: Number, line: int, features: Mapping[str, str] | None = None) -> str:
        """Return a number; `features` are formulas of features that have no variable."""
        if told.block is not None:
            return self._block(told.block, line, features or {})
        text = self.quantity(told.base, line)
        for name, factor in told.factors.items():
            feature = self.feature(name, features or {})
            constant = factor.constant
            if constant in {1, -1}:
                text += f" {'+' if constant == 1 else '-'} {feature}"
            else:
                text += f" + {grouped_text(self.quantity(factor, line))} * {feature}"
        text = text.removeprefix("0 + ") if told.factors else text
        if told.shift is not None:
            times = f"(1L << {self.feature(told.shift[0], features or {})})"
            if told.shift[1] > 0:
                return f"{grouped_text(text)} * {times}"
            self._functions.use("whole")
            return f"whole({text}, {times}, {told.base.unit}, 0, {line})"
        if told.divisor is not None:
            self._functions.use("portion")
            return f"portion({text}, {self.quantity(told.divisor, line)}, {line})"
        if told.modulus is None:
            return text
        self._functions.use("turn")
        return f"turn({text}, {self.quantity(told.modulus, line)})"

    def _block(self, told: Block, line: int, features: Mapping[str, str]) -> str:
        if told.rule is Rule.UP:
            self._functions.use("block_up")
        place = told.turned(self.feature(told.place, features)) if told.place else ""
        if told.turn is not None:
            self._functions.use("turn")
            place = f"turn({place}, p)"
        return told.text(grouped_text(self.quantity(told.unit, line)), place)

    def feature(self, name: str, features: Mapping[str, str]) -> str:
        """Return the formula of a feature."""
        if name in features:
            return features[name]
        if name in CALLS:
            self._functions.use(CALLS[name])
            return f"{CALLS[name]}()"
        return NAMES.get(name, name)

    def condition(self, told: Condition, peer: str = "") -> str:
        """Return who takes part; "" for everybody."""
        return told.text({**NAMES, PEER: peer})

    def partner(self, form: Form, number: str, line: int) -> str:
        """Return the rank of a partner."""
        relation = form.relation
        group = grouped_text(number)
        if relation in ALONG or (relation is Relation.GRID and self._dimensions > 1):
            self._functions.use("rank_at")
            places = [
                f"i{axis} + {group}" if one is relation else _moved(f"i{axis}", step)
                for axis, one, step in zip(AXES, ALONG, form.step, strict=True)
            ]
            return f"rank_at({', '.join(places)})"
        if relation in {Relation.GRID, Relation.LINE} and not form.wraps[0]:
            return _moved(RANK, form.step[0])
        if relation is Relation.TRANSPOSED:
            self._functions.use("transposed")
            return "transposed()"
        around = {
            Relation.GRID: _moved(RANK, form.step[0]),
            Relation.LINE: _moved(RANK, form.step[0]),
            Relation.AHEAD: f"rank + {group}",
            Relation.AHEAD_POWER: f"rank + (1L << {group})",
            Relation.BEHIND_POWER: f"rank - (1L << {group})",
        }
        if relation in around:
            self._functions.use("turn")
            return f"(int)turn({around[relation]}, p)"
        text = {
            Relation.RANK: number,
            Relation.LAST: f"p - 1 - {group}",
            Relation.OTHER: f"{group} + ({group} >= rank)",
            Relation.XOR: f"rank ^ {group}",
            Relation.XOR_POWER: f"rank ^ (1L << {group})",
            Relation.MIRRORED: "p - 1 - rank",
            Relation.PARENT: "(rank - 1) / 2",
            Relation.CHILD: f"2 * rank + {group}",
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
            if term.basis.function:
                parts = [self._rounded(term.basis, line), *_powers(powers, self._dimensions)]
                product = _times(factor, " * ".join(parts))
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

    def _rounded(self, basis: Basis, line: int) -> str:
        name = "logarithm" if basis.function == LOG2 else "root"
        self._functions.use(name)
        return f"{name}({self._product(1, basis.powers)}, {basis.rounding}, {line})"

    def _product(self, factor: int, powers: tuple[int, int, int]) -> str:
        names = _powers(powers, self._dimensions)
        if not names:
            return f"{factor}L" if abs(factor) > 2**31 - 1 else str(factor)
        return _times(factor, " * ".join(names))


def _powers(powers: tuple[int, int, int], dimensions: int) -> list[str]:
    """Return the factors of a product of powers; equal powers of all sizes are those of p."""
    own = powers[:dimensions]
    common = min(own)
    rest = [axis for axis, n in zip(AXES, own, strict=False) for _ in range(n - common)]
    return ["p"] * common + rest


def _times(factor: int, product: str) -> str:
    if factor == 1:
        return product
    return f"-{product}" if factor == -1 else f"{factor} * {product}"


def _moved(name: str, step: int) -> str:
    if not step:
        return name
    return f"{name} {'+' if step > 0 else '-'} {abs(step)}"


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
_DOUBLINGS = 17
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
    has_groups = [is_world(group, told.dimensions) for group in told.groups] != [True]
    functions = c_program.CFunctions(has_groups=has_groups)
    own = files("cpmodel_commspec.scalable").joinpath("functions.c").read_text(encoding="utf-8")
    functions.read(own)
    writer = _Writer(told, functions, times)
    body = "".join(writer.statements(told.body, 1))
    check = "".join(writer.checks())
    communicators = list(writer.communicators())
    functions.use("reasons")
    begin = c_program.filled(
        functions.text("scalable_begin"), {"communicators": str(max(1, len(told.groups)))}
    )
    tables: list[str] = []
    if times is not None:
        body += f"{_STEP}compute(END, predicted[{writer.row(ENDING, None)}]);\n"
        calls = (
            (line, told.shapes[node.shape], 0.0)
            for line, (node, _) in enumerate(walk(told.body), 1)
            if isinstance(node, Step)
        )
        tables = [
            predicted_times(times, _doublings(told), functions.text("predicted_times")),
            c_program.timers(functions, calls, told.lines + 1, 0.0),
        ]
        communicators.append("predict();")
    return c_program.assembled(
        functions,
        [_heading(told), begin],
        [
            c_program.filled(
                functions.text("scalable_understands"), {**_grid(told), "check": check}
            ),
            *tables,
            f"static void communicate(void)\n{{\n{body}}}\n",
        ],
        communicators,
        is_timed=times is not None,
    )


class _Writer:
    """Writer of statements, checks and communicators."""

    def __init__(
        self, told: ScalableSpecification, functions: c_program.CFunctions, times: Times | None
    ) -> None:
        self._rows = {} if times is None else {key: k for k, key in enumerate(times.keys)}
        self._classes = {} if times is None else times.groups
        self._told, self._functions = told, functions
        self._formulas = Formulas(functions, told)
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
            row = self.row(line, None)
        elif Key(line, True) in self._rows:
            first, usual = (self.row(line, is_first) for is_first in (True, False))
            row = f"{variable(depth - 2)} == 0 ? {grouped_text(first)} : {grouped_text(usual)}"
        else:
            return call
        return c_program.timed(line, f"predicted[{row}]", call)

    def row(self, line: int, is_first: bool | None) -> str:
        """Return the row of predicted times of a line, by the class of the rank."""
        masks: dict[int, int] = {}
        for position, group in self._classes[line].items():
            masks[group] = masks.get(group, 0) | 1 << position
        # Positions of no trace are in the largest class.
        *others, usual = sorted(masks, key=lambda group: masks[group].bit_count())
        text = str(self._rows[Key(line, is_first, usual)])
        for group in reversed(others):
            self._functions.use("is_at")
            own = self._rows[Key(line, is_first, group)]
            text = f"is_at({masks[group]:#x}) ? {own} : {text}"
        return text

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
        if shape.kind in COLLECTIVES and shape.form is CollectiveForm.TOTAL:
            raise DataError(
                f"no program: {where} moves different sizes on different ranks", hint=_INSTEAD
            )
        if shape.kind is Kind.HANDLE:
            return self._handle(step, shape, line)
        peers: dict[str, str] = {}
        known: dict[str, dict[str, str]] = {}
        for field, form in step.forms.items():
            if form.relation is Relation.ANY:
                continue
            peers[field] = self._formulas.partner(
                form, self._formulas.number(step.numbers[field], line), line
            )
            known[field] = {PEER: peers[field]}
        end_of = {field: end.peer for end in shape.ends for field in end[1:]}
        numbers = {
            field: self._formulas.number(number, line, known.get(end_of.get(field, "")))
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
        if isinstance(node, Loop) and any(x.is_falling for x in node.rounds.quantities()):
            rounds = self._formulas.number(node.rounds, line)
            yield self._guard(node, line) + self._functions.call("portion", rounds, "1", str(line))
        if isinstance(node, Step) and Form(Relation.TRANSPOSED) in node.forms.values():
            yield f"if (x % y)\n        refuse({line}, TRANSPOSED);"
        for number in numbers:
            for quantity in number.quantities():
                text = self._formulas.quantity(quantity, line)
                if (
                    "logarithm(" in text
                    or "root(" in text
                    or ("whole(" in text and not quantity.is_rounding)
                ):
                    yield f"(void)({text});"
            # Rounds of loops and partners are not known here, and their first ones stand for them.
            first = {PEER: "0", **{variable(depth): "0" for depth in range(len(around))}}
            for other in number.others:
                if set(other.features) == set(number.features):
                    one, another = (self._formulas.number(x, line, first) for x in (number, other))
                    call = self._functions.call("same", one, another, str(line))
                    yield self._guard(node, line) + call
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
            if number.shift is not None and number.shift[1] < 0:
                # Halved sizes are the largest in the first round.
                last = {**last, number.shift[0]: "0"}
            if number.block is not None:
                size = " * ".join(number.block.axes)
                last = {**last, number.block.place: f"{size} - 1"}
                if number.block.rule is not Rule.LAST:
                    block = msgspec.structs.replace(
                        number.block, rule=Rule.CEILING, place="", turn=None
                    )
                    number = msgspec.structs.replace(number, block=block)
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
                yield c_program.divided(number)
                continue
            color = self._color(group)
            condition = self._formulas.condition(group.members)
            if condition:
                color = f"{condition} ? {color} : MPI_UNDEFINED"
            yield c_program.divided(number, color, "rank", group.name)

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


def predicted_times(times: Times, scales: Sequence[Scale], text: str) -> str:
    """Return the part of a program with the predicted seconds of each line at scales."""
    found = times.values(scales).tolist()
    rows = c_program.packed(
        item for row in found for item in c_program.braced(f"{x:.4g}" for x in row)
    )
    return c_program.filled(text, {"points": str(1 + _DOUBLINGS), "rows": rows})


def _doublings(told: ScalableSpecification) -> list[Scale]:
    """Return the scales of 1, 2, 4, 8, ... processes."""
    order = told.order or Order.DOWN
    return [even(2**k, told.dimensions, order) for k in range(1 + _DOUBLINGS)]


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


def _grid(told: ScalableSpecification) -> dict[str, str]:
    """Return the parts of a program that choose or read the grid, by name."""
    n = told.dimensions
    sizes = ["a", "b", "c"][:n]
    falling = sizes if told.order is Order.DOWN else sizes[::-1]
    order = [
        f"    {axis} = {size};\n" for axis, size in zip(AXES, [*falling, "1", "1"], strict=False)
    ]
    return {
        "even": _EVEN[n] if told.order is not None else "",
        "order": "".join(order),
        "has_rule": str(int(n == 1 or told.order is not None)),
        "scan": ",".join(["%ld"] * n),
        "given": ", ".join(f"&given[{k}]" for k in range(n)),
        "dimensions": str(n),
        "axes": ",".join("XYZ"[:n]),
    }
