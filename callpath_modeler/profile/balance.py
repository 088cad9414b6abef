"""Parts of the time of all threads: the ingredients of parallel efficiency.

A program has n threads. The run time T of its slowest process is the sum of five parts. Each part
is a time per thread, and never negative:

- useful: computation of all threads, divided by n
- serial: threads are idle while others of their process compute or wait in parallel regions
- regions: waiting and management of threads inside parallel regions
- imbalance: the longest time of a process outside of communication, minus the mean
- communication: T minus that longest time

A process is in communication while one of its threads communicates and the others communicate,
wait, or are not recorded. No thread computes during this time. So the time of a process outside of
communication is the larger of two times:

- the computation of its busiest thread
- its elapsed time without the communication of the thread that communicates longest

Threads that wait longer than this time wait for communication, whether the waiting is recorded or
not.

The weight of a process is its number of threads. Measurement overhead is left out. Since the parts
add up to T, every factor made from them is between 0 and 1.

References
----------
POP Centre of Excellence: Standard Metrics for Performance Analysis, for the factors of message
passing; hybrid metrics of the same source, for the division of the loss between processes and
threads. TALP of DLB assigns idle workers in the same way: their time during a call of MPI by the
master is `mpiWorkerIdleTime`, a loss of MPI.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.profile.activities import Activity


class Part(IntEnum):
    """A part of the run time, as its column in an array of parts."""

    USEFUL = 0
    SERIAL = 1
    REGIONS = 2
    IMBALANCE = 3
    COMMUNICATION = 4


PARTS = len(Part)


class Balance(Struct, frozen=True, eq=False):
    """The parts of the run time of one run: of the program, and of some subtrees.

    Attributes
    ----------
    rows : intp [s] root of each subtree; the first is the whole program, `ROOT`
    parts : float64 [s, parts] seconds per thread, see `Part`
    threads : number of threads of all processes
    instructions, cycles : float64 [s] sums over the computation of all threads; NaN = not measured
    communicates : whether the profile has a call of communication, left out or not
    left_out : number of subtrees that were too many for the memory, although they are costly enough
    """

    rows: IntArray
    parts: FloatArray
    threads: int
    instructions: FloatArray
    cycles: FloatArray
    communicates: bool
    left_out: int = 0

    def take(self, keep: BoolArray) -> Balance:
        """Return the parts of some subtrees, [s] = True."""
        return structs.replace(
            self,
            rows=self.rows[keep],
            parts=self.parts[keep],
            instructions=self.instructions[keep],
            cycles=self.cycles[keep],
        )


def parts_of(time: FloatArray, process: IntArray) -> FloatArray:
    """Return the parts of the run time of one subtree.

    Parameters
    ----------
    time : [activities, threads] seconds of each thread, see `Activity`
    process : [threads] number of the process of each thread, ascending from 0

    Returns
    -------
    ndarray
        [parts], seconds per thread.
    """
    computing, calling = time[Activity.COMPUTATION], time[Activity.COMMUNICATION]
    waiting = time[Activity.THREADING]
    begins = np.flatnonzero(np.diff(process, prepend=-1))
    number = np.diff(np.append(begins, len(process)))
    threads = len(process)
    elapsed = computing + waiting + calling
    last = np.lexsort((elapsed, process))[begins + number - 1]
    whole = elapsed[last]
    # If the longest thread communicates longest, its own time outside of communication is exact.
    calls_less = np.maximum.reduceat(calling, begins) - calling[last]
    busiest = np.maximum.reduceat(computing, begins)
    of_process = np.maximum(busiest, computing[last] + waiting[last] - calls_less)
    mean = float((number * of_process).sum()) / threads
    longest, run_time = float(of_process.max()), float(whole.max())
    useful = float(computing.sum()) / threads
    left = np.repeat(of_process, number) - computing
    regions = float(np.minimum(waiting, left).sum()) / threads
    found = np.empty(PARTS)
    found[Part.USEFUL] = useful
    found[Part.REGIONS] = regions
    # These are differences of sums of equal numbers, so rounding may make them negative.
    found[Part.SERIAL] = _difference(mean, useful + regions)
    found[Part.IMBALANCE] = _difference(longest, mean)
    found[Part.COMMUNICATION] = _difference(run_time, longest)
    return found


_ROUNDING = 1e-12
"""Relative difference of two sums below which it is rounding."""


def _difference(larger: float, smaller: float) -> float:
    left = larger - smaller
    return left if left > _ROUNDING * larger else 0.0
