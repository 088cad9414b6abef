"""Screens of the browser, stored in `screens/`; CPMODEL_NEW_SCREENS=1 updates them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from driver import GIVEN, drive

from call_sites import write_series, write_source
from callpath_modeler.loading import LoadOptions, load
from callpath_modeler.pipeline import FitOptions, fit
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.pruning import fold_chains
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.report.source_text import SourceFiles
from callpath_modeler.study import Study
from callpath_modeler.testing.hpctoolkit import Kind, Measured, Scope, write_database
from synthetic import POINTS, experiment, fitted

SCREENS = Path(__file__).parent / "screens"
KEYS = {
    "start": "",
    "bottom-up": "2",
    "flat by growth": ["3", "s", "s", "s", "s"],
    "zoomed": ["j", "z", "E"],
    "infinity": ["t", *"inf", "enter"],
    "help": "?",
}


P = np.array(POINTS)
LAWS = {
    "main": 2 + 0 * P,
    "main/initialise": 0.7 + 0 * P,
    "main/initialise/MPI_Init": 0.2 * P,
    "main/solve": 1 + 0 * P,
    "main/solve/compute_forces_of_all_elements": 40 + 0 * P,
    "main/solve/exchange": 0.1 + 0 * P,
    "main/solve/exchange/MPI_Waitall": 0.05 * P * np.log2(P),
    "main/solve/exchange/MPI_Isend": 0.3 + 0 * P,
    "main/solve/norm": 0.1 + 0 * P,
    "main/solve/norm/MPI_Allreduce": 0.9 * np.sqrt(P),
    "main/output": 0.02 + 0 * P,
    "main/output/MPI_Barrier": 0.01 + 0 * P,
}


# Cost per process at p = 4 and 64, with the excess work of LBMHD (strong scaling: 53, 17 and 14 %)
# and of MILC (weak scaling: 33, 22 and 10 %) in Coarfa et al. (ICS 2007).
LBMHD = {
    "mhd": [720.0, 67.0],
    "mhd/caf_allsum_dp": [16.0, 18.0],
    "mhd/decomp": [16.0, 15.0],
    "mhd/stream": [0.0, 0.0],
}
MILC = {"main": [64.0, 65.0], "main/wait_gather": [2.0, 24.0], "main/do_gather": [1.0, 11.0]}
FEW = {
    "one scale": (LBMHD, (4.0,), Scaling.WEAK, ""),
    "two scales, strong": (LBMHD, (4.0, 64.0), Scaling.STRONG, ""),
    "two scales, weak": (MILC, (4.0, 64.0), Scaling.WEAK, ""),
    "two scales, by function": (LBMHD, (4.0, 64.0), Scaling.STRONG, "3"),
}


@pytest.fixture(scope="module")
def application():
    return fitted({path: law.tolist() for path, law in LAWS.items()})


def compared(name, size, keys):
    async def steps(screen):
        await screen.press(*keys)
        shown = "\n".join(screen.lines) + "\n"
        assert max(map(len, shown.splitlines())) <= size[0]
        path = SCREENS / f"{name} {size[0]}x{size[1]}.txt"
        if os.environ.get("CPMODEL_NEW_SCREENS"):
            path.write_text(shown, encoding="utf-8")
            pytest.skip("written anew, so there is nothing to compare with")
        assert shown == path.read_text(encoding="utf-8")

    return steps


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
@pytest.mark.parametrize("name", KEYS)
def test_the_screen_is_as_it_was(application, name, size):
    steps = compared(name, size, KEYS[name])
    drive(steps, application, size=size, target=1000.0, given=GIVEN)


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
@pytest.mark.parametrize("name", FEW)
def test_one_and_two_scales_are_as_they_were(name, size):
    values, points, scaling, keys = FEW[name]
    costs = {path: cost[: len(points)] for path, cost in values.items()}
    made = experiment(costs, points, scaling=scaling, reduction=Reduction.MEAN)
    found = Study(made).measured()
    drive(compared(name, size, keys), found, size=size, target=points[-1], given=GIVEN)


@pytest.fixture(params=["strong", "weak"])
def published(request, tmp_path):
    """HPCToolkit databases with the published excess work of LBMHD and MILC."""
    costs, scaling = {"strong": (LBMHD, Scaling.STRONG), "weak": (MILC, Scaling.WEAK)}[
        request.param
    ]
    for k, p in enumerate((4, 64)):
        known, own = [Scope(-1, Kind.FUNCTION, "main thread")], [0.0]
        for path, cost in costs.items():
            caller, _, name = path.rpartition("/")
            parent = [*costs].index(caller) + 1 if caller else 0
            known.append(Scope(parent, Kind.FUNCTION, name, f"{name}.c", 1))
            own.append(cost[k])
        ranks = [Measured({"RANK": r, "THREAD": 0}, {"REALTIME (sec)": own}) for r in range(p)]
        write_database(tmp_path / f"app.p{p}", known, ranks)
    read = load([tmp_path], LoadOptions(ReadOptions(scaling=scaling)))
    return request.param, Study(read).measured()


@pytest.mark.parametrize(
    ("keys", "name"), [("E", "inclusive"), ("iE", "exclusive"), ("2", "callers")]
)
def test_the_tables_of_the_paper_are_shown_by_keys(published, keys, name):
    scaling, found = published
    steps = compared(f"databases, {scaling}, {name}", (80, 24), keys)
    drive(steps, found, size=(80, 24), target=64.0, given=GIVEN)


@pytest.fixture
def databases(tmp_path):
    """Databases of a function that is called from three lines, with a copy of the source."""
    write_series(tmp_path, source="src/main.c")
    write_source(tmp_path / "app.p64" / "src")
    options = LoadOptions(ReadOptions(scaling=Scaling.WEAK)).with_lines()
    read = load([tmp_path], options)
    profiles = [Path(run.source) for run in read.runs]
    return Study(read).measured(), SourceFiles(profiles)


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
@pytest.mark.parametrize(
    ("name", "keys"),
    [("call sites", "u"), ("call sites, one of three", ""), ("call sites, bottom-up", "2E")],
)
def test_the_losing_line_is_marked_in_the_source(databases, name, keys, size):
    found, sources = databases
    given = replace(GIVEN, sources=sources)
    drive(compared(name, size, keys), found, size=size, target=64.0, given=given)


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_the_losing_lines_are_listed_without_the_source(databases, size):
    steps = compared("call sites without source", size, "u")
    drive(steps, databases[0], size=size, target=64.0, given=GIVEN)


CHAIN = ("start", "run", "TimeLoop::advance", "Integrator::step", "Stage::apply", "solve")


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_a_folded_chain_shows_its_names(size):
    values, path = {"main": [1.0] * 5}, "main"
    for name in CHAIN:
        path += f"/{name}"
        values[path] = [0.0] * 5
    values[path] = [0.1 * p for p in POINTS]
    values |= {
        f"{path}/compute": [5.0] * 5,
        "main/output": [0.0] * 5,
        "main/output/write": [2.0] * 5,
    }
    made = fold_chains(experiment(values, POINTS))
    found = fit(made, None, FitOptions())
    assert found.experiment.tree.path(1) == "main/solve"
    drive(compared("folded chain", size, ["slash", *"advance", "enter"]), found, size=size)
