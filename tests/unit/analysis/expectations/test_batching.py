"""Many expectations judged together, with the results of separate judgements."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.expectations.document import parse
from callpath_modeler.analysis.expectations.interpretation import interpret
from callpath_modeler.analysis.expectations.judge import Judge
from callpath_modeler.analysis.expectations.verdicts import Judgement, Verdict
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
    found.append('[[expect]]\nname = "all"\ncallpath = "**"\nvalue = "<= 9 s"\n')
    return found


def outcomes(models, texts):
    written = parse("schema = 1\ntarget = { p = 32 }\n" + "".join(texts), "e.toml")
    return Judge(interpret(written), lambda _: models).outcomes()


def said(judgement):
    names = (column.name for column in fields(Judgement) if column.name != "criterion")
    return repr([getattr(judgement, name) for name in names])


@pytest.mark.parametrize("target", [8, 128])
def test_verdicts_are_those_of_each_expectation_alone_to_the_last_bit(models, target):
    texts = entries(target)
    together = outcomes(models, texts)
    for text, one in zip(texts, together, strict=True):
        (alone,) = outcomes(models, [text])
        assert one.status == alone.status
        assert list(map(said, one.judgements)) == list(map(said, alone.judgements)), text
    verdicts = {judgement.verdict for one in together for judgement in one.judgements}
    assert verdicts == set(Verdict)
