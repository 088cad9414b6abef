"""Generator of Python programs that communicate and compute like the run, through mpi4py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable, python_docstring
from cpmodel_commspec import formulas
from cpmodel_commspec.collectives import ROOTED
from cpmodel_commspec.computation import Computation, Share
from cpmodel_commspec.formulas import Tables
from cpmodel_commspec.generators import statements
from cpmodel_commspec.generators.interface import Generator, Options
from cpmodel_commspec.simulation.deadlocks import INSTEAD
from cpmodel_commspec.specification import Loop, Node, Specification, Step, lines_in, walk


def table(told: Specification) -> str:
    """Return the table of computation; "" if no rank computes.

    The line of what comes after the last operation is that after the last line.
    """
    rows: list[str] = []
    for line, (node, _) in enumerate(walk(told.body), 1):
        if isinstance(node, Step) and node.computing is not None:
            rows += _rows(line, node.computing)
    if told.ending is not None:
        rows += _rows(told.lines + 1, told.ending)
    if not rows:
        return ""
    about = "# line, whether of first rounds, ranks, whether long rounds come together, key, bins"
    return f"COMPUTATION = (\n    {about}\n" + "".join(f"    {row},\n" for row in rows) + ")\n"


def _rows(line: int, told: Computation) -> Iterator[str]:
    for is_first, shares in enumerate((told.usual, told.first)):
        for share in shares:
            bins = "".join(f"({end}, {seconds!r}), " for end, seconds in _bins(share)).rstrip()
            yield (
                f"({line}, {bool(is_first)}, {_ranks(share.ranks)}, {share.is_common}, "
                f"{share.key(told.key + is_first)}, ({bins}))"
            )


def _bins(share: Share) -> Iterator[tuple[int, float]]:
    """Yield the number of seconds up to the end of each bin, and their mean."""
    end = 0
    for count, mean in zip(share.seconds.counts, share.seconds.means, strict=True):
        end += count
        yield end, mean


def _ranks(ranks: Sequence[int]) -> str:
    if len(ranks) > 1 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"range({ranks[0]}, {ranks[-1] + 1})"
    return f"({''.join(f'{rank}, ' for rank in ranks).rstrip()})"


_SENT, _RECEIVED = "[out, size, MPI.BYTE]", "[{into}, size, MPI.BYTE]"
_BUFFERS = {
    "nothing": "",
    "one": _SENT,
    "both": f"{_SENT}, {_RECEIVED}",
    "reduced": f"{_SENT}, {_RECEIVED}, MPI.BOR",
}
"""Arguments of the method of the communicator before the root, by those of `MOVES`."""


class PythonFunctions(statements.Functions):
    """The functions of a program in Python."""

    def __init__(self) -> None:
        source = files("cpmodel_commspec.generators").joinpath("python", "functions.txt")
        super().__init__(source.read_text(encoding="utf-8"), "#### ", "")

    def array(self, numbers: Sequence[int]) -> str:
        """Return numbers as a list."""
        return f"[{', '.join(map(str, numbers))}]"

    def _collective(self, head: str, name: str, *, is_in_place: bool, is_started: bool) -> str:
        """Return the definition of a collective operation."""
        given = _BUFFERS[statements.MOVES[name]] + ", root" * (name in ROOTED)
        into = "bytearray(len(into))" if is_started else "into"
        if is_in_place:
            # Roots that scatter leave out where they would receive, all others what they send.
            given = given.replace(_RECEIVED if name == "scatter" else _SENT, "MPI.IN_PLACE")
        given = given.format(into=into)
        method = f"I{name}" if is_started else name.capitalize()
        call = f"comms[comm].{method}({given})"
        return f"def {head}:\n    {f'start({call}, COLLECTIVE)' if is_started else call}\n"

    def wait(self, function: str, kind: str, places: Sequence[int]) -> str:
        """Return the call of a function that waits."""
        name = function[4:]
        is_prompt = function in statements.PROMPT
        requests = "until_complete(take(chosen))" if is_prompt else "take(chosen)"
        call = f"MPI.Request.{name}({requests})"
        if function in statements.ONE_BY_ONE:
            own = "one.Test()" if name == "Test" else f"MPI.Request.{name}(requests)"
            call = f"requests = {requests}\n    for one in list(requests):\n        {own}"
        elif name == "Wait":
            call = f"({requests} or [MPI.Request()])[0].{name}()"
        needs = ("take", "until_complete") if is_prompt else ("take",)
        self.add(name.lower(), f"def {name.lower()}(chosen):\n    {call}\n", needs)
        if not kind:
            return self.call(name.lower(), self.array(places))
        self.use("places_of")
        return self.call(name.lower(), f"places_of({kind})")

    def _send(self, name: str, function: str, *, is_started: bool, is_awaited: bool) -> str:
        """Return the definition of a function that sends."""
        call = f"comms[comm].{function[4:]}([out, size, MPI.BYTE], places[comm][peer], tag)"
        if is_started:
            call = f"start({call}, SEND)" if is_awaited else f"{call}.Free()"
        return f"def {name}(comm, size, peer, tag):\n    {call}\n"


_STEP = "    "
_MOST_LOOPS = 18
"""Python permits 20 blocks in each other."""


def python_source(told: Specification) -> str:
    """Return the program; `deadlocks.require_safe` says whether it runs to the end.

    Raises
    ------
    DataError
        If Python with mpi4py cannot express an operation.
    """
    functions, tables = PythonFunctions(), Tables()
    writer = statements.Statements(
        told, functions, tables, formulas.PYTHON, "MPI.PROC_NULL", _unequal
    )
    body = "".join(_lines(writer, told.body, (), 1, 1)) or f"{_STEP}pass\n"
    computation = table(told)
    if told.ending is not None:
        body += f"{_STEP}compute({told.lines + 1})\n"
    communicators = _communicators(told, functions)
    attach = statements.attached(told, functions)
    begin = functions.text("begin")
    for name, value in (("processes", told.processes), ("room", statements.room(told))):
        begin = begin.replace(f"@{name}@", str(value))
    numbers = [
        f"{table.name} = {_tuple(statements.rows(table, told.processes))}\n" for table in tables
    ]
    parts = [
        begin,
        *(["".join(numbers)] if numbers else []),
        *functions.used(),
        communicators,
        *([computation, functions.text("computation")] if computation else []),
        f"def communicate():\n{body}",
        functions.text("end").replace("@attach@", f"{_STEP}{attach}\n" if attach else ""),
    ]
    return "\n".join([_heading(told), "\n\n".join(parts)])


def _lines(
    writer: statements.Statements,
    nodes: Sequence[Node],
    around: tuple[Loop, ...],
    indent: int,
    line: int,
) -> Iterator[str]:
    """Yield the statements of nodes.

    Parameters
    ----------
    around : the loops around
    indent : steps from the left
    line : the line of the first node
    """
    depth = len(around)
    if depth > _MOST_LOOPS:
        raise DataError(f"no program: {depth} loops in each other are too many", hint=INSTEAD)
    for node in nodes:
        formula = writer.guard(node, around[-1].ranks if around else ())
        place = _STEP * indent
        if isinstance(node, Loop):
            if formula:
                yield f"{place}if {formula}:\n"
            inner = indent + bool(formula)
            yield f"{_STEP * inner}for {formulas.variable(depth)} in range({node.count}):\n"
            yield from _lines(writer, node.body, (*around, node), inner + 1, line + 1)
            line += lines_in(node)
            continue
        guard = f"if {formula}: " if formula else ""
        about = writer.about(node)
        comment = f"  # {printable(about)}" if about else ""
        yield f"{place}{guard}{_computed(node, line, depth)}{writer.call(node)}{comment}\n"
        line += 1


def _computed(step: Step, line: int, depth: int) -> str:
    """Return the call that computes before an operation; "" without times."""
    if step.computing is None:
        return ""
    is_first = f", {formulas.variable(depth - 1)} == 0" if step.computing.first else ""
    return f"compute({line}{is_first}); "


def _unequal(name: str, comm: str, sent: str, received: str, *root: str) -> str:
    return (
        f"{name}({', '.join([comm, f'lambda other: {sent}', f'lambda other: {received}', *root])})"
    )


def _heading(told: Specification) -> str:
    command = f"mpirun -n {told.processes} python3 -m mpi4py THIS_FILE.py"
    first, *lines = (python_docstring(line) for line in statements.heading(told, [command]))
    return "\n".join([f'"""{first}', *lines]).rstrip() + '\n"""\n'


def _tuple(numbers: Int64Array) -> str:
    if numbers.ndim == 1:
        return "(" + "".join(f"{number}, " for number in numbers.tolist()).rstrip() + ")"
    return "(\n" + "".join(f"{_tuple(row)},\n" for row in numbers) + ")"


def _communicators(told: Specification, functions: statements.Functions) -> str:
    lines: list[str] = []
    for number, found in statements.divisions(told, "//"):
        name = printable(told.communicators[number].name)
        if found is None:
            lines.append(f"{_STEP}keep({number}, MPI.COMM_WORLD)\n")
            continue
        functions.use("divide")
        color, key = found
        if not isinstance(color, str):
            color, key = f"{color}[rank]", f"{key}[rank]"
        lines.append(f"{_STEP}divide({number}, {color}, {key})  # {name}\n")
    return "def make_communicators():\n" + ("".join(lines) or f"{_STEP}pass\n")


class PythonProgram(Generator):
    """Writer of programs in Python."""

    name = "mpi4py"
    description = "a program in Python with mpi4py"
    endings = (".py",)

    def write(self, told: Specification, options: Options) -> str:  # noqa: ARG002
        """Return the program.

        Raises
        ------
        DataError
            If Python with mpi4py cannot express an operation.
        """
        return python_source(told)
