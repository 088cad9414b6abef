from __future__ import annotations

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import UsageError
from callpath_modeler.target_query import parse_target
from callpath_modeler.targets import target_of, targets_of
from synthetic import fitted

LAWS = {"main": [1.0, 1.1, 1.2, 1.3, 1.4]}
NO_TARGETS = [0, -1, float("nan"), -np.inf, 1e300, 1e-300, "64", None]


@pytest.fixture(scope="module")
def models():
    return fitted(LAWS)


@pytest.fixture
def expectations(tmp_path):
    path = tmp_path / "limits.toml"
    path.write_text('schema = 1\n[[expect]]\ncallpath = "main"\nvalue = "<= 9 s"\n')
    return path


@pytest.mark.parametrize("target", NO_TARGETS)
def test_everything_that_has_a_target_refuses_what_is_none(models, expectations, target):
    asked = [
        lambda: cpm.rank(models, target),
        lambda: cpm.advise(models, target),
        lambda: cpm.advise(models, 64, [target]),
        lambda: cpm.check(models, expectations, target={"p": target}),
        lambda: models["main"].predict([64, target]),
        lambda: models["main"].predict(p=[64, target]),
    ]
    if target is not None:
        asked += [
            lambda: cpm.compare(models, models, target),
            lambda: cpm.check(models, expectations, target=target),
            lambda: models["main"].predict(target),
        ]
    for ask in asked:
        with pytest.raises(UsageError, match=r"not positive|out of bounds|not a number") as caught:
            ask()
        assert caught.value.hint


@pytest.mark.parametrize("text", ["0", "-5", "nan", "1e300", "1e-300"])
def test_a_number_is_refused_in_the_words_of_the_command_line(text):
    said = []
    for ask in (lambda: parse_target(text, None), lambda: target_of(float(text), text)):
        with pytest.raises(UsageError) as caught:
            ask()
        said.append((caught.value.message, caught.value.hint))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        ([], "there is no target"),
        ([[1, 2], [3, 4]], "not one list"),
        ([1, [2, 3]], "not a number"),
    ],
)
def test_lists_of_targets_are_of_numbers(targets, words):
    with pytest.raises(UsageError, match=words):
        targets_of(targets)


def test_numbers_of_numpy_are_targets_and_infinity_is():
    assert target_of(np.int64(64)) == target_of(np.array(64.0)) == 64
    assert target_of(float("inf")) == np.inf
    assert targets_of((2, 4)).tolist() == [2, 4]


def test_predictions_say_which_parameters_there_are(models):
    for points, named in (
        (None, {}),
        (64, {"p": 64}),
        (None, {"q": 64}),
        (None, {"p": 64, "q": 1}),
    ):
        with pytest.raises(UsageError) as caught:
            models["main"].predict(points, **named)
        assert caught.value.hint == "give targets, or values of p by name"


def test_advice_is_about_scales_that_were_not_run(models):
    with pytest.raises(UsageError, match="p = 16"):
        cpm.advise(models, 64, [16])
    with pytest.raises(UsageError, match="no band"):
        cpm.advise(models, np.inf)


def test_a_check_takes_no_targets_of_parameters_that_models_lack(models, expectations):
    with pytest.raises(UsageError, match="no parameter 'q'"):
        cpm.check(models, expectations, target={"p": 64, "q": 3})
