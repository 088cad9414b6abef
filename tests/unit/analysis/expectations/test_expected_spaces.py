"""Files that expect what rankings do not compare: exponentials, fractional powers of logarithms."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import Growth, SearchSpace
from callpath_modeler.studies.pipeline import FitOptions
from callpath_modeler.studies.study import Study

K = np.arange(3, 15)
P = 2 ** np.arange(6, 13)


def written(path, header, laws, points, noise=0.01):
    """Write a table of three repetitions of laws of call paths."""
    random, lines = np.random.default_rng(5), [header]
    for point in points.tolist():
        for repetition in range(3):
            for name, law in laws.items():
                value = law(float(point)) * np.exp(noise * random.standard_normal())
                lines.append(f"{name},{point},{repetition},{value}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def table(tmp_path):
    laws = {"main/gen": lambda k: 1e-6 * k**2 * 2.0**k, "main/scan": lambda k: 0.1 * k}
    return written(tmp_path / "runs.csv", "callpath,k,repetition,time[s]", laws, K)


@pytest.fixture
def logarithms(tmp_path):
    laws = {"m/half": lambda p: np.log2(p) ** 1.5, "m/square": lambda p: np.log2(p) ** 3}
    return written(tmp_path / "logs.csv", "callpath,p,repetition,time[s]", laws, P, 0.003)


def expecting(tmp_path, growth, callpath="main/gen"):
    path = tmp_path / "expect.toml"
    path.write_text(f'schema = 1\n[[expect]]\ncallpath = "{callpath}"\ngrowth = "{growth}"\n')
    return path


def judged(study, path, **asked):
    (outcome,) = study.check(path, **asked).outcomes
    return str(outcome.status), outcome.judgements[0]


def test_an_expected_exponential_is_compared_without_an_option(table, tmp_path):
    study = Study(table, fit_options=FitOptions("k"))
    status, judgement = judged(study, expecting(tmp_path, "O(k^2 2^k)"))
    assert status == "pass"
    assert judgement.growths[0][0].rate == 1
    # Rankings answer the same question without the file, so the row states their growth, too.
    ranked = study.models()
    (row,) = ranked.experiment.tree.rows_of("main/gen")
    assert judgement.in_rankings == ranked.models.growth(row)
    assert "exponentials" in judgement.ranked


def test_models_that_miss_an_exponential_suggest_the_option(table):
    findings = Study(table, fit_options=FitOptions("k")).models().findings
    (suggested,) = (each for each in findings if each.code == "CPM210")
    assert "2^k" in suggested.message


def test_a_power_expects_no_exponential(table, tmp_path):
    study = Study(table, fit_options=FitOptions("k"))
    status, judgement = judged(study, expecting(tmp_path, "O(k^2)"))
    assert status != "pass"
    assert judgement.in_rankings is None


def test_the_space_of_the_user_stays(table, tmp_path):
    space = SearchSpace.of(["0", "1", "2"])
    study = Study(table, fit_options=FitOptions("k", space=space))
    _, judgement = judged(study, expecting(tmp_path, "O(k^2 2^k)"))
    assert judgement.in_rankings is None
    assert not any(growth.rate for growth, _ in judgement.growths)


def test_the_limit_of_a_logarithm_is_allowed(logarithms, tmp_path):
    """The default limits of O(log p) are log^(1/2) p and log^(3/2) p."""
    study = Study(logarithms)
    status, judgement = judged(study, expecting(tmp_path, "O(log p)", "m/half"))
    assert status == "pass"
    assert judgement.growths[0][0] == Growth(0, 1.5)
    assert judgement.match.name == "APPROXIMATE"
    assert judgement.in_rankings is not None
    assert judgement.adjusted_r2 > 0.99
    beyond, _ = judged(study, expecting(tmp_path, "O(log p)", "m/square"))
    assert beyond == "fail"


def test_one_bound_of_a_logarithm_needs_no_other_space(logarithms, tmp_path):
    status, judgement = judged(Study(logarithms), expecting(tmp_path, "<= O(log^2 p)", "m/half"))
    assert status == "pass"
    assert judgement.in_rankings is None


def test_the_published_procedure_chooses_one_growth(logarithms, tmp_path):
    study = Study(logarithms)
    status, judgement = judged(
        study, expecting(tmp_path, "O(log p)", "m/half"), procedure="published"
    )
    assert status == "pass"
    assert [probability for _, probability in judgement.growths] == [1.0]
    beyond, _ = judged(study, expecting(tmp_path, "O(1)", "m/half"), procedure="published")
    assert beyond == "fail"


def test_the_published_procedure_needs_four_scales(tmp_path):
    laws = {"m/half": np.log2}
    table = written(tmp_path / "r.csv", "callpath,p,repetition,time[s]", laws, P[:3])
    path = expecting(tmp_path, "O(log p)", "m/half")
    status, judgement = judged(Study(table), path, procedure="published")
    assert (status, judgement.unmodelled) == ("unsure", 1)


def test_a_growth_in_several_parameters_is_judged_along_each(tmp_path):
    random, lines = np.random.default_rng(1), ["callpath,p,n,time[s]"]
    for p in (8, 16, 32, 64, 128):
        for n in (10, 20, 40, 80, 160):
            if p == 8 or n == 10 or (p, n) == (64, 80):
                times = 1e-4 * n**2 / p * np.exp(0.01 * random.standard_normal(3))
                lines += [f"main/solve,{p},{n},{time}" for time in times.tolist()]
    table = tmp_path / "runs.csv"
    table.write_text("\n".join(lines) + "\n")
    right = Study(table).check(expecting(tmp_path, "O(n^2 / p)", "main/solve"))
    assert [(each.expectation.parameter, str(each.status)) for each in right.outcomes] == [
        ("n", "pass"),
        ("p", "pass"),
    ]
    wrong = Study(table).check(expecting(tmp_path, "O(n^2 p)", "main/solve"))
    assert [str(each.status) for each in wrong.outcomes] == ["pass", "fail"]
    assert [each.expectation.name[-7:] for each in wrong.outcomes] == ["along n", "along p"]
