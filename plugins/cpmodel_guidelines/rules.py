"""The guidelines, as data: which collective should not be slower than what.

Sizes are those of benchmarks: m bytes to or from each process. What a process gives to a reduction
or a broadcast is m; of gathers, scatters and exchanges m is the block of one process, and so it is
of reductions that scatter. So the messages of an emulation may be p times as long, or as short.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from callpath_modeler.errors import UsageError, nearest_or_all
from callpath_modeler.syntax import END, Cursor, ExpressionError
from cpmodel_guidelines.functions import COLLECTIVES, canonical

PAPERS = {
    "TGT10": "Träff, Gropp, Thakur: Self-consistent MPI performance requirements, "
    "IEEE TPDS 21(5), 2010",
    "HC18": "Hunold, Carpen-Amarie: Tuning MPI collectives by verifying performance guidelines, "
    "HPC Asia 2018",
}
"""Where guidelines come from; those of neither say why they should hold."""


class Size(StrEnum):
    """How long messages are, given those of the guideline, of m bytes."""

    SAME = "m"
    ALL = "p*m"
    PART = "m/p"
    LEAST = "0"  # as short as was measured


class GuidelineKind(StrEnum):
    """What a guideline is about."""

    PATTERN = "pattern"  # a collective and others that do its work
    MONOTONY = "monotony"  # longer messages
    SPLIT = "split"  # a message in several pieces
    PROCESSES = "processes"  # more processes


@dataclass(frozen=True, slots=True)
class GuidelineTerm:
    """A collective with messages of some size."""

    function: str
    size: Size = Size.SAME

    def __str__(self) -> str:
        return self.function if self.size is Size.SAME else f"{self.function}({self.size})"


@dataclass(frozen=True, slots=True)
class Guideline:
    """What should not be slower than what.

    Attributes
    ----------
    kind : of the others but patterns, `left` is the function that they are about
    text : as users read and write it
    left : the collective
    right : what does the same, one after the other; of other kinds than patterns, nothing
    source : one of `PAPERS`, or the reason
    """

    kind: GuidelineKind
    text: str
    left: GuidelineTerm
    right: tuple[GuidelineTerm, ...]
    source: str

    @property
    def short(self) -> str:
        """The text without sizes, as papers write it."""
        if self.kind is not GuidelineKind.PATTERN:
            return self.text
        return f"{self.left.function} <= {' + '.join(term.function for term in self.right)}"


_PATTERNS = (
    ("Allgather <= Gather + Bcast(p*m)", "TGT10"),
    ("Allgather <= Alltoall", "TGT10"),
    ("Allgather <= Allreduce(p*m)", "HC18"),
    ("Allgather <= Allgatherv", "HC18"),
    ("Allreduce <= Reduce + Bcast", "TGT10"),
    ("Allreduce <= Reduce_scatter_block(m/p) + Allgather(m/p)", "HC18"),
    ("Allreduce <= Reduce_scatter(m/p) + Allgatherv(m/p)", "TGT10"),
    ("Alltoall <= Alltoallv", "HC18"),
    ("Alltoallv <= Alltoallw", "more general"),
    ("Barrier(0) <= Allreduce(0)", "nobody has the result before all have begun"),
    ("Bcast <= Scatter(m/p) + Allgather(m/p)", "TGT10"),
    ("Gather <= Allgather", "TGT10"),
    ("Gather <= Gatherv", "HC18"),
    ("Gather <= Reduce(p*m)", "HC18"),
    ("Reduce <= Allreduce", "TGT10"),
    ("Reduce <= Reduce_scatter_block(m/p) + Gather(m/p)", "HC18"),
    ("Reduce <= Reduce_scatter(m/p) + Gatherv(m/p)", "TGT10"),
    ("Reduce_scatter <= Allreduce(p*m)", "TGT10"),
    ("Reduce_scatter <= Reduce(p*m) + Scatterv", "TGT10"),
    ("Reduce_scatter_block <= Allreduce(p*m)", "HC18"),
    ("Reduce_scatter_block <= Reduce(p*m) + Scatter", "HC18"),
    ("Reduce_scatter_block <= Reduce_scatter", "HC18"),
    ("Scan <= Exscan + Reduce_local", "HC18"),
    ("Scatter <= Bcast(p*m)", "TGT10"),
    ("Scatter <= Scatterv", "HC18"),
)

_SIZELESS = frozenset({"Barrier"})
_ALONE = frozenset({"Reduce_local"})
"""What one process does by itself."""

_TOKEN = re.compile(r"(?P<name>[A-Za-z_]+)|(?P<zero>0)|(?P<sign><=|[-+*/()])")
_SIZES = {"m": Size.SAME, "pm": Size.ALL, "mp": Size.ALL, "m/p": Size.PART, "0": Size.LEAST}


class GuidelineError(ExpressionError):
    """A text that is no guideline."""


def parse(text: str, source: str = "of the user") -> Guideline:
    """Read a guideline such as ``Allgather <= Gather + Bcast(p*m)``.

    Raises
    ------
    GuidelineError
        If it is none.
    """
    cursor = Cursor(text, _TOKEN, GuidelineError)
    start = cursor.ahead
    left = _term(cursor)
    if left.size in {Size.ALL, Size.PART}:
        cursor.fail("messages of the left side are m, or as short as can be: 0", start)
    cursor.expect("<=", "<= is needed here")
    right = [_term(cursor)]
    while cursor.accept("+"):
        right.append(_term(cursor))
    if cursor.ahead.kind != END:
        cursor.fail("the guideline has ended before this")
    if left in right:
        cursor.fail("a function is not slower than itself")
    written = f"{left} <= {' + '.join(map(str, right))}"
    return Guideline(GuidelineKind.PATTERN, written, left, tuple(right), source)


def _term(cursor: Cursor) -> GuidelineTerm:
    token = cursor.expect("name", "the name of a collective is needed here")
    name = canonical(token.text)
    if name is None:
        cursor.fail(
            f"no collective {token.text!r}; {nearest_or_all(token.text, COLLECTIVES)}", token
        )
    if not cursor.accept("("):
        return GuidelineTerm(name)
    start, said = cursor.ahead, ""
    while cursor.ahead.kind != END and cursor.ahead.text != ")":
        said += cursor.take().text
    size = _SIZES.get(said.replace("*", ""))
    if size is None or not cursor.accept(")"):
        cursor.fail("a size is m, p*m, m/p or 0 in brackets", start)
    return GuidelineTerm(name, size)


def patterns(added: Sequence[str] = ()) -> tuple[Guideline, ...]:
    """Return all guidelines between collectives, and those of the user.

    Raises
    ------
    UsageError
        If one of `added` is not understood.
    """
    own = []
    for text in added:
        try:
            own.append(parse(text))
        except GuidelineError as error:
            raise UsageError(
                f"--rule: {error}", hint="e.g. --rule 'Allgather <= Gather + Bcast(p*m)'"
            ) from None
    known = [parse(text, source) for text, source in _PATTERNS]
    return tuple({each.text: each for each in (*own, *known)}.values())


def of_function(name: str) -> tuple[Guideline, ...]:
    """Return the guidelines about one collective: its messages, and processes."""
    term, found = GuidelineTerm(name), []
    if name not in _SIZELESS:
        found += [
            Guideline(GuidelineKind.MONOTONY, f"{name} <= longer messages", term, (), "TGT10"),
            Guideline(GuidelineKind.SPLIT, f"{name} <= in pieces", term, (), "TGT10"),
        ]
    if name not in _ALONE:
        why = "fewer could take part in vain"
        text = f"{name} <= more processes"
        found.append(Guideline(GuidelineKind.PROCESSES, text, term, (), why))
    return tuple(found)
