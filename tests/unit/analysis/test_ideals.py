"""Expected costs of excess work: growths, files, other experiments, the ensemble and a target."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.answer import rank
from callpath_modeler.analysis.ensemble import losses
from callpath_modeler.analysis.expectations import clauses as expectation_text
from callpath_modeler.analysis.expectations.clauses import interpret
from callpath_modeler.analysis.expectations.expectation import parse
from callpath_modeler.analysis.expectations.growth_check import growth_ideal
from callpath_modeler.analysis.further_excess import with_target
from callpath_modeler.analysis.ideals import GrowthIdeal, ReferenceIdeal, ScalingIdeal
from callpath_modeler.errors import CallpathModelerError, UsageError
from callpath_modeler.modeling import GrowthSyntaxError, parse_function
from callpath_modeler.profile.experiment import TOLD_SCALINGS, Scaling
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.excess_text import ExcessView
from cells import cells
from synthetic import experiment, fitted

NAN = float("nan")
POINTS = (2.0, 4.0, 8.0, 16.0)
VALUES = {
    "main": [1.0, 1.5, 2.0, 3.0],
    "main/f": [4.0, 2.5, 1.5, 1.0],
    "main/f/g": [1.0, 2.0, 3.0, 4.0],
    "main/h": [NAN, NAN, 1.0, 2.0],
}


def growth(text, parameter="p"):
    return GrowthIdeal(text, parse_function(text)[0], parameter)


def file_ideal(text, made, others=Scaling.WEAK):
    expectations = interpret(parse("schema = 1\n" + text, "e.toml"))
    return growth_ideal(expectations, made.tree, "p", others, lambda one: one.metric is None)


@cells(
    ("text", "value"),
    [
        ("1", 1.0),
        ("O(p)", 16.0),
        ("p^-1", 1 / 16),
        ("log p", 3.0),
        ("O(p log p)", 48.0),
        ("1 + 0.5 log2(p)", 4 / 2),
        ("5e-1 + p", 64.5 / 4.5),
        ("3 (p - p^½)", 56 / 2),
        ("p / (1 + log p)", (64 / 7) / (4 / 3)),
        ("(1 + p)^-2", (5 / 65) ** 2),
        ("2^(p/4)", 2.0**15),
        ("log(1 + p)", np.log2(65) / np.log2(5)),
        ("1 + ln(p)", (1 + np.log(64)) / (1 + np.log(4))),
        ("1 + log10 p", (1 + np.log10(64)) / (1 + np.log10(4))),
        ("1 + log(p^2)", 13 / 5),
        ("1 + 2^(p/8) sqrt(p)", (1 + 256 * 8) / (1 + np.sqrt(2) * 2)),
        ("¼ + p", 64.25 / 4.25),
    ],
)
def test_a_formula_grows_by_all_its_terms(text, value):
    function, _ = parse_function(text)
    assert function.ratio(4, 64) == pytest.approx(value, rel=1e-14)


@cells(
    "text",
    [
        "0",
        "1 - 2",
        "0 p",
        "p^99999999999 + 1",
        "2^(1000 p)+1",
        "log(p) - 2",
        "(p - 10)^½",
        "1/(p-4)",
    ],
)
def test_a_formula_without_a_finite_positive_value_has_no_ratio(text):
    assert np.isnan(parse_function(text)[0].ratio(4, 8))


@cells(
    "text",
    ["", "p+", "p q", "(" * 60 + "p", "p" * 2000, "-p", "p^p", "O(p", "p^(1/0)", "log log p",
     "p^1e999", "p^1e-300", "1e9999999999 p", "__import__('os')", "p\x1b[0m", "lambda p: p",
     "p + " + "(" * 14 + "p" + "^999999999999999999999999999999)" * 40],
)  # fmt: skip
def test_a_hostile_formula_is_refused_or_is_without_a_value(text):
    told = []
    try:
        function, _ = parse_function(text)
    except GrowthSyntaxError as refused:
        told.append(str(refused))
    else:
        assert np.isnan(function.ratio(4, 8))
    assert all("column" in each and len(each) < 1000 for each in told)


@pytest.mark.parametrize(("scaling", "text"), [(Scaling.WEAK, "1"), (Scaling.STRONG, "1/p")])
def test_weak_and_strong_scaling_are_growths_to_the_last_digit(scaling, text):
    made = experiment(VALUES, (3.0, 7.0, 11.0, 125.0), scaling=scaling)
    one, other = losses(made), losses(made, ideal=growth(text))
    assert one.ideal == ScalingIdeal(scaling)
    for each in ("exclusive", "inclusive"):
        np.testing.assert_array_equal(getattr(one.excess, each), getattr(other.excess, each))
        np.testing.assert_array_equal(getattr(one.expected, each), getattr(other.expected, each))
    np.testing.assert_array_equal(one.ensemble.costs.exclusive, other.ensemble.costs.exclusive)
    for k in range(3):
        for mine, theirs in zip(one.repetitions(k), other.repetitions(k), strict=True):
            np.testing.assert_array_equal(mine.inclusive, theirs.inclusive)


@pytest.mark.parametrize("reduction", [Reduction.MAX, Reduction.SUM])
def test_a_growth_is_the_generalised_formula_of_the_paper(reduction):
    made = experiment(VALUES, POINTS, reduction=reduction)
    found = losses(made, ideal=growth("p^½ log p"))
    cost = np.nan_to_num(np.array(list(VALUES.values())))
    cost = cost / POINTS if reduction is Reduction.SUM else cost
    for k, (p, q) in enumerate(found.pairs):
        column = POINTS.index(q)
        grown = cost[:, 0] * np.sqrt(q / p) * np.log2(q) / np.log2(p)
        lost = (cost[:, column] - grown) / cost[:, column].sum()
        np.testing.assert_allclose(np.nan_to_num(found.excess.exclusive[:, k]), lost, rtol=1e-12)
        assert found.total[k] == pytest.approx(lost.sum())


def test_a_scaled_expectation_is_the_same_expectation():
    made = experiment(VALUES, POINTS)
    one = losses(made, ideal=growth("2 + p"))
    ten = losses(made, ideal=growth("20 + 10 p"))
    np.testing.assert_allclose(one.excess.exclusive, ten.excess.exclusive, rtol=1e-13)


def test_a_cost_that_grows_as_expected_has_no_excess():
    values = {"main": [3 * (1 + 0.1 * np.log2(p)) for p in POINTS]}
    found = losses(experiment(values, POINTS), ideal=growth("1 + 0.1 log2(p)"))
    np.testing.assert_allclose(found.excess.exclusive, 0.0, atol=1e-15)


def test_scales_without_an_expected_cost_are_omitted_or_refused():
    made = experiment(VALUES, (1.0, 2.0, 4.0, 8.0))
    found = losses(made, ideal=growth("O(log p)"))
    assert found.pairs == ((2, 4), (2, 8))
    assert found.omitted == (1.0,)
    assert found.ensemble.count == 3
    for asked in ({"pair": (1, 8)}, {"base": 1}, {"pair": [(2, 4), (1, 8)]}):
        with pytest.raises(UsageError, match=r"O\(log p\) is not a finite number .* p = 1") as told:
            losses(made, ideal=growth("O(log p)"), **asked)
        assert "--base" in told.value.hint


def test_several_pairs_equal_each_pair_alone():
    made = experiment(VALUES, POINTS)
    pairs = [(4, 16), (8, 2), (2, 16)]
    found = losses(made, pair=pairs)
    assert found.pairs == ((4, 16), (2, 8), (2, 16))
    for k, pair in enumerate(pairs):
        alone = losses(made, pair=pair)
        np.testing.assert_array_equal(found.excess.inclusive[:, k], alone.excess.inclusive[:, 0])
        np.testing.assert_array_equal(
            found.expected.inclusive[:, k], alone.expected.inclusive[:, 0]
        )
    with pytest.raises(UsageError, match="one scale twice"):
        losses(made, pair=[(2, 4), (8, 8)])
    with pytest.raises(UsageError, match="no run at p = 3"):
        losses(made, pair=[(2, 4), (3, 8)])


@pytest.mark.parametrize("scaling", TOLD_SCALINGS)
def test_the_ensemble_is_the_mean_over_all_pairs(scaling):
    made = experiment(VALUES, POINTS, scaling=scaling)
    every = [(p, q) for p in POINTS for q in POINTS if p < q]
    by_pair = np.nan_to_num(losses(made, pair=every).excess.exclusive)
    found = losses(made, pair=(4, 8)).ensemble
    assert found.count == len(every) == 6
    np.testing.assert_allclose(found.costs.exclusive[:, 0], by_pair.mean(axis=1), atol=1e-15)
    assert found.total == pytest.approx(by_pair.sum(axis=0).mean())


FILE = """
[[expect]]
callpath = "main/f"
inclusive = true
growth = "<= O(p)"

