"""Collective operations as messages between two ranks each, by a stated algorithm.

Formats and models without collective operations need them so. The algorithms are those that MPI
libraries describe (Thakur, Rabenseifner, Gropp: International Journal of High Performance Computing
Applications 19(1), 2005; Hoefler and Moor: Supercomputing Frontiers and Innovations 1(2), 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias


class Message(NamedTuple):
    """A message of a collective operation: world ranks and bytes."""

    sender: int
    receiver: int
    bytes: int


Round: TypeAlias = "tuple[Message, ...]"
"""Messages that depend on earlier rounds alone.

A rank sends the messages of a round when all messages to it in earlier rounds have arrived.
"""

_Pair: TypeAlias = "tuple[int, int, int]"
"""A message between places in the group: sender, receiver, bytes."""
_Algorithm: TypeAlias = "Callable[[int, int], Iterator[list[_Pair]]]"
"""Rounds for (members, bytes), with the root at place 0."""


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
    known = ALGORITHMS[name]
    made = known[algorithm if algorithm is not None else next(iter(known))]
    n = len(members)
    turned = [members[(root + k) % n] for k in range(n)] if name in _ROOTED else members
    return [
        tuple(Message(turned[a], turned[b], size) for a, b, size in pairs)
        for pairs in made(n, size)
        if pairs
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


def _dissemination(n: int, size: int) -> Iterator[list[_Pair]]:
    for distance in _powers(n):
        yield [(k, (k + distance) % n, size) for k in range(n)]


def _binomial(n: int, size: int) -> Iterator[list[_Pair]]:
    for distance in _powers(n):
        yield [(k, k + distance, size) for k in range(distance) if k + distance < n]


def _binomial_parts(n: int, size: int) -> Iterator[list[_Pair]]:
    """Yield the rounds of a root that has a part for each: half of them to one other, and so on."""
    for distance in reversed(_powers(n)):
        yield [
            (k, k + distance, size * (min(n, k + 2 * distance) - k - distance))
            for k in range(0, n - distance, 2 * distance)
        ]


def _linear(n: int, size: int) -> Iterator[list[_Pair]]:
    yield [(0, k, size) for k in range(1, n)]


def _back(algorithm: _Algorithm) -> _Algorithm:
    """Return the algorithm of the opposite direction."""

    def made(n: int, size: int) -> Iterator[list[_Pair]]:
        for pairs in reversed(list(algorithm(n, size))):
            yield [(b, a, size) for a, b, size in pairs]

    return made


def _all_at_once(n: int, size: int) -> Iterator[list[_Pair]]:
    yield [(a, (a + k) % n, size) for k in range(1, n) for a in range(n)]


def _pairwise(n: int, size: int) -> Iterator[list[_Pair]]:
    for k in range(1, n):
        yield [(a, (a + k) % n, size) for a in range(n)]


def _ring(n: int, size: int) -> Iterator[list[_Pair]]:
    for _ in range(n - 1):
        yield [(a, (a + 1) % n, size) for a in range(n)]


def _recursive_doubling(n: int, size: int) -> Iterator[list[_Pair]]:
    """Yield exchanges of a power of two; the others give to one of them before, and get after."""
    core = 1 << (n.bit_length() - 1)
    rest = n - core
    yield [(core + k, k, size) for k in range(rest)]
    for distance in _powers(core):
        yield [(k, k ^ distance, size) for k in range(core)]
    yield [(k, core + k, size) for k in range(rest)]


def _ring_of_parts(n: int, size: int) -> Iterator[list[_Pair]]:
    """Yield the rounds in which the parts of a sum go round twice: to add, and to tell."""
    parts = [size // n + (k < size % n) for k in range(n)]
    for step in range(2 * (n - 1)):
        yield [(a, (a + 1) % n, parts[(a - step) % n]) for a in range(n)]


def _to_root_and_back(n: int, size: int) -> Iterator[list[_Pair]]:
    yield from _back(_binomial)(n, size)
    yield from _binomial(n, size)


def _line(n: int, size: int) -> Iterator[list[_Pair]]:
    for k in range(1, n):
        yield [(k - 1, k, size)]


def _doubling_line(n: int, size: int) -> Iterator[list[_Pair]]:
    for distance in _powers(n):
        yield [(k, k + distance, size) for k in range(n - distance)]


_ROOTED = frozenset({"bcast", "reduce", "gather", "scatter"})

ALGORITHMS: Mapping[str, Mapping[str, _Algorithm]] = {
    "barrier": {"dissemination": _dissemination, "tree": _to_root_and_back},
    "bcast": {"binomial": _binomial, "p2p": _linear},
    "reduce": {"binomial": _back(_binomial), "p2p": _back(_linear)},
    "gather": {"binomial": _back(_binomial_parts), "p2p": _back(_linear)},
    "scatter": {"binomial": _binomial_parts, "p2p": _linear},
    "allgather": {"ring": _ring, "p2p": _all_at_once},
    "alltoall": {"pairwise": _pairwise, "p2p": _all_at_once},
    "allreduce": {
        "recursive-doubling": _recursive_doubling,
        "ring": _ring_of_parts,
        "tree": _to_root_and_back,
        "p2p": _all_at_once,
    },
    "reduce_scatter_block": {"pairwise": _pairwise, "p2p": _all_at_once},
    "scan": {"recursive-doubling": _doubling_line, "line": _line},
    "exscan": {"recursive-doubling": _doubling_line, "line": _line},
}
"""Algorithms by the name of the operation, the usual one first; ``p2p`` sends all at once."""
