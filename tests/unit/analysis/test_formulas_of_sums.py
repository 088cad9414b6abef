"""Views of a metric whose formula does not add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler import LoadOptions, Study
from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.outline import Selection, outline
from callpath_modeler.profile.schema import Metric
from callpath_modeler.profile.tree_views import BottomUp, Flat, TopDown
from callpath_modeler.profile.view_request import Sort
from callpath_modeler.studies.pipeline import fit
from synthetic import POINTS, experiment

P = np.array(POINTS)
WORK = {
    "main": list(10 + 0 * P),
    "main/f": list(1.0 * P),
    "main/f/MPI_Wait": list(0.5 * P),
    "main/MPI_Wait": list(3 + 0 * P),
}
CYCLES = {
    "main": list(5 + 0 * P),
    "main/f": list(2.0 * P),
    "main/f/MPI_Wait": list(0.25 * P),
    "main/MPI_Wait": list(6 + 0 * P),
}
TARGET = 128.0


def runs(work=WORK, cycles=CYCLES):
    made = experiment(work, metric=Metric("work", "1"))
    other = experiment(cycles, metric=Metric("cycles", "1"))
    declared = {"work": "", "cycles": ""}
    return replace(made, columns={**made.columns, **other.columns}, declared=declared)


def study_of(made):
    return Study(made, LoadOptions(define="ipc = work / cycles"))


@pytest.fixture(scope="module")
def study():
    return study_of(runs())


@pytest.fixture(scope="module")
def answer(study):
    return answer_at(study.models("ipc"), TARGET)


def ratio(p):
    """Return the ratio of sums of the whole program, f and all calls of MPI_Wait."""
    return (13 + 1.5 * p) / (11 + 2.25 * p), 1.5 / 2.25, (3 + 0.5 * p) / (6 + 0.25 * p)


def test_nodes_have_the_ratio_of_their_sums_at_the_target_and_where_it_was_measured(answer):
    tree = answer.tree
    for p, column in ((TARGET, "value"), (float(P[-1]), "at_largest")):
        program, f, wait = ratio(p)
        own, whole = answer.of_nodes(TopDown(tree), np.arange(4))
        assert getattr(whole, column)[:2] == pytest.approx([program, f])
        assert getattr(own, column)[:2] == pytest.approx([2.0, 0.5])
        view = Flat(tree)
        (node,) = (n for n in view.roots.tolist() if view.name(n) == "MPI_Wait")
        own, whole = answer.of_nodes(view, np.array([node]))
        assert getattr(own, column) == pytest.approx([wait])
        assert getattr(whole, column) == pytest.approx([wait])
        assert getattr(answer.sum_of_all, column) == pytest.approx([program])
    assert answer.total[0] == pytest.approx(ratio(TARGET)[0])


def test_siblings_that_share_a_line_are_divided_together(answer):
    view = BottomUp(answer.tree)
    own, _ = answer.of_siblings(view, view.roots)
    assert own.value == pytest.approx([ratio(TARGET)[0]])


def test_shares_and_excess_work_are_not_defined(answer):
    for values in answer.call_paths:
        for column in (values.share, values.share_at_largest, values.excess, values.lost):
            assert np.isnan(column).all()
        assert (values.growth == -1).all()


def test_a_band_holds_the_value_and_comes_from_the_bands_of_the_operands():
    scatter = np.array([[0.9, 1.0, 1.1], [1.1, 0.95, 1.0], [1.0, 1.08, 0.93]])[np.arange(5) % 3]
    noisy = {name: (np.array(values)[:, None] * scatter).tolist() for name, values in WORK.items()}
    steady = {name: np.repeat(values, 3).reshape(-1, 3).tolist() for name, values in CYCLES.items()}
    found = answer_at(study_of(runs(noisy, steady)).models("ipc"), TARGET)
    work = answer_at(found.fitted.parts[0], TARGET)
    for mine, operand in zip(found.call_paths, work.call_paths, strict=True):
        assert (mine.low < mine.value).all()
        assert (mine.value < mine.high).all()
        # Cycles have hardly any error.
        np.testing.assert_allclose(mine.high / mine.value, operand.high / operand.value, rtol=0.02)
        assert (mine.trust <= operand.trust).all()
    assert found.total[1] < found.total[0] < found.total[2]
    assert found.with_bands(lambda: False) is None


def test_a_repeated_target_has_the_interval_of_its_runs():
    twice = {name: [[v, v * 1.1] for v in values] for name, values in WORK.items()}
    same = {name: [[v, v] for v in values] for name, values in CYCLES.items()}
    largest = float(P[-1])
    found = answer_at(study_of(runs(twice, same)).models("ipc"), largest)
    assert found.repetitions == 2
    assert found.fitted.models.aggregate in ("mean", "median", "trimmed", "midrange")
    own, whole = found.call_paths
    assert whole.value[0] == pytest.approx(ratio(largest)[0] * 1.05)
    assert own.value == pytest.approx(found.fitted.measured[:, -1])
    assert (own.low < own.value).all()
    assert (own.value < own.high).all()
    assert np.abs(whole.deviation).max() < 0.01
    low, high = found.total[1:]
    assert low < found.total[0] < high


def test_the_first_operand_decides_which_lines_are_shown_and_the_ratio_orders_them(answer):
    view = TopDown(answer.tree)
    order = answer.sibling_order(view, Sort.VALUE, inclusive=True)
    shown = outline(view, answer.decides, Selection(least=0.05 * answer.whole, order=order))
    # MPI_Wait below main has 3 of 205 operations, and is alone, so it keeps its line.
    assert [view.name(n) for n in shown.nodes.tolist()] == ["main", "f", "MPI_Wait", "MPI_Wait"]
    assert answer.whole == pytest.approx(13 + 1.5 * TARGET)
    assert answer.check(shown).holds


def test_two_scales_are_shown_as_measured():
    few = runs().where(np.isin(P, P[-2:]))
    fitted, target = study_of(few).at(metric="ipc")
    found = answer_at(fitted, target)
    assert not found.has_models
    assert found.sum_of_all.value == pytest.approx([ratio(float(P[-1]))[0]])


def test_there_is_no_view_at_infinity_nor_of_ratios_without_sums(study):
    with pytest.raises(UsageError, match="no view at infinity"):
        answer_at(study.models("ipc"), np.inf)
    # The models of the operands are not known.
    with pytest.raises(UsageError, match="does not add up"):
        answer_at(AnswerInputs(fit(study.experiment(), "ipc")), TARGET)


def test_a_ranking_keeps_the_models_of_the_ratios_of_call_paths(study):
    found = study.ranking(target=TARGET, metric="ipc")
    assert found.value == pytest.approx([2, 0.5, 2, 0.5], rel=1e-6)
    assert found.order[:2].tolist() == [0, 2]
    with pytest.raises(UsageError, match="no inclusive ranking") as caught:
        study.ranking(target=TARGET, metric="ipc", inclusive=True)
    assert "cpmodel views" in caught.value.hint
