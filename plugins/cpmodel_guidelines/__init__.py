"""MPI performance guidelines: checks of measurements, and predictions at a target.

A guideline compares two sides. The left side is a collective, such as ``MPI_Allreduce``. The right
side does the same work with other functions, such as ``MPI_Reduce`` and ``MPI_Bcast``. The left
side should not be slower, because the library could call the right side instead (Träff, Gropp,
Thakur: Self-consistent MPI performance requirements, IEEE TPDS 21(5), 2010).

Modules, in the order of the computation:

- `suites` reads the output of benchmarks, and `campaigns` has the observed times of mpiruns.
- `rules` has the guidelines, `catalogue` adds those of the user, and `functions` has the names.
- `benchmark` has the measured values with their uncertainty.
- `message_sizes` finds neighbouring sizes. `checks` finds all comparisons that are possible.
- `statistics` has tests and error rates. `measured_checks` and `judge` decide on checks.
- `prediction` models functions. `potential_savings` bounds the gain of a program.
- `verification` is the whole computation, and `answer` its result.
- `table` and `text` write the result as a table and as lines.
- `published` and `published_report` repeat the procedure of PGMPI, and `nrep` counts repetitions.
"""
