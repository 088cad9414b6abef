"""Measure what callpath_modeler costs, next to its peers.

    python benchmarks/run.py [startup|ingest|reduce|hpctoolkit|fit|views|all] [--keep]

Everything runs in child processes on one core, peers in environments of their own, and costs are
processor seconds, because machines are shared. Nothing is asserted about speed: the table says
which goals are met. All benchmarks together also write ``benchmarks/RESULTS.md``. Files written
on the way (about 1 GB) are deleted at the end, environments stay.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import fit
import hpctoolkit
import ingest
import reduce
import results
import startup
import views
from environments import PEERS

RESULTS = Path(__file__).resolve().parent / "RESULTS.md"

BENCHMARKS = {
    "startup": startup.rows,
    "ingest": ingest.rows,
    "reduce": reduce.rows,
    "hpctoolkit": hpctoolkit.rows,
    "fit": fit.rows,
    "views": views.rows,
}

NOTES = """\
Ratio: the peer's figure over ours, for rates ours over the peer's; above 1 we are better. Seconds
are processor seconds (user and system) of a whole child process unless said otherwise, the least of
2 or 3 runs; `--help` is the least of 10 in wall time. One thread. Files are in the page cache.

ingest: the exclusive maximum over locations of every call path, metric and run; with Extra-P its
import of CUBE files (mean and median over locations), with pycubexr a loop over call paths. The
values of pycubexr and ours are compared before anything is printed.

reduce: rates are bytes of the metric per processor second. Private memory is what the process has
for itself alone (`Private_*` of smaps_rollup, watched by a thread), above what it had before.

hpctoolkit: the sums of inclusive and exclusive time over all ranks, of the contexts of one version
4 database, functions told apart from lines; Hatchet with its defaults, which read the same numbers.
Sums are compared before anything is printed. Seconds without start and imports, memory with them.

fit: the processor time of the modelling call alone, of 5,000 rows here (the least of 3 calls) and
the first 600 of them with Extra-P's default modeler (one call). Truths are the 42 classes of
Extra-P's search space, with noise as published (`write_draws.py`); accuracies are of those 600
rows, at most 150 to a figure. Our default space lacks some of these classes, whose rows cannot be
exact.

views: processor time of the steps that a browser needs, in memory, of a generated tree up to 40
calls deep with 20,000 functions and four columns of values. Memory is beyond that of the tree and
the columns.
"""


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", nargs="?", choices=[*BENCHMARKS, "all"], default="all")
    parser.add_argument("--keep", action="store_true", help="keep the files that are read")
    told = parser.parse_args()
    chosen = list(BENCHMARKS) if told.which == "all" else [told.which]
    rows: list[results.Row] = []
    try:
        for name in chosen:
            print(f"{name} ...", flush=True)
            rows += BENCHMARKS[name]()
    finally:
        if not told.keep:
            _delete_files()
    print("\n".join(line.rstrip() for line in results.aligned(rows)))
    if told.which == "all":
        results.write(RESULTS, rows, NOTES, PEERS)


def _delete_files() -> None:
    for directory in (ingest.SERIES, reduce.LARGE, hpctoolkit.DATABASES):
        shutil.rmtree(directory, ignore_errors=True)
    fit.DRAWS.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
