"""Generator of C programs that communicate and compute for the time of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callpath_modeler.arrays import Int64Array
from callpath_modeler.printable import c_comment
from cpmodel_commspec import formulas
from cpmodel_commspec.formulas import Table, Tables
from cpmodel_commspec.generators.c.computing import timed, times
from cpmodel_commspec.generators.c.functions import CFunctions
from cpmodel_commspec.generators.c.options import options_of
from cpmodel_commspec.generators.functions import Functions
from cpmodel_commspec.generators.statements import (
    Statements,
    attached,
    divisions,
    heading,
    room,
    rows,
)
from cpmodel_commspec.specification import Loop, Node, Specification, lines_in

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
    body = "".join(_lines(statements, told.body, ()))
    communicators = _communicators(told, functions)
    attach = attached(told, functions)
    begin = functions.text("begin")
    for name, value in (
        ("processes", told.processes),
        ("communicators", max(1, len(told.communicators))),
        ("room", room(told)),
    ):
        begin = begin.replace(f"@{name}@", str(value))
    options, ends = options_of(functions)
    end = functions.text("end").replace("@attach@", f"{_STEP}{attach}\n" if attach else "")
    for name, text in ends.items():
        end = end.replace(f"@{name}@", text)
    for name in ("start_timers", "print_times"):
        end = end.replace(f"@{name}@", f"{_STEP}{name}();\n" if told.is_timed else "")
    if told.is_timed:
        body += f"{_STEP}compute(END, 0);\n"
    parts = [
        _heading(told),
        begin,
        *(_table(table, told.processes) for table in tables),
        *functions.used(),
        communicators,
        options,
        *(times(told, functions) if told.is_timed else ()),
        f"static void communicate(void)\n{{\n{body}}}\n",
        end,
    ]
    return "\n".join(parts)


def _lines(
    statements: Statements, nodes: Sequence[Node], around: tuple[Loop, ...], line: int = 1
) -> Iterator[str]:
    """Yield the statements of nodes; `line` is the number of the first."""
    depth = len(around)
    indent = _STEP * (depth + 1)
    for node in nodes:
        formula = statements.guard(node, around[-1].ranks if around else ())
        guard = f"if ({formula}) " if formula else ""
        if isinstance(node, Loop):
            variable = formulas.variable(depth)
            head = f"for (long {variable} = 0; {variable} < {node.count}; {variable}++) {{"
            yield f"{indent}{guard}{head}\n"
            yield from _lines(statements, node.body, (*around, node), line + 1)
            yield f"{indent}}}\n"
        else:
            about = statements.about(node)
            place = f" /* {c_comment(about)} */" if about else ""
            call = timed(node, line, around, statements.call(node))
            yield f"{indent}{guard}{call}{place}\n"
        line += lines_in(node)


def _unequal(name: str, comm: str, sent: str, received: str, *root: str) -> str:
    sizes = f"EACH_MEMBER({comm}) {{ sent[k] = {sent}; received[k] = {received}; }}"
    return f"{{ {sizes} {name}({', '.join([comm, *root])}); }}"


def _heading(told: Specification) -> str:
    commands = [
        "mpicc -O2 -o communicate THIS_FILE.c",
        f"mpirun -n {told.processes} ./communicate",
    ]
    lines = [*heading(told, commands), *_times(told)]
    return "/*\n" + "".join(f" * {c_comment(line)}".rstrip() + "\n" for line in lines) + " */"


def _times(told: Specification) -> Iterator[str]:
    """Yield the lines of the heading about times."""
    if not told.is_timed:
        yield "It does not compute, because the specification has no times."
        return
    yield "It computes before each operation as long as the run did. At the end it prints the times"
    yield "of each line beside those of the run."
    yield "    --scale-compute F   compute F times as long"


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
