"""The built-in guidelines and their syntax.

A size m is the size in benchmarks: m bytes to or from each process. For reductions and broadcasts,
m is the whole buffer. For gathers, scatters, exchanges and reductions that scatter, m is the block
of one process. So the right side may need messages of p m or m / p bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from callpath_modeler.errors import UsageError, nearest_or_all
from callpath_modeler.support.expression import END, Cursor, ExpressionError
from cpmodel_guidelines.functions import COLLECTIVES, canonical

PAPERS = {
    "TGT10": "Träff, Gropp, Thakur: Self-consistent MPI performance requirements, "
    "IEEE TPDS 21(5), 2010",
    "HC18": "Hunold, Carpen-Amarie: Tuning MPI collectives by verifying performance guidelines, "
    "HPC Asia 2018",
}
"""Sources of guidelines. Guidelines from elsewhere give the reason why they hold instead."""


class Size(StrEnum):
    """Size of a message, relative to the m bytes of the guideline."""

    SAME = "m"
    ALL = "p*m"
    PART = "m/p"
    LEAST = "0"  # the shortest measured message


class GuidelineKind(StrEnum):
    """GuidelineKind of a guideline: the right side that it compares a function with."""

    PATTERN = "pattern"  # other functions that do the same work
    MONOTONY = "monotony"  # the same function with a longer message
    SPLIT = "split"  # the same message in several pieces
    PROCESSES = "processes"  # the same function on more processes


@dataclass(frozen=True, slots=True)
class GuidelineTerm:
    """A function with messages of some size."""

    function: str
    size: Size = Size.SAME

    def __str__(self) -> str:
        return self.function if self.size is Size.SAME else f"{self.function}({self.size})"


@dataclass(frozen=True, slots=True)
class Guideline:
    """A guideline: the left side should not be slower than the right side.

    Attributes
    ----------
    kind : kind of the right side
    text : the guideline as users read and write it
    left : the checked function
    right : functions of the right side, executed one after the other; empty except for patterns
    source : key of `PAPERS`, or the reason why the guideline holds
    is_composable : whether the sizes of the right side are known, so that its time is the sum of
        times of its functions; otherwise a measured mock-up is needed
    """

    kind: GuidelineKind
    text: str
    left: GuidelineTerm
    right: tuple[GuidelineTerm, ...]
    source: str
    is_composable: bool = True

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names of the functions of the right side."""
        return tuple(term.function for term in self.right)

    @property
    def short(self) -> str:
        """Return the text without sizes, as papers write it."""
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
    ("Alltoallv <= Alltoallw", "Alltoallw is more general"),
    ("Barrier(0) <= Allreduce(0)", "no process has the result before all have begun"),
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
"""Functions that one process executes without communication."""

_TOKEN = re.compile(r"(?P<name>[A-Za-z_](?:\w|-(?=\w)){0,199})|(?P<zero>0)|(?P<sign><=|[-+*/()])")
_SIZES = {"m": Size.SAME, "pm": Size.ALL, "mp": Size.ALL, "m/p": Size.PART, "0": Size.LEAST}


class GuidelineError(ExpressionError):
    """Syntax error in a guideline."""


def of_mock_up(left: str, parts: Sequence[str]) -> Guideline:
    """Return the guideline that a measured mock-up states; the sizes of its parts are unknown."""
    text = f"{left} <= {' + '.join(parts)}"
    right = tuple(GuidelineTerm(part) for part in parts)
    return Guideline(
        GuidelineKind.PATTERN, text, GuidelineTerm(left), right, "measured mock-up", False
    )


def parse(text: str, source: str = "given by the user") -> Guideline:
    """Return the guideline in a text such as ``Allgather <= Gather + Bcast(p*m)``.

    A name that is no collective must be the name of a measured function, such as ``Send_Recv``.

    Raises
    ------
    GuidelineError
        If the text is not a guideline.
    """
    cursor = Cursor(text, _TOKEN, GuidelineError)
    start = cursor.ahead
    left = _term(cursor)
    if left.size in {Size.ALL, Size.PART}:
        cursor.fail("the size on the left side must be m, or 0 for the shortest message", start)
    cursor.expect("<=", "expected <=")
    right = [_term(cursor)]
    while cursor.accept("+"):
        right.append(_term(cursor))
    if cursor.ahead.kind != END:
        cursor.fail("unexpected text after the guideline")
    if left in right:
        cursor.fail("both sides contain the same function")
    written = f"{left} <= {' + '.join(map(str, right))}"
    return Guideline(GuidelineKind.PATTERN, written, left, tuple(right), source)


def _term(cursor: Cursor) -> GuidelineTerm:
    token = cursor.expect("name", "expected the name of a function")
    name = canonical(token.text) or token.text
    if not cursor.accept("("):
        return GuidelineTerm(name)
    start, said = cursor.ahead, ""
    while cursor.ahead.kind != END and cursor.ahead.text != ")":
        said += cursor.take().text
    size = _SIZES.get(said.replace("*", ""))
    if size is None or not cursor.accept(")"):
        cursor.fail("the size in parentheses must be m, p*m, m/p or 0", start)
    return GuidelineTerm(name, size)


def patterns(added: Sequence[str] = ()) -> tuple[Guideline, ...]:
    """Return the guidelines of the user and all built-in guidelines between collectives.

    Raises
    ------
    UsageError
        If one of `added` is not a guideline.
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


def others_in(guidelines: Sequence[Guideline]) -> frozenset[str]:
    """Return the names of functions in guidelines that are no collectives."""
    named = {term.function for each in guidelines for term in (each.left, *each.right)}
    return frozenset(named - {*COLLECTIVES})


def require_measured(guidelines: Sequence[Guideline], measured: Collection[str]) -> None:
    """Raise an error if a guideline of the user names a function that does not exist.

    Raises
    ------
    UsageError
        If a name is no collective and was not measured.
    """
    for name in sorted(others_in(guidelines) - {*measured}):
        known = sorted({*COLLECTIVES, *measured})
        raise UsageError(
            f"--rule: no collective and no measured function is called {name!r}",
            hint=nearest_or_all(name, known),
        )


def of_function(name: str) -> tuple[Guideline, ...]:
    """Return the guidelines about a single function: longer messages, pieces, more processes."""
    term, found = GuidelineTerm(name), []
    if name not in _SIZELESS:
        found += [
            Guideline(GuidelineKind.MONOTONY, f"{name} <= longer messages", term, (), "TGT10"),
            Guideline(GuidelineKind.SPLIT, f"{name} <= in pieces", term, (), "TGT10"),
        ]
    if name not in _ALONE:
        why = "some of the processes could be idle"
        text = f"{name} <= more processes"
        found.append(Guideline(GuidelineKind.PROCESSES, text, term, (), why))
    return tuple(found)
