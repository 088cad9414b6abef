"""`cpmodel export -f python`: a module that needs only NumPy and predicts like the models."""

from __future__ import annotations

import runpy
import subprocess
import sys
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import callpath_modeler as cpm
from callpath_modeler.modeling import default_space
from callpath_modeler.report.exports import identifiers, python_source


def imported(source, tmp_path):
    path = tmp_path / "models.py"
    path.write_text(source, encoding="utf-8")
    return runpy.run_path(str(path))


def test_exported_models_predict_what_their_formulas_predict(run, lulesh, tmp_path):
    path = tmp_path / "models.py"
    assert run("export", lulesh, "-o", path).status == 0
    made = runpy.run_path(str(path))
    fitted = cpm.fit(cpm.load(lulesh))
    tree, values = fitted.experiment.tree, fitted.models.values(np.array([4096.0]))[:, 0]
    modelled = {tree.path(row): values[row] for row in np.flatnonzero(fitted.modelled).tolist()}
    assert made["MODELS"].keys() == modelled.keys()
    for callpath, value in modelled.items():
        assert made["predict"](callpath, 4096) == pytest.approx(value, rel=1e-9)
    assert made["total"](4096) == pytest.approx(sum(modelled.values()))
    assert (made["METRIC"], made["UNIT"], made["PARAMETERS"]) == ("time", "s", ("p",))


def test_exported_models_do_not_import_the_package(run, stored, tmp_path):
    path = tmp_path / "models.py"
    path.write_text(run("export", stored, "-f", "python").out, encoding="utf-8")
    script = (
        "import sys, models; print(models.total([8, 64]).shape, 'callpath_modeler' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "(2,) False\n"


def test_models_in_several_parameters_are_functions_of_all_of_them(tmp_path):
    rows = [
        ("main/f", p, n, 3e-6 * n * np.log2(p) + 1e-9 * n**2 / p)
        for p in (4, 8, 16, 32, 64)
        for n in (1e3, 2e3, 4e3, 8e3, 16e3)
    ]
    frame = pd.DataFrame(rows, columns=["path", "p", "problem size", "time"])
    fitted = cpm.fit(
        cpm.from_frame(
            frame, callpath="path", parameters=["p", "problem size"], metrics={"time": "s"}
        )
    )
    made = imported(python_source(fitted), tmp_path)
    assert made["PARAMETERS"] == ("p", "problem_size")
    said = made["predict"]("main/f", [[16], [1024]], problem_size=[1e3, 1e5])
    assert said.shape == (2, 2)
    want = fitted["main/f"].predict(**{"p": [1024], "problem size": [1e5]}).value
    assert said[1, 1] == pytest.approx(want[0], rel=1e-9)


def test_text_of_others_breaks_no_module(tmp_path):
    name = 'f("""\\" \n)'
    frame = pd.DataFrame(
        [(name, p, 2.0 * p) for p in (1, 2, 4, 8, 16)], columns=["path", "lambda", 't"""\\']
    )
    fitted = cpm.fit(
        cpm.from_frame(frame, callpath="path", parameters=["lambda"], metrics={'t"""\\': "s"})
    )
    made = imported(python_source(fitted), tmp_path)
    (key,) = made["MODELS"]
    assert made["predict"](key, lambda_=64) == pytest.approx(128)


@pytest.mark.parametrize("name", ["p\n}\nraise RuntimeError", "p\rq", "p\x00", "p\u2028\x0c"])
def test_no_name_of_others_is_run_with_the_module(name, tmp_path):
    rows = [("f", p, n, 2.0 * p * n) for p in (1, 2, 4, 8) for n in (1, 2, 4)]
    frame = pd.DataFrame(rows, columns=["path", name, "n", f"t {name}"])
    metrics = {f"t {name}": "s"}
    experiment = cpm.from_frame(frame, callpath="path", parameters=[name, "n"], metrics=metrics)
    fitted = cpm.fit(replace(experiment, name=name))
    for each in (fitted, replace(fitted, of_line=np.array([True]), held={name: 3.0})):
        assert imported(python_source(each), tmp_path)["total"](3, 5) == pytest.approx(30)


def test_names_that_the_module_needs_or_takes_for_one_are_told_apart(tmp_path):
    rows = [("f", p, n, 2.0 * p * n) for p in (1, 2, 4, 8) for n in (1, 2, 4)]
    for names in (["float", "__debug__"], ["fi", "\N{LATIN SMALL LIGATURE FI}"]):
        frame = pd.DataFrame(rows, columns=["path", *names, "t"])
        experiment = cpm.from_frame(frame, callpath="path", parameters=names, metrics={"t": "s"})
        made = imported(python_source(cpm.fit(experiment)), tmp_path)
        assert made["total"](3, 5) == pytest.approx(30)


def test_names_become_names_of_arguments():
    assert identifiers(["p", "np", "n cells", "n_cells", "2d", "for", ""]) == [
        *("p", "np_", "n_cells", "n_cells_", "_2d", "for_", "_"),
    ]


def test_models_that_grow_beyond_all_numbers_are_infinite_without_a_warning(tmp_path):
    frame = pd.DataFrame([("f", p, 2.0**p) for p in (2, 4, 6, 8, 10)], columns=["path", "p", "t"])
    space = replace(default_space("mixture"), exponential=(Fraction(1),))
    fitted = cpm.fit(
        cpm.from_frame(frame, callpath="path", parameters=["p"], metrics={"t": "s"}),
        options=cpm.FitOptions(space=space),
    )
    made = imported(python_source(fitted), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made["predict"]("f", 12) == pytest.approx(2.0**12)
        assert np.isinf(made["predict"]("f", 4096))


def test_a_surface_that_some_runs_have_closer_models_than_says_so(tmp_path):
    def law(p, n):
        return p if n == 4 else 100 / p

    rows = [("f", p, n, law(p, n)) for p in (2, 4, 8, 16, 32) for n in (1, 2, 3, 4)]
    frame = pd.DataFrame(rows, columns=["path", "p", "n", "t"])
    fitted = cpm.fit(
        cpm.from_frame(frame, callpath="path", parameters=["p", "n"], metrics={"t": "s"})
    )
    assert fitted.of_line.all()
    source = python_source(fitted)
    assert "# a separate model of the runs at n = 4 fits them better" in source
    assert imported(source, tmp_path)["predict"]("f", 4, 2) >= 0
