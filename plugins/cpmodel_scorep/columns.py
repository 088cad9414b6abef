"""Which stored columns count, and how the threads of a process become one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from cpmodel_scorep.definitions import Locations, MalformedError

Block = NDArray[np.float64]
Place = slice | NDArray[np.intp]

_PSEUDO_THREADS = (
    "aggregated threads",
    "master thread",  # "Master thread" is a real one
    "fastest thread",
    "slowest thread",
    "aggregated worker threads",
    "cluster ",
)


class Fold(Enum):
    """How the threads of a process become one value."""

    MAX = "max"
    SUM = "sum"
    MIN = "min"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of CPU threads, by process.

    Attributes
    ----------
    stored : number of columns in a stored row
    processes : number of processes
    threads : largest number of threads in a process
    left_out : number of columns that belong to no CPU thread
    are_threads : False if columns stand for several threads or for the choice of one
    layers : for the first, second, ... thread of a process: which processes have one, and
        in which columns it lies
    """

    stored: int
    processes: int
    threads: int
    left_out: int
    are_threads: bool
    layers: tuple[tuple[Place, Place], ...]

    def fold(self, block: NDArray[np.float64], how: Fold) -> NDArray[np.float64]:
        """Return one value per process.

        Parameters
        ----------
        block : [rows x stored columns]; NaN counts as missing

        Returns
        -------
        [rows x processes], a view of `block` where nothing has to be folded
        """
        processes, columns = self.layers[0]
        if len(self.layers) == 1:
            return block[:, columns]
        combine = _combine(how)
        folded = np.array(block[:, columns])
        for processes, columns in self.layers[1:]:
            folded[:, processes] = combine(folded[:, processes], block[:, columns])
        return folded


def _combine(how: Fold) -> Callable[[Block, Block], Block]:
    match how:
        case Fold.MAX:
            return np.fmax
        case Fold.MIN:
            return np.fmin
        case Fold.SUM:
            return _add


def _add(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    total: NDArray[np.float64] = first + second
    if np.isnan(np.add.reduce(total, axis=None)):
        total = np.where(np.isnan(first), second, np.where(np.isnan(second), first, total))
    return total


def columns_of(locations: Locations) -> Columns:
    """Return which columns hold what.

    Raises
    ------
    MalformedError
        If two locations share an id, or none of them is a thread of a process.
    """
    n = len(locations.ids)
    order = np.argsort(locations.ids, kind="stable")
    if np.any(np.diff(locations.ids[order]) == 0):
        raise MalformedError("two locations have one id")
    # Columns come in ascending order of the ids, whatever the order of the definitions.
    column = np.empty(n, np.intp)
    column[order] = np.arange(n)
    counts = locations.is_thread & locations.is_process[locations.groups]
    if not counts.any():
        raise MalformedError("no location is a thread of a process")
    groups, process = np.unique(locations.groups[counts], return_inverse=True)
    by_process = np.lexsort((column[counts], process))
    columns, process = column[counts][by_process], process[by_process]
    first = np.searchsorted(process, np.arange(len(groups)))
    thread = np.arange(len(process)) - first[process]
    threads = int(thread.max()) + 1
    layers = tuple(
        (_place(process[thread == t], len(groups)), _place(columns[thread == t], n))
        for t in range(threads)
    )
    return Columns(
        stored=n,
        processes=len(groups),
        threads=threads,
        left_out=n - len(columns),
        are_threads=not any(name.startswith(_PSEUDO_THREADS) for name in locations.names),
        layers=layers,
    )


def _place(places: NDArray[np.intp], total: int) -> Place:
    """Return `places` as a slice if they are evenly spaced: slices need no copy."""
    if len(places) == 1:
        return slice(int(places[0]), int(places[0]) + 1)
    steps = np.diff(places)
    if np.all(steps == steps[0]) and steps[0] > 0:
        start, step = int(places[0]), int(steps[0])
        return slice(start, min(total, start + step * (len(places) - 1) + 1), step)
    return places
