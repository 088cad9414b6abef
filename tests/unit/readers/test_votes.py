"""Functions and runs that determine weak or strong scaling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.metric_values import MetricValues
from callpath_modeler.profile.program import recognise_scaling
from callpath_modeler.profile.runs import Run
from callpath_modeler.profile.schema import Extent, Metric, Reduction, Region
from synthetic import POINTS, experiment

P = np.array(POINTS)


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
    assert recognised(made) == ("weak", "computation per process goes as p^-0.40")
    volume = np.stack([0 * P, 1e9 / P])
    sent = MetricValues(Metric("bytes_sent", "B"), volume, volume.sum(axis=0))
    made = replace(made, columns={**made.columns, "bytes_sent": sent})
    said = "computation per process goes as p^-0.40, bytes_sent as p^-1.00"
    assert recognised(made) == ("strong", said)


def test_maxima_are_brought_back_to_means_before_they_vote():
    made = experiment({"main": list(P**-0.2)})
    (name,) = made.columns
    assert recognised(made)[0] == "weak"
    uneven = replace(made.columns[name], imbalance=(P**0.8)[None].astype(np.float32))
    assert recognised(replace(made, columns={name: uneven}))[0] == "strong"
