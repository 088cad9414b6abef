"""Cost laws of operations: how their time depends on processes and on the size of messages.

A call of a collective operation on p processes costs

    t = c0 + alpha a(p) + beta n b(p)

with latency alpha, cost per byte beta and n bytes per call (Hockney: The communication challenge
for MPP, 1994). The algorithm decides a and b. The cost of computation in reductions has the shape
of one of both terms, so it has no coefficient of its own. Sources:

- TRG: Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH
  (IJHPCA 19, 2005)
- CHPG: Chan, Heimlich, Purkayastha, van de Geijn: Collective communication: theory, practice, and
  experience (CCPE 19, 2007)
- SC13: Calotoiu, Hoefler, Poke, Wolf: Using automated performance modeling to find scalability
  bugs in complex codes (SC 2013), section on requirement models
- HFM: Hensgen, Finkel, Manber: Two algorithms for barrier synchronization (IJPP 17, 1988)
- PY: Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms (JPDC 69, 2009)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray
from callpath_modeler.profile.call_class import CallClass

Shape = Callable[[FloatArray], FloatArray]


class Law(Struct, frozen=True):
    """A function of the number of processes.

    Attributes
    ----------
    text : the function as text
    of : the function
    """

    text: str
    of: Shape


def _log(p: FloatArray) -> FloatArray:
    return np.asarray(np.log2(np.maximum(p, 1.0)))


LOG = Law("log p", _log)
TWICE_LOG = Law("2 log p", lambda p: 2 * _log(p))
LINEAR = Law("p - 1", lambda p: p - 1)
TWICE_LINEAR = Law("2 (p - 1)", lambda p: 2 * (p - 1))
BOTH = Law("log p + p - 1", lambda p: _log(p) + p - 1)
ONE = Law("1", np.ones_like)
ALL_BUT_ONE = Law("(p - 1)/p", lambda p: (p - 1) / p)
TWICE_ALL_BUT_ONE = Law("2 (p - 1)/p", lambda p: 2 * (p - 1) / p)
HALF_LOG = Law("log p / 2", lambda p: _log(p) / 2)
LOG_LESS = Law("log p - (p - 1)/p", lambda p: _log(p) - (p - 1) / p)


class Family(Struct, frozen=True):
    """Algorithms of a collective operation with one cost law.

    Attributes
    ----------
    name : names of the algorithms
    latency : a(p), the number of message latencies
    size : b(p), the number of times that n bytes are sent; None = the operation has no bytes
    source : publication of the law
    prior : how common it is relative to other algorithms. Libraries choose algorithms with p steps
        for few processes or for long messages only
    """

    name: str
    latency: Law
    size: Law | None
    source: str
    prior: float = 1.0

    @property
    def formula(self) -> str:
        """Time of a call as text."""
        latency = f"alpha ({self.latency.text})"
        return latency if self.size is None else f"{latency} + beta n ({self.size.text})"


_RARE, _VERY_RARE = 0.3, 0.1

_BARRIERS = (
    Family("dissemination", LOG, None, "HFM"),
    Family("central counter", LINEAR, None, "HFM", _VERY_RARE),
)

FAMILIES: dict[CallClass, tuple[Family, ...]] = {
    CallClass.BROADCAST: (
        Family("pipelined tree", LOG, ONE, "SC13"),
        Family("binomial tree", LOG, LOG, "TRG"),
        Family("scatter and recursive-doubling allgather", TWICE_LOG, TWICE_ALL_BUT_ONE, "TRG"),
        Family("scatter and ring allgather", BOTH, TWICE_ALL_BUT_ONE, "TRG"),
        Family("chain", LINEAR, ONE, "CHPG", _RARE),
        Family("flat tree", LINEAR, LINEAR, "CHPG", _RARE),
    ),
    CallClass.REDUCE: (
        Family("binomial tree", LOG, LOG, "TRG"),
        Family("Rabenseifner", TWICE_LOG, TWICE_ALL_BUT_ONE, "TRG"),
        Family("chain", LINEAR, ONE, "CHPG", _RARE),
        Family("flat tree", LINEAR, LINEAR, "CHPG", _RARE),
    ),
    CallClass.ALLREDUCE: (
        Family("recursive doubling", LOG, LOG, "TRG"),
        Family("Rabenseifner", TWICE_LOG, TWICE_ALL_BUT_ONE, "TRG"),
        Family("ring", TWICE_LINEAR, TWICE_ALL_BUT_ONE, "PY", _VERY_RARE),
        Family("flat tree", LINEAR, LINEAR, "CHPG", _VERY_RARE),
    ),
    CallClass.ALLGATHER: (
        Family("recursive doubling or Bruck", LOG, ALL_BUT_ONE, "TRG"),
        Family("ring", LINEAR, ALL_BUT_ONE, "TRG"),
    ),
    CallClass.GATHER: (
        Family("binomial tree", LOG, ALL_BUT_ONE, "CHPG"),
        Family("flat tree", LINEAR, ALL_BUT_ONE, "CHPG", _RARE),
    ),
    CallClass.SCATTER: (
        Family("binomial tree", LOG, ALL_BUT_ONE, "CHPG"),
        Family("flat tree", LINEAR, ALL_BUT_ONE, "CHPG", _RARE),
    ),
    CallClass.ALLTOALL: (
        Family("Bruck", LOG, HALF_LOG, "TRG"),
        Family("pairwise exchange", LINEAR, ALL_BUT_ONE, "TRG"),
    ),
    CallClass.REDUCE_SCATTER: (
        Family("recursive halving", LOG, ALL_BUT_ONE, "TRG"),
        Family("recursive doubling", LOG, LOG_LESS, "TRG"),
        Family("pairwise exchange", LINEAR, ALL_BUT_ONE, "TRG"),
    ),
    CallClass.SCAN: (
        Family("recursive doubling", LOG, LOG, "TRG"),
        Family("chain", LINEAR, LINEAR, "CHPG", _RARE),
    ),
    CallClass.BARRIER: _BARRIERS,
    CallClass.MANAGEMENT: _BARRIERS,
    CallClass.COLLECTIVE: (
        Family("tree", LOG, ALL_BUT_ONE, "TRG"),
        Family("ring or pairwise exchange", LINEAR, ALL_BUT_ONE, "TRG"),
    ),
}
"""Laws of each class, in the order in which alternatives are listed.

Unlike those of other operations, n is the size of the whole message of a process: of an allgather
what it receives, of an all-to-all what it sends to all others.
"""

BLOCKS = frozenset({CallClass.ALLGATHER, CallClass.ALLTOALL, CallClass.GATHER, CallClass.SCATTER})
"""Classes whose n consists of one block for each process."""
ROOTED = frozenset({CallClass.BROADCAST, CallClass.REDUCE, CallClass.GATHER, CallClass.SCATTER})
"""Classes in which one process sends to all, or receives from all."""
