"""The engine of answers gives the numbers of the engines that it replaces."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler import loading, pipeline
from callpath_modeler.analysis import rank as before
from callpath_modeler.analysis import ranking as after
from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_inputs import AnswerInputs
from callpath_modeler.analysis.forecast import forecast
from callpath_modeler.analysis.forecast_inputs import ForecastInputs
from callpath_modeler.loading import LoadOptions
from callpath_modeler.profile.views import ViewKind, open_view

COLUMNS = (
    *("at_base", "at_largest", "value", "low", "high", "modelled", "share_at_largest", "share"),
    *("own_share", "lost", "trust", "first", "leader", "deviation", "is_ranked"),
    *("maxima_at_largest", "inclusive_at_largest", "doubted", "unmodelled"),
)
SCALARS = (
    *("total_excess", "cost_per_process", "is_comparison", "basis", "base", "repetitions"),
    *("predicted_total", "modelled_total", "total_at_largest", "unmodelled_share"),
)
TARGETS = (1024.0, 128.0, 8.0, 50.0, np.inf)


@pytest.fixture(scope="module", params=["stencil", "stencil of two scales", "visits"])
def fitted(request, samples):
    options = LoadOptions()
    if request.param == "visits":
        experiment = loading.load([samples / "lulesh"], options.of_metric("visits"))
        return pipeline.fit(experiment, "visits")
    if request.param == "stencil":
        return pipeline.fit(loading.load([samples / "stencil"], options))
    experiment = loading.load([samples / "stencil"], LoadOptions(where="p>=64"))
    return pipeline.measured_of(experiment, None, pipeline.FitOptions())


def equal(ours, theirs):
    np.testing.assert_allclose(
        np.asarray(ours, float), np.asarray(theirs, float), rtol=1e-9, atol=1e-15
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("predicted", [False, True])
@pytest.mark.parametrize("by", [*before.By])
def test_rankings(  # noqa: C901 - one comparison for each column
    fitted, target, inclusive, predicted, by
):
    if fitted.is_measured_only and (predicted or target not in fitted.points):
        pytest.skip("nothing is predicted")
    ours = after.rank(fitted, target, after.By(by), inclusive=inclusive, predicted=predicted)
    theirs = before.rank(fitted, target, by, inclusive=inclusive, predicted=predicted)
    for name in COLUMNS:
        if np.isinf(target) and name in {"low", "high"}:
            continue  # at infinity, bands were those of exact numbers
        if name == "doubted" and not ours.is_comparison:
            continue  # nothing is compared
        for mine, other in zip(
            *(
                each if isinstance(each, tuple) else (each,)
                for each in (getattr(ours, name), getattr(theirs, name))
            ),
            strict=True,
        ):
            equal(mine, other)
    for name in SCALARS:
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert mine == other if isinstance(mine, str | bool) else True
        if not isinstance(mine, str):
            equal(mine, other)
    equal(ours.total[:1], theirs.total[:1])
    if np.isfinite(target):
        equal(ours.total, theirs.total)
    for name in ("exclusive", "inclusive", "lost", "cost", "efficiency"):
        equal(getattr(ours.excess, name), getattr(theirs.excess, name))
    for name in ("value", "low", "high"):
        equal(getattr(ours.excess_band, name), getattr(theirs.excess_band, name))
        equal(getattr(ours.predicted, name), getattr(theirs.predicted, name))
    assert (ours.run_time is None) == (theirs.run_time is None)
    if ours.run_time is not None:
        equal(ours.run_time.total, theirs.run_time.total)
    assert (ours.turning is None) == (theirs.turning is None)
    # Sums in another order differ in their last digits, so equal keys may change places.
    key = {"value": ours.value, "loss": ours.lost}.get(by)
    if key is not None and np.isfinite(target):
        np.testing.assert_allclose(key[ours.order], key[theirs.order], atol=1e-12)
    assert sorted(ours.order) == sorted(theirs.order)
    rows = ours.order[:5]
    assert ours.why(rows) == theirs.why(rows)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", [*ViewKind])
@pytest.mark.parametrize("predicted", [False, True])
def test_views(fitted, target, kind, predicted):
    if fitted.is_measured_only and target not in fitted.points:
        pytest.skip("nothing is predicted")
    ours = answer_at(AnswerInputs(fitted, predicted=predicted), target)
    theirs = forecast(ForecastInputs(fitted, predicted=predicted), target)
    view = open_view(fitted.experiment.tree, kind)
    nodes = view.roots
    nodes = np.concatenate([nodes, *(view.children(int(node)) for node in nodes)])
    for mine, other in zip(ours.of_nodes(view, nodes), theirs.of_nodes(view, nodes), strict=True):
        for name in (*mine.COLUMNS, "deviation"):
            equal(getattr(mine, name), getattr(other, name))
    equal(ours.total[:1], theirs.total[:1])
    if np.isfinite(target):
        equal(ours.total, theirs.total)
    equal(ours.total_excess, theirs.total_excess)
    for sort in ours.sorts:
        keys = [
            order(nodes) if order else None
            for order in (
                ours.sibling_order(view, sort, inclusive=True),
                theirs.order(view, sort, inclusive=True),
            )
        ]
        if keys[0] is not None:
            equal(*keys)
