"""Hints that name parameters name those that are to be fixed, and not the one that is modelled."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.studies.data_frame import from_frame
from callpath_modeler.studies.pipeline import FitOptions

SCALES = (2, 4, 8, 16, 32)


def experiment(**values):
    """Return runs at all combinations of values of parameters."""
    rows = [
        {"call": "main", **dict(zip(values, at, strict=True)), "seconds": 1.0 + sum(at)}
        for at in product(*values.values())
    ]
    return from_frame(pd.DataFrame(rows), callpath="call", parameters=[*values])


def told(ask):
    with pytest.raises(CallpathModelerError) as caught:
        ask()
    return caught.value.message, caught.value.hint


def test_the_classic_method_asks_to_fix_all_but_the_first_parameter():
    made = experiment(p=SCALES, n=(10, 20, 30), m=(5, 7))
    assert told(lambda: cpm.fit(made, options=FitOptions(method="classic"))) == (
        "3 parameters vary (p, n, m): the classic method models 1",
        "fix others, e.g. --where n=30,m=7",
    )


def test_too_many_parameters_are_fixed_but_the_first():
    made = experiment(p=(2, 4), n=(1, 2), m=(3, 4), k=(5, 6), x=(7, 8), y=(9, 10))
    assert told(lambda: cpm.fit(made)) == (
        "6 parameters vary (p, n, m, k, x, y): the mixture method models 5",
        "fix others, e.g. --where n=2,m=4,k=6,x=8,y=10",
    )


@pytest.mark.parametrize(
    ("p", "n", "message", "fixed"),
    [
        (SCALES, (10, 20), "2 points of n (10, 20): too few for a model", "n=20"),
        ((2, 4), (10, 20, 30), "2 points of p (2, 4): too few for a model", "p=4"),
    ],
)
def test_a_parameter_of_too_few_points_is_fixed(p, n, message, fixed):
    made = experiment(p=p, n=n)
    found, hint = told(lambda: cpm.fit(made))
    assert found == message
    assert hint.endswith(f"; `cpmodel excess` compares two; or fix it: --where {fixed}")
    name, value = fixed.split("=")
    # What the hint says leads to models.
    assert len(cpm.fit(made.at({name: float(value)})).models) == 1


def test_a_parameter_is_fixed_at_the_value_with_the_most_scales():
    made = experiment(p=SCALES, n=(10, 20))
    at = [run.parameters for run in made.runs]
    few = np.array([each["n"] == 10 or each["p"] == SCALES[-1] for each in at])
    left = made.where(few)
    _, hint = told(lambda: cpm.fit(left))
    assert hint.endswith("or fix it: --where n=10")
    assert len(cpm.fit(left.at({"n": 10.0})).models) == 1


def test_one_parameter_is_modelled_where_all_others_are_fixed():
    made = experiment(p=SCALES, n=(10, 20), m=(5, 7))
    message = "several parameters vary: p, n, m"
    assert told(made.modelled_parameter) == (
        message, "fix all but one, e.g. --where n=10,m=5",
    )  # fmt: skip
    assert told(lambda: made.modelled_parameter("n")) == (
        message, "fix all but one, e.g. --where p=2,m=5",
    )  # fmt: skip


def test_values_that_are_not_positive_are_named_with_their_parameter():
    assert told(lambda: cpm.fit(experiment(p=SCALES, n=(0, 20, 30)))) == (
        "n = 0: models need positive values",
        (
            "if n numbers kinds of runs, choose one with --where n=30, or rank each with "
            "--group-by n (if 0 is a size, exclude it with --where 'n>0')"
        ),
    )


def test_advice_without_a_setting_before_the_target_names_all_parameters():
    models = cpm.fit(experiment(p=SCALES, n=(10, 20, 30)))
    assert told(lambda: cpm.advise(models, 1.5 * SCALES[-1])) == (
        f"there is no scale between the largest run, p = {SCALES[-1]:g}, n = 30, and the target",
        "ask about a larger one with --target",
    )
    assert told(lambda: cpm.advise(models, 64, [SCALES[0]])) == (
        f"no run to advise at p = {SCALES[0]:g}, n = 30",
        "scales that were not run yet",
    )


def test_a_comparison_names_the_parameter_that_one_side_lacks():
    both, one = experiment(p=SCALES, n=(10, 20, 30)), experiment(p=SCALES)
    assert told(lambda: cpm.compare(cpm.fit(both), cpm.fit(one))) == (
        "new: nothing says at which n its runs were made",
        (
            "say where it is found with --param n=SOURCE, or compare a store of the other: "
            "cpmodel fit --where n=... -o NAME.cpm"
        ),
    )


def test_a_comparison_is_made_where_both_were_measured():
    both = experiment(p=SCALES, n=(10, 20, 30))
    one = experiment(p=SCALES, n=(20, 20.5))
    one = one.at({"n": 20.0})
    assert told(lambda: cpm.compare(cpm.fit(both), cpm.fit(one), held={"n": 30.0})) == (
        "new was run at n = 20 only: nothing is known of it at n = 30",
        "compare at n=20",
    )
