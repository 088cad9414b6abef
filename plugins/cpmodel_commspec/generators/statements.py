"""Statements and functions of generated programs, which languages share.

Statements are calls with formulas as arguments. A program has only the functions that it calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from cpmodel_commspec import formulas
from cpmodel_commspec.collectives import ROOTED, Form
from cpmodel_commspec.communicators import layout, world_of
from cpmodel_commspec.conditions import condition
from cpmodel_commspec.expressions import Partner
from cpmodel_commspec.formulas import Dialect, Table, Tables
from cpmodel_commspec.operations import COLLECTIVES, Awaited, Kind, Mode, Shape
from cpmodel_commspec.simulation.deadlocks import INSTEAD, sites
from cpmodel_commspec.specification import Node, Specification, Step, walk
from cpmodel_commspec.text import functions_text

PROMPT = frozenset({"MPI_Waitsome", "MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome"})
"""Calls that complete what is complete when they begin."""

ONE_BY_ONE = frozenset({"MPI_Waitany", "MPI_Test", "MPI_Testany"})
"""Calls that complete one operation each."""

WAITS = {name.lower(): name for name in ("MPI_Wait", "MPI_Waitall", "MPI_Waitany", *sorted(PROMPT))}
SENDS = {name.lower(): name for name in ("MPI_Send", "MPI_Ssend", "MPI_Bsend")}
STARTED_SENDS = {name.lower(): name for name in ("MPI_Isend", "MPI_Issend", "MPI_Ibsend")}
"""Functions that programs call by their own names, by the name in small letters."""


MOVES = {
    "barrier": "nothing",
    "bcast": "one",
    **dict.fromkeys(("gather", "scatter", "allgather", "alltoall"), "both"),
    **dict.fromkeys(("reduce", "allreduce", "scan", "exscan", "reduce_scatter_block"), "reduced"),
}
"""Buffers of collective operations: one, one to send and one to receive, or both to reduce."""


def _is_sum(parts: Int64Array, whole: Int64Array) -> bool:
    return bool((parts.sum(axis=0) == whole).all())


UNEQUAL: Mapping[str, Callable[[Int64Array, Int64Array], bool]] = {
    "alltoallv": lambda sent, got: _is_sum(sent, got.sum(axis=0)),
    "alltoallw": lambda sent, got: _is_sum(sent, got.sum(axis=0)),
    "gatherv": lambda sent, got: _is_sum(sent, got.max(axis=0)),
    "scatterv": lambda sent, got: _is_sum(got, sent.max(axis=0)),
    "allgatherv": lambda sent, got: _is_sum(sent, len(sent) * got),
    "reduce_scatter": lambda sent, got: _is_sum(got, len(sent) * sent),
}
"""Test of bytes sent and received [members x ...]: one call can move them. By its name."""


def sizes_fit(name: str, sent: Int64Array, received: Int64Array) -> bool:
    """Tell whether one call can move the bytes sent and received [members x ...]."""
    return name in UNEQUAL and UNEQUAL[name](sent, received)


class Functions(ABC):
    """The functions of a program, in the order of their first call.

    Parameters
    ----------
    source : the functions, each after a line of the mark, its name, a colon and what it needs
    mark : the beginning of such lines
    end : of a statement
    """

    def __init__(self, source: str, mark: str, end: str) -> None:
        self._end, self._mark = end, mark
        self._parts: dict[str, tuple[Collection[str], str]] = {}
        self.read(source)
        self._used: dict[str, None] = {}

    def read(self, source: str) -> None:
        """Take in the functions of a source."""
        for part in source.split(self._mark)[1:]:
            head, _, text = part.partition("\n")
            name, _, needs = head.partition(":")
            self._parts[name.strip()] = tuple(needs.split()), text

    def call(self, name: str, *arguments: str) -> str:
        """Return a call as a statement."""
        self.use(name)
        return f"{name}({', '.join(arguments)}){self._end}"

    @abstractmethod
    def array(self, numbers: Sequence[int]) -> str:
        """Return numbers as an argument."""

    def collective(self, name: str, *arguments: str, is_in_place: bool, is_started: bool) -> str:
        """Return the call of a collective operation that moves equal sizes on all ranks."""
        function = "start_" * is_started + name + "_in_place" * is_in_place
        sizes = ["size"] * (name != "barrier") + ["root"] * (name in ROOTED)
        head = f"{function}({', '.join(['comm', *sizes])})"
        text = self._collective(head, name, is_in_place=is_in_place, is_started=is_started)
        self.add(function, text, ("start",) if is_started else ())
        return self.call(function, *arguments)

    @abstractmethod
    def _collective(self, head: str, name: str, *, is_in_place: bool, is_started: bool) -> str:
        """Return the definition of a collective operation; `head` has its name and parameters."""

    @abstractmethod
    def wait(self, function: str, kind: str, places: Sequence[int]) -> str:
        """Return the call of a function of `WAITS`.

        Parameters
        ----------
        kind : the operations, ``SEND``, ``RECEIVE`` or ``-1`` for all; "" for those at `places`
        """

    def send(self, function: str, *arguments: str, is_awaited: bool = True) -> str:
        """Return the call of a function of `SENDS` or `STARTED_SENDS`."""
        name = function[4:].lower() + "_and_forget" * (not is_awaited)
        is_started = function.lower() in STARTED_SENDS
        text = self._send(name, function, is_started=is_started, is_awaited=is_awaited)
        self.add(name, text, ("start",) if is_started and is_awaited else ())
        return self.call(name, *arguments)

    @abstractmethod
    def _send(self, name: str, function: str, *, is_started: bool, is_awaited: bool) -> str:
        """Return the definition of a function that sends."""

    def add(self, name: str, text: str, needs: Collection[str] = ()) -> None:
        """Add a function that has no part in the source."""
        self._parts.setdefault(name, (needs, text))

    def use(self, name: str) -> None:
        """Note that the program uses a function, and the functions that it needs."""
        for needed in self._parts[name][0]:
            self.use(needed)
        self._used.setdefault(name)

    def uses(self, name: str) -> bool:
        """Tell whether the program uses a function."""
        return name in self._used

    def text(self, name: str) -> str:
        """Return one function."""
        return self._parts[name][1]

    def used(self) -> Iterator[str]:
        """Yield the functions of the program; a function comes after those that it needs."""
        for name in self._used:
            yield self.text(name)


_LARGEST = 2**31 - 1
"""Bytes; MPI counts them with an int."""

_OVERHEAD = 512
"""Bytes that MPI libraries need at most for a buffered message, besides its own."""

INSTEAD_OR_IN_C = f"{INSTEAD}, or as a program in C"
HANDLES = {
    "mpi_comm_dup": "duplicate",
    "mpi_comm_split": "split",
    "mpi_comm_create": "create",
    "mpi_cart_create": "cart_create",
    "mpi_cart_sub": "cart_sub",
    "mpi_comm_free": "free_handle",
    "mpi_comm_disconnect": "disconnect",
}
"""Functions of programs for calls that make and free communicators."""

_KINDS = {Awaited.SENDS: "SEND", Awaited.RECEIVES: "RECEIVE", Awaited.ALL: "-1"}


class Statements:
    """Writer of calls, each of which is one statement.

    Parameters
    ----------
    told : the specification
    functions, tables : of the program; they note what statements use
    words : of the language
    nobody : the partner of the missing half of an exchange
    unequal : statement of an operation that moves different sizes: its name, the communicator,
        the formulas of bytes sent and received by rank `other`, and further arguments
    """

    def __init__(
        self, told: Specification, functions: Functions, tables: Tables, words: Dialect,
        nobody: str, unequal: Callable[..., str],
    ) -> None:  # fmt: skip
        self._told, self._functions, self._tables = told, functions, tables
        self._words, self._nobody, self._unequal_call = words, nobody, unequal

    def guard(self, node: Node, around: tuple[int, ...]) -> str:
        """Return the condition of those who take part; "" if all ranks of the loop around do."""
        if node.ranks == around:
            return ""
        return formulas.condition(condition(node.ranks, self._told.processes), self._words)

    def about(self, step: Step) -> str:
        """Return the comment of a statement: the functions that make the call."""
        shape = self._told.shapes[step.shape]
        words = ["any source"] * shape.has_any_source + [functions_text(shape)] * bool(
            shape.functions
        )
        return ", ".join(words)

    def call(self, step: Step) -> str:
        """Return the call of an operation.

        Raises
        ------
        DataError
            If MPI cannot express it.
        """
        shape = self._told.shapes[step.shape]
        if shape.kind is Kind.HANDLE:
            return self._handle(shape)
        numbers = {
            field: formulas.number(expression, step.ranks, self._tables)
            for field, expression in step.numbers.items()
        }
        if shape.kind in COLLECTIVES and shape.form is Form.TOTAL:
            return self._unequal(step, shape, numbers)
        peers = {
            field: self._peer(partner, numbers[field]) for field, partner in step.partners.items()
        }
        return operation(self._functions, shape, numbers, peers, self._nobody)

    def _peer(self, partner: Partner, number: str) -> str:
        sizes = partner.dimensions
        if not formulas.is_mixed(partner):
            return formulas.partner(partner, number)
        torus = self._functions.array((*sizes, 0))
        return self._functions.call("neighbour", "rank", number, torus).removesuffix(";")

    def _handle(self, shape: Shape) -> str:
        name = HANDLES.get(shape.name.lower(), "duplicate")
        if name != "cart_create":
            return self._functions.call(name, str(shape.comm))
        sizes = self._functions.array([abs(size) for size in shape.grid])
        periodic = self._functions.array([int(size < 0) for size in shape.grid])
        return self._functions.call(name, str(shape.comm), str(len(shape.grid)), sizes, periodic)

    def _unequal(self, step: Step, shape: Shape, numbers: dict[str, str]) -> str:
        """Return the call of an operation that moves different sizes on different ranks."""
        self._check(step, shape)
        sizes = [
            formulas.number(step.numbers[field], step.ranks, self._tables, "other")
            for field in ("bytes", "received")
        ]
        root = [numbers["root"]] if "root" in numbers else []
        self._functions.use(shape.name)
        return self._unequal_call(shape.name, str(shape.comm), *sizes, *root)

    def _check(self, step: Step, shape: Shape) -> None:
        """Raise `DataError` if the sums of a call do not give its sizes."""
        groups = [
            group
            for group in self._told.communicators[shape.comm].groups
            if not set(group).isdisjoint(step.ranks)
        ]
        where = f"{shape.name} in {' or '.join(sites(shape))}"
        is_whole = all(set(group) <= set(step.ranks) for group in groups)
        if not is_whole or shape.kind is Kind.ICOLLECTIVE:
            raise DataError(f"no program: sizes of {where} cannot be told", hint=INSTEAD)
        around = next(loops for node, loops in walk(self._told.body) if node is step)
        counts = [loop.count for loop in around]
        sent, received = (
            step.numbers[field].values(step.ranks, counts) for field in ("bytes", "received")
        )
        for group in groups:
            rows = [step.ranks.index(rank) for rank in group]
            if not sizes_fit(shape.name, sent[rows], received[rows]):
                raise DataError(f"no program: {where} does not receive what it sends", hint=INSTEAD)


def operation(
    functions: Functions, shape: Shape, numbers: Mapping[str, str], peers: Mapping[str, str],
    nobody: str,
) -> str:  # fmt: skip
    """Return the call of a message, of a wait, or of a collective that moves equal sizes.

    Parameters
    ----------
    numbers, peers : formulas by the fields of the shape
    nobody : the partner of the missing half of an exchange
    """
    if shape.kind is Kind.WAIT:
        function = WAITS.get(shape.call.lower(), "MPI_Waitall")
        if shape.awaited is not Awaited.CHOSEN:
            return functions.wait(function, _KINDS[shape.awaited], ())
        return functions.wait(function, "", shape.places)
    comm = str(shape.comm)
    if not shape.ends:
        given = [numbers[field] for field in ("bytes", "root") if field in numbers]
        return functions.collective(
            shape.name,
            comm,
            *given,
            is_in_place=shape.form is Form.IN_PLACE,
            is_started=shape.kind is Kind.ICOLLECTIVE,
        )
    about = {end: (numbers[end.bytes], peers[end.peer], numbers[end.tag]) for end in shape.ends}
    if shape.kind is Kind.EXCHANGE:
        nothing = "0", nobody, "0"
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


def _sending(shape: Shape) -> str:
    """Return the MPI function of a send."""
    if shape.kind is Kind.SEND:
        usual = {Mode.SYNCHRONOUS: "MPI_Ssend", Mode.BUFFERED: "MPI_Bsend"}
        return SENDS.get(shape.call.lower(), usual.get(Mode(shape.name), "MPI_Send"))
    usual = {Mode.SYNCHRONOUS: "MPI_Issend", Mode.BUFFERED: "MPI_Ibsend"}
    return STARTED_SENDS.get(shape.call.lower(), usual.get(Mode(shape.name), "MPI_Isend"))


def mpi_function(shape: Shape) -> str:
    """Return the MPI function that the program calls for an operation."""
    if shape.kind is Kind.WAIT:
        return WAITS.get(shape.call.lower(), "MPI_Waitall")
    if shape.kind is Kind.HANDLE:
        return shape.name if shape.name.lower() in HANDLES else "MPI_Comm_dup"
    if shape.kind in COLLECTIVES:
        is_started = shape.kind is Kind.ICOLLECTIVE
        return f"MPI_I{shape.name}" if is_started else f"MPI_{shape.name.capitalize()}"
    if shape.kind is Kind.EXCHANGE:
        is_one = shape.call.lower() == "mpi_sendrecv_replace"
        return "MPI_Sendrecv_replace" if is_one else "MPI_Sendrecv"
    if shape.kind in {Kind.RECV, Kind.IRECV}:
        return "MPI_Recv" if shape.kind is Kind.RECV else "MPI_Irecv"
    return _sending(shape)


def _replaced(told: Specification) -> Iterator[str]:
    """Yield the functions that the program replaces by others."""
    pairs = {
        (shape.call, mpi_function(shape))
        for node, _ in walk(told.body)
        if isinstance(node, Step)
        for shape in (told.shapes[node.shape],)
        if shape.call and shape.call.lower() != mpi_function(shape).lower()
    }
    for call, called in sorted(pairs):
        yield f"{call} is {called} here."


def attached(told: Specification, functions: Functions) -> str:
    """Return the statement that makes room for buffered sends; "" if there are none.

    Raises
    ------
    DataError
        If MPI cannot count the bytes.
    """
    total, messages = _buffered(told)
    return functions.call("attach", str(total), str(messages)) if messages else ""


def _buffered(told: Specification) -> tuple[int, int]:
    """Return the most bytes that a rank sends with buffered sends, and the most such messages.

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
    if total + messages * _OVERHEAD > _LARGEST:
        raise DataError(
            f"no program: a rank sends {total} bytes with buffered sends, more than 2 GiB",
            hint=INSTEAD,
        )
    return int(total), int(messages)


