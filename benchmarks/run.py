"""Measure the cost and the accuracy of callpath_modeler, compared with its peers.

    python benchmarks/run.py [NAME ...]      (names: --help; by default all)

Speed is measured in child processes on one core, with peers in separate environments. Costs are
processor seconds, because machines are shared. Only ``jobs`` uses all cores and wall time. The
tables say which goals are met, but a missed goal is not an error. Each table is printed, and
replaces the one between its markers in ``benchmarks/RESULTS.md`` and ``docs/explanation/``.
Temporary files (about 2 GB) are deleted at the end. Environments stay, and so do the predictions of
Extra-P, which take minutes.

``accuracy``, ``bands``, ``noises`` and ``limits`` need DIR/tools/bench_accuracy.py. ``real``,
``real-histories``, ``run-times``, ``scales``, ``marked``, ``slices``, ``ablation`` and
``generated``, ``waiting``, ``gains`` and ``factors`` need the measurements in DIR/data. DIR is
given with ``--shared DIR``; by default, it is the folder ``shared`` next to the project.
``generated`` also needs MPI and an idle machine, and ``tuned-rules`` needs Open MPI 4.
``far`` and ``far-ranks`` need the profiles of ``make cluster``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import ablation
import accuracy
import browse
import caliper
import causes
import comparisons
import expectations
import far
import fit
import generated
import gpu
import guideline_errors
import guideline_predictions
import guidelines
import histories
import history_noise
import hpctoolkit
import ingest
import jobs
import kernels
import literature_laws
import mechanisms
import next_runs
import next_scales
import noises
import published_laws
import real_histories
import real_series
import reduce
import regressions
import results
import run_times
import sampled_counts
import scaling
import several
import sizes
import slices
import startup
import traces
import trust
import tuned_rules
import views
import waiting
import whole
from environments import CALIPER, EXTRAP, HATCHET, HTA, OTAVA, PYCUBEXR, Peer
from laws import AbsentError
from results import Table

import communication

SHARED = Path(__file__).resolve().parents[2] / "shared"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A table with its notes.

    Attributes
    ----------
    measure : function from the directory of shared files to the table
    notes : explanation of the table
    peers : compared programs
    """

    measure: Callable[[Path], Table]
    notes: str
    peers: Sequence[Peer]


def _compared(module: ModuleType, *peers: Peer) -> Benchmark:
    return Benchmark(lambda _: results.compared(module.rows()), module.NOTES, peers)


