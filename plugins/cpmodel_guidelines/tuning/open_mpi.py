"""Facts about Open MPI: its collectives, its algorithms, and the steps that they execute.

Numbers of collectives and algorithms are those of Open MPI 4.1.4 (``COLLTYPE`` in
``coll_base_functions.h``, ``ompi_info --param coll tuned --level 9``). Message sizes are those of
``coll_tuned_decision_dynamic.c``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

FAN_OUT = 4
"""Fan-out of trees and chains with which Open MPI runs an algorithm that a user selects."""


class Scale(Enum):
    """The size that Open MPI compares with its rules."""

    BUFFER = "m"  # the size of the benchmark
    WHOLE = "p*m"  # the blocks of all processes
    NONE = "none"  # a rule holds for all sizes


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of Open MPI's component ``tuned``.

    Attributes
    ----------
    number : its number in rules of Open MPI 4 and 5
    scale : the size that selects a rule
    algorithms : names of its algorithms, from number 1
    reason : why no size selects a rule; "" = a size does
    """

    number: int
    scale: Scale
    algorithms: tuple[str, ...]
    reason: str = ""


_LENGTH = "Open MPI looks at the size of one element there, and not at the length of the message"
_RANKS = (
    "the processes may see different sizes there, because some need not give a send count, "
    "and would then use different algorithms"
)

COLLECTIVES: Mapping[str, Collective] = {
    "Allgather": Collective(
        0,
        Scale.WHOLE,
        ("linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc"),
    ),
    "Allgatherv": Collective(1, Scale.BUFFER, ("default", "bruck", "ring", "neighbor", "two_proc")),
    "Allreduce": Collective(
        2,
        Scale.BUFFER,
        (
            "basic_linear",
            "nonoverlapping",
            "recursive_doubling",
            "ring",
            "segmented_ring",
            "rabenseifner",
        ),
    ),
    "Alltoall": Collective(
        3, Scale.WHOLE, ("linear", "pairwise", "modified_bruck", "linear_sync", "two_proc")
    ),
    "Alltoallv": Collective(
        4, Scale.NONE, ("basic_linear", "pairwise"), "Open MPI does not look at the size there"
    ),
    "Barrier": Collective(
        6,
        Scale.NONE,
        ("linear", "double_ring", "recursive_doubling", "bruck", "two_proc", "tree"),
        "a barrier has no size",
    ),
    "Bcast": Collective(
        7,
        Scale.BUFFER,
        (
            "basic_linear",
            "chain",
            "pipeline",
            "split_binary_tree",
            "binary_tree",
            "binomial",
            "knomial",
            "scatter_allgather",
            "scatter_allgather_ring",
        ),
    ),
    "Exscan": Collective(8, Scale.NONE, ("linear", "recursive_doubling"), _LENGTH),
    "Gather": Collective(9, Scale.NONE, ("basic_linear", "binomial", "linear_sync"), _RANKS),
    "Reduce": Collective(
        11,
        Scale.BUFFER,
        (
            "linear",
            "chain",
            "pipeline",
            "binary",
            "binomial",
            "in-order_binary",
            "rabenseifner",
        ),
    ),
    "Reduce_scatter": Collective(
        12, Scale.WHOLE, ("non-overlapping", "recursive_halving", "ring", "butterfly")
    ),
    "Reduce_scatter_block": Collective(
        13,
        Scale.WHOLE,
        ("basic_linear", "recursive_doubling", "recursive_halving", "butterfly"),
    ),
    "Scan": Collective(14, Scale.NONE, ("linear", "recursive_doubling"), _LENGTH),
    "Scatter": Collective(15, Scale.NONE, ("basic_linear", "binomial", "linear_nb"), _RANKS),
}
"""All collectives whose algorithm a rule can select."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm of a collective, with its parameters.

    Attributes
    ----------
    function : key of `COLLECTIVES`
    number : number of the algorithm, from 1; newer versions have more than `COLLECTIVES` lists
    segment : size of a segment in bytes; 0 = whole messages
    fan_out : fan-out of its tree or chain
    """

    function: str
    number: int
    segment: int = 0
    fan_out: int = FAN_OUT

    @property
    def name(self) -> str:
        """Return the name in Open MPI 4.1; "" = unknown."""
        names = COLLECTIVES[self.function].algorithms
        return names[self.number - 1] if self.number <= len(names) else ""

    @property
    def title(self) -> str:
        """Return the number with the name and unusual parameters."""
        told = [self.name] if self.name else []
        told += [f"segments of {self.segment} bytes"] if self.segment else []
        told += [f"fan-out {self.fan_out}"] if self.fan_out != FAN_OUT else []
        return f"algorithm {self.number}" + (f" ({', '.join(told)})" if told else "")


SAME_STEPS: Mapping[tuple[str, tuple[str, ...]], int] = {
    ("Allgather", ("Gather", "Bcast")): 1,  # coll_base_allgather.c, basic_linear
    ("Allgatherv", ("Gatherv", "Bcast")): 1,  # coll_base_allgatherv.c, basic_default
    ("Allreduce", ("Reduce", "Bcast")): 2,  # coll_base_allreduce.c, nonoverlapping
    ("Reduce_scatter", ("Reduce", "Scatterv")): 1,  # coll_base_reduce_scatter.c, nonoverlapping
    ("Reduce_scatter_block", ("Reduce", "Scatter")): 1,  # ..._block.c, basic_linear
}
"""Algorithms that call the same functions of the library as a mock-up, with the same sizes.

The key is a function and the functions of the mock-up. So the gain of the mock-up is the gain of
the algorithm.
"""

SIMILAR_STEPS: Mapping[tuple[str, tuple[str, ...]], tuple[int, ...]] = {
    ("Allreduce", ("Reduce_scatter_block", "Allgather")): (6, 4),
    ("Allreduce", ("Reduce_scatter", "Allgatherv")): (6, 4),
    ("Bcast", ("Scatter", "Allgather")): (8, 9),
    ("Reduce", ("Reduce_scatter_block", "Gather")): (7,),
    ("Reduce", ("Reduce_scatter", "Gatherv")): (7,),
}
"""Algorithms that do the steps of a mock-up in their own way, so that they have other times."""
