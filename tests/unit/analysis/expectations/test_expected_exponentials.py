"""Files that expect exponentials: these are compared, and the answer says so."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import SearchSpace
from callpath_modeler.studies.pipeline import FitOptions
from callpath_modeler.studies.study import Study

K = np.arange(3, 15)


@pytest.fixture
def table(tmp_path):
    lines = ["callpath,k,repetition,time[s]"]
    random = np.random.default_rng(5)
    for k in K:
        for repetition in range(3):
            noise = np.exp(0.01 * random.standard_normal(2))
            lines.append(f"main/gen,{k},{repetition},{1e-6 * k**2 * 2.0**k * noise[0]}")
            lines.append(f"main/scan,{k},{repetition},{0.1 * k * noise[1]}")
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def expecting(tmp_path, growth):
    path = tmp_path / "expect.toml"
    path.write_text(f'schema = 1\n[[expect]]\ncallpath = "main/gen"\ngrowth = "{growth}"\n')
    return path


def test_an_expected_exponential_is_compared_without_an_option(table, tmp_path):
    study = Study(table, fit_options=FitOptions("k"))
    found = study.check(expecting(tmp_path, "O(k^2 2^k)"))
    assert [str(each.status) for each in found.outcomes] == ["pass"]
    (told,) = (each for each in found.findings if each.code == "CPM216")
    assert told.message == "--exponential 1"
    assert study.fit_options == FitOptions("k")


def test_a_power_expects_no_exponential(table, tmp_path):
    study = Study(table, fit_options=FitOptions("k"))
    found = study.check(expecting(tmp_path, "O(k^2)"))
    assert not [each for each in found.findings if each.code == "CPM216"]
    assert [str(each.status) for each in found.outcomes] != ["pass"]


def test_the_space_of_the_user_stays(table, tmp_path):
    space = SearchSpace.of(["0", "1", "2"])
    study = Study(table, fit_options=FitOptions("k", space=space))
    found = study.check(expecting(tmp_path, "O(k^2 2^k)"))
    assert not [each for each in found.findings if each.code == "CPM216"]
