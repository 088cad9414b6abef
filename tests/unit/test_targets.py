from __future__ import annotations

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.runs import settings_of, target_of, targets_of
from callpath_modeler.studies.question import parse_target
from cells import cells
from synthetic import fitted

LAWS = {"main": [1.0, 1.1, 1.2, 1.3, 1.4]}
EXAMPLES = "e.g. 4096, 1e6 or inf"
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


@cells("text", ["0", "-5", "nan", "1e300", "1e-300"])
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
        ([[1, 2], [3, 4]], "must be one list"),
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


@cells(
    ("value", "text", "message", "hint"),
    [
        ("64", None, "rate '64' is not a number", EXAMPLES),
        ([2, 3], None, "rate [2, 3] is not one number", EXAMPLES),
        (0.0, None, "rate 0.0 is not positive", EXAMPLES),
        (-5.0, "minus five", "rate minus five is not positive", EXAMPLES),
        (9e-31, None, "rate 9e-31 is out of bounds", "inf ranks by growth alone"),
        (1.1e30, None, "rate 1.1e+30 is out of bounds", "inf ranks by growth alone"),
        (np.inf, "1e999", "rate 1e999 is out of bounds", "inf ranks by growth alone"),
    ],
)
def test_what_is_no_target_is_named_with_what_it_is_of(value, text, message, hint):
    with pytest.raises(UsageError) as caught:
        target_of(value, text, "rate")
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize("value", [1e-30, 0.5, 1.0, 1e30])
def test_every_number_between_the_bounds_is_a_target(value):
    assert target_of(value) == value
    assert target_of(value, str(value)) == value


@pytest.mark.parametrize("text", ["inf", "Infinity", "+INF"])
def test_infinity_is_meant_where_it_is_written(text):
    assert target_of(float(text), text) == np.inf


def test_settings_are_named_with_their_parameter():
    assert settings_of({"n": 1000, "p": 4}) == {"n": 1000.0, "p": 4.0}
    with pytest.raises(UsageError) as caught:
        settings_of({"n": 1000, "p": -4}, "--at")
    assert caught.value.message == "--at p = -4 is not positive"
    with pytest.raises(UsageError) as caught:
        settings_of(64, "--at")
    assert caught.value.message == "--at 64 names no parameters"
    assert caught.value.hint == "e.g. {'n': 1000}"
