"""How measurement counts the bytes of a collective operation, and what each process gave to it.

Score-P books what every process sends to and receives from every other one, itself included: with n
processes, an allreduce of m bytes counts n * m sent and n * m received, a broadcast n * m sent at
the root and m received everywhere. With buffers used in place a process leaves itself out.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

NAMES = (
    "barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
    "alltoall", "alltoallv", "alltoallw", "allreduce", "reduce", "reduce_scatter", "scan",
    "exscan", "reduce_scatter_block",
)  # fmt: skip
"""Collective operations by their number in the format."""

CREATE_HANDLE, DESTROY_HANDLE = 17, 18
"""Numbers of operations that make and free communicators; beyond are those on shared memory."""

ROOTED = frozenset({"bcast", "gather", "gatherv", "scatter", "scatterv", "reduce"})


class Form(StrEnum):
    """How the bytes of a collective operation are told."""

    EACH = "each"
    """By what each process gives to, or gets from, each."""

    IN_PLACE = "in place"
    """The same, of a process that leaves itself out."""

    TOTAL = "total"
    """By what a process sends and receives in all: processes differ."""


Share = Callable[[int, int, bool, int], tuple[int, int]]
"""Bytes sent and received for m: (n processes, place, is root, m)."""


def _all(n: int, _place: int, _is_root: bool, m: int) -> tuple[int, int]:
    return n * m, n * m


def _from_root(n: int, _place: int, is_root: bool, m: int) -> tuple[int, int]:
    return (n * m if is_root else 0), m


def _to_root(n: int, _place: int, is_root: bool, m: int) -> tuple[int, int]:
    return m, (n * m if is_root else 0)


_SHARES: dict[str, Share] = {
    "barrier": lambda _n, _place, _is_root, _m: (0, 0),
    "bcast": _from_root,
    "scatter": _from_root,
    "gather": _to_root,
    "reduce": _to_root,
    "allgather": _all,
    "alltoall": _all,
    "allreduce": _all,
    "reduce_scatter_block": _all,
    "scan": lambda n, place, _, m: ((n - place) * m, (place + 1) * m),
    "exscan": lambda n, place, _, m: ((n - place - 1) * m, place * m),
}
_IN_PLACE: dict[str, Share] = {
    name: lambda n, _place, _is_root, m: ((n - 1) * m, (n - 1) * m)
    for name in ("allgather", "alltoall", "allreduce", "reduce_scatter_block")
}
# Of one root and all others only the root can: nothing goes from it to itself.
_IN_PLACE["gather"] = _IN_PLACE["reduce"] = lambda n, _place, _is_root, m: (0, (n - 1) * m)
_IN_PLACE["scatter"] = lambda n, _place, _is_root, m: ((n - 1) * m, 0)


def share(
    name: str, n: int, place: int, root: int, sent: int, received: int
) -> tuple[Form, int, int]:
    """Return how to tell the bytes of a collective operation, shortest way first.

    Parameters
    ----------
    n : processes in the communicator
    place, root : own rank, and that of the root, in it
    sent, received : bytes as measured

    Returns
    -------
    form
    bytes, received : m and 0, or what was measured for `Form.TOTAL`
    """
    for form in (Form.EACH, Form.IN_PLACE):
        for m in _candidates(name, n, place, sent, received):
            if booked(name, form, n, place, root, m, 0) == (sent, received):
                return form, m, 0
    return Form.TOTAL, sent, received


def has_form(name: str, form: Form) -> bool:
    """Tell whether the bytes of a collective operation can be told so."""
    if form is Form.TOTAL:
        return True
    return name in (_IN_PLACE if form is Form.IN_PLACE else _SHARES)


def booked(
    name: str, form: Form, n: int, place: int, root: int, size: int, received: int
) -> tuple[int, int]:
    """Return bytes sent and received as measurement counts them: the inverse of `share`."""
    shares = _IN_PLACE if form is Form.IN_PLACE else _SHARES
    if form is Form.TOTAL or name not in shares:
        return size, received
    return shares[name](n, place, place == root, size)


def member_size(name: str, form: Form, size: int, received: int, n: int) -> int:
    """Return the bytes that a member gives to each, or gets from each; means where pairs differ.

    For gatherv and scatterv, they are those that it gives or gets in all.

    Parameters
    ----------
    size, received : as `share` returns them
    n : processes in the communicator
    """
    if form is not Form.TOTAL or name == "gatherv":
        return size
    if name == "scatterv":
        return received
    return -(-(received if name.startswith("reduce_scatter") else size) // n)


def _candidates(name: str, n: int, place: int, sent: int, received: int) -> list[int]:
    """Return what m may be; what it is shows when it is booked."""
    if name not in _SHARES:
        return []
    divisors = {1, n, n - 1, n - place, n - place - 1, place, place + 1} - {0}
    tried = [amount // k for k in sorted(divisors) for amount in (received, sent)]
    return list(dict.fromkeys(tried))