def heading(
    told: Specification, commands: Sequence[str], *, has_calls: bool = True
) -> Iterator[str]:
    """Yield the lines of the comment at the beginning of a program; names are as they are.

    Parameters
    ----------
    commands : that make and run the program
    has_calls : whether the program makes the MPI calls of the run
    """
    yield f"The communication of {told.program or 'a run'}, from a trace:"
    yield f"{told.operations} operations of {told.processes} ranks."
    yield ""
    yield from (f"    {command}" for command in commands)
    yield ""
    if told.from_any_source:
        yield "Receives from any source name one possible source each."
    if has_calls:
        yield from _replaced(told)
    if told.left_out:
        yield "Not part of it:"
        yield from (f"    {count} {what}" for what, count in told.left_out.items())


def rows(table: Table, processes: int) -> Int64Array:
    """Return the numbers of a table, with a row for each rank if its first axis counts ranks."""
    numbers = np.array(table.numbers, np.int64).reshape(table.sizes)
    if not table.ranks:
        return numbers
    full = np.zeros((processes, *table.sizes[1:]), np.int64)
    full[list(table.ranks)] = numbers
    return full


def divisions(
    told: Specification, quotient: str
) -> Iterator[tuple[int, tuple[str, str] | tuple[list[int], list[int]] | None]]:
    """Yield the number of each communicator, and how it divides the ranks.

    Yields
    ------
    number
    None for that of all ranks; formulas of color and key; or the color and key of each rank, with
    color -1 for ranks that are not in it
    """
    processes, world = told.processes, world_of(told.communicators, told.processes)
    for number, one in enumerate(told.communicators):
        if number == world:
            yield number, None
            continue
        found = layout(one, quotient)
        if found is not None and sum(map(len, one.groups)) == processes:
            yield number, found
            continue
        color, key = [-1] * processes, [0] * processes
        for k, group in enumerate(one.groups):
            for place, rank in enumerate(group):
                color[rank], key[rank] = k, place
        yield number, (color, key)


def room(told: Specification) -> int:
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
                    where = " or ".join(sites(shape))
                    raise DataError(
                        f"no program: {size} bytes in {where} are more than 2 GiB", hint=INSTEAD
                    )
                members = max(map(len, told.communicators[shape.comm].groups))
                is_each = shape.kind in COLLECTIVES and shape.form is not Form.TOTAL
                largest = max(largest, size * members if is_each else size)
    return largest
