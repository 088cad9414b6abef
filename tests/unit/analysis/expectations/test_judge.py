"""Verdicts of expectations on models with known results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.expectations.check_result import Status, Verdict, details, sentence
from callpath_modeler.errors import InputError
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.studies.expectation_check import check
from synthetic import VISITS, experiment

POINTS = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
LAWS = {
    "main": 4 + 0 * POINTS,
    "main/f": 0.5 * POINTS,
    "main/f/MPI_Send": 3 * np.log2(POINTS),
    "main/g": 8 + 0 * POINTS,
}


def noisy(laws=LAWS, noise=0.01, seed=3, repetitions=5, **of_experiment):
    random = np.random.default_rng(seed)
    values = {
        path: law[:, None] * (1 + noise * random.standard_normal((len(POINTS), repetitions)))
        for path, law in laws.items()
    }
    return cpm.fit(experiment(values, POINTS, **of_experiment))


@pytest.fixture(scope="module")
def models():
    return noisy()


@pytest.fixture
def outcome(models, tmp_path):
    """Check one expectation, with these keys, at p = 64."""

    def outcome(text, models=models, head="target = { p = 64 }\n"):
        path = tmp_path / "expectations.toml"
        path.write_text(f"schema = 1\n{head}[[expect]]\n{text}\n")
        return check(models, path).outcomes[0]

    return outcome


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("callpath = 'main/f'\nvalue = '<= 40 s'", Status.PASS),
        ("callpath = 'main/f'\nvalue = '<= 20 s'", Status.FAIL),
        ("callpath = 'main/f'\nvalue = '<= 32 s'", Status.UNSURE),
        ("callpath = 'main/f'\nvalue = '>= 20 s'", Status.PASS),
        ("callpath = 'main/f'\nvalue = '>= 40 s'", Status.FAIL),
        ("callpath = 'main/f'\nvalue = '<= 20 s'\nxfail = 'known'", Status.XFAIL),
        ("callpath = 'main/f'\nvalue = '<= 40 s'\nxfail = 'known'", Status.XPASS),
        ("callpath = 'main/f'\nvalue = '<= 32 s'\nunsure = 'pass'", Status.PASS),
        ("callpath = 'main/f'\nvalue = '<= 32 s'\nunsure = 'fail'", Status.UNSURE),
        ("callpath = 'main/f'\ninclusive = true\nvalue = '<= 40 s'", Status.FAIL),
        ("callpath = 'main/f'\ninclusive = true\nvalue = '<= 60 s'", Status.PASS),
        ("value = '<= 80 s'", Status.PASS),
        ("value = '<= 50 s'", Status.FAIL),
        ("callpath = 'main/f'\nshare = '<= 60 %'", Status.PASS),
        ("callpath = 'main/f'\nshare = '<= 40 %'", Status.FAIL),
        ("callpath = 'main/f'\nexcess = '<= 60 %'", Status.PASS),
        ("callpath = 'main/f'\nexcess = '<= 0.4'", Status.FAIL),
        ("callpath = 'main/f'\nloss = '<= 35 s'", Status.PASS),
        ("callpath = 'main/f'\nloss = '<= 25 s'", Status.FAIL),
        ("callpath = 'main/f'\ngrowth = '<= O(p^2)'", Status.PASS),
        ("callpath = 'main/f'\ngrowth = '<= O(log p)'", Status.FAIL),
        ("callpath = 'main/f'\ngrowth = '>= O(log p)'", Status.PASS),
        ("callpath = 'main/f'\ngrowth = 'O(p)'", Status.PASS),
        ("callpath = 'main/f'\ngrowth = 'O(1)'", Status.FAIL),
        ("callpath = 'main/f'\ngrowth = '<= O(1)'\ndeviation = 'O(p^2)'", Status.PASS),
        ("callpath = '**'\ngrowth = '<= O(log p)'", Status.FAIL),
        ("callpath = '**'\nvalue = '<= 40 s'", Status.PASS),
        ("callpath = '**'\nvalue = '<= 20 s'", Status.FAIL),
        ("callpath = 'main/nothing'\nvalue = '<= 20 s'", Status.FAIL),
        ("callpath = 'main/nothing'\nvalue = '<= 20 s'\nat_least = 0", Status.PASS),
        ("callpath = 'main/*'\nvalue = '<= 40 s'\nat_least = 3", Status.FAIL),
        ("bound = 'time * 2 <= 160 s'", Status.PASS),
        ("bound = 'time * 2 <= 100 s'", Status.FAIL),
        ("bound = 'time * p <= 5000 s'", Status.PASS),
        ("callpath = 'main/f'\nbound = '2000 s / p >= time'", Status.FAIL),
    ],
)
def test_an_expectation_is_judged_by_the_whole_band(outcome, text, status):
    assert outcome(text).status is status


def test_what_is_unsure_fails_only_where_it_is_to(outcome):
    unsure = "callpath = 'main/f'\nvalue = '<= 32 s'\n"
    assert not outcome(unsure).failed
    assert outcome(unsure + "unsure = 'fail'").failed
    assert not outcome(unsure + "unsure = 'fail'\nxfail = 'known'").failed


def test_the_worst_of_many_call_paths_is_named_and_the_others_are_counted(outcome, models):
    found = outcome("callpath = '**'\nvalue = '<= 10 s'").decisive
    assert models.experiment.tree.path(found.worst) == "main/f"
    assert (found.judged, found.broken, found.unsure) == (4, 2, 0)


def test_many_call_paths_are_judged_by_wider_bands(outcome):
    alone = outcome("callpath = 'main/f'\nvalue = '<= 10 s'").decisive.found
    among = outcome("callpath = '**'\nvalue = '<= 10 s'").decisive.found
    assert among[1] < alone[1] < alone[0] == among[0] < alone[2] < among[2]


def test_several_criteria_of_one_expectation_are_judged_by_wider_bands(outcome):
    """The confidence is that of the whole expectation, so its criteria share the error."""
    alone = outcome("callpath = 'main/f'\nvalue = '<= 10 s'").decisive.found
    both = outcome("callpath = 'main/f'\nvalue = '<= 10 s'\nshare = '<= 99 %'").decisive.found
    stated = outcome("callpath = 'main/f'\nvalue = '<= 10 s'\nconfidence = 0.975").decisive.found
    assert both[1] < alone[1] < alone[2] < both[2]
    assert both == stated


def test_confidence_widens_bands(outcome):
    narrow = outcome("value = '<= 10 s'\nconfidence = 0.5").decisive.found
    wide = outcome("value = '<= 10 s'\nconfidence = 0.99").decisive.found
    assert wide[1] < narrow[1] < narrow[2] < wide[2]


def test_a_bound_tells_from_which_scale_on_it_is_broken(outcome):
    crossing = outcome("callpath = 'main/f'\nvalue = '<= 20 s'").decisive.crossing
    assert crossing.likely == pytest.approx(40, rel=0.03)
    assert crossing.likely < crossing.surely < 64
    wall = outcome("callpath = 'main/f'\nbound = 'time * 48 <= 4800 s'").decisive
    assert wall.verdict is Verdict.KEPT
    assert wall.crossing.likely == pytest.approx(200, rel=0.05)


def test_values_without_band_equal_to_their_bound_keep_it(outcome):
    counts = cpm.fit(experiment({"main": [7.0, 7.0, 7.0, 7.0, 7.0]}, POINTS, metric=VISITS))
    assert outcome("value = '<= 7'", models=counts).status is Status.PASS
    assert outcome("value = '>= 7'", models=counts).status is Status.PASS
    assert outcome("value = '<= 6.99'", models=counts).status is Status.FAIL


def test_shares_and_losses_are_those_of_the_ranking(outcome, models):
    ranking = cpm.rank(models, target=64)
    row = 1
    share = outcome("callpath = 'main/f'\nshare = '<= 1 %'").decisive.found[0]
    loss = outcome("callpath = 'main/f'\nloss = '<= 1 s'").decisive.found[0]
    excess = outcome("callpath = 'main/f'\nexcess = '<= 1 %'").decisive.found[0]
    whole = outcome("callpath = 'main/f'\ninclusive = true\nexcess = '<= 1 %'").decisive.found
    assert share == pytest.approx(ranking.own_share[row])
    assert loss == pytest.approx(ranking.excess.lost[row])
    assert excess == pytest.approx(ranking.excess.exclusive[row])
    assert whole[0] == pytest.approx(ranking.excess.inclusive[row])


def test_sums_over_processes_under_strong_scaling_are_lost_per_process(outcome):
    laws = {"main": 64.0 + 0 * POINTS, "main/f": 2.0 * POINTS}
    summed = noisy(laws, scaling=Scaling.STRONG, reduction=Reduction.SUM)
    ranking = cpm.rank(summed, target=64)
    for row, path in enumerate(laws):
        loss = outcome(f"callpath = '{path}'\nloss = '<= 1 s'", models=summed).decisive
        excess = outcome(f"callpath = '{path}'\nexcess = '<= 1 %'", models=summed).decisive
        assert loss.found[0] == pytest.approx(ranking.excess.lost[row])
        assert excess.found[0] == pytest.approx(ranking.excess.exclusive[row])


def test_a_sum_over_call_paths_has_a_growth_of_its_own(outcome):
    found = outcome("callpath = 'main/f'\ninclusive = true\ngrowth = '<= O(log p)'")
    assert found.status is Status.FAIL
    assert str(found.decisive.growths[0][0]) == "O(p)"


def test_what_is_gone_at_the_largest_scale_keeps_every_bound(outcome):
    nan = float("nan")
    values = {"main": [1.0] * 5, "main/f": [5.0, 5.0, 5.0, 5.0, nan]}
    gone = cpm.fit(experiment(values, POINTS))
    assert outcome("callpath = 'main/f'\nvalue = '<= 1 s'", models=gone).status is Status.PASS


def test_what_has_no_model_is_unsure(outcome):
    nan = float("nan")
    values = {"main": [1.0] * 5, "main/f": [nan, nan, nan, 5.0, 5.0]}
    few = cpm.fit(experiment(values, POINTS))
    for text in ("value = '<= 90 s'", "growth = '<= O(p^2)'"):
        assert outcome(f"callpath = 'main/f'\n{text}", models=few).status is Status.UNSURE
    # If a part of a sum has no model, the sum may exceed the prediction.
    assert outcome("value = '<= 90 s'", models=few).status is Status.UNSURE
    assert outcome("value = '<= 0.5 s'", models=few).status is Status.FAIL


def test_a_control_is_found_by_its_name(models, tmp_path):
    path = tmp_path / "expectations.toml"
    path.write_text(
        "schema = 1\ntarget = { p = 64 }\n"
        "[[expect]]\nname = 'a'\nvalue = '<= 1 s'\ncontrol = 'b'\n"
        "[[expect]]\nname = 'b'\nvalue = '<= 2 s'\n"
    )
    found = check(models, path)
    assert found.control_of(found.outcomes[0]) is found.outcomes[1]
    assert found.control_of(found.outcomes[1]) is None


def test_failures_are_raised_as_an_assertion_with_lines(models, tmp_path):
    path = tmp_path / "expectations.toml"
    path.write_text(
        "schema = 1\ntarget = { p = 64 }\n"
        "[[expect]]\nname = 'a'\nvalue = '<= 1 s'\n"
        "[[expect]]\nname = 'b'\nvalue = '<= 2000 s'\n"
    )
    with pytest.raises(cpm.BrokenExpectationsError) as raised:
        cpm.check(models, path).raise_for_failures()
    assert isinstance(raised.value, AssertionError)
    assert str(raised.value).startswith(f"{path}:3: a: ")
    assert "expected <= 1 s" in str(raised.value)
    path.write_text("schema = 1\n[[expect]]\ngrowth = '<= O(p^3)'\n")
    cpm.check(models, path).raise_for_failures()


@pytest.mark.parametrize(
    ("text", "head", "line", "words"),
    [
        ("value = '<= 1 s'", "", 3, "no target"),
        ("value = '<= 1 s'", "target = { p = inf }\n", 4, "nothing is bounded at infinity"),
        ("value = '<= 1 s'", "target = { n = 8 }\n", 3, "functions of p"),
        ("value = '<= 1 s'\ntarget = { n = 3 }", None, 5, "a target of n; the models"),
        ("value = '<= 1 GB'", None, 4, "in B, time is in s"),
        ("value = '<= 1'", None, 4, "a plain number, time is in s"),
        ("metric = 'tme'\nvalue = '<= 1 s'", None, 4, "no metric 'tme'"),
        ("callpath = '~('\nvalue = '<= 1 s'", None, 4, "malformed"),
        ("bound = 'time <= 1 GB'", None, 4, "s against B"),
        ("bound = 'tme <= 1 s'", None, 4, "no metric 'tme'"),
        ("bound = 'p <= 1'", None, 4, "no metric is part"),
    ],
)
def test_what_only_the_runs_can_refuse_is_refused_by_its_line(outcome, text, head, line, words):
    with pytest.raises(InputError) as refused:
        outcome(text, head="target = { p = 64 }\n" if head is None else head)
    name, _, rest = refused.value.message.partition(".toml:")
    assert Path(name).name == "expectations"
    assert rest.startswith(f"{line}: ")
    assert words in rest
    assert refused.value.hint


@pytest.mark.parametrize("text", ["", "inclusive = true\ncallpath = 'main'\n"])
def test_what_does_not_add_up_has_no_sum(outcome, text):
    peak = Metric("peak", "1", additive=False)
    models = cpm.fit(experiment({"main": [1.0] * 5, "main/f": [2.0] * 5}, POINTS, metric=peak))
    with pytest.raises(InputError, match="does not add up"):
        outcome(text + "value = '<= 1'", models=models)
    assert outcome("callpath = '**'\nvalue = '<= 1'", models=models).status is Status.FAIL
    with pytest.raises(InputError, match="does not add up"):
        outcome("callpath = '**'\nshare = '<= 1 %'", models=models)


RULES = {
    "main": 1 + 0 * POINTS,
    "main/MPI_Allreduce": 0.2 * POINTS,
    "main/MPI_Reduce": 1.0 * np.log2(POINTS),
    "main/MPI_Bcast": 0.6 * np.log2(POINTS),
}


@pytest.fixture(scope="module")
def collectives():
    return noisy(RULES)


@pytest.fixture
def ruled(collectives, tmp_path):
    """Judge one rule, with these keys, at p = 64."""

    def ruled(text, head="target = { p = 64 }\n", models=collectives):
        path = tmp_path / "expectations.toml"
        path.write_text(f"schema = 1\n{head}[[rule]]\n{text}\n")
        return check(models, path).outcomes[0]

    return ruled


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ("{**/MPI_Allreduce} <= {**/MPI_Reduce} + {**/MPI_Bcast}", Status.FAIL),
        ("{**/MPI_Allreduce} <= 3 * {**/MPI_Reduce} + {**/MPI_Bcast}", Status.PASS),
        ("{**/MPI_Reduce} >= {**/MPI_Bcast}", Status.PASS),
        ("{**/MPI_Reduce} / {**/MPI_Bcast} <= 2", Status.PASS),
        ("{**/MPI_Reduce} / {**/MPI_Bcast} <= limit", Status.FAIL),
        ("{**/MPI_Scan} <= {**/MPI_Reduce}", Status.FAIL),
    ],
)
def test_a_rule_is_judged_at_the_target(ruled, rule, status):
    head = "target = { p = 64 }\n[numbers]\nlimit = 1.2\n"
    assert ruled(f"rule = '{rule}'", head).status is status


def test_a_broken_rule_tells_where_and_what_it_is_in_the_end(ruled):
    found = ruled("rule = '{**/MPI_Allreduce} <= {**/MPI_Reduce} + {**/MPI_Bcast}'").decisive
    assert [str(growth) for growth in found.in_the_end] == ["O(p)", "O(log p)"]
    assert found.broken_at == ()
    assert 40 < found.crossing.likely < 60
    small = "rule = '{**/MPI_Allreduce} <= {**/MPI_Reduce}'"
    assert 32 in ruled(small, head="").decisive.broken_at


def test_a_rule_about_nothing_names_the_pattern_that_fails(ruled):
    found = ruled("rule = '{**/MPI_Scan} <= {**/MPI_Reduce}'\nxfail = 'no scan yet'")
    assert found.status is Status.XFAIL
    assert found.missing == "**/MPI_Scan"
    near = "did you mean '**/MPI_Bcast'?"
    assert sentence(found) == f"'**/MPI_Scan' names no call path; {near}"


def test_rules_and_expectations_stand_in_the_order_of_the_file(collectives, tmp_path):
    path = tmp_path / "expectations.toml"
    path.write_text(
        "schema = 1\n"
        "[[rule]]\nname = 'a'\nrule = '{**/MPI_Reduce} >= {**/MPI_Bcast}'\ncontrol = 'b'\n"
        "[[expect]]\nname = 'b'\ngrowth = '<= O(p^3)'\n"
    )
    found = check(collectives, path)
    assert [outcome.expectation.name for outcome in found.outcomes] == ["a", "b"]
    assert found.control_of(found.outcomes[0]) is found.outcomes[1]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("{~(} <= {main}", "malformed"),
        ("{main} <= 3 GB", "s against B"),
        ("3 <= 4", "no call path is part"),
    ],
)
def test_a_rule_that_makes_no_sense_here_is_refused_by_its_line(ruled, rule, words):
    with pytest.raises(InputError, match=r"expectations\.toml:4: ") as refused:
        ruled(f"rule = '{rule}'")
    assert words in refused.value.message


def test_other_call_paths_are_those_that_no_other_expectation_names(models, tmp_path):
    path = tmp_path / "expectations.toml"
    path.write_text(
        "schema = 1\ntarget = { p = 64 }\n"
        "[[expect]]\nname = 'f'\ncallpath = 'main/f'\nvalue = '<= 40 s'\n"
        "[[expect]]\nname = 'rest'\nothers = true\nvalue = '<= 15 s'\n"
        "[[expect]]\nname = 'rest below'\ncallpath = 'main/*'\nothers = true\nvalue = '<= 5 s'\n"
    )
    rest, below = (check(models, path).outcome(name) for name in ("rest", "rest below"))
    assert (rest.matched, rest.status) == (3, Status.FAIL)
    assert (below.matched, below.status) == (1, Status.FAIL)
    assert models.experiment.tree.path(below.decisive.worst) == "main/g"


@pytest.mark.parametrize(
    ("control", "words"),
    [
        ("<= 1 s", "is broken too: look at the machine"),
        ("<= 4000 s", "is kept: it is not the machine"),
        ("<= 62 s", "does not tell"),
    ],
)
def test_what_came_of_a_control_says_whom_to_blame(models, tmp_path, control, words):
    path = tmp_path / "expectations.toml"
    path.write_text(
        "schema = 1\ntarget = { p = 64 }\n"
        "[[expect]]\nname = 'a'\ncallpath = 'main/f'\nvalue = '<= 1 s'\ncontrol = 'b'\n"
        f"[[expect]]\nname = 'b'\nvalue = '{control}'\n"
    )
    found = check(models, path)
    told = details(found.outcomes[0], found.control_of(found.outcomes[0]))
    assert any(words in line for line in told)


def test_words_tell_what_was_found_what_was_expected_and_where_it_goes_wrong(outcome, ruled):
    broken = outcome("callpath = 'main/f'\ngrowth = '<= O(log p)'")
    assert sentence(broken) == "O(p), expected <= O(log p): off by O(p / log p)"
    value = outcome("callpath = 'main/f'\nvalue = '<= 20 s'\nnote = 'ask Ann'")
    assert sentence(value).startswith("32.1 s (")
    assert sentence(value).endswith(" s) predicted at p = 64, expected <= 20 s")
    assert details(value, None)[0].startswith("predicted to be broken likely from about p = 4")
    assert details(value, None)[-1] == "ask Ann"
    many = outcome("callpath = '**'\nvalue = '<= 10 s'")
    assert "2 broken of 4 call paths" in details(many, None)
    kept = outcome("callpath = '**'\nvalue = '<= 100 s'")
    assert sentence(kept).startswith("4 call paths, worst 32.1 s")
    rule = ruled("rule = '{**/MPI_Allreduce} <= {**/MPI_Reduce}'")
    assert "in the end O(p) against O(log p)" in details(rule, None)
    assert "measured to be broken at p = 32" in details(rule, None)


def test_a_run_that_would_decide_is_one_that_people_would_type(outcome):
    slow = noisy({"main": 10 + np.sqrt(POINTS)}, noise=0.05, seed=0, repetitions=3)
    for text in ("growth = '<= O(log p)'", "growth = '<= O(p^(1/2))'"):
        found = outcome(text, models=slow)
        (line,) = (each for each in details(found, None) if "would decide" in each)
        scale = line.removeprefix("a run at p = ").removesuffix(" would decide")
        assert scale.isdecimal()
        # Two digits, or so many times the largest run.
        assert not scale[2:].strip("0") or np.log2(int(scale) / POINTS[-1]) % 1 == 0


HIDDEN = {
    "main": 100 + 0 * POINTS,
    "main/solve": 40 - POINTS,
    "main/find": 1.0 * POINTS,
    "main/small": 1e-4 * POINTS**1.5,
}


@pytest.mark.parametrize("keys", ["", "callpath = 'main'\ninclusive = true\n"])
def test_a_sum_grows_at_least_as_its_part_that_matters(outcome, keys):
    models = noisy(HIDDEN, noise=0.002)
    one = outcome(f"{keys}growth = '<= O(p^(1/2))'", models)
    assert one.status is Status.UNSURE
    (judgement,) = one.judgements
    assert models.experiment.tree.path(judgement.part) == "main/find"
    assert judgement.growths[0][0].text("p") == "O(p)"
    assert judgement.decides is None
    said = sentence(one)
    assert "main/find grows faster than the model of the sum, O(" in said
    assert "O(p), expected <= O(p^(1/2)): " in said


def test_a_part_that_costs_little_does_not_raise_the_growth_of_a_sum(outcome):
    models = noisy(HIDDEN, noise=0.002)
    assert outcome("callpath = 'main/small'\ngrowth = '<= O(p)'", models).status is Status.FAIL
    assert outcome("growth = '<= O(p)'", models).status is Status.PASS


def test_a_sum_is_not_too_slow_if_its_part_is_not(outcome):
    models = noisy(HIDDEN, noise=0.002)
    one = outcome("growth = '>= O(p)'", models)
    assert one.status is Status.UNSURE
    assert one.judgements[0].alone is not None
