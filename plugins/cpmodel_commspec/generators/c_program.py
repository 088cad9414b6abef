"""Generator of C programs that communicate and compute like the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files

from callpath_modeler.arrays import Int64Array
from callpath_modeler.printable import c_comment
from cpmodel_commspec import formulas
from cpmodel_commspec.computation import Computation, Share
from cpmodel_commspec.formulas import Table, Tables
from cpmodel_commspec.generators.functions import STARTED_SENDS, Functions
from cpmodel_commspec.generators.interface import Options
from cpmodel_commspec.generators.statements import (
    Statements,
    attached,
    divisions,
    heading,
    mpi_function,
    room,
    rows,
)
from cpmodel_commspec.specification import Loop, Node, Specification, Step, lines_in, walk


def times(told: Specification, functions: Functions) -> Iterator[str]:
    """Yield the tables and the functions of a program that computes for the times of a trace."""
    found: list[tuple[int, str, Computation, float]] = []
    for line, (node, _) in enumerate(walk(told.body), 1):
        if isinstance(node, Step) and node.computing is not None:
            call = mpi_function(told.shapes[node.shape])
            found.append((line, call, node.computing, node.calling))
    end = told.lines + 1
    if told.ending is not None:
        found.append((end, "after the last line", told.ending, 0.0))
    bins: list[str] = []
    shares: list[str] = []
    for line, _, computation, _ in found:
        for is_first, some in enumerate((computation.usual, computation.first)):
            for share in some:
                shares += _shares(
                    line, is_first, share, share.key(computation.key + is_first), len(bins)
                )
                bins += _bins(share)
    rows = [
        f'{{{line}, "{call}", {{{_seconds(computation.total / told.processes)}, '
        f"{_seconds(calling / told.processes)}}}}}"
        for line, call, computation, calling in found
    ]
    yield functions.text("computation")
    yield _table("struct bin bins", bins)
    yield _table("struct share shares", shares)
    head = "struct {\n    int line;\n    const char *call;\n    double seconds[2];\n} lines"
    yield "/* The trace: seconds before each line and in its calls, mean of all ranks. */"
    yield _table(head, rows)
    yield f"static const double run_time = {_seconds(told.seconds)}; /* of the trace */\n"
    yield functions.text("timers").replace("@end@", str(end))


def timed(step: Step, line: int, around: Sequence[Loop], call: str) -> str:
    """Return a call with its computation and timers; without times, the call itself."""
    if step.computing is None:
        return call
    is_first = f"{formulas.variable(len(around) - 1)} == 0" if step.computing.first else "0"
    return f"LINE({line}, {is_first}, {call});"


def _shares(line: int, is_first: int, share: Share, key: int, begin: int) -> Iterator[str]:
    place = 0
    for first, last in formulas.stretches(share.ranks):
        row = (line, is_first, first, last, place, len(share.ranks), int(share.is_common), begin,
               len(share.seconds.means))  # fmt: skip
        yield f"{{{', '.join(map(str, row))}, {key}ull}}"
        place += last - first + 1


def _bins(share: Share) -> Iterator[str]:
    end = 0
    for count, mean in zip(share.seconds.counts, share.seconds.means, strict=True):
        end += count
        yield f"{{{end}, {_seconds(mean)}}}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.9g}"


def _table(head: str, rows: Sequence[str]) -> str:
    return f"static const {head}[] = {{\n" + "".join(f"    {row},\n" for row in rows) + "};\n"


_NO_BYTES, _BYTES, _ROOTED = "int comm", "int comm, long bytes", "int comm, long bytes, long root"
_SENT = "out, (int)bytes, MPI_BYTE, "
_RECEIVED = "{result}, (int)bytes, MPI_BYTE, "
_REDUCED = "out, {result}, (int)bytes, MPI_BYTE, MPI_BOR, "
_COLLECTIVES = {
    "barrier": (_NO_BYTES, ""),
    "bcast": (_ROOTED, _SENT + "(int)root, "),
    "gather": (_ROOTED, _SENT + _RECEIVED + "(int)root, "),
    "scatter": (_ROOTED, _SENT + _RECEIVED + "(int)root, "),
    "reduce": (_ROOTED, _REDUCED + "(int)root, "),
    "allgather": (_BYTES, _SENT + _RECEIVED),
    "alltoall": (_BYTES, _SENT + _RECEIVED),
    "allreduce": (_BYTES, _REDUCED),
    "scan": (_BYTES, _REDUCED),
    "exscan": (_BYTES, _REDUCED),
    "reduce_scatter_block": (_BYTES, _REDUCED),
}
"""Parameters, and arguments before the communicator."""

_DIRECT = {
    "MPI_Wait": "MPI_Wait(&requests[0], MPI_STATUS_IGNORE);",
    "MPI_Waitall": "MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);",
    "MPI_Waitany": "MPI_Waitany(n, requests, indices, MPI_STATUS_IGNORE);",
}
"""Calls that wait until operations are complete."""

_PROMPT = {
    "MPI_Waitsome": "MPI_Waitsome(n, requests, &count, indices, MPI_STATUSES_IGNORE);",
    "MPI_Test": "MPI_Test(&requests[0], &count, MPI_STATUS_IGNORE);",
    "MPI_Testall": "MPI_Testall(n, requests, &count, MPI_STATUSES_IGNORE);",
    "MPI_Testany": "MPI_Testany(n, requests, indices, &count, MPI_STATUS_IGNORE);",
    "MPI_Testsome": "MPI_Testsome(n, requests, &count, indices, MPI_STATUSES_IGNORE);",
}
_MARK = "//// "
_IN_PLACE, _STARTED = "_in_place", "start_"

_LOWERED = {
    "barrier": {"dissemination": "dissemination", "tree": "tree"},
    "bcast": {"binomial": "binomial_down", "p2p": "from_root_p2p"},
    "reduce": {"binomial": "binomial_up", "p2p": "to_root_p2p"},
    "gather": {"p2p": "to_root_p2p"},
    "scatter": {"p2p": "from_root_p2p"},
    "allgather": {"ring": "ring", "p2p": "everybody_p2p"},
    "alltoall": {"pairwise": "pairwise", "p2p": "everybody_p2p"},
    "allreduce": {
        "recursive-doubling": "recursive_doubling",
        "ring": "ring_of_parts",
        "tree": "tree",
        "p2p": "everybody_p2p",
    },
    "reduce_scatter_block": {"pairwise": "pairwise", "p2p": "everybody_p2p"},
    "scan": {"line": "line"},
    "exscan": {"line": "line"},
}
"""Functions that can replace collectives in a program, by their names in `collective_messages`."""


class CFunctions(Functions):
    """The functions of a program in C.

    Parameters
    ----------
    can_lower : whether the program has an argument that replaces collectives by messages
    """

    def __init__(self, *, can_lower: bool = True) -> None:
        self._can_lower = can_lower
        folder = files("cpmodel_commspec.generators").joinpath("c")
        texts = [
            folder.joinpath(name).read_text(encoding="utf-8")
            for name in ("functions.c", "lowering.c")
        ]
        # The heading of a file is no part of a program.
        source = "".join(text[text.index(_MARK) :] for text in texts)
        super().__init__(source, _MARK, ";")
        self._lowered: dict[str, None] = {}

    @property
    def lowered(self) -> Iterator[tuple[str, str, str]]:
        """Collectives that messages can replace: name, algorithm, and function."""
        for name in self._lowered:
            for algorithm, function in _LOWERED[name].items():
                yield name, algorithm, function

    def array(self, numbers: Sequence[int]) -> str:
        """Return numbers as an array."""
        return f"(int[]){{{', '.join(map(str, numbers))}}}"

    def collective(self, name: str, *arguments: str, is_in_place: bool, is_started: bool) -> str:
        """Return the call of a collective operation that moves equal sizes on all ranks."""
        function = _STARTED * is_started + name + _IN_PLACE * is_in_place
        needs = [] if name == "barrier" else ["scaled"]
        if is_started:
            needs.append("start")
        elif self._can_lower:
            self._lowered.setdefault(name)
            self.add(f"lower_{name}", f"static replacement *lower_{name};\n",
                     ("apart", *_LOWERED[name].values()))  # fmt: skip
            needs.append(f"lower_{name}")
        can_lower = self._can_lower and not is_started
        self.add(function, _collective(function, name, can_lower=can_lower), needs)
        return self.call(function, *arguments)

    def wait(self, function: str, kind: str, places: Sequence[int]) -> str:
        """Return the call of a function that waits."""
        name = function[4:].lower()
        needs = ("take", "until_complete") if function in _PROMPT else ("take",)
        self.add(name, _wait(name, function), needs)
        if not kind:
            return self.call(name, str(len(places)), self.array(places or (0,)))
        self.add(f"{name}_of", _wait_of(name), (name, "places_of"))
        return self.call(f"{name}_of", kind)

    def send(self, function: str, *arguments: str, is_awaited: bool = True) -> str:
        """Return the call of a function that sends."""
        name = function[4:].lower() + "_and_forget" * (not is_awaited)
        is_started = function.lower() in STARTED_SENDS
        needs = ("start", "scaled") if is_started and is_awaited else ("scaled",)
        text = _send(name, function, is_started=is_started, is_awaited=is_awaited)
        self.add(name, text, needs)
        return self.call(name, *arguments)


def _wait(name: str, function: str) -> str:
    is_prompt = function in _PROMPT
    call = _PROMPT[function] if is_prompt else _DIRECT[function]
    return (
        f"static void {name}(int n, const int *chosen)\n{{\n"
        + "    int count;\n" * ("&count" in call)
        + "    MPI_Request *requests = take(n, chosen);\n"
        + "    until_complete(n, requests);\n" * is_prompt
        + f"    {call}\n    release(requests);\n}}\n"
    )


def _wait_of(name: str) -> str:
    return (
        f"static void {name}_of(int kind)\n{{\n    int *chosen = places_of(kind);\n"
        f"    {name}(n_places, chosen);\n    free(chosen);\n}}\n"
    )


def _send(name: str, function: str, *, is_started: bool, is_awaited: bool) -> str:
    begin = end = request = ""
    if is_started and is_awaited:
        request = ", start(SEND, 0)"
    elif is_started:
        begin, request = "    MPI_Request request;\n", ", &request"
        end = "    PMPI_Request_free(&request);\n"
    return (
        f"static void {name}(int comm, long bytes, int peer, long tag)\n{{\n{begin}"
        "    bytes = scaled(bytes);\n"
        f"    {function}(out, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm]"
        f"{request});\n{end}}}\n"
    )


def _collective(function: str, name: str, *, can_lower: bool) -> str:
    parameters, arguments = _COLLECTIVES[name]
    if function.endswith(_IN_PLACE):
        # Roots that scatter leave out where they would receive, all others what they would send.
        left_out = "{result}," if name == "scatter" else "out,"
        arguments = arguments.replace(left_out, "MPI_IN_PLACE,")
    is_started = function.startswith(_STARTED)
    result = "started[n_started - 1].in" if is_started else "in"
    begin = "" if name == "barrier" else "    bytes = scaled(bytes);\n"
    if is_started:
        begin += "    MPI_Request *request = start(COLLECTIVE, room);\n"
    if can_lower:
        bytes_, root = ("0" if word not in parameters else word for word in ("bytes", "root"))
        begin += (
            f"    if (lower_{name}) {{\n        lower_{name}(comm, {bytes_}, {root});\n"
            "        return;\n    }\n"
        )
    called = f"MPI_I{name}" if is_started else f"MPI_{name.capitalize()}"
    end = ", request" if is_started else ""
    return (
        f"static void {function}({parameters})\n{{\n{begin}"
        f"    {called}({arguments.format(result=result)}comms[comm]{end});\n}}\n"
    )


_STEP = "    "


def options_of(functions: CFunctions) -> tuple[str, Mapping[str, str]]:
    """Return the options of a program, and the statements that apply them.

    Call it after all calls of the program, because functions decide which options it has.

    Returns
    -------
    options : the C text
    statements : by the name of their place in the main function
    """
    takes, rows = [], []
    ends = {"resize": "", "make_apart": ""}
    if functions.uses("scaled"):
        functions.use("resize")
        takes.append(functions.text("takes_scale_bytes"))
        rows.append('{"--scale-bytes", "a factor from 0 to 1e9", takes_scale_bytes},')
        ends["resize"] = (
            f"{_STEP}if (!resize()) {{\n{_STEP * 2}MPI_Finalize();\n{_STEP * 2}return 2;\n"
            f"{_STEP}}}\n"
        )
    lowered = list(functions.lowered)
    if lowered:
        replacements = "".join(
            f'{_STEP}{{"{name}={algorithm}", &lower_{name}, {function}}},\n'
            for name, algorithm, function in lowered
        )
        takes.append(functions.text("takes_lower").replace("@replacements@", replacements))
        # Adjacent literals are one text: lines stay short.
        known = "".join(f'\n{_STEP * 2}" {name}={algorithm}"' for name, algorithm, _ in lowered)
        rows.append(f'{{"--lower", "one of"{known},\n{_STEP}takes_lower}},')
        ends["make_apart"] = f"{_STEP}if (is_lowered)\n{_STEP * 2}make_apart();\n"
    text = functions.text("options").replace("@takes@", "".join(f"{one}\n" for one in takes))
    return text.replace("@arguments@", "".join(f"{_STEP}{row}\n" for row in rows)), ends


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
        *(_table_of_ranks(table, told.processes) for table in tables),
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


def _table_of_ranks(table: Table, processes: int) -> str:
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


class CProgram:
    """Writer of programs in C."""

    name = "c"
    description = "a program in C with MPI"
    endings = (".c",)
    is_program = True
    is_directory = False

    def write(self, told: Specification, options: Options) -> str:  # noqa: ARG002
        """Return the program.

        Raises
        ------
        DataError
            If C with MPI cannot express an operation.
        """
        return c_source(told)
