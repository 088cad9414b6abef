"""Campaigns of a simulated MPI library that rules can make faster."""

from __future__ import annotations

import numpy as np

SIZES = (16, 64, 256, 1024, 4096, 16384)


def flawless(name, size, p=4):
    """Return times in µs that meet every guideline."""
    whole = p * size
    return {
        "MPI_Bcast": 4.0 + 0.4e-3 * size,
        "MPI_Reduce": 4.4 + 1.1e-3 * size,
        "MPI_Allreduce": 6.4 + 1.2e-3 * size,
        "MPI_Gather": 2.0 + 0.8e-3 * size,
        "MPI_Scatter": 2.1 + 0.8e-3 * size,
        "MPI_Allgather": 4.2 + 1.2e-3 * size,
        "MPI_Reduce_scatter_block": 4.9 + 1.0e-3 * whole,
    }[name]


NAMES = ("MPI_Bcast", "MPI_Reduce", "MPI_Allreduce", "MPI_Gather", "MPI_Scatter", "MPI_Allgather",
         "MPI_Reduce_scatter_block")  # fmt: skip


def campaign(folder, law, ps=(4,), mpiruns=10, seed=1, names=NAMES, noise=0.02):
    """Write output of ReproMPI."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    for p in ps:
        for run in range(mpiruns):
            lines = [f"#@nprocs={p}", "test nrep count runtime_sec"]
            for name in names:
                for size in SIZES:
                    time = law(name, size, p) * float(np.exp(noise * rng.standard_normal()))
                    lines += [f"{name} {k} {size} {time * 1e-6:.12f}" for k in range(3)]
            (folder / f"p{p}_r{run}.dat").write_text("\n".join([*lines, ""]))
    return folder


def slow_allreduce(name, size, p):
    """Return a flawless library, but for an Allreduce that is slow from 256 to 1024 bytes."""
    if name == "MPI_Allreduce" and size in (256, 1024):
        return 2 * (flawless("MPI_Reduce", size, p) + flawless("MPI_Bcast", size, p))
    return flawless(name, size, p)


def with_the_rule(name, size, p):
    """Return the library of `slow_allreduce` with a rule: Reduce and Bcast, where they gain."""
    if name == "MPI_Allreduce" and size in (256, 1024):
        return flawless("MPI_Reduce", size, p) + flawless("MPI_Bcast", size, p)
    return flawless(name, size, p)
