"""Texts of measurements: call paths as text, and titles of columns with metric and unit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import PROGRAM, Region, base_unit

_ARROW = re.compile(r"(?:(?<!\s)(?<!operator)\s+|(?<!operator))->\s*")
_ARROW_INSIDE = re.compile(r"(?<!operator)->")
_SLASH = re.compile(r"(?<!\\)/")
_SEMICOLON = re.compile(";")
_MPI = re.compile(r"P?MPI_[A-Z]")
_OPENMP = re.compile(r"!\$omp (?:implicit )?(\w+)")
_OPENMP_ROLES = {"for": "loop", "do": "loop"}
_WAITING = re.compile(
    r"<?_*(?:g?omp|openmp|kmpc?)[ _.:](?:\w*[ _.:])?(barrier|idle|wait)", re.IGNORECASE
)
"""Names of waiting in runtime systems of OpenMP, such as ``OpenMP_Implicit_Barrier``."""


def known_region(name: str) -> Region:
    """Return the region called `name`, with the paradigm of MPI functions and OpenMP constructs."""
    if name == PROGRAM:
        return Region(name, role="artificial")
    if _MPI.match(name):
        return Region(name, paradigm="mpi")
    construct = _OPENMP.match(name)
    if construct:
        word = construct[1]
        return Region(name, paradigm="openmp", role=_OPENMP_ROLES.get(word, word))
    waiting = _WAITING.match(name)
    if waiting:
        return Region(name, paradigm="openmp", role=waiting[1].lower())
    return Region(name)


_FEW_PATHS = 32
"""Largest number of paths of a small call tree."""
_MOST_TREES = 16
"""Number of small call trees that are remembered: the tables of a series have the same ones."""


def tree_of(paths: Sequence[tuple[str, ...]]) -> tuple[CallTree, IntArray]:
    """Return the call tree of `paths`, and the row of each path.

    Callers get a row even if they are not in `paths`. Siblings have the order of first occurrence.
    If the artificial program root is in `paths`, it becomes the caller of all other paths, because
    paths as text do not contain it.
    """
    if len(paths) > _FEW_PATHS:
        return _tree_of(paths)
    tree, row = _tree_of_few(tuple(paths))
    return tree, row.copy()


@lru_cache(maxsize=_MOST_TREES)
def _tree_of_few(paths: tuple[tuple[str, ...], ...]) -> tuple[CallTree, IntArray]:
    return _tree_of(paths)


def _tree_of(paths: Sequence[tuple[str, ...]]) -> tuple[CallTree, IntArray]:
    if (PROGRAM,) in paths:
        paths = [path if path[0] == PROGRAM else (PROGRAM, *path) for path in paths]
    number_of: dict[tuple[int, str], int] = {}
    callers: list[int] = []
    names: list[str] = []
    ends = []
    for path in paths:
        node = ROOT
        for name in path:
            found = number_of.setdefault((node, name), len(names))
            if found == len(names):
                names.append(name)
                callers.append(node)
            node = found
        ends.append(node)
    tree, row_of = tree_of_nodes(callers, names)
    return tree, row_of[ends]


def tree_of_nodes(
    callers: Sequence[int],
    names: Sequence[str],
    sites: Sequence[int] | None = None,
    files: Mapping[str, str] | None = None,
) -> tuple[CallTree, IntArray]:
    """Return the call tree of nodes, and the row of each node.

    Siblings stay in order.

    Parameters
    ----------
    callers : for each node, the number of its caller, or `ROOT`; callers come before callees
    names : for each node, the name of its region
    sites : for each node, the line of the call in the source of the caller; None = not known
    files : source file by name of a region
    """
    roots: list[int] = []
    callees: list[list[int]] = [[] for _ in names]
    for node, caller in enumerate(callers):
        (roots if caller == ROOT else callees[caller]).append(node)
    row_of = np.empty(len(names), np.intp)
    parents: list[int] = []
    order: list[int] = []
    stack = [(root, ROOT) for root in reversed(roots)]
    while stack:
        node, caller = stack.pop()
        row = len(order)
        row_of[node] = row
        order.append(node)
        parents.append(caller)
        stack += [(callee, row) for callee in reversed(callees[node])]
    index: dict[str, int] = {}
    region = [index.setdefault(names[node], len(index)) for node in order]
    known = files or {}
    regions = [replace(known_region(name), file=known.get(name, "")) for name in index]
    lines = None if sites is None else [sites[node] for node in order]
    tree = CallTree.from_parents(parents, region, regions, site=lines)
    return tree, row_of


def exclusive_of(tree: CallTree, inclusive: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return exclusive values: each inclusive value less those of the callees.

    Parameters
    ----------
    tree : the call tree
    inclusive : [call paths, runs]; NaN = not measured. The values below are then subtracted from
        the nearest measured caller

    Returns
    -------
    exclusive : ndarray
        [call paths, runs]; rounding may make values negative.
    total : ndarray
        [runs] sum of the values without a measured caller.
    """
    measured = ~np.isnan(inclusive)
    runs = np.arange(inclusive.shape[1])
    nearest = np.full(inclusive.shape, ROOT, np.intp)
    exclusive = inclusive.copy()
    total = np.zeros(inclusive.shape[1])
    for rows in tree.levels():
        parents = tree.parent[rows]
        above = np.where((parents == ROOT)[:, None], ROOT, nearest[parents])
        here = measured[rows]
        nearest[rows] = np.where(here, rows[:, None], above)
        of_caller = here & (above != ROOT)
        values = np.where(here, inclusive[rows], 0.0)
        total += np.where(above == ROOT, values, 0.0).sum(axis=0)
        row, run = np.nonzero(of_caller)
        np.subtract.at(exclusive, (above[row, run], runs[run]), values[row, run])
    return exclusive, total


