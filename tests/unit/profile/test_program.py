from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.program import recognise_scaling, refuse_several_programs
from callpath_modeler.profile.schema import Metric, Reduction
from synthetic import TIME, call_tree, experiment

LULESH = call_tree(["main", "main/Lagrange", "main/Lagrange/CalcForce", "main/MPI_Init"])
SNAP = call_tree(["snap", "snap/sweep", "snap/sweep/octsweep", "snap/MPI_Init"])
POINTS = (2.0, 4.0, 8.0, 16.0, 32.0)
P = np.array(POINTS)


@dataclass
class Profile:
    tree: CallTree
    name: str = "x"
    metadata: dict[str, str] = field(default_factory=lambda: {"program": "app"})


def scaling_of(values, **changes):
    made = experiment(values, POINTS, **changes)
    return recognise_scaling(made.tree, made.columns, made.runs, made.reduction)[0]


def test_similar_trees_of_several_builds_are_one_program():
    runs = [Profile(LULESH), Profile(call_tree(["main", "main/Lagrange", "main/Other"]))]
    refuse_several_programs(runs)


def test_several_programs_are_refused_with_their_names_counts_and_how_to_choose():
    snap = Profile(SNAP, "snap.p4", {"program": "snap"})
    with pytest.raises(UsageError, match="2 programs: app in 2 runs") as caught:
        refuse_several_programs([Profile(LULESH), snap, Profile(LULESH)])
    assert "snap in 1 run (first snap.p4)" in caught.value.message
    assert "--where program=app" in caught.value.hint


def test_programs_of_one_name_cannot_be_chosen_by_it():
    with pytest.raises(UsageError, match="2 programs") as caught:
        refuse_several_programs([Profile(LULESH), Profile(SNAP)])
    assert "--where" not in caught.value.hint


def test_common_library_functions_make_no_common_program():
    only_mpi = ["MPI_Init", "MPI_Send", "MPI_Recv", "MPI_Finalize"]
    first = call_tree(["a", *[f"a/{name}" for name in only_mpi]])
    second = call_tree(["b", *[f"b/{name}" for name in only_mpi]])
    with pytest.raises(UsageError):
        refuse_several_programs([Profile(first), Profile(second)])


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
    one = experiment({"main": [[1, 2]]}, (4.0,), metric=TIME)
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
    assert replace(experiment(values, POINTS)).runs[1].repetition == 2


@pytest.mark.parametrize("others", [{}, {"p": 8}])
def test_threads_count_as_workers_where_processes_do_not_vary(others):
    made = experiment({"main": list(8 / P)}, POINTS)
    runs = tuple(
        replace(run, parameters={**others, "threads": run.parameters["p"]}) for run in made.runs
    )
    scaling, why = recognise_scaling(made.tree, made.columns, runs, Reduction.SUM)
    assert (scaling, why) == (Scaling.STRONG, "computation goes as threads^-1.00")
