"""MPI performance guidelines: no collective should be slower than what could take its place.

What implements ``MPI_Allreduce`` could call ``MPI_Reduce`` and ``MPI_Bcast``, so it should not take
longer than both (Träff, Gropp, Thakur: Self-consistent MPI performance requirements, IEEE TPDS
21(5), 2010). Such guidelines are held against measurements, and against models where nobody
measured.

Stages: `rules` are data, `functions` knows names, `benchmark` makes arrays of an experiment, with
`repetitions` tamed, `checks` finds what can be checked among `sizes`, `judge` decides, `prediction`
looks ahead, `stakes` says what it costs a program, `verification` goes all the way to an `answer`,
`table` and `text` write it down.
"""
