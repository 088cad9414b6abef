"""Regions, metrics, and reductions of profiles."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import IntArray
from callpath_modeler.printable import printable
from callpath_modeler.profile.call_class import CallClass, call_class
from callpath_modeler.units import base_and_factor

PROGRAM = "<program>"
"""Name of an artificial program root, which replaces the name of the executable."""

STEP = "step"
"""Role of regions of steps, which a program repeats."""

GROUP = "group"
"""Role of regions of groups of processes, which are the outermost call paths."""

STEPS, STEP_SCATTER = "steps", "step scatter"
"""Keys of the metadata of a run: the number of its steps, and their relative scatter in the run."""

SPLITS = ("tp", "pp", "cp")
"""Parameters whose product is the number of processes of each replica of a model: the sizes of the
groups that split tensors, layers, and sequences."""

_ON_GPU_STREAMS = " on GPU streams"
_OF_ALL_THREADS = " of all threads"
GPU_BUSY, GPU_IDLE = "GPU busy", "GPU idle"
GPU_COMMUNICATION, GPU_OVERLAPPED = "GPU communication", "overlapped GPU communication"
_OF_GPUS = frozenset(
    {"exposed GPU time", GPU_BUSY, GPU_IDLE, "GPU computation", GPU_COMMUNICATION, GPU_OVERLAPPED}
)
"""Times of GPUs that are not sums over their streams."""
TIMES_OF_DEVICES = (GPU_BUSY, GPU_IDLE, GPU_COMMUNICATION, GPU_OVERLAPPED)
"""Times of the devices of a process, of which factors of efficiency are made."""
COPIED_BYTES = (
    "bytes_host_to_device",
    "bytes_device_to_host",
    "bytes_within_device",
    "bytes_peer_to_peer",
    "bytes_other_copies",
    "bytes_set",
)
"""Bytes that GPUs copied, by direction, and bytes that they set."""

_UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("s", 1.0)),
    **dict.fromkeys(("ms", "msec"), ("s", 1e-3)),
    **dict.fromkeys(("us", "usec", "µs"), ("s", 1e-6)),
    **dict.fromkeys(("ns", "nsec"), ("s", 1e-9)),
    **dict.fromkeys(("b", "byte", "bytes"), ("B", 1.0)),
    **dict.fromkeys(("", "1", "#", "occ", "count", "counts", "hits", "samples"), ("1", 1.0)),
}
_PREFIXED = frozenset({"B", "J", "W", "Hz"})
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Boundary between two words of a name such as ``CalcForce``."""
_CYCLES = re.compile(r"cyc|clock|stall|_stl", re.IGNORECASE)
_POWER = re.compile(r"10\^(-?\d{1,2})\s*(\S+)")
_LIBRARIES = frozenset({"mpi", "openmp", "pthread", "measurement", "cuda", "shmem"})
"""Paradigms of libraries and of the measurement."""


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of source code: the last name of a call path.

    Attributes
    ----------
    name : demangled name, in full; characters that cannot be printed are escaped
    mangled : linker name, or "" = not known
    file : source file, or its replacement in the profile, or ""
    line : first line, or -1 = not known
    paradigm : kind of instrumentation: ``"mpi"``, ``"openmp"``, ``"compiler"``, ``"user"``, ...
    role : ``"function"``, ``"loop"``, ``"artificial"``, ``"coll"``, ``"point2point"``, ...
    module : executable or library that contains the code, or ""
    key : part of the name that is the same in every build; "" = the whole name
    """

    name: str
    mangled: str = ""
    file: str = ""
    line: int = -1
    paradigm: str = ""
    role: str = ""
    module: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if not self.name.isprintable():
            object.__setattr__(self, "name", printable(self.name))

    def __reduce__(self) -> tuple[type[Region], tuple[str | int, ...]]:
        """Pickle only the fields: processes exchange thousands of regions."""
        return Region, (
            *(self.name, self.mangled, self.file, self.line),
            *(self.paradigm, self.role, self.module, self.key),
        )

    @property
    def common_name(self) -> str:
        """Name that aligns the runs of different builds."""
        return self.key or self.name

    @property
    def is_own(self) -> bool:
        """True if the code belongs to the program, not to a library or the measurement."""
        return self.paradigm not in _LIBRARIES

    @property
    def call_class(self) -> CallClass:
        """What the region does, such as computation or a kind of collective operation."""
        return call_class(self.name, self.paradigm, self.role)


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity that is measured for every call path.

    Attributes
    ----------
    name : unique name, such as ``"time"``
    unit : SI base unit of the values: ``"s"``, ``"B"``, ``"1"`` for counts
    description : one line of text
    additive : True if values add up along the call tree; False for minima, maxima and ratios
    """

    name: str
    unit: str
    description: str = ""
    additive: bool = True

    def on_gpu_streams(self) -> Metric:
        """Return the metric of the values on GPU streams, such as ``"time on GPU streams"``."""
        return replace(self, name=self.name + _ON_GPU_STREAMS)

    def of_all_threads(self) -> Metric:
        """Return the metric of the sums over the threads of a process."""
        about = "sum over the threads of a process"
        return replace(self, name=self.name + _OF_ALL_THREADS, description=about)

    @property
    def of_threads(self) -> str:
        """Name of the metric without its addition for GPU streams or for all threads."""
        return self.name.removesuffix(_ON_GPU_STREAMS).removesuffix(_OF_ALL_THREADS)

    def in_one_line(self) -> Metric:
        """Return the metric with texts that are safe for terminals and pages."""
        name, unit, description = map(printable, (self.name, self.unit, self.description))
        return Metric(name, unit, description, self.additive)

    @property
    def is_time(self) -> bool:
        """True if the metric is a duration."""
        return self.unit == "s"

    @property
    def is_on_gpu_streams(self) -> bool:
        """True if the values are of GPUs or their streams, not of the threads of processes.

        GPUs work while the threads do, so their time is never a part of the run time. Bytes of
        copies are counted by the GPU as well.
        """
        name = self.name
        return name.endswith(_ON_GPU_STREAMS) or name in _OF_GPUS or name in COPIED_BYTES

    @property
    def is_of_all_threads(self) -> bool:
        """True if the values of times are sums over threads.

        Threads run side by side, so these sums are never a part of the run time.
        """
        return self.name.endswith(_OF_ALL_THREADS)

    @property
    def can_be_run_time(self) -> bool:
        """True for durations of the threads of processes that add up along the call tree."""
        is_beside = self.is_on_gpu_streams or self.is_of_all_threads
        return self.is_time and self.additive and not is_beside

    @property
    def is_energy(self) -> bool:
        """True for energy that adds up along the call tree."""
        return self.additive and self.unit == "J"

    @property
    def is_requirement(self) -> bool:
        """True for visits, bytes and operations.

        Cycles are another unit of time, and energy is used while a process waits, so neither is a
        requirement.
        """
        return self.additive and self.unit in {"1", "B"} and not _CYCLES.search(self.name)