def split_paths(texts: Sequence[str]) -> list[tuple[str, ...]]:
    r"""Return the names of call paths that are joined by ``->``, ``/`` or ``;``.

    All texts are split at one of these separators: the one that most texts contain, or else the
    first of these. A slash in a name is written ``\/``. The arrow of ``operator->`` is not a
    separator.

    >>> split_paths(["main", "main/solve", "main/solve/state a->b"])[-1]
    ('main', 'solve', 'state a->b')
    """
    ways = (
        (_ARROW, split_at_arrows),
        (_SLASH, split_at_slashes),
        (_SEMICOLON, lambda text: tuple(text.split(";"))),
    )
    counts = [sum(sign.search(text) is not None for text in texts) for sign, _ in ways]
    split = ways[counts.index(max(counts))][1] if max(counts, default=0) else ways[-1][1]
    return [split(text) for text in texts]


def split_at_arrows(text: str) -> tuple[str, ...]:
    """Return the names of a call path in the notation of Extra-P."""
    return tuple(_ARROW.split(text.strip()))


def join_with_arrows(names: Sequence[str]) -> str:
    """Return a call path in the notation of Extra-P; an arrow in a name becomes ``→``."""
    return "->".join(_ARROW_INSIDE.sub("→", " ".join(name.split())) for name in names)


def split_at_slashes(text: str) -> tuple[str, ...]:
    """Return the names of a call path in the notation of this package."""
    return tuple(name.replace("\\/", "/") for name in _SLASH.split(text))


_BRACKETS = re.compile(r"(?<!\s)\s*[\[(]([^\[\]()]*)[\])]")
_SEPARATORS = re.compile(r"[^0-9A-Za-zµ]+")

