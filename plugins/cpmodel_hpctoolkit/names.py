"""Names of regions and metrics, and locations of values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from callpath_modeler.profile.schema import (
    PROGRAM,
    DeclaredMetric,
    Extent,
    Metric,
    MetricStatus,
    Region,
    base_unit,
)
from callpath_modeler.readers.reductions import Fold
from callpath_modeler.readers.threads import fold_of

UNKNOWN_PROCEDURE = "<unknown procedure>"
_ROOTS = {"<program root>": PROGRAM, "main thread": PROGRAM, "<thread root>": "application thread"}
_PLACEHOLDERS = frozenset(
    {"application thread", "unknown entry", "<no activity>", "<partial call paths>"}
)

# Suffixes that compilers append to specialized functions; they change with every build.
_CLONE = re.compile(
    r" \[clone [^\[\]]*\]|((?:\.(?:isra|constprop|part|cold|lto_priv)(?:\.\d+)*)+)(\w?)"
)
_MODULE = re.compile(r"(?<=\[)[^\[\]]+(?=\]$)")
_VERSION = re.compile(r"-\d+(?:\.\d+)+(?=\.so)|(?<=\.so)(?:\.\d+)+$")

_LIBRARIES = (
    (
        "mpi",
        re.compile(r"p?mpix?_\w", re.IGNORECASE),
        re.compile(
            r"lib(mpi|mpich|mpifort|pmpi|pmix?|open-pal|open-rte|uc[mpstg]|psm|infinipath"
            r"|ibverbs|rdmacm|fabric|mlx\d|cxi)(?![a-z])"
        ),
    ),
    (
        "openmp",
        re.compile(r"GOMP_|gomp_|omp_[gsitud]|__kmpc?_"),
        re.compile(r"lib[gi]?omp\d?(?!\w)"),
    ),
    ("pthread", re.compile(r"pthread_\w"), re.compile(r"libpthread(?!\w)")),
    (
        "cuda",
        re.compile(r"cu(da)?[A-Z]\w|hip[A-Z]\w|<gpu "),
        re.compile(r"lib(cuda|cudart|cupti|amdhip64|hsa-runtime64|ze_loader)(?!\w)"),
    ),
    ("measurement", re.compile(r"(hpcrun|monitor)_"), re.compile(r"lib(hpcrun|monitor)(?!\w)")),
)


def match_key(name: str) -> str:
    """Return the part of a function's name that is equal in every build and on every machine.

    Versions of shared libraries and suffixes of compiler clones are removed. Template arguments and
    parameter lists remain, because they distinguish functions.

    >>> match_key("poll [libc-2.28.so]"), match_key("solve<double>(int) [clone .isra.3]")
    ('poll [libc.so]', 'solve<double>(int)')
    """
    key = _CLONE.sub(_without_clone, name) if " [clone " in name or "." in name else name
    if key.endswith("]"):
        key = _MODULE.sub(lambda module: _VERSION.sub("", module[0]), key)
    return key or name


def _without_clone(found: re.Match[str]) -> str:
    # A word that only begins like a suffix, as in ".partial", belongs to the name.
    return found[0] if found[2] else ""


def function_region(name: str, module: str = "", file: str = "", line: int = 0) -> Region:
    """Return the region of a function; the roots of a database get common names."""
    root = _ROOTS.get(name, name)
    if root != name or root in _PLACEHOLDERS:
        return Region(root, role="artificial")
    key = match_key(name)
    return Region(
        name,
        file="" if file == "<unknown file>" else file,
        line=line if line > 0 else -1,
        paradigm=_paradigm(name, base_name(module)),
        role="function",
        module=base_name(module),
        key="" if key == name else key,
    )


def loop_region(file: str, line: int) -> Region:
    """Return the region of a loop."""
    place = file.rpartition("/")[2] or "<unknown file>"
    known = line > 0
    name = f"loop at {place}:{line if known else 0}"
    return Region(name, file=file, line=line if known else -1, role="loop")


def anonymous(module: str, offset: int) -> str:
    """Return a name for code without a function name."""
    return f"<{base_name(module)}+{offset:#x}>" if module else UNKNOWN_PROCEDURE


def base_name(path: str) -> str:
    """Return the part after the last slash."""
    return path.rpartition("/")[2]


def _paradigm(name: str, module: str) -> str:
    """Return the library of a function, which distinguishes it from functions of the program."""
    for paradigm, names, modules in _LIBRARIES:
        if names.match(name) or modules.match(module):
            return paradigm
    return ""


_NAME_AND_UNIT = re.compile(r"(.+) \(([^()]+)\)")
_PREFERRED = ("REALTIME", "CPUTIME", "GPUOP")
"""Metrics of the run time, best first. CPU time does not increase while a process waits."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric as the database stores it.

    Attributes
    ----------
    name : as in the database, with its unit
    number : number in the database
    has_data : whether any value is not zero
    on_gpu : whether it is the part from accelerator streams
    description : one line for users
    """

    name: str
    number: int
    has_data: bool
    on_gpu: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class StoredMetric:
    """A metric as users see it, with its position in the database.

    Attributes
    ----------
    declared : metric as users see it
    measure : metric as stored
    scale : factor from stored values to base units
    """

    declared: DeclaredMetric
    measure: Measure
    scale: float

    @property
    def fold(self) -> Fold:
        """Return the reduction from threads to a process."""
        return fold_of(self.declared)


def declare(measures: Iterable[Measure]) -> dict[str, StoredMetric]:
    """Return the metrics by name: the run time first, metrics that are zero last."""
    stored: dict[str, StoredMetric] = {}
    for measure in measures:
        name, unit, scale = _in_base_units(measure.name)
        metric = Metric(name, unit, measure.description)
        with_unit = replace(metric, name=measure.name)
        if measure.on_gpu:
            metric, with_unit = metric.on_gpu_streams(), with_unit.on_gpu_streams()
        if metric.name in stored:
            metric = with_unit
        status = MetricStatus.DATA if measure.has_data else MetricStatus.ABSENT
        note = "" if measure.has_data else "never non-zero"
        declared = DeclaredMetric(metric, status, note)
        stored.setdefault(metric.name, StoredMetric(declared, measure, scale))
    return dict(sorted(stored.items(), key=lambda item: _rank(item[1])))


def _rank(stored: StoredMetric) -> tuple[bool, int, bool, str]:
    # Databases list metrics in any order, but a series of them needs a common order.
    metric = stored.declared.metric
    place = _PREFERRED.index(metric.name) if metric.name in _PREFERRED else len(_PREFERRED)
    return not stored.measure.has_data, place, not metric.is_time, metric.name


def _in_base_units(name: str) -> tuple[str, str, float]:
    """Return ``"CPUTIME"``, ``"s"`` and 1e-6 for ``"CPUTIME (usec)"``."""
    found = _NAME_AND_UNIT.fullmatch(name)
    if found:
        unit, scale = base_unit(found[2])
        if unit in {"s", "B"}:
            return found[1], unit, scale
    return name, "1", 1.0


@dataclass(frozen=True, slots=True)
class Location:
    """A thread or an accelerator stream.

    Attributes
    ----------
    number : number of its profile in the database
    rank : rank of its process; -1 = the database has no ranks
    on_gpu : whether it is an accelerator stream
    node : name of the compute node, or ""
    thread : number of the thread in its process; the first one started the others
    """

    number: int
    rank: int
    on_gpu: bool
    node: str = ""
    thread: int = 0


Processes = tuple[tuple[Location, ...], ...]


@dataclass(frozen=True, slots=True)
class LocationSet:
    """Locations of a run, by process.

    Attributes
    ----------
    threads : threads of each process
    streams : accelerator streams of each process that has any
    extent : number of processes, threads and nodes; all zero = unknown
    """

    threads: Processes
    streams: Processes
    extent: Extent

    @classmethod
    def of(cls, locations: Sequence[Location]) -> LocationSet:
        """Return locations by process; a run without ranks is one process."""
        threads = _by_rank([place for place in locations if not place.on_gpu])
        streams = _by_rank([place for place in locations if place.on_gpu])
        nodes = len({place.node for place in locations if place.node})
        largest = max((len(process) for process in threads), default=0)
        return cls(threads, streams, Extent(len(threads), largest, nodes))


def _by_rank(locations: Sequence[Location]) -> Processes:
    ranks: dict[int, list[Location]] = {}
    for place in locations:
        ranks.setdefault(place.rank, []).append(place)
    # Databases have the profiles in any order.
    return tuple(
        tuple(sorted(ranks[rank], key=lambda place: place.thread)) for rank in sorted(ranks)
    )
