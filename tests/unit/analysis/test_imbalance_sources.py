"""Computation whose imbalance causes wait time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.analysis.run_time import ImbalanceSources
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.schema import Metric, Reduction, Region
from callpath_modeler.profile.tree_views import ViewKind, open_view
from callpath_modeler.report.cause_text import imbalance_facts
from callpath_modeler.report.node import NodeReport
from callpath_modeler.studies import pipeline
from synthetic import POINTS, experiment

PATHS = ["main", "main/step", "main/step/a", "main/step/MPI_Wait", "main/b", "main/MPI_Send"]


def fitted(values, ratios, *, reduction=Reduction.MAX, metric=None):
    """Return models of call paths with these maxima or means, and imbalance, at all points."""
    made = experiment(
        {path: [value] * len(POINTS) for path, value in zip(PATHS, values, strict=True)}
    )
    column = made.columns["time"]
    uneven = np.repeat(np.array(ratios, np.float32)[:, None], len(POINTS), axis=1)
    uneven[:, :-1] = 1.0  # what smaller scales were like is not asked
    columns = {"time": replace(column, imbalance=uneven, metric=metric or column.metric)}
    return pipeline.fit(replace(made, columns=columns, reduction=reduction))


def uneven_near(models, row):
    known = ImbalanceSources.of(models)
    return None if known is None else known.near(row)


def test_the_nearest_caller_that_explains_half_of_the_wait_is_named():
    # a: 3 at most, 2 on average; b: 9 and 3.
    models = fitted([1, 1, 3, 2, 9, 2], [1, 1, 1.5, 2, 3, 1])
    found = uneven_near(models, 3)
    assert (found.caller, found.wait) == (1, 1)
    assert found.rows.tolist() == [2]
    np.testing.assert_allclose([*found.above, *found.ratio, found.total], [1, 1.5, 1])


def test_a_caller_further_out_is_named_where_the_nearest_explains_too_little():
    models = fitted([1, 1, 3, 10, 9, 2], [1, 1, 1.5, 2, 3, 1])
    found = uneven_near(models, 3)
    assert (found.caller, found.wait) == (0, 5)
    assert found.rows.tolist() == [4, 2]
    np.testing.assert_allclose(found.above, [6, 1])
    assert found.total == pytest.approx(7)


def test_of_means_the_slowest_process_is_told_by_the_ratio():
    models = fitted([1, 1, 2, 1, 3, 2], [1, 1, 1.5, 2, 3, 1], reduction=Reduction.MEAN)
    found = uneven_near(models, 3)
    assert (found.caller, found.wait, found.total) == (1, 1, 1)


@pytest.mark.parametrize(
    ("row", "how"),
    [
        (2, {}),  # it computes
        (3, {"reduction": Reduction.SUM}),
        (3, {"metric": Metric("time", "1")}),
    ],
)
def test_of_what_does_not_wait_or_is_not_known_nothing_is_told(row, how):
    assert uneven_near(fitted([1, 1, 3, 2, 9, 2], [1, 1, 1.5, 2, 3, 1], **how), row) is None
    even = fitted([1, 1, 3, 2, 9, 2], [1] * 6)
    assert uneven_near(even, 3) is None
    without = replace(even.experiment.columns["time"], imbalance=None)
    models = replace(even, experiment=replace(even.experiment, columns={"time": without}))
    assert uneven_near(models, 3) is None


def test_the_fact_says_how_much_of_the_wait_it_is_at_most():
    ((word, text),) = imbalance_facts(
        ImbalanceSources.of(fitted([1, 1, 3, 10, 9, 2], [1, 1, 1.5, 2, 3, 1])), 3
    )
    assert word == "delay"
    assert text == (
        "p = 32: below main, the slowest process computes at most 7.00 s longer than the mean, "
        "1.4 × the time here; b by 6.00 s (× 3), a by 1.00 s (× 1.5)"
    )


def test_programs_may_be_deep():
    depth = 50_000
    tree = CallTree.from_parents(
        np.arange(-1, depth - 1),
        np.array([0] * (depth - 1) + [1]),
        [Region("f"), Region("MPI_Recv", paradigm="mpi")],
    )
    values = np.ones((depth, len(POINTS)))
    uneven = np.full(values.shape, 1.00001, np.float32)
    time = MetricValues(Metric("time", "s"), values, values.sum(axis=0), uneven)
    models = fitted([1] * 6, [1] * 6)
    models = replace(
        models, experiment=replace(models.experiment, tree=tree, columns={"time": time})
    )
    found = uneven_near(models, depth - 1)
    assert found.caller == 0 or found.total >= 0.5 * found.wait


def test_the_browser_says_the_same():
    models = fitted([1, 1, 3, 10, 9, 2], [1, 1, 1.5, 2, 3, 1])
    ahead = answer_at(AnswerInputs(models), 64)
    view = open_view(models.experiment.tree, ViewKind.TOP_DOWN)
    told = [NodeReport(ahead, view, np.array([row]), inclusive=False).facts() for row in (3, 2)]
    ((_, text),) = imbalance_facts(ImbalanceSources.of(models), 3)
    assert f"delay  {text}" in told[0]
    assert not [line for line in told[1] if line.startswith("delay")]