_INCLUSIVE = frozenset({"inc", "incl", "inclusive"})
_EXCLUSIVE = frozenset({"exc", "excl", "exclusive", "self"})
_DURATIONS = frozenset(
    {"s", "sec", "secs", "seconds", "ms", "msec", "us", "usec", "µs", "ns", "nsec"}
)
_TIMES = frozenset(
    {"time", "times", "duration", "runtime", "walltime", "wallclock", "wall", "elapsed", "latency",
     "makespan", "zeit", "laufzeit", "gesamtzeit", "temps", "tiempo"}
)  # fmt: skip
_BYTES = frozenset({"byte", "bytes"})
# The difference of two maxima is not a maximum.
_EXTREMES = frozenset({"median", "min", "minimum", "max", "maximum"})
_MEANS = frozenset({"mean", "avg", "average", "median"})
_NUMBERS = frozenset({"cnt", "count", "counts"})
_STATISTICS = _EXTREMES | {"mean", "avg", "average", "sum", "total"}
# These are not additive along the call tree.
_SPREADS = frozenset({"sd", "std", "stddev", "stdev", "iqr", "ci", "var", "variance"})
_RATIOS = frozenset(
    {"cv", "ratio", "percent", "pct", "imbalance", "ipc", "rate", "bandwidth", "efficiency",
     "speedup", "utilization", "frequency", "temperature", "throughput", "fom", "merit"}
)  # fmt: skip
_RATE = re.compile(r"[^\s/]++\s*+/\s*+\S++|%|[kMGTPE]?(flops|ips|teps|iops|dofs)", re.IGNORECASE)
"""Units of rates and percentages."""
_BENEFITS = frozenset(
    {"speedup", "efficiency", "throughput", "bandwidth", "performance", "speed", "fom", "merit",
     "mflops", "gflops", "tflops", "pflops", "gflop", "tflop", "mcups", "gcups", "mlups", "glups",
     "teps", "gteps", "iops", "fps"}
)  # fmt: skip
"""Words of quantities of which more is better."""
_UNITS_OF_TIME = _DURATIONS | {
    "second", "min", "minute", "h", "hr", "hour", "hours", "d", "day", "days"
}  # fmt: skip
_MOST_TITLES = 256
"""Number of titles that are remembered: the tables of a series have the same titles."""
_LONGEST_UNIT = 40
_COUNTS = frozenset(
    {"visits", "calls", "count", "counts", "hits", "samples", "instructions", "cycles", "flops",
     "papi", "misses", "messages", "energy", "power", "memory", "value", "values"}
)  # fmt: skip
_PROCESSES = frozenset(
    {"p", "np", "nprocs", "numprocs", "numproc", "procs", "processes", "ranks", "nranks", "n ranks",
     "nb procs", "npes", "num pes", "number of processes", "number of procs", "number of ranks",
     "number of mpi ranks", "number of mpi processes", "comm size", "mpi size", "mpi comm size",
     "num ranks", "mpi ranks", "ntasks", "mpi tasks", "n procs", "num procs", "n processes",
     "num processes", "mpi processes", "world size", "mpi world size", "num tasks", "n tasks",
     "jobsize", "num mpi ranks", "n mpi ranks", "num mpi processes"}
)  # fmt: skip
_SIZES_OF_ALL = frozenset(
    {"size", "elements", "cells", "points", "atoms", "particles", "dofs", "unknowns", "zones"}
)
"""Words of sizes; with the word *total*, they are the size of the problem of all processes."""
_MEASURED = _TIMES | _BYTES | _STATISTICS | _SPREADS | _RATIOS | _COUNTS


@dataclass(frozen=True, slots=True)
class Title:
    """The parts of the title of a column of values.

    Attributes
    ----------
    name : name of the metric, without the unit and the words for inclusive and exclusive
    unit : SI base unit
    factor : conversion factor from values of the column to this unit
    inclusive : True for inclusive, False for exclusive; None = the title does not state it
    additive : False for spreads, ratios and rates, and for inclusive extremes, which cannot be made
        exclusive
    is_assumed : True for durations whose unit is not stated
    """

    name: str
    unit: str
    factor: float
    inclusive: bool | None
    additive: bool
    is_assumed: bool = field(default=False, repr=False)


@lru_cache(maxsize=_MOST_TITLES)
def read_title(title: str, unit: str | None = None) -> Title:
    """Return the parts of a title.

    Parameters
    ----------
    title : the title
    unit : unit from another source; None = from the title

    Examples
    --------
    >>> read_title("time_excl_max_us")
    Title(name='time_max', unit='s', factor=1e-06, inclusive=False, additive=True)
    >>> read_title("time (inc) [ms]").name, read_title("bytes_sent").unit, read_title("visits").unit
    ('time', 'B', '1')
    """
    title = title.strip()
    rest = _BRACKETS.sub("", title)
    notes = [note.strip().rstrip(".") for note in _BRACKETS.findall(title)]
    is_benefit = is_rate(title)
    words = [word for word in _SEPARATORS.split(rest) if word]
    lower = [word.lower() for word in words]
    flavours = {*lower, *map(str.lower, notes)}
    inclusive = True if flavours & _INCLUSIVE else False if flavours & _EXCLUSIVE else None
    units = [note for note in notes if note.lower() not in _INCLUSIVE | _EXCLUSIVE]
    if not units:
        # The first of several words is the metric, even if it is also a unit. A single "s" is not
        # a time.
        units = [word for word in lower[1:] or lower
                 if word in _DURATIONS and lower != ["s"] and not is_benefit]  # fmt: skip
        dropped = _INCLUSIVE | _EXCLUSIVE | {*units}
    else:
        dropped = _INCLUSIVE | _EXCLUSIVE
    kept = [word for word, low in zip(words, lower, strict=True) if low not in dropped]
    name = rest if len(kept) == len(words) else "_".join(kept)
    usual = "1" if is_benefit else _usual_unit(lower)
    base, factor = base_unit(unit or (units[0] if units else usual))
    if base == "s" and {*map(str.lower, kept)} <= _STATISTICS:
        name = "_".join(["time", *kept])
    stated = unit or (units[0] if units else "")
    additive = not ({*lower} & (_SPREADS | _RATIOS) or is_benefit or _is_rate(stated))
    is_assumed = base == "s" and not (unit or units)
    if inclusive and {*lower} & _EXTREMES:
        return Title(title, base, factor, inclusive, additive=False, is_assumed=is_assumed)
    return Title(name or title, base, factor, inclusive, additive, is_assumed)


