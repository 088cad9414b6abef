"""Runs and call paths of experiments are selected and grouped as users of pandas do."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.omissions import OmissionKind

PATHS = {"main": 1.0, "main/solve": 2.0, "main/solve/MPI_Send": 0.5, "main/MPI_Barrier": 0.25}
ROWS = [
    (path, p, run, cost * p**0.5 * (1 + 0.01 * run))
    for path, cost in PATHS.items()
    for p in (8, 16, 32, 64, 128)
    for run in (1, 2)
]
TABLE = pd.DataFrame(ROWS, columns=["callpath", "p", "repetition", "time"])


@pytest.fixture
def experiment():
    return cpm.from_frame(TABLE, parameters=["p"], repetition="repetition")


def test_the_data_frame_is_read_again(experiment):
    frame = experiment.dataframe
    assert frame.index.names == ["callpath", "p", "repetition"]
    assert list(frame) == ["time [s]"]
    assert frame.loc[("main/solve", 16.0, 2), "time [s]"] == pytest.approx(2 * 4 * 1.02)
    assert len(frame.query("p >= 64")) == len(PATHS) * 4
    again = cpm.from_frame(frame)
    assert again.dataframe.equals(frame)


def test_a_query_keeps_matches_with_their_callers(experiment):
    found = experiment.query("**/MPI_*")
    names = [found.tree.path(row) for row in range(len(found.tree))]
    assert sorted(names) == sorted(PATHS)
    own = dict(zip(names, found.values("time")[:, 0], strict=True))
    assert np.isnan([own["main"], own["main/solve"]]).all()
    assert own["main/MPI_Barrier"] == pytest.approx(0.25 * 8**0.5 * 1.01)
    (omission,) = found.omissions
    assert omission.kind is OmissionKind.UNSELECTED
    assert omission.share == pytest.approx(3 / 3.75)
    barrier = experiment.query("main/MPI_Barrier")
    assert [barrier.tree.path(row) for row in range(len(barrier.tree))] == [
        "main",
        "main/MPI_Barrier",
    ]
    # The answer sums the matches alone.
    ranking = cpm.rank(cpm.fit(found), target=256)
    assert ranking.total[0] == pytest.approx(0.75 * 16 * 1.015, rel=0.02)


def test_a_query_that_matches_nothing_is_an_error(experiment):
    with pytest.raises(UsageError, match="no call path matches"):
        experiment.query("**/nothing")


def test_runs_are_filtered_by_text_or_by_a_function(experiment):
    large = experiment.filter("p>=64")
    assert [run.parameters["p"] for run in large.runs] == [64.0, 64.0, 128.0, 128.0]
    assert large.dataframe.equals(experiment.filter(lambda run: run.parameters["p"] > 32).dataframe)
    with pytest.raises(DataError, match="no run"):
        experiment.filter(lambda run: run.parameters["p"] > 1000)
    with pytest.raises(UsageError):
        experiment.filter("nodes>2")


def test_groups_are_by_parameter_or_case(experiment):
    groups = experiment.groupby("p")
    assert [*groups] == ["8", "16", "32", "64", "128"]
    assert all(len(each.runs) == 2 for each in groups.values())
    assert [*experiment.groupby()] == [""]
    with pytest.raises(UsageError, match="no parameter 'size'"):
        experiment.groupby("size")


def test_answers_are_graphs(experiment):
    graph = experiment.to_networkx()
    assert graph.number_of_nodes() == len(PATHS)
    ranking = cpm.rank(cpm.fit(experiment), target=256)
    ranks = [data["rank"] for _, data in ranking.to_networkx().nodes(data=True)]
    assert sorted(ranks) == [1, 2, 3, 4]


def test_targets_are_given_by_name(experiment):
    model = cpm.fit(experiment)["main/solve"]
    assert model.predict({"p": 1024}).value == model.predict(1024).value
    with pytest.raises(UsageError, match="twice"):
        model.predict({"p": 1024}, p=1)
    with pytest.raises(UsageError, match="no parameter 'n'"):
        model.predict({"n": 3})


def test_a_table_has_models():
    fitted = TABLE.cpm.fit(parameters=["p"], repetition="repetition")
    assert fitted["main/solve"].growth == "O(p^(1/2))"
    assert len(TABLE.cpm.experiment(parameters=["p"], repetition="repetition").runs) == 10


@pytest.mark.parametrize(
    ("first", "second"),
    [("import pandas as pd", "import callpath_modeler as cpm; cpm.Study"),
     ("import callpath_modeler as cpm", "import pandas as pd; cpm.Study")],
)  # fmt: skip
def test_the_accessor_needs_no_order_of_imports(first, second):
    code = f"{first}; {second}; print(pd.DataFrame().cpm.fit.__name__)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout == "fit\n"


def test_the_package_does_not_import_pandas():
    code = "import sys, callpath_modeler; print('pandas' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout == "False\n"
