"""Work that the expectations of a file may cause."""

from __future__ import annotations

import time

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import InputError
from callpath_modeler.studies.expectation_check import check
from callpath_modeler.support.input_limits import VARIABLE, Work
from synthetic import POINTS, experiment

P = np.array(POINTS)
MANY = 25
HEAD = "schema = 1\ntarget = { p = 1024 }\n"
SECONDS = 2 * 5
"""The bound of a file of 100 KiB, on a slow or busy machine."""


@pytest.fixture(scope="module")
def models():
    random = np.random.default_rng(4)
    laws = {"main": P} | {f"main/f{k}": (1 + k) * P**0.5 for k in range(MANY)}
    scatter = 1 + 0.02 * random.standard_normal((len(laws), 5, 3))
    values = np.array([*laws.values()])[..., None] * scatter
    return cpm.fit(experiment(dict(zip(laws, values, strict=True)), P))


@pytest.fixture
def checked(models, tmp_path):
    def checked(*entries):
        path = tmp_path / "expectations.toml"
        path.write_text(HEAD + "".join(entries))
        return check(models, path)

    return checked


def entry(number, keys):
    return f'[[expect]]\nname = "{number}"\n{keys}\n'


COSTLY = {
    "growths of sums": lambda k: f'growth = "<= O(p)"\nconfidence = 0.9{k:03}',
    "values of sums": lambda k: f'value = "<= {k + 1} s"\nconfidence = 0.9{k:03}',
    "bounds of metrics": lambda k: f'bound = "time <= {30 * k} s"\nconfidence = 0.9{k:03}',
    "subtrees": lambda k: f'callpath = "**"\ninclusive = true\nvalue = "<= 0.{k:03} s"',
    "targets": lambda k: f'excess = "<= 1 %"\ntarget = {{ p = {2000 + k} }}',
}


@pytest.mark.parametrize("kind", COSTLY)
def test_as_many_evaluations_as_a_small_file_may_have_take_seconds_and_more_are_refused(
    checked, kind
):
    most = Work.EVALUATIONS.floor
    entries = [entry(k, COSTLY[kind](k)) for k in range(most + 1)]
    before = time.process_time()
    assert len(checked(*entries[:most]).outcomes) == most
    assert time.process_time() - before < SECONDS
    with pytest.raises(InputError, match=f"{most + 1} evaluations of expectations are too many"):
        checked(*entries)


def test_rules_count_by_their_patterns_and_names(checked):
    rules = "".join(f'[[rule]]\nrule = "{{main/f1*}} <= {k + 1} * {{main/f2*}}"\n'
                    for k in range(Work.EVALUATIONS.floor))  # fmt: skip
    before = time.process_time()
    checked(rules)
    assert time.process_time() - before < SECONDS
    with pytest.raises(InputError, match="evaluations of expectations"):
        checked(rules, '[[rule]]\nrule = "{main/f1*} <= {main/f3*}"\n')
    long = " + ".join(f"{{main/f{k % MANY}}}" for k in range(200))
    with pytest.raises(InputError, match="evaluations of expectations"):
        checked(f'[[rule]]\nrule = "{long} <= 1 s"\n')


def test_the_author_may_allow_more(checked, monkeypatch):
    entries = [entry(k, f'excess = "<= {k + 1} %"') for k in range(Work.EVALUATIONS.floor + 1)]
    with pytest.raises(InputError) as caught:
        checked(*entries)
    assert f"set {VARIABLE} to 2" in caught.value.hint
    monkeypatch.setenv(VARIABLE, "2")
    assert len(checked(*entries).outcomes) == len(entries)


def test_expectations_of_single_call_paths_are_evaluated_at_once(checked):
    """`cpmodel baseline` writes them, and a program may have many thousands."""
    entries = [
        entry(k, f'callpath = "main/f{k % MANY}"\nvalue = "<= {1000 + k} s"\ngrowth = "<= O(p)"')
        for k in range(2000)
    ]
    before = time.process_time()
    found = checked(*entries)
    assert time.process_time() - before < SECONDS
    assert found.passed


def test_the_rest_is_found_once_for_all_expectations(checked):
    """Each of them used to match the patterns of all others, which took minutes."""
    entries = [entry(k, f'callpath = "**/f{k}*"\nat_least = 0\nvalue = "<= 1000 s"')
               for k in range(150)]  # fmt: skip
    entries += [entry(f"rest {k}", f'others = true\nvalue = "<= {1000 + k} s"') for k in range(150)]
    before = time.process_time()
    assert checked(*entries).passed
    assert time.process_time() - before < SECONDS


def test_the_scale_that_breaks_a_bound_is_sought_for_the_first_ones_of_many(checked):
    least = [entry(k, f'value = "<= 0.{k + 1:03} s"') for k in range(61)]
    found = [outcome.judgements[0] for outcome in checked(*least).outcomes]
    assert all(judgement.crossing is not None for judgement in found[:60])
    assert found[60].crossing is None
    assert found[60].verdict == found[0].verdict == "broken"