class MetricStatus(StrEnum):
    """Availability of a declared metric in a profile.

    Attributes
    ----------
    DATA : the profile has values
    ABSENT : every value is zero
    DERIVED : the viewer computes the metric from other metrics; no value is stored
    UNSUPPORTED : the stored type has no number per call path
    """

    DATA = "data"
    ABSENT = "absent"
    DERIVED = "derived"
    UNSUPPORTED = "unsupported"

    @property
    def is_readable(self) -> bool:
        """True if the profile knows the values, which may all be zero."""
        return self in {MetricStatus.DATA, MetricStatus.ABSENT}


class DeclaredMetric(Struct, frozen=True):
    """A metric that a profile declares, and its availability.

    Attributes
    ----------
    metric : the metric
    status : availability of values
    note : reason why there are no values, or ""
    unit_is_assumed : True if the profile does not state the unit
    """

    metric: Metric
    status: MetricStatus
    note: str = ""
    unit_is_assumed: bool = False

    def on_gpu_streams(self) -> DeclaredMetric:
        """Return the metric of the values on GPU streams, some of which are not zero."""
        metric = self.metric.on_gpu_streams()
        return structs.replace(self, metric=metric, status=MetricStatus.DATA, note="")

    def of_all_threads(self) -> DeclaredMetric:
        """Return the metric of the sums over the threads of a process."""
        return structs.replace(self, metric=self.metric.of_all_threads())

    @property
    def is_requirement(self) -> bool:
        """True if the profile has values, and the metric is a requirement."""
        return self.metric.is_requirement and self.status is MetricStatus.DATA

    @property
    def is_beside_run_time(self) -> bool:
        """True if the profile has values of a requirement, of energy, or of the time of GPUs."""
        metric = self.metric
        is_of_gpus = metric.is_time and metric.additive and metric.is_on_gpu_streams
        is_asked = metric.is_requirement or metric.is_energy or is_of_gpus
        return is_asked and self.status is MetricStatus.DATA


