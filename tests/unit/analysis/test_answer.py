from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.answer import answer_at, rank
from callpath_modeler.analysis.predict import predict, with_callees
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.profile.tree_views import BottomUp, TopDown
from synthetic import POINTS, experiment, fitted

P = np.array(POINTS)
NAN = float("nan")
VALUES = {
    "main": list(10 + 0 * P),
    "main/f": list(1.0 * P),
    "main/f/MPI_Wait": list(0.5 * P),
    "main/MPI_Wait": list(3 + 0 * P),
    "main/late": [NAN, NAN, NAN, 4.0, 5.0],
}
TARGET = 128.0


@pytest.fixture(scope="module")
def fit():
    return fitted(VALUES)


@pytest.fixture(scope="module")
def ahead(fit):
    return answer_at(fit, TARGET)


def every(columns):
    """Return comparable values of one kind."""
    return np.column_stack([columns.at_largest, columns.value, columns.low, columns.high,
                            columns.share, columns.excess])  # fmt: skip


def test_top_down_every_call_path_has_the_values_of_the_ranking(fit, ahead):
    view = TopDown(fit.experiment.tree)
    own, whole = ahead.of_nodes(view, np.arange(5))
    for inclusive, columns in ((False, own), (True, whole)):
        ranking = rank(fit, TARGET, inclusive=inclusive)
        excess = ranking.excess.inclusive if inclusive else ranking.excess.exclusive
        expected = [ranking.at_largest, ranking.value, ranking.low, ranking.high, ranking.share]
        for found, wanted in zip(every(columns).T, [*expected, excess], strict=True):
            np.testing.assert_allclose(found[:4], wanted[:4], rtol=1e-12)
        assert columns.trust.tolist() == ranking.trust.tolist()
        np.testing.assert_allclose(columns.share_at_largest, ranking.share_at_largest)


def test_a_call_path_without_a_model_has_no_prediction_and_no_trust(fit, ahead):
    own, whole = ahead.of_nodes(TopDown(fit.experiment.tree), np.array([4]))
    for found in (own, whole):
        assert np.isnan([found.value[0], found.low[0], found.share[0], found.excess[0]]).all()
    assert np.isnan(rank(fit, TARGET).excess.inclusive[4])
    assert own.at_largest[0] == 5
    assert own.trust[0] == -1
    assert own.growth[0] == -1
    assert ahead.inputs.growth_text(-1) is None


def test_a_function_has_the_sums_of_its_call_paths_and_of_the_squares_of_their_bands(fit, ahead):
    view = BottomUp(fit.experiment.tree)
    (wait,) = [node for node in view.roots.tolist() if view.name(node) == "MPI_Wait"]
    own, whole = ahead.of_nodes(view, np.array([wait]))
    alone = predict(fit, TARGET)
    rows = [2, 3]
    assert own.value[0] == pytest.approx(alone.value[rows].sum())
    up = np.sqrt(((alone.high - alone.value)[rows] ** 2).sum())
    assert own.high[0] == pytest.approx(own.value[0] + up)
    down = np.sqrt(((alone.value - alone.low)[rows] ** 2).sum())
    assert own.low[0] == pytest.approx(max(0, own.value[0] - down))
    assert whole.value[0] == own.value[0]
    assert ahead.inputs.growth_text(own.growth[0]) == "O(p)"  # as the one that grows


def test_what_a_value_is_made_of_grows_as_its_fastest_call_path(fit, ahead):
    own, whole = ahead.of_nodes(TopDown(fit.experiment.tree), np.arange(5))
    fastest = with_callees(fit.experiment.tree, predict(fit, TARGET)).growth
    assert whole.growth.tolist() == fastest.tolist()
    assert [ahead.inputs.growth_text(v.growth[0]) for v in (own, whole)] == ["O(1)", "O(p)"]


def test_everything_adds_up_to_the_ranking(fit, ahead):
    view = BottomUp(fit.experiment.tree)
    own, _ = view.values(view.roots, ahead.costs.value)
    ranking = rank(fit, TARGET)
    assert np.nansum(own[:, 0]) == pytest.approx(ranking.total[0]) == ahead.total[0]
    above, _ = view.values(view.roots, ahead.bands.costs)
    low, high = ahead.bands.ends(np.array(ranking.total[:1]), above.sum(axis=0)[None])
    assert (low[0], high[0]) == pytest.approx(ranking.total[1:])
    assert ahead.total == pytest.approx(ranking.total)
    assert ahead.inputs.total_at_largest == pytest.approx(ranking.total_at_largest)
    assert ahead.inputs.unmodelled.tolist() == ranking.unmodelled.tolist()


def test_at_infinity_shares_are_those_in_the_limit(fit):
    own, whole = answer_at(fit, np.inf).of_nodes(TopDown(fit.experiment.tree), np.arange(4))
    assert whole.value[0] == np.inf
    assert own.share.tolist() == pytest.approx([0, 2 / 3, 1 / 3, 0], abs=1e-6)


def test_what_does_not_add_up_has_no_view():
    made = experiment({"main": list(P)}, metric=Metric("ratio", "1", additive=False),
                      reduction=Reduction.MAX)  # fmt: skip
    from callpath_modeler.studies import pipeline

    with pytest.raises(UsageError, match="does not add up"):
        answer_at(pipeline.fit(made, "ratio"), TARGET)
