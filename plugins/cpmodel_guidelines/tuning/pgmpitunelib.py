"""Facts about PGMPITuneLib, which executes a mock-up instead of a collective.

Source: the tables of algorithms in ``src/collectives/*.c`` of github.com/hunsa/pgmpitunelib, and
its reader of profiles, ``src/tuning/pgmpi_profile_reader.c``.
"""

from __future__ import annotations

from collections.abc import Mapping

MOCK_UPS: Mapping[tuple[str, tuple[str, ...]], str] = {
    ("Allgather", ("Allgatherv",)): "allgather_as_allgatherv",
    ("Allgather", ("Allreduce",)): "allgather_as_allreduce",
    ("Allgather", ("Alltoall",)): "allgather_as_alltoall",
    ("Allgather", ("Gather", "Bcast")): "allgather_as_gather_bcast",
    ("Allreduce", ("Reduce", "Bcast")): "allreduce_as_reduce_bcast",
    (
        "Allreduce",
        ("Reduce_scatter_block", "Allgather"),
    ): "allreduce_as_reducescatterblock_allgather",
    ("Allreduce", ("Reduce_scatter", "Allgatherv")): "allreduce_as_reducescatter_allgatherv",
    ("Alltoall", ("Alltoallv",)): "alltoall_as_alltoallv",
    ("Bcast", ("Allgatherv",)): "bcast_as_allgatherv",
    ("Bcast", ("Scatter", "Allgather")): "bcast_as_scatter_allgather",
    ("Gather", ("Allgather",)): "gather_as_allgather",
    ("Gather", ("Gatherv",)): "gather_as_gatherv",
    ("Gather", ("Reduce",)): "gather_as_reduce",
    ("Reduce", ("Allreduce",)): "reduce_as_allreduce",
    ("Reduce", ("Reduce_scatter_block", "Gather")): "reduce_as_reducescatterblock_gather",
    ("Reduce", ("Reduce_scatter", "Gatherv")): "reduce_as_reducescatter_gatherv",
    ("Reduce_scatter_block", ("Allreduce",)): "reducescatterblock_as_allreduce",
    ("Reduce_scatter_block", ("Reduce_scatter",)): "reducescatterblock_as_reducescatter",
    ("Reduce_scatter_block", ("Reduce", "Scatter")): "reducescatterblock_as_reduce_scatter",
    ("Scan", ("Exscan", "Reduce_local")): "scan_as_exscan_reducelocal",
    ("Scatter", ("Bcast",)): "scatter_as_bcast",
    ("Scatter", ("Scatterv",)): "scatter_as_scatterv",
}
"""Names of mock-ups, by the function and the functions that replace it."""

COUNTED = frozenset({"Reduce_scatter_block"})
"""Functions whose size the library counts in elements, and not in bytes."""

LARGEST = 2**31 - 1
"""Largest size; the library keeps sizes as ``int``."""
