"""Algorithms of collective operations: the messages that they send, round by round.

In a round, a process sends at most one message and receives at most one. The algorithms, and the
sizes up to which `algorithm` prefers one, are those of Thakur, Rabenseifner and Gropp (Optimization
of Collective Communication Operations in MPICH, IJHPCA 19(1), 2005), section 4. A rooted tree is
rotated so that its root is process 0. Parts of a buffer are rounded up to whole bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from callpath_modeler.arrays import Int64Array


class Round(NamedTuple):
    """Messages at the same time, [messages] each.

    Attributes
    ----------
    senders, receivers : ranks in the communicator, each once
    bytes : size of each message
    """

    senders: Int64Array
    receivers: Int64Array
    bytes: Int64Array


class Call(NamedTuple):
    """A collective call.

    Attributes
    ----------
    processes : members of the communicator
    root : its rank; 0 without a root
    sizes : bytes of each member [processes]: those that it gives to each other, or gives or gets in
        all of a gather, scatter or reduction
    """

    processes: int
    root: int
    sizes: Int64Array


Rounds = Iterator[Round]
Algorithm = Callable[[Call], Rounds]

_SHORT_BROADCAST, _FEW_PROCESSES = 12288, 8
_SHORT_ALLGATHER, _SHORT_ALLGATHER_OF_A_POWER = 81920, 524288
_SHORT_ALLTOALL = 256
_SHORT_ALLREDUCE = 2048
_SHORT_REDUCE_SCATTER = 524288


def algorithm(name: str, call: Call) -> str:
    """Return the usual algorithm of a collective operation for its size."""
    n, largest = call.processes, int(call.sizes.max(initial=0))
    total = int(call.sizes.sum())
    is_short = {
        "bcast": n < _FEW_PROCESSES or largest < _SHORT_BROADCAST,
        "allgather": total
        < (_SHORT_ALLGATHER if n & (n - 1) else _SHORT_ALLGATHER_OF_A_POWER),
        "alltoall": n >= _FEW_PROCESSES and largest <= _SHORT_ALLTOALL,
        "allreduce": largest <= _SHORT_ALLREDUCE,
        "reduce_scatter_block": total < _SHORT_REDUCE_SCATTER,
    }
    short, long = _USUAL[name]
    return short if is_short.get(name, True) else long


def _shifted(call: Call, distance: int, sizes: Int64Array) -> Round:
    """Return the round in which each process sends to the one at a distance."""
    own = np.arange(call.processes)
    return Round(own, (own + distance) % call.processes, sizes)


def _even(call: Call, size: int) -> Int64Array:
    return np.full(call.processes, size, np.int64)


def _powers(n: int) -> list[int]:
    """Return the powers of two below n."""
    return [1 << k for k in range((n - 1).bit_length())]


def _ceil(total: int, parts: int) -> int:
    return -(-total // parts)


def _size(call: Call) -> int:
    return int(call.sizes.max(initial=0))


def _rotated(call: Call, senders: Int64Array, receivers: Int64Array, sizes: Int64Array) -> Round:
    """Return a round of a tree whose root is 0, with the root of the call."""
    n = call.processes
    return Round((senders + call.root) % n, (receivers + call.root) % n, sizes)


def _dissemination(call: Call) -> Rounds:
    for distance in _powers(call.processes):
        yield _shifted(call, distance, _even(call, 0))


def _tree_down(call: Call, *, whole: bool) -> Rounds:
    """Yield the rounds of a binomial tree from its root.

    Parameters
    ----------
    whole : True = everybody gets the same bytes; False = the bytes of the subtree
    """
    n, size = call.processes, _size(call)
    for distance in reversed(_powers(n)):
        parents = np.arange(0, n - distance, 2 * distance)
        subtree = np.minimum(distance, n - parents - distance)
        yield _rotated(call, parents, parents + distance, size * (subtree**0 if whole else subtree))


def _tree_up(call: Call, *, whole: bool) -> Rounds:
    """Yield the rounds of a binomial tree to its root, see `_tree_down`."""
    for one in reversed(list(_tree_down(call, whole=whole))):
        yield Round(one.receivers, one.senders, one.bytes)


def _from_root(call: Call) -> Rounds:
    for place in range(1, call.processes):
        other = (call.root + place) % call.processes
        yield Round(np.array([call.root]), np.array([other]), call.sizes[[other]])


def _to_root(call: Call) -> Rounds:
    for one in _from_root(call):
        yield Round(one.receivers, one.senders, one.bytes)


def _ring(call: Call) -> Rounds:
    """Yield rounds in which each process passes on what it got in the round before."""
    for step in range(call.processes - 1):
        yield _shifted(call, 1, np.roll(call.sizes, step))


def _scatter_allgather(call: Call) -> Rounds:
    part = call._replace(sizes=_even(call, _ceil(_size(call), call.processes)))
    yield from _tree_down(part, whole=False)
    yield from _ring(part)


def _bruck_allgather(call: Call) -> Rounds:
    n, sums = call.processes, np.concatenate([[0], np.cumsum(np.tile(call.sizes, 2))])
    own = np.arange(n)
    for distance in _powers(n):
        blocks = min(distance, n - distance)
        yield _shifted(call, -distance, sums[own + blocks] - sums[own])


def _bruck_alltoall(call: Call) -> Rounds:
    for distance in _powers(call.processes):
        blocks = int((np.arange(call.processes) & distance > 0).sum())
        yield _shifted(call, distance, blocks * call.sizes)


def _pairwise(call: Call) -> Rounds:
    for distance in range(1, call.processes):
        yield _shifted(call, distance, call.sizes)


def _pairwise_results(call: Call) -> Rounds:
    """Yield rounds in which each process sends the part of the result of another."""
    for distance in range(1, call.processes):
        yield _shifted(call, distance, np.roll(call.sizes, -distance))


def _among_power(call: Call, size: int) -> tuple[Int64Array, list[Round], list[Round]]:
    """Return the members of the largest power of two, and the rounds before and after it.

    Of the first processes, each even one sends its data to the next before, and gets the result
    after.
    """
    n = call.processes
    rest = n - (1 << (n.bit_length() - 1))
    even = np.arange(0, 2 * rest, 2)
    core = np.concatenate([even + 1, np.arange(2 * rest, n)])
    if not rest:
        return core, [], []
    sizes = np.full(rest, size, np.int64)
    return core, [Round(even, even + 1, sizes)], [Round(even + 1, even, sizes)]


def _exchanged(core: Int64Array, distance: int, size: int) -> Round:
    return Round(core, core[np.arange(len(core)) ^ distance], np.full(len(core), size, np.int64))


def _recursive_doubling(call: Call) -> Rounds:
    core, before, after = _among_power(call, _size(call))
    yield from before
    for distance in _powers(len(core)):
        yield _exchanged(core, distance, _size(call))
    yield from after


def _rabenseifner(call: Call) -> Rounds:
    size = _size(call)
    core, before, after = _among_power(call, size)
    parts = [(d, _ceil(size * d, len(core))) for d in _powers(len(core))]
    yield from before
    for distance, part in reversed(parts):
        yield _exchanged(core, distance, part)
    for distance, part in parts:
        yield _exchanged(core, distance, part)
    yield from after


def _ring_allreduce(call: Call) -> Rounds:
    part = call._replace(sizes=_even(call, _ceil(_size(call), call.processes)))
    yield from _ring(part)
    yield from _ring(part)


def _reduce_bcast(call: Call) -> Rounds:
    yield from _tree_up(call, whole=True)
    yield from _tree_down(call, whole=True)


def _recursive_halving(call: Call) -> Rounds:
    total = int(call.sizes.sum())
    core, before, after = _among_power(call, total)
    yield from before
    for distance in reversed(_powers(len(core))):
        yield _exchanged(core, distance, _ceil(total * distance, len(core)))
    yield from (one._replace(bytes=call.sizes[one.receivers]) for one in after)


def _prefix_doubling(call: Call) -> Rounds:
    own = np.arange(call.processes)
    for distance in _powers(call.processes):
        pairs = own[(own ^ distance) < call.processes]
        yield Round(pairs, pairs ^ distance, call.sizes[pairs])


def _chain(call: Call) -> Rounds:
    for place in range(call.processes - 1):
        yield Round(np.array([place]), np.array([place + 1]), call.sizes[[place]])


ALGORITHMS: Mapping[str, Mapping[str, Algorithm]] = {
    "barrier": {"dissemination": _dissemination},
    "bcast": {
        "binomial": lambda call: _tree_down(call, whole=True),
        "scatter_allgather": _scatter_allgather,
        "linear": _from_root,
    },
    "gather": {"binomial": lambda call: _tree_up(call, whole=False), "linear": _to_root},
    "scatter": {"binomial": lambda call: _tree_down(call, whole=False), "linear": _from_root},
    "reduce": {"binomial": lambda call: _tree_up(call, whole=True), "linear": _to_root},
    "gatherv": {"linear": _to_root},
    "scatterv": {"linear": _from_root},
    "allgather": {"bruck": _bruck_allgather, "ring": _ring},
    "allgatherv": {"ring": _ring, "bruck": _bruck_allgather},
    "alltoall": {"bruck": _bruck_alltoall, "pairwise": _pairwise},
    "alltoallv": {"pairwise": _pairwise},
    "alltoallw": {"pairwise": _pairwise},
    "allreduce": {
        "recursive_doubling": _recursive_doubling,
        "rabenseifner": _rabenseifner,
        "ring": _ring_allreduce,
        "reduce_bcast": _reduce_bcast,
    },
    "reduce_scatter": {"pairwise": _pairwise_results, "recursive_halving": _recursive_halving},
    "reduce_scatter_block": {
        "recursive_halving": _recursive_halving,
        "pairwise": _pairwise_results,
    },
    "scan": {"recursive_doubling": _prefix_doubling, "linear": _chain},
    "exscan": {"recursive_doubling": _prefix_doubling, "linear": _chain},
}
"""The rounds of each algorithm, by collective operation; the first is that of short messages."""

_LONG = {
    "bcast": "scatter_allgather",
    "allgather": "ring",
    "alltoall": "pairwise",
    "allreduce": "rabenseifner",
    "reduce_scatter_block": "pairwise",
}
_USUAL = {name: (next(iter(known)), _LONG.get(name, "")) for name, known in ALGORITHMS.items()}
