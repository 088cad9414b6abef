"""Readers of the output of MPI benchmarks.

All readers convert to one convention of message sizes: m is the block of one process for functions
that gather, scatter or exchange, and for reductions that scatter. For other functions, m is the
whole buffer.

| suite | size of ``Reduce_scatter`` and ``Reduce_scatter_block`` | size of others |
|---|---|---|
| ReproMPI, PGMPI, PGChecker, tables | block of one process | as above |
| OSU, Intel MPI Benchmarks | whole vector, divided by p here | as above |
| SKaMPI | number of elements, times their size; whole vector, divided by p here | as above |
"""
