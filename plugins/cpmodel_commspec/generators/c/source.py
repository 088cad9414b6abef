"""Generator of C programs that communicate like the run, and do nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callpath_modeler.arrays import Int64Array
from callpath_modeler.printable import c_comment
from cpmodel_commspec import formulas
from cpmodel_commspec.formulas import Table, Tables
from cpmodel_commspec.generators.c.functions import CFunctions
from cpmodel_commspec.generators.functions import Functions
from cpmodel_commspec.generators.statements import (
    Statements,
    buffered,
    divisions,
    heading,
    room,
    rows,
)
from cpmodel_commspec.specification import Loop, Node, Specification

_STEP = "    "


def c_source(told: Specification) -> str:
    """Return the program; `deadlocks.require_safe` says whether it runs to the end.

    Raises
    ------
    DataError
        If C with MPI cannot express an operation.
    """
    functions, tables = CFunctions(), Tables()
    statements = Statements(told, functions, tables, formulas.C, "MPI_PROC_NULL", _unequal)
    body = "".join(_lines(statements, told.body, 1, ()))
    communicators = _communicators(told, functions)
    attach = _attach(told, functions)
    begin = functions.text("begin")
    for name, value in (
        ("processes", told.processes),
        ("communicators", max(1, len(told.communicators))),
        ("room", room(told)),
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


def _lines(
    statements: Statements, nodes: Sequence[Node], depth: int, around: tuple[int, ...]
) -> Iterator[str]:
    """Yield the statements of nodes; `around` has the ranks of the loop around them."""
    indent = _STEP * depth
    for node in nodes:
        formula = statements.guard(node, around)
        guard = f"if ({formula}) " if formula else ""
        if isinstance(node, Loop):
            variable = formulas.variable(depth - 1)
            head = f"for (long {variable} = 0; {variable} < {node.count}; {variable}++) {{"
            yield f"{indent}{guard}{head}\n"
            yield from _lines(statements, node.body, depth + 1, node.ranks)
            yield f"{indent}}}\n"
            continue
        about = statements.about(node)
        place = f" /* {c_comment(about)} */" if about else ""
        yield f"{indent}{guard}{statements.call(node)}{place}\n"


def _unequal(name: str, comm: str, sent: str, received: str, *root: str) -> str:
    sizes = f"EACH_MEMBER({comm}) {{ sent[k] = {sent}; received[k] = {received}; }}"
    return f"{{ {sizes} {name}({', '.join([comm, *root])}); }}"


def _attach(told: Specification, functions: Functions) -> str:
    """Return the statement that makes room for buffered sends, or ""."""
    total, messages = buffered(told)
    if not messages:
        return ""
    return f"{_STEP}{functions.call('attach', str(total), str(messages))}\n"


def _heading(told: Specification) -> str:
    commands = [
        "mpicc -O2 -o communicate THIS_FILE.c",
        f"mpirun -n {told.processes} ./communicate",
    ]
    lines = heading(told, told.program, commands)
    return "/*\n" + "".join(f" * {c_comment(line)}".rstrip() + "\n" for line in lines) + " */"


def _table(table: Table, processes: int) -> str:
    numbers = rows(table, processes)
    sizes = "".join(f"[{size}]" for size in numbers.shape)
    return f"static const long {table.name}{sizes} = {_braces(numbers)};\n"


def _braces(numbers: Int64Array) -> str:
    if numbers.ndim == 1:
        return "{" + ", ".join(map(str, numbers.tolist())) + "}"
    return "{\n" + ",\n".join(map(_braces, numbers)) + "}"


def _communicators(told: Specification, functions: Functions) -> str:
    lines: list[str] = []
    for number, found in divisions(told, "/"):
        name = c_comment(told.communicators[number].name)
        if found is None:
            lines.append(f"{_STEP}keep({number}, MPI_COMM_WORLD);\n")
            continue
        functions.use("divide")
        color, key = found
        if isinstance(color, str):
            lines.append(f"{_STEP}divide({number}, {color}, {key}); /* {name} */\n")
            continue
        lines += [
            f"{_STEP}static const int color{number}[] = {{{', '.join(map(str, color))}}};\n",
            f"{_STEP}static const int key{number}[] = {{{', '.join(map(str, key))}}};\n",
            f"{_STEP}/* {name} */\n",
            f"{_STEP}divide({number}, color{number}[rank], key{number}[rank]);\n",
        ]
    return "static void make_communicators(void)\n{\n" + "".join(lines) + "}\n"
