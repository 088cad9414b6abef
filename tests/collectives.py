"""Synthetic benchmarks of MPI collectives whose times follow known laws."""

from __future__ import annotations

import numpy as np
import pandas as pd

from callpath_modeler.studies.data_frame import from_frame

PROCESSES = (8, 16, 32, 64, 128)


def latencies(p):
    """Return times in µs that meet every guideline, for messages of one size."""
    steps = np.log2(p)
    times = {
        "Barrier": 1.5 * steps,
        "Bcast": 2.0 * steps,
        "Reduce": 2.2 * steps,
        "Scan": 2.5 * steps,
        "Exscan": 2.6 * steps,
        "Reduce_local": 0.3,
        "Gather": 1 + 0.2 * p,
        "Allgather": 1.5 + 0.3 * p,
        "Alltoall": 2 + 0.4 * p,
    }
    times["Allreduce"] = 0.85 * (times["Reduce"] + times["Bcast"])
    return times | {f"{name}v": 1.1 * times[name] for name in ("Gather", "Allgather", "Alltoall")}


def by_size(p, m):
    """Return times in µs that meet every guideline, for messages of m bytes."""
    steps = np.log2(p)
    return {
        "Bcast": 2 * steps + 1.2e-3 * m,
        "Reduce": 2.2 * steps + 1.4e-3 * m,
        "Allreduce": 3.4 * steps + 2e-3 * m,
        "Gather": steps + 1e-3 * m * p,
        "Allgather": 2.5 * steps + 1.1e-3 * m * p,
        "Alltoall": 0.5 * p + 1.4e-3 * m * p,
    }


def rows(
    laws, processes=PROCESSES, sizes=None, *, seed=0, noise=0.05, repetitions=5, disturbed=0.0
):
    """Return a table of synthetic measurements, with a share of disturbed calls."""
    rng = np.random.default_rng(seed)
    found = []
    for p in processes:
        for size in sizes or (None,):
            times = laws(p) if size is None else laws(p, size)
            for name, time in times.items():
                for number in range(1, repetitions + 1):
                    row = {"call": f"MPI_{name}", "p": p, "size": size, "repetition": number}
                    scatter = 1 + noise * rng.standard_normal()
                    scatter *= 3.0 if disturbed and rng.random() < disturbed else 1.0
                    found.append(row | {"latency_us": float(time * scatter)})
    table = pd.DataFrame(found)
    return table if sizes else table.drop(columns="size")


def experiment(laws, processes=PROCESSES, sizes=None, **options):
    """Return the experiment of such a table."""
    return from_frame(
        rows(laws, processes, sizes, **options),
        callpath="call",
        parameters=["p", "size"] if sizes else ["p"],
        repetition="repetition",
        metrics={"latency_us": "us"},
    )
