"""MPI performance guidelines: checks of measurements, and predictions at a target.

A guideline compares two sides. The left side is a collective, such as ``MPI_Allreduce``. The right
side does the same work with other functions, such as ``MPI_Reduce`` and ``MPI_Bcast``. The left
side should not be slower, because the library could call the right side instead (Träff, Gropp,
Thakur: Self-consistent MPI performance requirements, IEEE TPDS 21(5), 2010).

Modules, in the order of the computation:

- `rules` has the guidelines, and `functions` the names of collectives.
- `benchmark` has the measured values. `repetitions` computes means without outliers.
- `sizes` finds neighbouring message sizes. `checks` finds all comparisons that are possible.
- `judge` decides on checks. `prediction` models functions. `stakes` bounds the gain of a program.
- `verification` is the whole computation, and `answer` its result.
- `table` and `text` write the result as a table and as lines.
"""
