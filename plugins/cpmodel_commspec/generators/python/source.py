"""Generator of Python programs that communicate, and compute for the time of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable, python_docstring
from cpmodel_commspec import formulas
from cpmodel_commspec.formulas import Tables
from cpmodel_commspec.generators.functions import Functions
from cpmodel_commspec.generators.python.computing import table
from cpmodel_commspec.generators.python.functions import PythonFunctions
from cpmodel_commspec.generators.statements import (
    Statements,
    attached,
    divisions,
    heading,
    room,
    rows,
)
from cpmodel_commspec.simulation.deadlocks import INSTEAD
from cpmodel_commspec.specification import Loop, Node, Specification, Step, lines_in

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
    statements = Statements(told, functions, tables, formulas.PYTHON, "MPI.PROC_NULL", _unequal)
    body = "".join(_lines(statements, told.body, (), 1, 1)) or f"{_STEP}pass\n"
    computation = table(told)
    if told.ending is not None:
        body += f"{_STEP}compute({told.lines + 1})\n"
    communicators = _communicators(told, functions)
    attach = attached(told, functions)
    begin = functions.text("begin")
    for name, value in (("processes", told.processes), ("room", room(told))):
        begin = begin.replace(f"@{name}@", str(value))
    numbers = [f"{table.name} = {_tuple(rows(table, told.processes))}\n" for table in tables]
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
    statements: Statements, nodes: Sequence[Node], around: tuple[Loop, ...], indent: int, line: int
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
        formula = statements.guard(node, around[-1].ranks if around else ())
        place = _STEP * indent
        if isinstance(node, Loop):
            if formula:
                yield f"{place}if {formula}:\n"
            inner = indent + bool(formula)
            yield f"{_STEP * inner}for {formulas.variable(depth)} in range({node.count}):\n"
            yield from _lines(statements, node.body, (*around, node), inner + 1, line + 1)
            line += lines_in(node)
            continue
        guard = f"if {formula}: " if formula else ""
        about = statements.about(node)
        comment = f"  # {printable(about)}" if about else ""
        yield f"{place}{guard}{_computed(node, line, depth)}{statements.call(node)}{comment}\n"
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
    first, *lines = (python_docstring(line) for line in heading(told, [command]))
    return "\n".join([f'"""{first}', *lines]).rstrip() + '\n"""\n'


def _tuple(numbers: Int64Array) -> str:
    if numbers.ndim == 1:
        return "(" + "".join(f"{number}, " for number in numbers.tolist()).rstrip() + ")"
    return "(\n" + "".join(f"{_tuple(row)},\n" for row in numbers) + ")"


def _communicators(told: Specification, functions: Functions) -> str:
    lines: list[str] = []
    for number, found in divisions(told, "//"):
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
