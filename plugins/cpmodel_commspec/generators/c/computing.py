"""Computation of generated programs in C: tables of seconds, and the times of the trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cpmodel_commspec import formulas
from cpmodel_commspec.computation import Computation, Share
from cpmodel_commspec.generators.functions import Functions
from cpmodel_commspec.generators.statements import mpi_function
from cpmodel_commspec.specification import Loop, Specification, Step, walk


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
