"""Generator of C programs that communicate and compute like the run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import accumulate
from string import ascii_lowercase
from textwrap import wrap

from callpath_modeler.arrays import Int64Array
from callpath_modeler.printable import c_comment
from cpmodel_commspec import formulas
from cpmodel_commspec.collectives import ROOTED
from cpmodel_commspec.computation import Computation, Share, levels
from cpmodel_commspec.conditions import condition
from cpmodel_commspec.formulas import Table, Tables
from cpmodel_commspec.generators import statements
from cpmodel_commspec.generators.interface import HISTOGRAM, MEAN, Generator, Options
from cpmodel_commspec.operations import Shape
from cpmodel_commspec.specification import Loop, Node, Specification, Step, lines_in, walk

_MOST_COLUMNS = 100
_NOTICED = 0.02
"""Share of the computation of a rank; ranks whose times in a line differ by less have one mean."""
_SHORT = 30
"""Characters of a condition that is in a line; others are in a table."""
_LETTERS = f"{ascii_lowercase}."  # the last one is for ranks without the line
_STEP = "    "


class Computations:
    """The seconds that a program computes before its lines, and the tables of these seconds.

    Parameters
    ----------
    told : the specification
    times : `MEAN` for the mean of all rounds of ranks that compute alike, or `HISTOGRAM`
    """

    def __init__(self, told: Specification, times: str) -> None:
        self._told, self._is_mean = told, times == MEAN
        self._noticed = _NOTICED * told.computing / told.processes
        self._bins: list[str] = []
        self._shares: list[str] = []
        self._draws: list[list[int]] = []
        self._means: list[str] = []

    def seconds(self, told: Computation, around: Sequence[Loop]) -> str:
        """Return the formula of the seconds before a line."""
        usual = self._formula(told.usual, told.key)
        if not told.first:
            return usual
        first = self._formula(told.first, told.key + 1)
        return f"{formulas.variable(len(around) - 1)} == 0 ? {_nested(first)} : {_nested(usual)}"

    def _formula(self, shares: Sequence[Share], key: int) -> str:
        if not self._is_mean:
            known = len(self._shares)
            of_rank = self._numbers({known + k: one.ranks for k, one in enumerate(shares)})
            for share in shares:
                row = (len(share.ranks), int(share.is_common), len(self._bins),
                       len(share.seconds.means))  # fmt: skip
                self._shares.append(f"{{{', '.join(map(str, row))}, {share.key(key)}ull}}")
                told = share.seconds
                self._bins += (
                    f"{{{end}, {_seconds(mean)}}}"
                    for end, mean in zip(accumulate(told.counts), told.means, strict=True)
                )
            self._draws.append(of_rank)
            return f"drawn({len(self._draws) - 1})"
        found = levels(shares, self._noticed, len(ascii_lowercase))
        if len(found) == 1:
            return _seconds(found[0][0])
        (mean, ranks), (other, _), *more = sorted(found, key=lambda one: len(one[1]))
        formula = formulas.condition(condition(ranks, self._told.processes))
        if not more and len(formula) <= _SHORT:
            return f"{formula} ? {_seconds(mean)} : {_seconds(other)}"
        number = len(self._means) + 1
        letters = (_LETTERS[k] for k in self._numbers(dict(enumerate(x for _, x in found))))
        rows = '"\n    "'.join(wrap("".join(letters), 72))
        self._means.append(
            array(f"double seconds{number}[]", [_seconds(mean) for mean, _ in found])
            + f'static const char of{number}[] = "{rows}";\n'
        )
        return f"MEAN({number})"

    def _numbers(self, ranks: Mapping[int, Sequence[int]]) -> list[int]:
        """Return the number of each rank; -1 for ranks without the line."""
        found = [-1] * self._told.processes
        for number, those in ranks.items():
            for rank in those:
                found[rank] = number
        return found

    def tables(self, functions: statements.Functions) -> Iterator[str]:
        """Yield the tables of the program, and the functions that read them."""
        if self._means:
            yield functions.text("means") + "".join(self._means)
        if self._draws:
            ranks = (item for row in self._draws for item in braced(map(str, row)))
            text = functions.text("drawn").replace("@bins@", packed(self._bins))
            text = text.replace("@shares@", packed(self._shares))
            yield text.replace("@ranks@", packed(ranks))


def _nested(formula: str) -> str:
    return f"({formula})" if "?" in formula else formula


def _seconds(seconds: float) -> str:
    return f"{seconds:.6g}"


def packed(items: Iterable[str]) -> str:
    """Return the items of a table in full lines."""
    lines = [_STEP]
    for item in items:
        if len(lines[-1]) + len(item) + 2 > _MOST_COLUMNS:
            lines.append(_STEP)
        lines[-1] += f"{item}, "
    return "".join(f"{line.rstrip()}\n" for line in lines)


def braced(items: Iterable[str]) -> list[str]:
    """Return the items of a row of a table, with the braces of the row."""
    first, *others = items
    *others, last = f"{{{first}", *others
    return [*others, f"{last}}}"]


def array(head: str, items: Iterable[str]) -> str:
    """Return a table: in one line, if that is short."""
    several = list(items)
    line = f"static const {head} = {{{', '.join(several)}}};\n"
    if len(line) <= _MOST_COLUMNS:
        return line
    return f"static const {head} = {{\n{packed(several)}}};\n"


def timers(
    functions: statements.Functions,
    calls: Iterable[tuple[int, Shape, float]],
    end: int,
    run_time: float,
) -> str:
    """Return the functions that compute and that print the times.

    Parameters
    ----------
    calls : line, operation, and seconds in it, mean of all ranks
    end : the line after the last one
    run_time : of the trace; 0 if the times are predicted
    """
    found = [(str(line), statements.mpi_function(shape), seconds) for line, shape, seconds in calls]
    total = sum(seconds for _, _, seconds in found)
    found += [("END", "after the last line", 0.0), ("ALL", "all lines", total)]
    values = {
        "end": str(end),
        "lines": packed(
            f'[{line}] = {{"{call}"{f", {_seconds(x)}" * bool(x)}}}' for line, call, x in found
        ),
        "told": "trace" if run_time else "predicted",
        "run_time": f"{run_time:.6f} s of the trace, " * bool(run_time),
    }
    return filled(functions.text("timers"), values)


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with values in place of their names between ``@``."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


_SENT = "out, bytes, MPI_BYTE, "
_RECEIVED = "{result}, bytes, MPI_BYTE, "
_BUFFERS = {
    "nothing": "",
    "one": _SENT,
    "both": _SENT + _RECEIVED,
    "reduced": "out, {result}, bytes, MPI_BYTE, MPI_BOR, ",
}
"""Arguments before the root and the communicator, by those of `MOVES`."""

_ALL, _SOME = "n_taken, requests, ", "indices, MPI_STATUSES_IGNORE"
_CALLS = {
    "MPI_Wait": "requests, MPI_STATUS_IGNORE",
    "MPI_Waitall": f"{_ALL}MPI_STATUSES_IGNORE",
    "MPI_Waitany": f"{_ALL}indices, MPI_STATUS_IGNORE",
    "MPI_Waitsome": f"{_ALL}&count, {_SOME}",
    "MPI_Test": "requests + k, &count, MPI_STATUS_IGNORE",
    "MPI_Testall": f"{_ALL}&count, MPI_STATUSES_IGNORE",
    "MPI_Testany": f"{_ALL}indices, &count, MPI_STATUS_IGNORE",
    "MPI_Testsome": f"{_ALL}&count, {_SOME}",
}
"""Arguments of calls that wait until operations are complete."""

_MARK = "//// "

_PLACE = re.compile(r"places\[\w+\]\[(\w+)\]")
_BETWEEN_DEFINITIONS = re.compile(r"(?<=\))\n\n(?=#define \w+\(comm)")
_OF_PLACES = re.compile(r"\b(?:places|members|sizes)\[")
"""Ranks of a communicator, and what is known of its members."""


class CFunctions(statements.Functions):
    """The functions of a program in C.

    Parameters
    ----------
    has_groups : whether ranks in a communicator can differ from those of the world
    """

    def __init__(self, *, has_groups: bool) -> None:
        folder = files("cpmodel_commspec.generators").joinpath("c")
        text = folder.joinpath("functions.c").read_text(encoding="utf-8")
        # The heading of a file is no part of a program.
        super().__init__(text[text.index(_MARK) :], _MARK, ";")
        self._has_groups = has_groups

    def array(self, numbers: Sequence[int]) -> str:
        """Return numbers as an array."""
        return f"(int[]){{{', '.join(map(str, numbers))}}}"

    def _collective(self, head: str, name: str, *, is_in_place: bool, is_started: bool) -> str:
        """Return the definition of a collective operation: short, as programs can have many."""
        arguments = _BUFFERS[statements.MOVES[name]] + "root, " * (name in ROOTED)
        if is_in_place:
            # Roots that scatter leave out where they would receive, all others what they send.
            left_out = "{result}," if name == "scatter" else "out,"
            arguments = arguments.replace(left_out, "MPI_IN_PLACE,")
        if is_started:
            begin, result, end = "start(COLLECTIVE, room), ", "LAST.in", ", &LAST.request)"
            call = f"({begin}MPI_I{name}({arguments}comms[comm]{end})"
        else:
            result, call = "in", f"MPI_{name.capitalize()}({arguments}comms[comm])"
        line = f"#define {head.replace('size', 'bytes')} {call.format(result=result)}\n"
        return line if len(line) <= _MOST_COLUMNS + 1 else line.replace(") ", ") \\\n    ", 1)

    def wait(self, function: str, kind: str, places: Sequence[int]) -> str:
        """Return the call of a function that waits."""
        name = function[4:].lower()
        self.add(name, _wait(name, function), ("until_complete",) * (function in statements.PROMPT))
        if kind:
            chosen = self.call("all_of", kind)
        else:
            chosen = self.call("take", str(len(places)), self.array(places or (0,)))
        return self.call(name, chosen.removesuffix(";"))

    def _send(self, name: str, function: str, *, is_started: bool, is_awaited: bool) -> str:
        """Return the definition of a function that sends."""
        begin = end = request = ""
        if is_started and is_awaited:
            request = ", start(SEND, 0)"
        elif is_started:
            begin, request = "    MPI_Request request;\n", ", &request"
            end = "    PMPI_Request_free(&request);\n"
        return (
            f"static void {name}(int comm, long bytes, int peer, long tag)\n{{\n{begin}"
            f"    {function}(out, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm]"
            f"{request});\n{end}}}\n"
        )

    def used(self) -> Iterator[str]:
        """Yield the functions of the program; ranks of the world need no places."""
        found = list(super().used())
        if not self._has_groups:
            found = [_PLACE.sub(r"\1", text) for text in found]
        if any(_OF_PLACES.search(text) for text in found):
            self.use("find_places")
            yield self.text("find_places")
        yield from found


def _wait(name: str, function: str) -> str:
    call = _CALLS[function]
    # These calls complete one operation each.
    each = "for (int k = 0; k < n_taken; k++)\n        " * (function in statements.ONE_BY_ONE)
    return (
        f"static void {name}(MPI_Request *requests)\n{{\n"
        + "    int count;\n" * ("&count" in call)
        + "    until_complete(requests);\n" * (function in statements.PROMPT)
        + f"    {each}{function}({call});\n    release(requests);\n}}\n"
    )


def c_source(told: Specification, times: str = HISTOGRAM) -> str:
    """Return the program; `deadlocks.require_safe` says whether it runs to the end.

    Parameters
    ----------
    times : see `Computations`

    Raises
    ------
    DataError
        If C with MPI cannot express an operation.
    """
    communicators = list(_communicators(told))
    functions = CFunctions(has_groups=communicators != [divided(0)])
    tables, computations = Tables(), Computations(told, times)
    writer = statements.Statements(told, functions, tables, formulas.C, "MPI_PROC_NULL", _unequal)
    body = "".join(_lines(writer, computations, told.body, ()))
    if told.ending is not None:
        body += f"{_STEP}compute(END, {computations.seconds(told.ending, ())});\n"
    attach = statements.attached(told, functions)
    values = {
        "processes": str(told.processes),
        "communicators": str(max(1, len(told.communicators))),
        "room": str(statements.room(told)),
    }
    calls = (
        (line, told.shapes[node.shape], node.calling / told.processes)
        for line, (node, _) in enumerate(walk(told.body), 1)
        if isinstance(node, Step)
    )
    return assembled(
        functions,
        [_heading(told, times), filled(functions.text("begin"), values)],
        [
            *(_table_of_ranks(table, told.processes) for table in tables),
            functions.text("understands"),
            *computations.tables(functions),
            *([timers(functions, calls, told.lines + 1, told.seconds)] if told.is_timed else ()),
            f"static void communicate(void)\n{{\n{body}}}\n",
        ],
        [*communicators, *([attach] if attach else [])],
        is_timed=told.is_timed,
    )


def assembled(
    functions: CFunctions, begin: Sequence[str], parts: Sequence[str], prepare: Sequence[str],
    *, is_timed: bool,
) -> str:  # fmt: skip
    """Return a program.

    Parameters
    ----------
    begin : before the functions that it uses
    parts : after them
    prepare : statements that make its communicators and buffers
    """
    used = list(functions.used())
    prepared = [*prepare]
    if functions.uses("find_places"):
        prepared.append("find_places();")
    if is_timed:
        prepared += ["PMPI_Barrier(MPI_COMM_WORLD);", "begun = now = PMPI_Wtime();"]
    values = {
        "prepare": "".join(f"{_STEP}{statement}\n" for statement in prepared),
        "print_times": f"{_STEP}print_times();\n" * is_timed,
    }
    found = "\n".join([*begin, *used, *parts, filled(functions.text("main"), values)])
    return _BETWEEN_DEFINITIONS.sub("\n", found)


def _lines(
    writer: statements.Statements, computations: Computations, nodes: Sequence[Node],
    around: tuple[Loop, ...], line: int = 1,
) -> Iterator[str]:  # fmt: skip
    """Yield the statements of nodes; `line` is the number of the first."""
    depth = len(around)
    indent = _STEP * (depth + 1)
    for node in nodes:
        formula = writer.guard(node, around[-1].ranks if around else ())
        guard = f"if ({formula}) " if formula else ""
        if isinstance(node, Loop):
            variable = formulas.variable(depth)
            head = f"for (long {variable} = 0; {variable} < {node.count}; {variable}++) {{"
            yield f"{indent}{guard}{head}\n"
            yield from _lines(writer, computations, node.body, (*around, node), line + 1)
            yield f"{indent}}}\n"
        else:
            about = writer.about(node)
            place = f" /* {c_comment(about)} */" if about else ""
            call = writer.call(node)
            if node.computing is not None:
                call = timed(line, computations.seconds(node.computing, around), call)
            yield f"{indent}{guard}{call}{place}\n"
        line += lines_in(node)


def timed(line: int, seconds: str, call: str) -> str:
    """Return a call after its computation, with its timers."""
    return f"LINE({line}, {seconds}, {call});"


def _unequal(name: str, comm: str, sent: str, received: str, *root: str) -> str:
    sizes = f"EACH_MEMBER({comm}) {{ sent[k] = {sent}; received[k] = {received}; }}"
    return f"{{ {sizes} {name}({', '.join([comm, *root])}); }}"


def _heading(told: Specification, times: str) -> str:
    commands = [
        "mpicc -O2 -o communicate THIS_FILE.c",
        f"mpirun -n {told.processes} ./communicate",
    ]
    lines = [*statements.heading(told, commands), *_times(told, times)]
    return "/*\n" + "".join(f" * {c_comment(line)}".rstrip() + "\n" for line in lines) + " */"


def _times(told: Specification, times: str) -> Iterator[str]:
    """Yield the lines of the heading about times."""
    if not told.is_timed:
        yield "It does not compute, because the specification has no times."
        return
    yield "It computes before each operation as long as the run did (--scale-compute F: F times as"
    yield "long), and prints the times of each line beside those of the run."
    if times == MEAN:
        yield "Each round takes the mean of all rounds, so ranks wait less for long rounds. Ranks"
        yield "differ where that is 2 % of the computation. --times histogram of cpmodel keeps all."


def _table_of_ranks(table: Table, processes: int) -> str:
    numbers = statements.rows(table, processes)
    sizes = "".join(f"[{size}]" for size in numbers.shape)
    return array(f"long {table.name}{sizes}", _items(numbers))


def _items(numbers: Int64Array) -> list[str]:
    """Return the numbers of a table with the braces inside it."""
    if numbers.ndim == 1:
        return list(map(str, numbers.tolist()))
    return [item for row in numbers for item in braced(_items(row))]


def _communicators(told: Specification) -> Iterator[str]:
    """Yield the statements that make the communicators."""
    for number, found in statements.divisions(told, "/"):
        if found is None:
            yield divided(number)
            continue
        names = []
        for name, part in zip(("color", "key"), found, strict=True):
            if isinstance(part, str):
                names.append(part)
                continue
            names.append(f"{name}{number}[rank]")
            texts = (str(one).replace("-1", "MPI_UNDEFINED") for one in part)
            yield array(f"int {name}{number}[]", texts).rstrip()
        color, key = names
        yield divided(number, color, key, told.communicators[number].name)


def divided(number: int, color: str = "", key: str = "", name: str = "") -> str:
    """Return the statement that makes a communicator; without a color, that of all ranks."""
    if not color:
        return f"comms[{number}] = MPI_COMM_WORLD;"
    split = f"PMPI_Comm_split(MPI_COMM_WORLD, {color}, {key}, &comms[{number}]);"
    return f"{split} /* {c_comment(name)} */"


class CProgram(Generator):
    """Writer of programs in C."""

    name = "c"
    description = "a program in C with MPI"
    endings = (".c",)

    def write(self, told: Specification, options: Options) -> str:
        """Return the program.

        Raises
        ------
        DataError
            If C with MPI cannot express an operation.
        """
        return c_source(told, options.times)
