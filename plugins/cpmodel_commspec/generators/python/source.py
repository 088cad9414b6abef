"""Generator of Python programs that communicate like the run, and do nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable, python_docstring
from cpmodel_commspec import formulas
from cpmodel_commspec.formulas import Tables
from cpmodel_commspec.generators.functions import Functions
from cpmodel_commspec.generators.python.functions import PythonFunctions
from cpmodel_commspec.generators.statements import (
    INSTEAD,
    Statements,
    buffered,
    divisions,
    heading,
    room,
    rows,
)
from cpmodel_commspec.specification import Loop, Node, Specification

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
    body = "".join(_lines(statements, told.body, 0, 1, ())) or f"{_STEP}pass\n"
    communicators = _communicators(told, functions)
    attach = _attach(told, functions)
    begin = functions.text("begin")
    for name, value in (("processes", told.processes), ("room", room(told))):
        begin = begin.replace(f"@{name}@", str(value))
    numbers = [f"{table.name} = {_tuple(rows(table, told.processes))}\n" for table in tables]
    parts = [
        begin,
        *(["".join(numbers)] if numbers else []),
        *functions.used(),
        communicators,
        f"def communicate():\n{body}",
        functions.text("end").replace("@attach@", attach),
    ]
    return "\n".join([_heading(told), "\n\n".join(parts)])


def _lines(
    statements: Statements, nodes: Sequence[Node], depth: int, indent: int, around: tuple[int, ...]
) -> Iterator[str]:
    """Yield the statements of nodes.

    Parameters
    ----------
    depth : loops around
    indent : steps from the left
    around : the ranks of the loop around
    """
    if depth > _MOST_LOOPS:
        raise DataError(f"no program: {depth} loops in each other are too many", hint=INSTEAD)
    for node in nodes:
        formula, place = statements.guard(node, around), _STEP * indent
        if isinstance(node, Loop):
            if formula:
                yield f"{place}if {formula}:\n"
            inner = indent + bool(formula)
            yield f"{_STEP * inner}for {formulas.variable(depth)} in range({node.count}):\n"
            yield from _lines(statements, node.body, depth + 1, inner + 1, node.ranks)
            continue
        guard = f"if {formula}: " if formula else ""
        about = statements.about(node)
        comment = f"  # {printable(about)}" if about else ""
        yield f"{place}{guard}{statements.call(node)}{comment}\n"


def _unequal(name: str, comm: str, sent: str, received: str, *root: str) -> str:
    return (
        f"{name}({', '.join([comm, f'lambda other: {sent}', f'lambda other: {received}', *root])})"
    )


def _attach(told: Specification, functions: Functions) -> str:
    """Return the statement that makes room for buffered sends, or ""."""
    total, messages = buffered(told)
    if not messages:
        return ""
    return f"{_STEP}{functions.call('attach', str(total), str(messages))}\n"


def _heading(told: Specification) -> str:
    command = f"mpirun -n {told.processes} python3 -m mpi4py THIS_FILE.py"
    first, *lines = (python_docstring(line) for line in heading(told, told.program, [command]))
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
