"""Functions and runs that determine weak or strong scaling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.runs import Run, worker_parameter
from callpath_modeler.profile.scaling_kind import (
    AS_TOLD,
    ScalingKind,
    recognise_scaling,
    with_scaling,
    with_scaling_of,
)
from callpath_modeler.profile.schema import Extent, Metric, Reduction, Region
from cells import cells
from synthetic import POINTS, experiment

P = np.array(POINTS)


def scaling_of(values, **changes):
    return recognised(experiment(values, **changes))[0]


def recognised(made):
    return recognise_scaling(made.tree, made.columns, made.runs, made.reduction)


def with_regions(made, *regions):
    tree = made.tree
    return replace(
        made, tree=CallTree.from_parents(tree.parent, tree.region, regions, tree.annotation)
    )


def test_openmp_loops_vote_and_barriers_do_not():
    made = experiment({"main": [1e-3] * 5, "main/loop": list(100 / P), "main/wait": list(P)})
    main = Region("main", paradigm="compiler", role="function")
    loop = Region("!$omp for @f.c:3", paradigm="openmp", role="loop")
    wait = Region("!$omp ibarrier @f.c:9", paradigm="openmp", role="implicit barrier")
    assert recognised(with_regions(made, main, loop, wait))[0] == "strong"


def test_p_is_that_of_the_runs_not_of_the_machine():
    made = experiment({"main": list(1 / P)})
    runs = tuple(replace(run, extent=Extent(1)) for run in made.runs)
    assert recognised(replace(made, runs=runs))[0] == "strong"


def test_two_problem_sizes_are_not_mixed():
    # Both series are weak. Together, the smaller size at large p looks like strong scaling.
    small, large = [1.0] * 5, [8.0] * 5
    made = experiment({"main": [*large, *small]}, points=[1, 2, 4, 8, 16, 5, 10, 20, 40, 80])
    sizes = [8.0] * 5 + [1.0] * 5
    runs = tuple(
        Run(r.source, r.reader, r.extent, {**r.parameters, "n": n}, 1)
        for r, n in zip(made.runs, sizes, strict=True)
    )
    assert recognised(replace(made, runs=runs))[0] == "weak"


def test_imbalances_tell_no_scaling():
    made = experiment({"main": list(1 / P)}, reduction=Reduction.IMBALANCE)
    assert recognised(made) == ("weak", "assumed: imbalances do not show it")


def test_work_that_does_not_change_is_not_said_to_shrink():
    made = experiment({"main": [1.0, 1.0, 1.0, 1.0, 0.999]})
    assert recognised(made)[1] == "computation per process goes as p^0.00"


def test_what_was_shared_and_grows_again_is_strong_scaling():
    points = [2.0**k for k in range(1, 11)]
    work = [50 / p + 1.3 + 4e-8 * p**2.5 for p in points]
    made = experiment({"main": work}, points)
    scaling, why = recognised(made)
    assert scaling == "strong", why


def test_one_slow_run_at_the_smallest_scale_is_no_strong_scaling():
    assert recognised(experiment({"main": [2.0, 0.9, 1.0, 1.05, 1.1]}))[0] == "weak"


def test_of_several_problem_sizes_the_largest_tells():
    points = [2, 4, 8, 16, 32] * 2
    made = experiment({"main": [1.0] * 5 + [64 / p for p in points[5:]]}, points)
    sizes = [1.0] * 5 + [8.0] * 5
    runs = tuple(
        replace(run, parameters={**run.parameters, "n": size})
        for run, size in zip(made.runs, sizes, strict=True)
    )
    assert recognised(replace(made, runs=runs))[0] == "strong"


def test_shared_work_that_memory_slows_down_is_told_by_its_bytes():
    made = experiment({"main": [1e-9] * 5, "main/rank": list(P**-0.4)})
    assert recognised(made) == ("unclear", "computation per process goes as p^-0.40")
    volume = np.stack([0 * P, 1e9 / P])
    sent = MetricValues(Metric("bytes_sent", "B"), volume, volume.sum(axis=0))
    made = replace(made, columns={**made.columns, "bytes_sent": sent})
    said = "computation per process goes as p^-0.40, bytes_sent as p^-1.00"
    assert recognised(made) == ("strong", said)


def test_maxima_are_brought_back_to_means_before_they_vote():
    made = experiment({"main": list(P**-0.2)})
    (name,) = made.columns
    assert recognised(made)[0] == "unclear"
    uneven = replace(made.columns[name], imbalance=(P**0.8)[None].astype(np.float32))
    assert recognised(replace(made, columns={name: uneven}))[0] == "strong"


def test_constant_computation_per_process_is_weak_scaling():
    assert scaling_of({"main": [1.0] * 5, "main/f": list(2 + 0 * P)}) is Scaling.WEAK


def test_computation_that_falls_as_one_over_p_is_strong_scaling():
    assert scaling_of({"main": [0.1] * 5, "main/f": list(8 / P)}) is Scaling.STRONG


def test_communication_has_no_vote():
    values = {"main": list(8 / P), "main/MPI_Wait": list(100 * P)}
    assert scaling_of(values) is Scaling.STRONG


def test_the_costliest_functions_decide():
    values = {"main": list(8 / P), "main/setup": [0.01] * 5, "main/log": list(0.001 * P)}
    assert scaling_of(values) is Scaling.STRONG


def test_sums_over_processes_are_brought_back_to_one():
    values = {"main": [8.0] * 5}  # constant in total: per process it falls as 1/p
    assert scaling_of(values, reduction=Reduction.SUM) is Scaling.STRONG


@pytest.mark.parametrize("unit", ["1", "cycles", "B"])
def test_without_a_duration_counts_decide(unit):
    metric = Metric("things", unit, "")
    made = experiment({"main": list(8 / P)}, POINTS, metric=metric)
    scaling, why = recognise_scaling(made.tree, made.columns, made.runs, Reduction.MAX)
    assert (scaling, why) == (Scaling.STRONG, "no time measured, things as p^-1.00")
    made = experiment({"main": [8.0] * 5}, POINTS, metric=metric)
    scaling, why = recognise_scaling(made.tree, made.columns, made.runs, Reduction.MAX)
    assert (scaling, why) == (Scaling.WEAK, "assumed: no time measured")


def test_without_a_second_scale_weak_is_assumed_and_said():
    ratio = Metric("part", "1", "", additive=False)
    made = experiment({"main": list(8 / P)}, POINTS, metric=ratio)
    scaling, why = recognise_scaling(made.tree, made.columns, made.runs, Reduction.MAX)
    assert (scaling, why) == (Scaling.WEAK, "assumed: no time measured")
    one = experiment({"main": [[1, 2]]}, (4.0,))
    assert recognise_scaling(one.tree, one.columns, one.runs, Reduction.MAX)[1].startswith(
        "assumed"
    )


def test_what_is_zero_or_absent_at_some_scale_does_not_vote():
    values = {"main": list(8 / P), "main/late": [float("nan")] * 3 + [1e6] * 2}
    assert scaling_of(values) is Scaling.STRONG
    nothing = experiment({"main": [0.0] * 5}, POINTS)
    _, why = recognise_scaling(nothing.tree, nothing.columns, nothing.runs, Reduction.MAX)
    assert "no computation" in why


def test_the_least_disturbed_repetition_speaks_for_its_point():
    values = {"main": [[8 / p, 900 * p] for p in POINTS]}
    assert scaling_of(values) is Scaling.STRONG
    assert experiment(values, POINTS).runs[1].repetition == 2


@pytest.mark.parametrize("others", [{}, {"p": 8}])
def test_threads_count_as_workers_where_processes_do_not_vary(others):
    made = experiment({"main": list(8 / P)}, POINTS)
    runs = tuple(
        replace(run, parameters={**others, "threads": run.parameters["p"]}) for run in made.runs
    )
    scaling, why = recognise_scaling(made.tree, made.columns, runs, Reduction.SUM)
    assert (scaling, why) == (Scaling.STRONG, "computation goes as threads^-1.00")


def with_metadata(made, **of_run):
    """Return an experiment whose runs have metadata; values are functions of p."""
    runs = tuple(
        replace(r, metadata={key: str(of(r.parameters["p"])) for key, of in of_run.items()})
        for r in made.runs
    )
    return replace(made, runs=runs)


UNKNOWN = {"main": [1e-9] * 5, "main/solve": list(8 * P**-0.4)}
CONSTANT = {"main": [1e-9] * 5, "main/solve": [8.0] * 5}
SHARED = {"main": [1e-9] * 5, "main/solve": list(8 / P)}


@cells("serial", [0.05, 0.2, 0.4])
@cells("place", ["main", "main/partition", "main/initialise"])
def test_a_serial_part_does_not_hide_shared_work(serial, place):
    values = {"main": [0.0] * 5, "main/solve": list((1 - serial) * 2 / P)}
    values[place] = [serial] * 5
    assert scaling_of(dict(sorted(values.items()))) is Scaling.STRONG


def test_shared_and_serial_work_in_one_call_path_is_strong_scaling():
    made = experiment({"main": [1e-9] * 5, "main/solve": list(0.2 + 1.6 / P)})
    share = "80 % of the computation at p = 2 falls as 1/p"
    assert recognised(made) == ("strong", share)


def test_work_that_falls_between_both_kinds_is_unclear_and_a_finding():
    made = with_scaling_of(replace(experiment(UNKNOWN), scaling_reason=""))
    made = with_scaling(made, recognised(made))
    (finding,) = made.findings
    assert (made.scaling, finding.code) == ("unclear", "CPM156")
    assert finding.message == "computation per process goes as p^-0.40"


def test_work_of_one_process_does_not_make_a_program_strong():
    means = {"main": [0.0] * 5, "main/solve": [3.0] * 5, "main/collect": list(3 / P)}
    made = replace(experiment(means), reduction=Reduction.MEAN)
    assert recognised(made)[0] == "unclear"
    (name,) = made.columns
    uneven = np.stack([np.ones(5), np.ones(5), P]).astype(np.float32)
    values = replace(made.columns[name], imbalance=uneven)
    assert recognised(replace(made, columns={name: values}))[0] == "weak"


@cells(
    ("kind", "told"),
    [
        ("strong", {"scalability": lambda _: "strong"}),
        ("weak", {"Scaling.Type": lambda _: "Weak scaling"}),
        ("strong", {"total_elements": lambda _: 10**6}),
        ("weak", {"total_elements": lambda p: 1000 * p}),
        ("weak", {"cells_per_rank": lambda _: 4096}),
        ("strong", {"localSize": lambda p: 4096 / p}),
        ("weak", {"nx_global_size": lambda p: 12 * p ** (1 / 3)}),
    ],
)
@cells("values", [UNKNOWN, CONSTANT, SHARED])
def test_statements_of_the_profiles_decide(kind, told, values):
    made = with_metadata(experiment(values), **told)
    found = recognised(made)
    assert found.kind == kind
    assert next(iter(told)) in found.reason


@cells(
    "told",
    [
        {"problem_size": lambda _: 30},
        {"mpi.world.size": lambda p: p},
        {"SizeOfDatatype": lambda _: 4},
        {"scaling_factor": lambda _: 2},
        {"scalability": lambda p: "weak" if p > 4 else "strong"},
        {"cmdline": lambda _: "app --weak"},
    ],
)
def test_other_metadata_do_not_decide(told):
    assert recognised(with_metadata(experiment(UNKNOWN), **told)).kind == "unclear"
    assert recognised(with_metadata(experiment(CONSTANT), **told)).kind == "weak"
    assert recognised(with_metadata(experiment(SHARED), **told)).kind == "strong"


def test_a_constant_input_decides_only_if_times_do_not():
    told = {"input_size": lambda _: 2**20}
    assert recognised(with_metadata(experiment(UNKNOWN), **told)).kind == "strong"
    found = recognised(with_metadata(experiment(CONSTANT), **told))
    assert found.kind == "unclear"
    assert found.reason.endswith("p^0.00, but input_size = 1048576 at every scale")


@pytest.mark.parametrize("kind", ["weak", "strong"])
def test_names_of_runs_decide_only_if_times_do_not(kind):
    made = experiment(UNKNOWN)
    runs = tuple(replace(r, source=f"study/{kind}/{r.source}.cubex") for r in made.runs)
    assert recognised(replace(made, runs=runs)).kind == kind
    assert recognised(replace(experiment(SHARED), runs=runs)).kind == "strong"


def test_a_choice_that_contradicts_the_profiles_is_a_finding():
    made = with_metadata(experiment(SHARED), scalability=lambda _: "strong")
    assert not with_scaling(made, recognised(made)).findings
    (finding,) = with_scaling(made, ScalingKind(Scaling.WEAK, AS_TOLD)).findings
    assert finding.code == "CPM157"
    assert finding.message == "weak (as told), but the profiles state scalability = strong"


def test_some_runs_that_do_not_show_the_kind_keep_that_of_all_runs():
    made = replace(experiment(UNKNOWN), scaling=Scaling.STRONG, scaling_reason="by bytes")
    kept = with_scaling_of(made)
    assert (kept.scaling, kept.scaling_reason) == ("strong", "by bytes")


@cells(
    ("names", "chosen"),
    [
        (["cores", "p"], "p"),
        (["Nodes", "nGPUs"], "nGPUs"),
        (["numNodes"], "numNodes"),
        (["MPI ranks"], "MPI ranks"),
        (["number of devices"], "number of devices"),
        (["OMP threads"], None),
        (["n", "size", "cores_per_node", "node", "rank"], None),
    ],
)
def test_names_that_count_workers(names, chosen):
    assert worker_parameter(names) == chosen