def means_first(titles: Sequence[str]) -> list[int]:
    """Return the indices of titles, with means before extremes of the same quantity.

    Only titles that differ in nothing but the statistic are reordered.

    >>> means_first(["io", "time_min", "time_max", "time_avg[s]", "time_cnt"])
    [0, 3, 1, 2, 4]
    """
    groups: dict[frozenset[str], list[tuple[bool, int]]] = {}
    of_title = []
    for k, title in enumerate(titles):
        words = {*map(str.lower, _SEPARATORS.split(_BRACKETS.sub("", title)))}
        statistics = words & (_EXTREMES | _SPREADS | _MEANS | _NUMBERS)
        group = frozenset(words - statistics)
        is_behind = bool(statistics) and not statistics & _MEANS
        groups.setdefault(group, []).append((is_behind, k))
        of_title.append(group)
    ordered = {group: iter(sorted(members)) for group, members in groups.items()}
    return [next(ordered[group])[1] for group in of_title]


@lru_cache(maxsize=_MOST_TITLES)
def is_measured(title: str) -> bool:
    """Return whether a title is that of a measured quantity instead of a parameter.

    >>> [is_measured(title) for title in ("wait [ms]", "mean", "triad[MB/s]", "grid [cells]")]
    [True, True, True, False]
    >>> [is_measured(title) for title in ("total", "total_time", "total_elements")]
    [True, True, False]
    """
    words = {word.lower() for word in _SEPARATORS.split(_BRACKETS.sub("", title))}
    notes = {note.strip().lower() for note in _BRACKETS.findall(title)}
    units = {base_unit(note)[0] for note in notes}
    words -= {"s"}
    if "total" in words and words - {"total"} <= _SIZES_OF_ALL and words & _SIZES_OF_ALL:
        return False
    return bool(
        words & (_MEASURED | _DURATIONS)
        or notes & (_INCLUSIVE | _EXCLUSIVE)
        or units & {"s", "B"}
        or any(map(_is_rate, notes))
    )


@lru_cache(maxsize=_MOST_TITLES)
def is_rate(title: str) -> bool:
    """Return whether a title is that of a rate, a speedup or an efficiency: more is better.

    >>> [is_rate(title) for title in ("ns/day", "cells per second", "Speed-up", "GFLOP", "steps_s")]
    [True, True, True, True, False]
    >>> [is_rate(title) for title in ("throughput_mcells_s", "time per step", "time/step", "s")]
    [True, False, False, False]
    """
    rest = _BRACKETS.sub("", title)
    words = [word.lower() for word in _SEPARATORS.split(rest) if word]
    if {*words} & _BENEFITS or words[:2] == ["speed", "up"]:
        return True
    behind = words[words.index("per") + 1 :][:1] if "per" in words else []
    if behind and behind[0] in _UNITS_OF_TIME:
        return True
    texts = [rest, *_BRACKETS.findall(title)]
    divided = (text.rpartition("/") for text in texts if len(text) <= _LONGEST_UNIT)
    return any(
        over.strip() and bar and (_SEPARATORS.split(under.strip().lower()) or [""])[-1]
        in _UNITS_OF_TIME for over, bar, under in divided
    )  # fmt: skip


@lru_cache(maxsize=_MOST_TITLES)
def is_processes(name: str) -> bool:
    """Return whether a parameter is the number of processes.

    >>> [is_processes(name) for name in ("Ranks", "mpi.world.size", "ntasks", "rank", "tasks")]
    [True, True, True, False, False]
    """
    return " ".join(_SEPARATORS.split(name.strip())).lower() in _PROCESSES


def _is_rate(unit: str) -> bool:
    # In a longer text, the expression would try too many divisions.
    return len(unit) <= _LONGEST_UNIT and bool(_RATE.fullmatch(unit.strip()))


def _usual_unit(words: list[str]) -> str:
    found = {*words}
    if found & _RATIOS or {*words[1:]} & _NUMBERS:
        return "1"
    if found & _TIMES:
        return "s"
    return "B" if found & _BYTES else "1"
