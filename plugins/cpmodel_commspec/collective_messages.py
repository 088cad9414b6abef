"""Collective operations as messages between two ranks each, by a stated algorithm.

Formats and models without collective operations need them so. The algorithms are those that MPI
libraries describe (Thakur, Rabenseifner, Gropp: International Journal of High Performance Computing
Applications 19(1), 2005; Hoefler and Moor: Supercomputing Frontiers and Innovations 1(2), 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.collectives import ROOTED


class Message(NamedTuple):
    """A message of a collective operation: world ranks and bytes."""

    sender: int
    receiver: int
    bytes: int


Round: TypeAlias = "tuple[Message, ...]"
"""Messages that depend on earlier rounds alone.

A rank sends the messages of a round when all messages to it in earlier rounds have arrived.
"""


class Batch(NamedTuple):
    """The messages of a round between places in the group, [messages] each, without copies to self.

    Attributes
    ----------
    is_burst : whether a place sends or receives more than one message
    """

    senders: Int64Array
    receivers: Int64Array
    bytes: Int64Array
    is_burst: bool = False


_Algorithm: TypeAlias = "Callable[[int, Int64Array], Iterator[Batch]]"
"""Rounds for (members, bytes of each member), with the root at place 0."""


def usual(name: str, n: int, sizes: Int64Array) -> str:
    """Return the algorithm that MPICH chooses for the number of members and the size.

    The limits are those of Thakur, Rabenseifner and Gropp, section 4. More than 1024 members do not
    send everything at once, because the messages of all of them would take too much memory.

    Parameters
    ----------
    name : collective operation, one of `ALGORITHMS`
    sizes : bytes of each member, [n]
    """
    largest, total = int(sizes.max(initial=0)), int(sizes.sum())
    is_power = n & (n - 1) == 0
    is_long = {
        "bcast": n >= 8 and largest >= 12288,
        "allgather": total >= (524288 if is_power else 81920),
        "alltoall": n < 8 or largest > 256,
        "allreduce": largest > 2048,
        "reduce_scatter_block": total >= 524288,
    }
    if name == "alltoall" and is_long[name] and largest <= 32768 and n <= 1024:
        return "p2p"
    short, long = _BY_SIZE.get(name, (next(iter(ALGORITHMS[name])),) * 2)
    return long if is_long.get(name) else short


def batches(name: str, algorithm: str, n: int, sizes: Int64Array) -> Iterator[Batch]:
    """Yield the rounds of a collective operation, with the root at place 0.

    Parameters
    ----------
    name : collective operation, one of `ALGORITHMS`
    algorithm : one of ``ALGORITHMS[name]``
    sizes : bytes of each member, [n]: those that it gives to each other, or gives or gets in all of
        a gather, scatter or reduction
    """
    return (one for one in ALGORITHMS[name][algorithm](n, sizes) if len(one.senders))


def rounds(
    name: str, members: Sequence[int], size: int = 0, root: int = 0, algorithm: str | None = None
) -> list[Round]:
    """Return the messages of a collective operation that moves equal sizes.

    Parameters
    ----------
    name : collective operation, one of `ALGORITHMS`
    members : world ranks of the group, in order
    size : bytes from or to each process, as in the call
    root : place of the root in the group; ignored without a root
    algorithm : one of ``ALGORITHMS[name]``; None = the first of them

    Returns
    -------
    rounds, without messages of a rank to itself

    Raises
    ------
    KeyError
        If the operation or the algorithm is not known.
    """
    chosen = algorithm if algorithm is not None else next(iter(ALGORITHMS[name]))
    n = len(members)
    turned = [members[(root + k) % n] for k in range(n)] if name in ROOTED else members
    return [
        tuple(
            Message(turned[a], turned[b], size)
            for a, b, size in zip(*map(np.ndarray.tolist, one[:3]), strict=True)
        )
        for one in batches(name, chosen, n, np.full(n, size, np.int64))
    ]


def unequal_rounds(
    name: str, members: Sequence[int], sent: Sequence[int], received: Sequence[int], root: int = 0
) -> list[Round]:
    """Return the messages of a collective operation that moves different sizes.

    Roots send to, and receive from, all others in one round. Otherwise every member sends to the
    one at distance 1, 2, ... in each round. Traces have no sizes of pairs. `shares` tells how sums
    become such sizes.

    Parameters
    ----------
    name : collective operation whose name ends in v or w, or ``reduce_scatter``
    sent, received : bytes of each member in all, as measured
    root : place of the root in the group; ignored without a root

    Raises
    ------
    KeyError
        If the operation is not known.
    """
    n = len(members)
    if name in {"gatherv", "gather", "reduce"}:
        found = [[(k, root, sent[k]) for k in range(n) if k != root]]
    elif name in {"scatterv", "scatter", "bcast"}:
        found = [[(root, k, received[k]) for k in range(n) if k != root]]
    else:
        if name in {"allgatherv", "allgather"}:
            sizes = [[sent[a] // n] * n for a in range(n)]
        elif name in {"reduce_scatter", "reduce_scatter_block"}:
            sizes = [[received[b] // n for b in range(n)] for _ in range(n)]
        elif name in {"alltoallv", "alltoallw", "alltoall"}:
            sizes = shares(sent, received)
        else:
            raise KeyError(name)
        found = [[(a, (a + k) % n, sizes[a][(a + k) % n]) for a in range(n)] for k in range(1, n)]
    return [
        tuple(Message(members[a], members[b], size) for a, b, size in pairs)
        for pairs in found
        if pairs
    ]


def shares(sent: Sequence[int], received: Sequence[int]) -> list[list[int]]:
    """Return bytes from each member to each [n x n] that add up to what they send and receive.

    The sizes are in proportion; the rest of rounding goes from the first to the last.
    """
    n, total = len(sent), sum(sent)
    sizes = [[a * b // total if total else 0 for b in received] for a in sent]
    more = [a - sum(row) for a, row in zip(sent, sizes, strict=True)]
    less = [b - sum(row[k] for row in sizes) for k, b in enumerate(received)]
    a = b = 0
    while a < n and b < n:
        size = min(more[a], less[b])
        sizes[a][b] += size
        more[a] -= size
        less[b] -= size
        if more[a] == 0:
            a += 1
        else:
            b += 1
    return sizes


def _powers(n: int) -> list[int]:
    """Return 1, 2, 4, ... below n."""
    return [1 << k for k in range((n - 1).bit_length())]


def _shifted(n: int, distance: int, sizes: Int64Array) -> Batch:
    """Return the round in which each place sends to the one at a distance."""
    own = np.arange(n)
    return Batch(own, (own + distance) % n, sizes)


def _parts_of(size: int, parts: int) -> Int64Array:
    """Return the bytes of the parts of a buffer, which differ by one at most."""
    return size // parts + (np.arange(parts) < size % parts).astype(np.int64)


def _largest(sizes: Int64Array) -> int:
    return int(sizes.max(initial=0))


def _dissemination(n: int, sizes: Int64Array) -> Iterator[Batch]:
    for distance in _powers(n):
        yield _shifted(n, distance, sizes)


def _binomial(n: int, sizes: Int64Array) -> Iterator[Batch]:
    for distance in _powers(n):
        own = np.arange(min(distance, n - distance))
        yield Batch(own, own + distance, sizes[own])


def _binomial_parts(n: int, sizes: Int64Array) -> Iterator[Batch]:
    """Yield the rounds of a root that has a part for each: half of them to one other, and so on."""
    sums = np.concatenate([[0], np.cumsum(sizes)])
    for distance in reversed(_powers(n)):
        own = np.arange(0, n - distance, 2 * distance)
        end = np.minimum(n, own + 2 * distance)
        yield Batch(own, own + distance, sums[end] - sums[own + distance])


def _linear(n: int, sizes: Int64Array) -> Iterator[Batch]:
    others = np.arange(1, n)
    yield Batch(np.zeros(n - 1, np.int64), others, sizes[1:], is_burst=True)


def _back(algorithm: _Algorithm) -> _Algorithm:
    """Return the algorithm of the opposite direction."""

    def made(n: int, sizes: Int64Array) -> Iterator[Batch]:
        for one in reversed(list(algorithm(n, sizes))):
            yield one._replace(senders=one.receivers, receivers=one.senders)

    return made


def _all_at_once(n: int, sizes: Int64Array) -> Iterator[Batch]:
    distance, own = (x.ravel() for x in np.indices((n - 1, n)))
    yield Batch(own, (own + distance + 1) % n, sizes[own], is_burst=True)


def _pairwise(n: int, sizes: Int64Array) -> Iterator[Batch]:
    for distance in range(1, n):
        yield _shifted(n, distance, sizes)


def _pairwise_results(n: int, sizes: Int64Array) -> Iterator[Batch]:
    """Yield rounds in which each place sends to another the part of its result."""
    for distance in range(1, n):
        yield _shifted(n, distance, np.roll(sizes, -distance))


def _ring(n: int, sizes: Int64Array) -> Iterator[Batch]:
    """Yield rounds in which each place passes on what it got in the round before."""
    for step in range(n - 1):
        yield _shifted(n, 1, np.roll(sizes, step))


def _bruck_allgather(n: int, sizes: Int64Array) -> Iterator[Batch]:
    sums, own = np.concatenate([[0], np.cumsum(np.tile(sizes, 2))]), np.arange(n)
    for distance in _powers(n):
        blocks = min(distance, n - distance)
        yield _shifted(n, -distance, sums[own + blocks] - sums[own])


def _bruck_alltoall(n: int, sizes: Int64Array) -> Iterator[Batch]:
    for distance in _powers(n):
        yield _shifted(n, distance, int((np.arange(n) & distance > 0).sum()) * sizes)


def _scatter_allgather(n: int, sizes: Int64Array) -> Iterator[Batch]:
    parts = _parts_of(_largest(sizes), n)
    yield from _binomial_parts(n, parts)
    yield from _ring(n, parts)


def _around_core(n: int, sizes: Int64Array) -> tuple[int, Batch, Batch]:
    """Return a power of two of places, and the rounds before and after.

    All other places give their data to one of them before, and get the result after.
    """
    core = 1 << (n.bit_length() - 1)
    own = np.arange(n - core)
    before = Batch(core + own, own, sizes[core:])
    return core, before, Batch(own, core + own, sizes[core:])


def _exchanged(n: int, distance: int, size: int) -> Batch:
    own = np.arange(n)
    return Batch(own, own ^ distance, np.full(n, size, np.int64))


def _recursive_doubling(n: int, sizes: Int64Array) -> Iterator[Batch]:
    core, before, after = _around_core(n, sizes)
    yield before
    for distance in _powers(core):
        yield _exchanged(core, distance, _largest(sizes))
    yield after


def _rabenseifner(n: int, sizes: Int64Array) -> Iterator[Batch]:
    """Yield the rounds that halve the buffer until each has a part of the sum, and then double it.

    The parts are rounded up.
    """
    core, before, after = _around_core(n, sizes)
    exchanges = [_exchanged(core, d, -(-_largest(sizes) * d // core)) for d in _powers(core)]
    yield before
    yield from reversed(exchanges)
    yield from exchanges
    yield after


def _recursive_halving(n: int, sizes: Int64Array) -> Iterator[Batch]:
    total = int(sizes.sum())
    core, before, after = _around_core(n, sizes)
    yield before._replace(bytes=np.full(n - core, total, np.int64))
    for distance in reversed(_powers(core)):
        yield _exchanged(core, distance, -(-total * distance // core))
    yield after


def _ring_of_parts(n: int, sizes: Int64Array) -> Iterator[Batch]:
    """Yield the rounds in which the parts of a sum go round twice: to add, and to tell."""
    parts = _parts_of(_largest(sizes), n)
    for step in range(2 * (n - 1)):
        yield _shifted(n, 1, np.roll(parts, step))


def _to_root_and_back(n: int, sizes: Int64Array) -> Iterator[Batch]:
    yield from _back(_binomial)(n, sizes)
    yield from _binomial(n, sizes)


def _line(n: int, sizes: Int64Array) -> Iterator[Batch]:
    for k in range(1, n):
        yield Batch(np.array([k - 1]), np.array([k]), sizes[k : k + 1])


def _doubling_line(n: int, sizes: Int64Array) -> Iterator[Batch]:
    for distance in _powers(n):
        own = np.arange(n - distance)
        yield Batch(own, own + distance, sizes[own])


ALGORITHMS: Mapping[str, Mapping[str, _Algorithm]] = {
    "barrier": {"dissemination": _dissemination, "tree": _to_root_and_back},
    "bcast": {"binomial": _binomial, "scatter-allgather": _scatter_allgather, "p2p": _linear},
    "reduce": {"binomial": _back(_binomial), "p2p": _back(_linear)},
    "gather": {"binomial": _back(_binomial_parts), "p2p": _back(_linear)},
    "scatter": {"binomial": _binomial_parts, "p2p": _linear},
    "gatherv": {"p2p": _back(_linear)},
    "scatterv": {"p2p": _linear},
    "allgather": {"ring": _ring, "bruck": _bruck_allgather, "p2p": _all_at_once},
    "allgatherv": {"ring": _ring, "bruck": _bruck_allgather, "p2p": _all_at_once},
    "alltoall": {"pairwise": _pairwise, "bruck": _bruck_alltoall, "p2p": _all_at_once},
    "alltoallv": {"pairwise": _pairwise, "p2p": _all_at_once},
    "alltoallw": {"pairwise": _pairwise, "p2p": _all_at_once},
    "allreduce": {
        "recursive-doubling": _recursive_doubling,
        "rabenseifner": _rabenseifner,
        "ring": _ring_of_parts,
        "tree": _to_root_and_back,
        "p2p": _all_at_once,
    },
    "reduce_scatter": {"pairwise": _pairwise_results, "recursive-halving": _recursive_halving},
    "reduce_scatter_block": {
        "pairwise": _pairwise_results,
        "recursive-halving": _recursive_halving,
        "p2p": _all_at_once,
    },
    "scan": {"recursive-doubling": _doubling_line, "line": _line},
    "exscan": {"recursive-doubling": _doubling_line, "line": _line},
}
"""Algorithms by the name of the operation, the usual one first; ``p2p`` sends all at once."""

_BY_SIZE = {
    "bcast": ("binomial", "scatter-allgather"),
    "allgather": ("bruck", "ring"),
    "alltoall": ("bruck", "pairwise"),
    "allreduce": ("recursive-doubling", "rabenseifner"),
    "reduce_scatter_block": ("recursive-halving", "pairwise"),
}
"""Algorithms of short and long messages."""