BENCHMARKS = {
    "startup": _compared(startup, EXTRAP),
    "ingest": _compared(ingest, EXTRAP, PYCUBEXR),
    "reduce": _compared(reduce, PYCUBEXR),
    "hpctoolkit": _compared(hpctoolkit, HATCHET),
    "traces": _compared(traces),
    "communication": _compared(communication),
    "generated": Benchmark(generated.table, generated.NOTES, ()),
    "caliper": _compared(caliper, CALIPER),
    "gpu": _compared(gpu, HTA),
    "views": _compared(views),
    "browse": _compared(browse, HATCHET),
    "whole": _compared(whole),
    "scaling": Benchmark(scaling.table, scaling.NOTES, ()),
    "fit": _compared(fit, EXTRAP),
    "accuracy": Benchmark(accuracy.table, accuracy.NOTES, (EXTRAP,)),
    "bands": Benchmark(accuracy.bands, accuracy.BAND_NOTES, ()),
    "mechanisms": Benchmark(mechanisms.table, mechanisms.NOTES, (EXTRAP,)),
    "ablation": Benchmark(ablation.table, ablation.NOTES, ()),
    "sizes": Benchmark(sizes.table, sizes.NOTES, (EXTRAP,)),
    "kernels": Benchmark(kernels.table, kernels.NOTES, (EXTRAP,)),
    "noises": Benchmark(noises.table, noises.NOTES, (EXTRAP,)),
    "trust": Benchmark(trust.table, trust.NOTES, ()),
    "published": Benchmark(published_laws.table, published_laws.NOTES, ()),
    "marked": Benchmark(trust.held_back, trust.HELD_NOTES, ()),
    "counts": Benchmark(sampled_counts.table, sampled_counts.NOTES, ()),
    "waiting": Benchmark(waiting.table, waiting.NOTES, ()),
    "gains": Benchmark(waiting.gains, waiting.GAIN_NOTES, ()),
    "factors": Benchmark(waiting.factors, waiting.FACTOR_NOTES, ()),
    "limits": Benchmark(accuracy.limits, accuracy.LIMIT_NOTES, ()),
    "expectations": Benchmark(expectations.table, expectations.NOTES, ()),
    "regressions": Benchmark(regressions.table, regressions.NOTES, ()),
    "slowdowns": Benchmark(regressions.slowdowns, regressions.SLOWER_NOTES, ()),
    "comparisons": Benchmark(comparisons.table, comparisons.NOTES, ()),
    "histories": Benchmark(histories.table, histories.NOTES, (OTAVA,)),
    "history-noise": Benchmark(history_noise.table, history_noise.NOTES, (OTAVA,)),
    "real-histories": Benchmark(real_histories.table, real_histories.NOTES, ()),
    "guidelines": Benchmark(guidelines.table, guidelines.NOTES, ()),
    "guideline-predictions": Benchmark(
        guideline_predictions.table, guideline_predictions.NOTES, ()
    ),
    "guideline-errors": Benchmark(guideline_errors.errors, guideline_errors.ERROR_NOTES, ()),
    "guideline-files": Benchmark(guideline_errors.filed_errors, guideline_errors.FILE_NOTES, ()),
    "guideline-power": Benchmark(guideline_errors.power, guideline_errors.POWER_NOTES, ()),
    "guideline-splits": Benchmark(guideline_errors.splits, guideline_errors.SPLIT_NOTES, ()),
    "tuned-rules": Benchmark(tuned_rules.table, tuned_rules.NOTES, ()),
    "causes": Benchmark(causes.table, causes.NOTES, ()),
    "algorithms": Benchmark(causes.families, causes.FAMILY_NOTES, ()),
    "several": Benchmark(several.table, several.NOTES, (EXTRAP,)),
    "products": Benchmark(literature_laws.table, literature_laws.NOTES, (EXTRAP,)),
    "slices": Benchmark(slices.table, slices.NOTES, (EXTRAP,)),
    "jobs": _compared(jobs),
    "real": Benchmark(real_series.table, real_series.NOTES, (EXTRAP,)),
    "run-times": Benchmark(run_times.table, run_times.NOTES, ()),
    "next-runs": Benchmark(next_runs.table, next_runs.NOTES, ()),
    "scales": Benchmark(next_scales.table, next_scales.NOTES, (EXTRAP,)),
    "far": Benchmark(far.table, far.NOTES, (EXTRAP,)),
    "far-ranks": Benchmark(far.ranks, far.RANK_NOTES, (EXTRAP,)),
}


def main() -> None:
    """Run the benchmarks of the command line."""
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        # As in cpmodel: linear algebra starts its threads when NumPy is imported.
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606 - ourselves
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", nargs="*", help=f"{', '.join(BENCHMARKS)}; by default all")
    parser.add_argument("--shared", type=Path, default=SHARED, metavar="DIR")
    parser.add_argument("--keep", action="store_true", help="keep the files that are read")
    told = parser.parse_args()
    unknown = [name for name in told.which if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(BENCHMARKS)}")
    try:
        absent = [name for name in told.which or BENCHMARKS if not _measured(name, told.shared)]
    finally:
        if not told.keep:
            _delete_files()
    if absent:
        sys.exit(f"not measured: {', '.join(absent)}")


def _measured(name: str, shared: Path) -> bool:
    """Measure and write a table; return False if a file is absent."""
    print(f"{name} ...", flush=True)
    benchmark = BENCHMARKS[name]
    try:
        table = benchmark.measure(shared)
    except AbsentError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    print("\n".join(table.aligned()), flush=True)
    results.write(name, table, benchmark.notes, benchmark.peers)
    return True


def _delete_files() -> None:
    files = ingest.SERIES, reduce.LARGE, hpctoolkit.DATABASES, traces.TRACES, caliper.PROFILES
    for directory in (
        *files,
        communication.TRACES,
        generated.PROGRAMS,
        gpu.PROFILES,
        browse.MODELS,
        whole.SERIES,
        scaling.SERIES,
        jobs.SMALL,
        jobs.HUGE,
        tuned_rules.CAMPAIGNS,
    ):
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