[[expect]]
callpath = "**/g"
growth = "O(log p)"

[[expect]]
callpath = "**/g"
growth = "O(p^2)"

[[expect]]
callpath = "main"
growth = ">= O(p^3)"

[[expect]]
callpath = "**/nothing"
growth = "O(2^p)"
"""


def test_a_file_expects_growths_of_call_paths_and_scaling_of_the_rest():
    made = experiment(VALUES, POINTS)
    ideal = file_ideal(FILE, made, Scaling.STRONG)
    # f grows like p with its callees, g has a slower growth of its own, and main scales.
    np.testing.assert_allclose(ideal.cost(4, 16, np.ones(4)), [1 / 4, 4, 2, 1 / 4])
    np.testing.assert_allclose(ideal.cost(4, 16, np.ones((4, 3)))[2], [2, 2, 2])
    assert ideal.without == 1
    assert ideal.gap(4, 16) == ""  # a growth that selects nothing does not matter
    assert "growths of 2 call paths" in ideal.notes[0]
    assert "1 growth for no call path" in ideal.notes[0]
    found = losses(made, ideal=ideal)
    cost = np.nan_to_num(np.array(list(VALUES.values())))
    grown = cost[:, 0] * [2 / 16, 8, 4, 2 / 16]
    lost = (cost[:, 3] - grown) / cost[:, 3].sum()
    np.testing.assert_allclose(np.nan_to_num(found.excess.exclusive[:, -1]), lost)


def test_the_growth_of_the_program_and_of_others_applies_to_the_rest():
    made = experiment(VALUES, POINTS)
    ideal = file_ideal(
        '[[expect]]\ngrowth = "O(p)"\n[[expect]]\ncallpath = "main/f"\ngrowth = "O(1)"\n', made
    )
    assert ideal.cost(2, 8, np.ones(4)).tolist() == [4, 1, 4, 4]
    ideal = file_ideal(
        '[[expect]]\nothers = true\ngrowth = "O(p)"\n[[expect]]\ncallpath = "main/f"\n'
        'value = "<= 2 s"\n[defaults]\ntarget = { p = 64 }\n', made
    )  # fmt: skip
    assert ideal.cost(2, 8, np.ones(4)).tolist() == [4, 1, 4, 4]


@cells(
    "text",
    [
        '[[expect]]\ncallpath = "**/nothing"\ngrowth = "O(p)"\n',
        '[[expect]]\ncallpath = "main"\ngrowth = "O(n)"\n',
        '[[expect]]\ncallpath = "main"\ngrowth = ">= O(p)"\n',
        '[[expect]]\ncallpath = "main"\nmetric = "visits"\ngrowth = "O(p)"\n',
        '[[rule]]\nrule = "{main} <= {**/f}"\n',
    ],
)
def test_a_file_that_expects_no_growth_of_these_call_paths_is_refused(text):
    with pytest.raises(UsageError, match=r"e\.toml states no growth in p") as told:
        file_ideal(text, experiment(VALUES, POINTS))
    assert told.value.hint


def test_another_experiment_states_the_expected_cost():
    made = experiment(VALUES, POINTS)
    costs = {p: np.array([1.0, 2.0, 0.5, 3.0]) * p for p in (4.0, 16.0)}
    found = losses(made, ideal=ReferenceIdeal("old", "p", costs, {4.0: costs[4.0][:, None]}))
    assert found.pairs == ((2, 4), (2, 16))  # nothing is expected at p = 8
    assert found.omitted == (8.0,)
    cost = np.nan_to_num(np.array(list(VALUES.values())))
    for k, q in enumerate((4.0, 16.0)):
        at = cost[:, POINTS.index(q)]
        np.testing.assert_allclose(found.excess.exclusive[:, k], (at - costs[q]) / at.sum())
    before, _ = found.repetitions(0)
    np.testing.assert_array_equal(before.exclusive, costs[4.0][:, None])
    assert found.repetitions(1) is None


def test_excess_work_at_a_target_is_that_of_the_ranking_and_has_a_band():
    noisy = {
        name: [[v * (1 + e) for e in (-0.03, 0.0, 0.03)] for v in values]
        for name, values in {"main": [1 + 0.2 * p for p in POINTS], "main/f": [5.0] * 4}.items()
    }
    models = fitted(noisy, POINTS)
    found, prediction = with_target(losses(models.experiment), models, 64)
    ranked = rank(models, 64)
    assert found.pairs[-1] == (2, 64)
    np.testing.assert_allclose(found.excess.exclusive[:, -1], ranked.excess.exclusive)
    np.testing.assert_allclose(found.excess.inclusive[:, -1], ranked.excess.inclusive)
    shown = ExcessView(found, ViewRequest(), prediction)
    assert shown.bands is not None
    for band in (*shown.bands, shown.band_of_total):
        assert (band.low < band.value).all()
        assert (band.value < band.high).all()
    whole = shown.band_of_total
    assert whole.value[0] == pytest.approx(found.total[-1])
    np.testing.assert_allclose(shown.bands[1].low[0], whole.low[0])
    # The ensemble has measured scales only.
    assert found.ensemble.count == 6
    assert found.repetitions(len(found.pairs) - 1) is None


@pytest.mark.parametrize(
    ("target", "message"),
    [(16.0, "p = 16 was measured"), (1.0, "not above the base"), (np.inf, "infinity")],
)
def test_a_target_that_is_no_target_is_refused(target, message):
    models = fitted(VALUES, POINTS)
    with pytest.raises(UsageError, match=message):
        with_target(losses(models.experiment), models, target)


def test_call_paths_without_a_model_are_excluded_at_both_scales():
    values = {**VALUES, "main/gone": [2.0, 2.0, 2.0, NAN]}
    models = fitted(values, POINTS)
    found, _ = with_target(losses(models.experiment), models, 64)
    row = 4
    assert not models.modelled[row]
    assert np.isnan(found.excess.exclusive[row, -1])
    base, _ = found.columns(len(found.pairs) - 1)
    assert np.isnan(found.costs.exclusive[row, base])
    np.testing.assert_allclose(found.total[-1], rank(models, 64).total_excess)


@cells("text", ["weak", "strong", "", "no such thing", "p q", "x" * 5000, "a\0b", "missing.toml"])
def test_an_expectation_that_is_nothing_is_refused_with_a_hint(text):
    with pytest.raises(CallpathModelerError) as told:
        expectation_text.parse_expectation(text)
    assert told.value.hint
