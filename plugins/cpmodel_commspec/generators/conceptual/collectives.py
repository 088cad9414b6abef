"""Collective operations as statements of coNCePTuaL, and what stands for those that it lacks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.collectives import ROOTED, Form
from cpmodel_commspec.generators.conceptual.phrases import everyone, factor, number
from cpmodel_commspec.operations import Kind, Shape
from cpmodel_commspec.specification import Specification, Step

_WORDS = ((8, "DOUBLEWORD"), (4, "INTEGER"))
"""Types that can be reduced, with their bytes."""

_INSTEAD = {
    "allgather": "a REDUCE and a MULTICAST",
    "allgatherv": "a REDUCE of the average size and a MULTICAST",
    "alltoallv": "a MULTICAST of the average size",
    "alltoallw": "a MULTICAST of the average size",
    "gather": "a REDUCE",
    "gatherv": "a REDUCE of the average size",
    "reduce_scatter": "a REDUCE to each task, of the average size",
    "reduce_scatter_block": "a REDUCE to each task",
    "scatter": "a MULTICAST",
    "scatterv": "a MULTICAST of the average size",
    "scan": "a REDUCE to all tasks",
    "exscan": "a REDUCE to all tasks",
}
"""Table I of Wu, Mueller and Pakin, with scans."""


_TO_ALL = frozenset({"bcast", "scatter", "scatterv", "alltoall", "alltoallv", "alltoallw"})
_OWN_VARIABLE = re.compile(r"\bt\b")


@dataclass(frozen=True, slots=True)
class Group:
    """The statements of one or of all groups of a communicator.

    Attributes
    ----------
    head : of the loop over groups; "" without one
    texts : statements
    comments : what they stand for
    """

    head: str
    texts: tuple[str, ...]
    comments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Members:
    """A group of tasks, or any of equal groups with the variable g.

    Attributes
    ----------
    tasks : the phrase of all members
    count : how many they are
    origin, step : formula of the world rank of a member: ``origin + step * place``; or None
    ranks : world ranks of the first group, in order
    """

    tasks: str
    count: int
    origin: str | None
    step: int
    ranks: tuple[int, ...]

    def member(self, place: Int64Array) -> str:
        """Return the formula of the world rank of the member at a place [1 x rounds ...]."""
        if self.origin is None:
            return number(np.array(self.ranks, np.int64)[place], [0])
        found = number(self.step * place, [0])
        if self.origin == "0":
            return found
        return self.origin if found == "0" else f"{self.origin} + {factor(found)}"

    def each(self) -> str:
        """Return the phrase of members, one after the other, as the variable r."""
        if self.origin is None:
            return f"FOR EACH r IN {{{', '.join(map(str, self.ranks))}}}"
        if self.count == 1:
            return "FOR EACH r IN {0}"
        end = "0, 1" if self.count == 2 else f"0, ..., {self.count - 1}"
        return f"FOR EACH r IN {{{end}}}"

    def chosen(self) -> str:
        """Return the task that the variable r means."""
        if self.origin is None:
            return "r"
        place = "r" if self.step == 1 else f"{self.step} * r"
        return place if self.origin == "0" else f"{self.origin} + {place}"


class Collectives:
    """Writer of the collective operations of a specification."""

    def __init__(self, told: Specification) -> None:
        self._told = told

    def statements(self, steps: Sequence[Step], counts: Sequence[int]) -> list[Group]:
        """Return the statements of an operation.

        Parameters
        ----------
        steps : lines that are one operation of all members; they differ in the form of bytes
        counts : rounds of each loop around
        """
        shape = self._told.shapes[steps[0].shape]
        here = {rank for step in steps for rank in step.ranks}
        groups = [
            group for group in self._told.communicators[shape.comm].groups if here & set(group)
        ]
        comments = self._comments(shape)
        members = self._alike(groups)
        values = {rank: self._values(step, rank, counts) for step in steps for rank in step.ranks}
        roots = [values[group[0]][1] for group in groups]
        sizes = [self._size(shape, group, values) for group in groups]
        if members is not None and all(
            np.array_equal(roots[0], root) and np.array_equal(sizes[0], size)
            for root, size in zip(roots, sizes, strict=True)
        ):
            texts, more = self._texts(shape, members, sizes[0], roots[0])
            n = len(groups)
            numbers = "0, 1" if n == 2 else f"0, ..., {n - 1}"
            head = f"FOR EACH g IN {{{numbers}}}" if n > 1 else ""
            return [Group(head, texts, (*comments, *more))]
        found = []
        for k, group in enumerate(groups):
            one = self._one(group)
            texts, more = self._texts(shape, one, sizes[k], roots[k])
            found.append(Group("", texts, (*comments, *more) if k == 0 else ()))
        return found

    def _values(
        self, step: Step, rank: int, counts: Sequence[int]
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return bytes, root and bytes received of one rank, [1 x rounds of each loop]."""
        place = step.ranks.index(rank)
        bytes_, root, received = (
            step.numbers[name].of_rank(place).values((rank,), counts)
            if name in step.numbers
            else np.zeros((1, *counts), np.int64)
            for name in ("bytes", "root", "received")
        )
        return bytes_, root, received

    def _size(
        self, shape: Shape, group: Sequence[int],
        values: dict[int, tuple[Int64Array, Int64Array, Int64Array]],
    ) -> Int64Array:  # fmt: skip
        """Return the bytes of a statement in each round."""
        own = [values[rank] for rank in group]
        if shape.form is not Form.TOTAL:
            # All have one size in equal operations, however their forms are.
            found: Int64Array = np.max([bytes_ for bytes_, _, _ in own], axis=0)
            return found
        n = len(group)
        received = np.sum([got for _, _, got in own], axis=0)
        sent = np.sum([bytes_ for bytes_, _, _ in own], axis=0)
        total = np.maximum(sent, received)
        parts = {"gatherv": n, "scatterv": n, "allgatherv": n * n}.get(shape.name, n * n)
        average: Int64Array = np.rint(total / parts).astype(np.int64)
        # One average of all rounds: a size for each round would be no shorter than a table.
        return np.full_like(average, round(float(average.mean())))

    def _comments(self, shape: Shape) -> list[str]:
        name = shape.call or f"MPI_{shape.name}"
        if shape.kind is Kind.HANDLE:
            return [f"{name} is SYNCHRONIZE here"]
        return [f"{name} is {_INSTEAD[shape.name]} here"] if shape.name in _INSTEAD else []

    def _alike(self, groups: Sequence[tuple[int, ...]]) -> _Members | None:
        """Return groups as one phrase with the variable g; None if they follow no rule."""
        processes, n = self._told.processes, len(groups[0])
        if len(groups) == 1:
            return self._one(groups[0])
        if sum(map(len, groups)) != processes or any(len(group) != n for group in groups):
            return None
        step = len(groups)
        if n == 1 and all(group == (k,) for k, group in enumerate(groups)):
            return _Members("TASK g", 1, "g", 1, groups[0])
        if all(group == tuple(range(k * n, k * n + n)) for k, group in enumerate(groups)):
            return _Members(f"TASKS t SUCH THAT t / {n} = g", n, f"{n} * g", 1, groups[0])
        if all(group == tuple(range(k, k + n * step, step)) for k, group in enumerate(groups)):
            return _Members(f"TASKS t SUCH THAT t MOD {step} = g", n, "g", step, groups[0])
        return None

    def _one(self, group: tuple[int, ...]) -> _Members:
        is_plain = group == tuple(range(group[0], group[0] + len(group)))
        origin = str(group[0]) if is_plain else None
        phrase = everyone(sorted(group), self._told.processes)
        return _Members(phrase, len(group), origin, 1, group)

    def _texts(
        self, shape: Shape, members: _Members, size: Int64Array, root: Int64Array
    ) -> tuple[tuple[str, ...], list[str]]:
        """Return the statements of a group, and comments."""
        all_, name = members.tasks, shape.name
        others = _OWN_VARIABLE.sub("u", all_)
        s = "S" * all_.startswith("TASK ")
        at_root, bytes_ = f"TASK {members.member(root)}", factor(number(size, [0]))
        words, more = _words(size)
        reduce = f"{all_} REDUCE{s} {words}"
        if shape.kind is Kind.HANDLE or name == "barrier":
            return (f"{all_} SYNCHRONIZE{s}",), []
        if name in _TO_ALL:
            sender = f"{at_root} MULTICASTS" if name in ROOTED else f"{all_} MULTICAST{s}"
            return (f"{sender} A {bytes_} BYTE MESSAGE TO {others}",), []
        if name in {"allgather", "allgatherv"}:
            first = members.member(np.zeros_like(root))
            whole = factor(number(size * members.count, [0]))
            text = f"TASK {first} MULTICASTS A {whole} BYTE MESSAGE TO {others}"
            return (f"{reduce} TO TASK {first}", text), more
        if name in {"reduce_scatter", "reduce_scatter_block"}:
            return (f"{members.each()} {reduce} TO TASK {members.chosen()}",), more
        return (f"{reduce} TO {at_root}" if name in ROOTED else reduce,), more


def _words(size: Int64Array) -> tuple[str, list[str]]:
    """Return how much is reduced, and a comment if that are more bytes."""
    for width, word in _WORDS:
        if (size % width == 0).all():
            return f"{factor(number(size // width, [0]))} {word}S", []
    words = -(-size // 4)
    more = "sizes are rounded up to whole integers of 4 bytes"
    return f"{factor(number(words, [0]))} INTEGERS", [more]
