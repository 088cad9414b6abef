"""Stores with changes and correct checksums; `make mutate-stores` tests thousands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from callpath_modeler import store
from callpath_modeler.errors import InputError
from cells import cells
from mutated_stores import OTHER, REFUSED, SAME, answers, bases, run
from store_mutations import HEADER, Stored

COUNT = 240


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return bases(tmp_path_factory.mktemp("stores"))


def changed(made, change, tmp_path):
    """Write the first store with a change."""
    stored = Stored(made[0])
    change(stored)
    stored.write(tmp_path / "changed.cpm")
    return tmp_path / "changed.cpm"


def test_changed_stores_are_refused_or_give_answers_that_numpy_gives(made, tmp_path):
    outcomes, failures = run(tmp_path, range(COUNT), made)
    assert not failures, "\n".join(failures)
    assert outcomes.keys() == {REFUSED, SAME, OTHER}
    # A reader that refuses all of them, or none, does not check the schema.
    assert outcomes[REFUSED] > COUNT / 3
    assert outcomes[SAME] > COUNT / 8


def test_a_store_that_is_written_unchanged_gives_the_same_answers(made, tmp_path):
    for path in made:
        again = tmp_path / path.name
        Stored(path).write(again)
        assert answers(again).replace(str(again), "") == answers(path).replace(str(path), "")


def of_header(*place, value):
    def change(stored):
        holder = stored.header
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = value

    return change


def of_settings(name, value):
    return of_header("models", 0, "settings", name, value=value)


SETTINGS = "the settings are not those of the models"


@cells(
    ("change", "words"),
    [
        (of_header("runs", value=[]), "there are no runs"),
        (of_header("runs", 0, "parameters", value={}), "a run lacks a parameter"),
        (of_header("runs", 1, "parameters", "new", value=1.0), "different parameters"),
        (of_header("runs", 0, "parameters", "p", value=3.0), "values of 'p' differ"),
        (of_header("runs", 0, "repetition", value=0), "negative number"),
        (of_header("runs", 0, "extent", "threads", value=-1), "negative number"),
        (of_header("parameters", 0, "values", value=[2.0]), "values of 'p' differ"),
        (of_header("parameters", value=[]), "lacks a parameter of the models"),
        (of_header("metrics", 1, "name", value="time"), "have the same name"),
        (of_header("findings", 0, "code", value="CPM999"), "invalid finding 'CPM999'"),
        (of_header("findings", 0, "count", value=0), "invalid finding 'CPM"),
        (of_header("constants", value={"p": 7.0}), "'p' is not constant"),
        (of_settings("parameter", "n"), SETTINGS),
        (of_settings("method", "classic"), SETTINGS),
        (of_settings("confidence", "x"), SETTINGS),
        (of_settings("hypotheses", "{"), SETTINGS),
        (of_settings("repetitions", "none"), SETTINGS),
        (of_settings("cross-validation", "x folds"), SETTINGS),
        (of_settings("new", "x"), SETTINGS),
        (of_header("models", 0, "parameter", value="q"), "a parameter of the models"),
        (of_header("models", 0, "parameters", value=["p", "p"]), "have 2 names"),
        (
            of_header("models", 0, "models", "points", value=[2.0, 4, 8, 16, 64]),
            "points differ",
        ),
        (
            of_header("models", 0, "models", "points", value=[1.0, 2, 4, 8, 16, 32]),
            "points differ",
        ),
        (of_header("models", 0, "models", "points", value=[4.0, 2, 8, 16, 32]), "not in order"),
        (of_header("models", 0, "metric", value="other"), "there is no metric 'other'"),
    ],
)
def test_a_header_that_disagrees_with_itself_is_refused(made, tmp_path, change, words):
    path = changed(made, change, tmp_path)
    with pytest.raises(InputError, match=f"broken store: .*({words})") as caught:
        store.verify(path)
    assert caught.value.hint


def of_array(name, array):
    return lambda stored: stored.arrays.update({name: array})


@pytest.mark.parametrize(
    "array",
    [np.zeros((4, 4), "f8"), np.zeros((2, 4), "i4"), np.zeros(4, "i4"), np.zeros((), "i4")],
)
def test_a_tree_of_another_type_or_shape_is_refused(made, tmp_path, array):
    path = changed(made, of_array("tree", array), tmp_path)
    with pytest.raises(InputError, match=r"broken store: tree\.npy"):
        store.read_experiment(path)


def test_models_where_the_status_says_there_are_none_are_refused(made, tmp_path):
    status = np.load(made[0] / "models-0-status.npy")
    status[0] = 5
    path = changed(made, of_array("models-0-status", status), tmp_path)
    with pytest.raises(InputError, match="coefficients and status disagree"):
        store.verify(path)


def test_very_large_errors_give_wide_bands(made, tmp_path):
    root = np.full_like(np.load(made[0] / "models-0-root.npy"), 1e29)
    path = changed(made, of_array("models-0-root", root), tmp_path)
    experiment = store.read_experiment(path)
    fitted = store.read_models(path, experiment, "time", None)
    with np.errstate(all="ignore"):
        found = fitted["main/solve"].predict([64.0])
    assert found.high[0] > 1000 * found.value[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [("values-0", np.inf), ("total-0", 1e308), ("imbalance-0", -np.inf), ("run-time-0", np.inf)],
)
def test_values_that_nobody_measures_are_refused(made, tmp_path, name, value):
    array = np.load(made[0] / f"{name}.npy")
    array.flat[-1] = value
    path = changed(made, of_array(name, array), tmp_path)
    with pytest.raises(InputError, match=rf"{name}\.npy holds a value beyond -1e\+200 and 1e\+200"):
        store.read_experiment(path)


def test_measurements_beside_models_are_checked(made, tmp_path):
    measured = np.load(made[0] / "models-0-measured.npy")
    for array in (measured * np.inf, measured.astype("f4"), measured[:, 1:]):
        shutil.rmtree(tmp_path / "changed.cpm", ignore_errors=True)
        path = changed(made, of_array("models-0-measured", array), tmp_path)
        with pytest.raises(InputError, match=r"models-0-measured\.npy"):
            store.verify(path)


def times(name, factor):
    def change(stored):
        stored.arrays[name] = (stored.arrays[name] * factor).astype(stored.arrays[name].dtype)

    return change


def with_value(name, place, value):
    def change(stored):
        stored.arrays[name] = stored.arrays[name].copy()
        stored.arrays[name][place] = value

    return change


UNEQUAL = "weight and alternative_weight do not add up to one"
NO_ENDS = "low_p or high_p is not the first or last point with a value"
OUTSIDE = "measured is not between the repetitions"
ELSEWHERE = "measured has values where there are none, or none where there are some"


def test_the_rows_that_a_large_store_shows_are_checked(made, tmp_path, monkeypatch):
    path = changed(made, with_value("models-0-high_p", 1, 16.0), tmp_path)
    monkeypatch.setattr(store, "_SOON_READ", 0)
    fitted = store.read_models(path, store.read_experiment(path), "time", None)
    assert fitted.models.values([64.0]).shape == (len(fitted.models), 1)
    with pytest.raises(InputError) as caught:
        fitted.models.high_p  # noqa: B018 - it is checked when it is asked for
    assert caught.value.message == f"{path}: broken store: {NO_ENDS}"
    with pytest.raises(InputError, match=NO_ENDS):
        store.verify(path)


@cells(
    ("change", "reason"),
    [
        (times("models-0-weight", 0.9), UNEQUAL),
        (times("models-0-alternative_weight", 0), UNEQUAL),
        (times("run-time-of-0-weight", 0.5), UNEQUAL),
        (times("models-0-measured", 2), OUTSIDE),
        (times("models-0-measured", 0.5), OUTSIDE),
        (times("values-0", 2), OUTSIDE),
        (with_value("models-0-measured", (1, 2), -1.0), OUTSIDE),
        (with_value("values-0", (1, slice(6, 9)), np.nan), ELSEWHERE),
        (with_value("models-0-measured", (1, 0), np.nan), NO_ENDS),
        (with_value("models-0-low_p", 1, 4.0), NO_ENDS),
        (with_value("models-0-high_p", 1, 16.0), NO_ENDS),
        (with_value("models-0-used", 1, 6), "used is more points than have a value"),
    ],
)
def test_what_a_store_tells_twice_has_to_agree(made, tmp_path, change, reason):
    path = changed(made, change, tmp_path)
    with pytest.raises(InputError) as caught:
        answers(path)
    assert caught.value.message == f"{path}: broken store: {reason}"


def test_weights_along_every_parameter_have_to_add_up(made, tmp_path):
    stored = Stored(made[2])
    weights = stored.arrays["models-0-alternative_weight"].copy()
    weights[:, weights.shape[1] // 2 :] = 0
    stored.arrays["models-0-alternative_weight"] = weights
    stored.write(tmp_path / "changed.cpm")
    with pytest.raises(InputError, match=UNEQUAL):
        store.verify(tmp_path / "changed.cpm")


def test_points_of_models_without_values_are_refused(made, tmp_path):
    stored = Stored(made[2])
    stored.arrays["values-0"][:, -1] = np.nan
    stored.write(tmp_path / "changed.cpm")
    with pytest.raises(InputError, match="a point of the models has no value"):
        store.verify(tmp_path / "changed.cpm")


def test_many_values_are_checked_by_verify_alone(made, tmp_path, monkeypatch):
    values = np.load(made[0] / "values-0.npy")
    values[0, 0] = np.inf
    path = changed(made, of_array("values-0", values), tmp_path)
    monkeypatch.setattr(store, "_SOON_READ", values.nbytes - 1)
    store.read_experiment(path)
    with pytest.raises(InputError, match=r"values-0\.npy holds a value"):
        store.verify(path)


def test_numbers_at_the_limits_of_double_precision_show_no_warning_of_numpy(made, tmp_path):
    def change(stored):
        for name in ("coefficients", "alternative_coefficients", "unit"):
            stored.arrays[f"models-0-{name}"] *= 1e296

    path = changed(made, change, tmp_path)
    words = [sys.executable, "-m", "callpath_modeler", "rank", str(path), "--target", "64"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "RuntimeWarning" not in done.stderr


def test_a_header_without_its_checksum_is_refused(made, tmp_path):
    shutil.copytree(made[0], tmp_path / "a.cpm")
    header = json.loads((tmp_path / "a.cpm" / HEADER).read_text())
    header["name"] = "other"
    (tmp_path / "a.cpm" / HEADER).write_text(json.dumps(header))
    with pytest.raises(InputError, match=r"header\.json: differs from its checksum"):
        store.read_experiment(tmp_path / "a.cpm")
