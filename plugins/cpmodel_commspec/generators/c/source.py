"""Generator of C programs that communicate like the run, and do nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from callpath_modeler.errors import DataError
from callpath_modeler.printable import c_comment
from cpmodel_commspec import formulas
from cpmodel_commspec.collectives import Form
from cpmodel_commspec.communicators import layout, world_of
from cpmodel_commspec.conditions import condition
from cpmodel_commspec.formulas import Table, Tables
from cpmodel_commspec.generators.c.functions import (
    SENDS,
    STARTED_SENDS,
    WAITS,
    Functions,
    sizes_fit,
)
from cpmodel_commspec.operations import COLLECTIVES, Awaited, Kind, Mode, Shape
from cpmodel_commspec.partners import Partner
from cpmodel_commspec.specification import Loop, Node, Specification, Step, walk
from cpmodel_commspec.text import functions_text

_STEP = "    "
_LARGEST = 2**31 - 1
"""Bytes; MPI counts them with an int."""

_OVERHEAD = 512
"""Bytes that MPI libraries need at most for a buffered message, besides its own."""

_INSTEAD = "write it as text or json"
_HANDLES = {
    "mpi_comm_dup": "dup",
    "mpi_comm_split": "split",
    "mpi_comm_create": "create",
    "mpi_cart_create": "cart_create",
    "mpi_cart_sub": "cart_sub",
    "mpi_comm_free": "free_handle",
    "mpi_comm_disconnect": "disconnect",
}
"""Functions of programs for calls that make and free communicators."""

_KINDS = {Awaited.SENDS: "SEND", Awaited.RECEIVES: "RECEIVE", Awaited.ALL: "-1"}


def c_source(told: Specification) -> str:
    """Return the program; `deadlocks.require_safe` says whether it runs to the end.

    Raises
    ------
    DataError
        If C with MPI cannot express an operation.
    """
    functions, tables = Functions(), Tables()
    body = "".join(_Writer(told, functions, tables).statements(told.body, 1, ()))
    communicators = _communicators(told, functions)
    attach = _attach(told, functions)
    begin = functions.text("begin")
    for name, value in (
        ("processes", told.processes),
        ("communicators", max(1, len(told.communicators))),
        ("room", _room(told)),
    ):
        begin = begin.replace(f"@{name}@", str(value))
    parts = [
        _heading(told),
        begin,
        *(_table(table, told.processes) for table in tables),
        *functions.used(),
        communicators,
        f"static void communicate(void)\n{{\n{body}}}\n",
        functions.text("end").replace("@attach@", attach),
    ]
    return "\n".join(parts)


class _Writer:
    """Writer of statements and of the functions that they call."""

    def __init__(self, told: Specification, functions: Functions, tables: Tables) -> None:
        self._told, self._functions, self._tables = told, functions, tables

    def statements(
        self, nodes: Sequence[Node], depth: int, around: tuple[int, ...]
    ) -> Iterator[str]:
        """Yield the statements of nodes; `around` has the ranks of the loop around them."""
        indent = _STEP * depth
        for node in nodes:
            formula = formulas.condition(condition(node.ranks, self._told.processes))
            guard = f"if ({formula}) " if formula and node.ranks != around else ""
            if isinstance(node, Loop):
                variable = formulas.variable(depth - 1)
                head = f"for (long {variable} = 0; {variable} < {node.count}; {variable}++) {{"
                yield f"{indent}{guard}{head}\n"
                yield from self.statements(node.body, depth + 1, node.ranks)
                yield f"{indent}}}\n"
                continue
            shape = self._told.shapes[node.shape]
            words = ["any source"] * shape.is_any + [functions_text(shape)] * bool(shape.functions)
            place = f" /* {c_comment(', '.join(words))} */" if words else ""
            yield f"{indent}{guard}{self._call(node, shape)}{place}\n"

    def _call(self, step: Step, shape: Shape) -> str:
        comm = str(shape.comm)
        if shape.kind is Kind.WAIT:
            return self._wait(shape)
        if shape.kind is Kind.HANDLE:
            return self._handle(shape)
        numbers = {
            field: formulas.number(expression, step.ranks, self._tables)
            for field, expression in step.numbers.items()
        }
        if shape.ends:
            return self._message(step, shape, numbers)
        if shape.form is Form.TOTAL:
            return self._unequal(step, shape, numbers)
        given = [numbers[field] for field in ("bytes", "root") if field in numbers]
        return self._functions.collective(
            shape.name,
            comm,
            *given,
            is_in_place=shape.form is Form.IN_PLACE,
            is_started=shape.kind is Kind.ICOLLECTIVE,
        )

    def _peer(self, partner: Partner, number: str) -> str:
        sizes = partner.dimensions
        if not formulas.is_mixed(partner):
            return formulas.partner(partner, number)
        torus = ", ".join(map(str, (*sizes, 0)))
        return self._functions.call("neighbour", "rank", number, f"(int[]){{{torus}}}")[:-1]

    def _message(self, step: Step, shape: Shape, numbers: dict[str, str]) -> str:
        about = {
            end: (numbers[end.bytes], self._peer(step.partners[end.peer], numbers[end.peer]),
                  numbers[end.tag])
            for end in shape.ends
        }  # fmt: skip
        comm, functions = str(shape.comm), self._functions
        if shape.kind is Kind.EXCHANGE:
            nothing = "0", "MPI_PROC_NULL", "0"
            sent, taken = (
                next((told for end, told in about.items() if end.is_sent is is_sent), nothing)
                for is_sent in (True, False)
            )
            is_one = shape.call.lower() == "mpi_sendrecv_replace"
            name = "exchange_replace" if is_one else "exchange"
            return functions.call(name, comm, *sent, *taken)
        [message] = about.values()
        if not shape.ends[0].is_sent:
            name = "start_to_receive" if shape.kind is Kind.IRECV else "receive"
            return functions.call(name, comm, *message)
        return functions.send(_sending(shape), comm, *message, is_awaited=shape.is_awaited)

    def _handle(self, shape: Shape) -> str:
        name = _HANDLES.get(shape.name.lower(), "dup")
        if name != "cart_create":
            return self._functions.call(name, str(shape.comm))
        sizes = ", ".join(str(abs(size)) for size in shape.grid)
        periodic = ", ".join(str(int(size < 0)) for size in shape.grid)
        grid = str(len(shape.grid)), f"(int[]){{{sizes}}}", f"(int[]){{{periodic}}}"
        return self._functions.call(name, str(shape.comm), *grid)

    def _wait(self, shape: Shape) -> str:
        function = WAITS.get(shape.call.lower(), "MPI_Waitall")
        if shape.awaited is not Awaited.CHOSEN:
            return self._functions.wait(function, _KINDS[shape.awaited], ())
        return self._functions.wait(function, "", shape.places)

    def _unequal(self, step: Step, shape: Shape, numbers: dict[str, str]) -> str:
        """Return the call of an operation that moves different sizes on different ranks."""
        self._check(step, shape)
        sizes = [
            formulas.number(step.numbers[field], step.ranks, self._tables, "other")
            for field in ("bytes", "received")
        ]
        root = [numbers["root"]] if "root" in numbers else []
        call = self._functions.call(shape.name, str(shape.comm), *root)
        return (
            f"{{ EACH_MEMBER({shape.comm}) {{ sent[k] = {sizes[0]}; received[k] = {sizes[1]}; }} "
            f"{call} }}"
        )

    def _check(self, step: Step, shape: Shape) -> None:
        """Raise `DataError` if the sums of a call do not give its sizes."""
        groups = [
            group
            for group in self._told.communicators[shape.comm].groups
            if not set(group).isdisjoint(step.ranks)
        ]
        where = f"{shape.name} in {'/'.join(shape.site)}"
        is_whole = all(set(group) <= set(step.ranks) for group in groups)
        if not is_whole or shape.kind is Kind.ICOLLECTIVE:
            raise DataError(f"no program: sizes of {where} cannot be told", hint=_INSTEAD)
        around = next(loops for node, loops in walk(self._told.body) if node is step)
        counts = [loop.count for loop in around]
        sent, received = (
            step.numbers[field].values(step.ranks, counts) for field in ("bytes", "received")
        )
        for group in groups:
            rows = [step.ranks.index(rank) for rank in group]
            if not sizes_fit(shape.name, sent[rows], received[rows]):
                raise DataError(
                    f"no program: {where} does not receive what it sends", hint=_INSTEAD
                )


def _sending(shape: Shape) -> str:
    """Return the MPI function of a send."""
    if shape.kind is Kind.SEND:
        usual = {Mode.SYNCHRONOUS: "MPI_Ssend", Mode.BUFFERED: "MPI_Bsend"}
        return SENDS.get(shape.call.lower(), usual.get(Mode(shape.name), "MPI_Send"))
    usual = {Mode.SYNCHRONOUS: "MPI_Issend", Mode.BUFFERED: "MPI_Ibsend"}
    return STARTED_SENDS.get(shape.call.lower(), usual.get(Mode(shape.name), "MPI_Isend"))


def _called(shape: Shape) -> str:
    """Return the MPI function that the program calls for an operation."""
    if shape.kind is Kind.WAIT:
        return WAITS.get(shape.call.lower(), "MPI_Waitall")
    if shape.kind is Kind.HANDLE:
        return shape.name if shape.name.lower() in _HANDLES else "MPI_Comm_dup"
    if shape.kind in COLLECTIVES:
        return f"MPI_{'I' * (shape.kind is Kind.ICOLLECTIVE)}{shape.name}"
    if shape.kind is Kind.EXCHANGE:
        is_one = shape.call.lower() == "mpi_sendrecv_replace"
        return "MPI_Sendrecv_replace" if is_one else "MPI_Sendrecv"
    if shape.kind in {Kind.RECV, Kind.IRECV}:
        return "MPI_Recv" if shape.kind is Kind.RECV else "MPI_Irecv"
    return _sending(shape)


def _replaced(told: Specification) -> Iterator[str]:
    """Yield the functions that the program replaces by others."""
    pairs = {
        (shape.call, _called(shape))
        for node, _ in walk(told.body)
        if isinstance(node, Step)
        for shape in (told.shapes[node.shape],)
        if shape.call and shape.call.lower() != _called(shape).lower()
    }
    for call, called in sorted(pairs):
        yield f"{c_comment(call)} is {called} here."


def _attach(told: Specification, functions: Functions) -> str:
    """Return the statement that makes room for buffered sends, or "".

    Raises
    ------
    DataError
        If MPI cannot count the bytes.
    """
    sizes = np.zeros((2, told.processes), np.int64)
    for node, around in walk(told.body):
        if isinstance(node, Step) and told.shapes[node.shape].name == Mode.BUFFERED:
            counts = [loop.count for loop in around]
            values = node.numbers["bytes"].values(node.ranks, counts).reshape(len(node.ranks), -1)
            sizes[:, list(node.ranks)] += np.stack(
                [values.sum(axis=1), np.full(len(node.ranks), values.shape[1])]
            )
    total, messages = sizes.max(axis=1).tolist()
    if not messages:
        return ""
    if total + messages * _OVERHEAD > _LARGEST:
        raise DataError(
            f"no program: a rank sends {total} bytes with buffered sends, more than 2 GiB",
            hint=_INSTEAD,
        )
    return f"{_STEP}{functions.call('attach', str(total), str(messages))}\n"


def _heading(told: Specification) -> str:
    lines = [
        f"The communication of {c_comment(told.program) or 'a run'}, from a trace:",
        f"{told.operations} operations of {told.processes} ranks.",
        "",
        "    mpicc -O2 -o communicate THIS_FILE.c",
        f"    mpirun -n {told.processes} ./communicate",
        "",
    ]
    if told.from_any_source:
        lines.append("Receives from any source name one possible source each.")
    lines += _replaced(told)
    if told.left_out:
        lines.append("Not part of it:")
        lines += [f"    {count} {what}" for what, count in told.left_out.items()]
    return "/*\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */"


def _table(table: Table, processes: int) -> str:
    numbers = np.array(table.numbers, np.int64).reshape(table.sizes)
    if table.ranks:
        full = np.zeros((processes, *table.sizes[1:]), np.int64)
        full[list(table.ranks)] = numbers
        numbers = full
    sizes = "".join(f"[{size}]" for size in numbers.shape)
    return f"static const long {table.name}{sizes} = {_braces(numbers)};\n"


def _braces(numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> str:
    if numbers.ndim == 1:
        return "{" + ", ".join(map(str, numbers.tolist())) + "}"
    return "{\n" + ",\n".join(map(_braces, numbers)) + "}"


def _communicators(told: Specification, functions: Functions) -> str:
    lines: list[str] = []
    processes, world = told.processes, world_of(told.communicators, told.processes)
    for number, one in enumerate(told.communicators):
        if number == world:
            lines.append(f"{_STEP}keep({number}, MPI_COMM_WORLD);\n")
            continue
        functions.use("divide")
        found = layout(one)
        if found is not None and sum(map(len, one.groups)) == processes:
            lines.append(
                f"{_STEP}divide({number}, {', '.join(found)}); /* {c_comment(one.name)} */\n"
            )
            continue
        color, key = np.full(processes, -1), np.zeros(processes, np.int64)
        for k, group in enumerate(one.groups):
            color[list(group)], key[list(group)] = k, range(len(group))
        lines += [
            f"{_STEP}static const int color{number}[] = {_braces(color)};\n",
            f"{_STEP}static const int key{number}[] = {_braces(key)};\n",
            f"{_STEP}/* {c_comment(one.name)} */\n",
            f"{_STEP}divide({number}, color{number}[rank], key{number}[rank]);\n",
        ]
    return "static void make_communicators(void)\n{\n" + "".join(lines) + "}\n"


def _room(told: Specification) -> int:
    """Return the bytes of the largest buffer.

    Raises
    ------
    DataError
        If MPI cannot count them.
    """
    largest = 1
    for node, around in walk(told.body):
        if not isinstance(node, Step) or "bytes" not in node.numbers:
            continue
        shape, counts = told.shapes[node.shape], [loop.count for loop in around]
        for field in ("bytes", "received"):
            if field in node.numbers:
                size = int(node.numbers[field].values(node.ranks, counts).max())
                if size > _LARGEST:
                    raise DataError(
                        f"no program: {size} bytes in {'/'.join(shape.site)} are more than 2 GiB",
                        hint=_INSTEAD,
                    )
                members = max(map(len, told.communicators[shape.comm].groups))
                is_each = shape.kind in COLLECTIVES and shape.form is not Form.TOTAL
                largest = max(largest, size * members if is_each else size)
    return largest
