"""Many expectations judged together, with the results of separate judgements."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.expectations.check_result import Judgement, Verdict
from callpath_modeler.analysis.expectations.clauses import interpret
from callpath_modeler.analysis.expectations.expectation import parse
from callpath_modeler.analysis.expectations.judge import Judge
from synthetic import experiment

POINTS = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
POWERS = (0.0, 0.25, 0.5, 1.0, 1.5)
COUNT = 40
NAMES = ["main", *(f"main/f{k}" for k in range(COUNT - 1))]


@pytest.fixture(scope="module")
def models():
    random = np.random.default_rng(8)
    law = random.uniform(0.1, 5, (COUNT, 1)) * POINTS ** random.choice(POWERS, (COUNT, 1))
    cube = law[..., None] * np.exp(0.03 * random.standard_normal((COUNT, len(POINTS), 4)))
    cube[3, -1] = np.nan  # gone at the largest scale
    cube[4, :3] = np.nan  # no model
    cube[5, 2, 1:] = np.nan  # one run at p = 8
    return cpm.fit(experiment(dict(zip(NAMES, cube, strict=True)), POINTS))


def entries(target):
    random = np.random.default_rng(9)
    found = []
    for k, name in enumerate(NAMES):
        amount = np.exp(random.uniform(-2, 4))
        growth = random.choice(["O(1)", "O(p^(1/2))", "O(p)"])
        for number, text in enumerate(
            (
                f'growth = "<= {growth}"\nvalue = "<= {amount:.3g} s"',
                f'value = ">= {amount:.3g} s"\ntarget = {{ p = {target} }}',
                f'growth = "{growth}"\ndeviation = "O(log p)"',
            )
        ):
            found.append(f'[[expect]]\nname = "{k} {number}"\ncallpath = "{name}"\n{text}\n')
    return [*found, *sums(), *rules()]


def sums():
    """Return expectations of sums, of many call paths, and of the rest."""
    selected = {
        "program": "",
        "subtree": 'callpath = "main"\ninclusive = true\n',
        "subtrees": 'callpath = "**"\ninclusive = true\n',
        "all": 'callpath = "**"\n',
        "few": 'callpath = "main/f1*"\n',
        "rest": "others = true\n",
    }
    criteria = (
        'growth = "<= O(p)"', 'value = "<= 50 s"', 'share = "<= 20 %"', 'excess = "<= 10 %"',
        'loss = "<= 3 s"', 'bound = "time <= 70 s"',
    )  # fmt: skip
    for name, keys in selected.items():
        for criterion in criteria:
            yield f'[[expect]]\nname = "{name} {criterion[:6]}"\n{keys}{criterion}\n'


def rules():
    for k, rule in enumerate(
        ("{main/f1*} <= {main/f2*}", "{main/f1*} <= 3 * {main/f3}", "{main/f1} <= {main/f2}")
    ):
        yield f'[[rule]]\nname = "rule {k}"\nrule = "{rule}"\n'


def outcomes(models, texts, target=32):
    written = parse(f"schema = 1\ntarget = {{ p = {target} }}\n" + "".join(texts), "e.toml")
    return Judge(interpret(written), lambda _: models).outcomes()


def said(judgement):
    names = (column.name for column in fields(Judgement) if column.name != "criterion")
    return repr([getattr(judgement, name) for name in names])


@pytest.mark.parametrize("target", [8, 128])
def test_verdicts_are_those_of_each_expectation_alone_to_the_last_bit(models, target):
    texts = entries(target)
    together = outcomes(models, texts, target)
    for text, one in zip(texts, together, strict=True):
        if "others = true" in text:
            continue  # what the rest is depends on the others
        (alone,) = outcomes(models, [text], target)
        assert one.status == alone.status
        assert list(map(said, one.judgements)) == list(map(said, alone.judgements)), text
    verdicts = {judgement.verdict for one in together for judgement in one.judgements}
    assert verdicts == set(Verdict)