class Reduction(StrEnum):
    """Statistic that reduces the values of many processes to one.

    The threads of a process are combined first: times are those of its longest thread, counts are
    sums.

    Attributes
    ----------
    MAX, MEAN, MEDIAN, GEOMEAN, MIN, SUM : the statistic of the values of all processes
    IMBALANCE : the maximum over the mean; 1 = balanced
    GIVEN : the only value of the profile, whose statistic is not known
    """

    MAX = "max"
    MEAN = "mean"
    MEDIAN = "median"
    GEOMEAN = "geomean"
    MIN = "min"
    SUM = "sum"
    IMBALANCE = "imbalance"
    GIVEN = "given"

    @property
    def words(self) -> str:
        """Name of the statistic in sentences."""
        return "as recorded" if self is Reduction.GIVEN else f"{self} over processes"


COMPUTED = tuple(reduction for reduction in Reduction if reduction is not Reduction.GIVEN)
"""The reductions of values per location."""


class Extent(Struct, frozen=True):
    """Number of processes, threads and nodes of a run.

    Attributes
    ----------
    processes : number of processes (MPI ranks); 0 = not known
    threads : largest number of threads of a process; 0 = not known
    nodes : number of nodes; 0 = not known
    """

    processes: int
    threads: int = 1
    nodes: int = 0


def base_unit(text: str) -> tuple[str, float]:
    """Return the SI base unit of a unit, and the factor for the conversion.

    >>> base_unit("sec"), base_unit("10^-6 s"), base_unit("MB"), base_unit("KiB"), base_unit("GHz")
    (('s', 1.0), ('s', 1e-06), ('B', 1000000.0), ('B', 1024.0), ('Hz', 1000000000.0))
    """
    text = text.strip()
    found = _POWER.fullmatch(text)
    if found:
        unit, factor = base_unit(found[2])
        return unit, factor * float(f"1e{found[1]}")
    named = _UNITS.get(text.lower())
    if named is not None:
        return named
    # Only units with prefixes are converted: "min", for example, may be a minimum or a minute.
    unit, factor = base_and_factor(text)
    return (unit, factor) if unit in _PREFIXED else (text, 1.0)


class Topology(Struct, frozen=True, eq=False):
    """A Cartesian topology that has every process of a run at its own coordinates.

    Attributes
    ----------
    name : name in the profile
    dimensions : number of coordinates in each of the D dimensions
    coordinates : intp [processes, D], each from 0 to the dimension - 1
    """

    name: str
    dimensions: tuple[int, ...]
    coordinates: IntArray

    def __post_init__(self) -> None:
        structs.force_setattr(self, "name", printable(self.name))


class Placement(Struct, frozen=True, eq=False):
    """Ranks and places of the processes of a run, in the order of the reader's processes.

    Attributes
    ----------
    ranks : intp [processes] MPI rank of each process, all different
    nodes : name of the compute node of each process; "" = not known
    topologies : Cartesian topologies of all processes
    """

    ranks: IntArray
    nodes: tuple[str, ...]
    topologies: tuple[Topology, ...] = ()

    def __post_init__(self) -> None:
        if not all(map(str.isprintable, set(self.nodes))):
            structs.force_setattr(self, "nodes", tuple(map(printable, self.nodes)))

    @classmethod
    def unknown(cls, processes: int) -> Placement:
        """Return ranks in the order of the processes, without places."""
        return cls(np.arange(processes), ("",) * processes)

    @classmethod
    def stated(
        cls, ranks: IntArray, nodes: tuple[str, ...], topologies: tuple[Topology, ...] = ()
    ) -> Placement:
        """Return the placement that a profile states.

        If ranks are negative or not all different, the profile does not state them. They are then
        in the order of the processes.
        """
        if (ranks < 0).any() or len(np.unique(ranks)) < len(ranks):
            ranks = np.arange(len(ranks))
        return cls(ranks, nodes, topologies)

    def of(self, processes: IntArray) -> Placement:
        """Return the placement of some processes, in this order."""
        return Placement(
            self.ranks[processes],
            tuple(self.nodes[k] for k in processes.tolist()),
            tuple(
                Topology(each.name, each.dimensions, each.coordinates[processes])
                for each in self.topologies
            ),
        )
