"""The stated run time at measured scales, compared with the slowest process.

Independent readers provide the inclusive times per process.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler import modeling
from callpath_modeler.analysis.answer import rank
from callpath_modeler.fitted import Fitted
from callpath_modeler.report.headline import cost_text
from callpath_modeler.report.layout import DEFAULT_STYLE
from callpath_modeler.studies.loading import LoadOptions
from callpath_modeler.units import quantity

WITHIN = 0.01

SCOREP = ("amg.weak", "comd.weak", "lulesh.weak", "npb_ft.strong", "snap.weak")
THIRD_PARTY = (
    ("lulesh_daint", "size=30"),
    ("lulesh_daint", "size=40"),
    ("metacg_inputmodeling/001", ""),
    ("metacg_inputmodeling/002", ""),
    ("extrap_tests/single_parameter", ""),
    ("extrap_tests/multi_parameter", ""),
    ("extrap_tests/simple_threaded", ""),
)


def slowest_by_pycubexr(profile: Path) -> float:
    """Return the largest inclusive time of a location, from pycubexr."""
    pycubexr = pytest.importorskip("pycubexr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pycubexr.CubexParser(str(profile)) as cubex:
            time = next(metric for metric in cubex.all_metrics() if metric.name == "time")
            values = cubex.get_metric_values(time, cache=False)
            roots = cubex.get_root_cnodes()
            each = [np.asarray(values.cnode_values(root), np.float64) for root in roots]
            return float(np.sum(each, axis=0).max())


def statements(fitted: Fitted) -> dict[tuple[float, ...], tuple[float, str]]:
    """Return run time and first line of the rankings at every measured setting."""
    names = [parameter.name for parameter in fitted.experiment.parameters]
    found = {}
    for setting in fitted.experiment.runs_by_setting():
        at = dict(zip(names, setting, strict=True))
        target = at.pop(fitted.parameter)
        ranking = rank(fitted.holding(at), target)
        assert ranking.run_time is not None
        found[setting] = (
            ranking.run_time.total[0],
            cost_text(ranking, style=DEFAULT_STYLE),
        )
    return found


def check(folder: Path, slowest: Callable[[Path], float], where: str = "") -> None:
    """Compare the statements of a series with its slowest processes."""
    experiment = cpm.load(folder, LoadOptions(where=where))
    fitted = cpm.fit(experiment)
    told = statements(fitted)
    for setting, runs in experiment.runs_by_setting().items():
        each = np.array([slowest(Path(experiment.runs[run].source)) for run in runs])
        expected = float(modeling.centre(each[None, None], fitted.models.aggregate)[0, 0])
        value, line = told[setting]
        assert value == pytest.approx(expected, rel=WITHIN), setting
        assert f" ran {quantity(value, 's')} at " in line
        several = f"(mean of {len(runs)} runs, " in line
        assert several if len(runs) > 1 else "(measured, 1 run" in line


@pytest.mark.parametrize("name", ["lulesh", "snap"])
def test_sample_profiles_state_the_time_of_the_slowest_process(samples, name):
    check(samples / name, slowest_by_pycubexr)


@pytest.mark.parametrize("name", SCOREP)
def test_measured_series_state_the_time_of_the_slowest_process(shared_data, name):
    check(shared_data / "scorep" / name, slowest_by_pycubexr)


@pytest.mark.parametrize(("name", "where"), THIRD_PARTY)
def test_foreign_series_state_the_time_of_the_slowest_process(shared_data, name, where):
    check(shared_data / "third_party" / "cubex" / name, slowest_by_pycubexr, where)


@pytest.mark.parametrize(
    ("profile", "table", "column", "unit"),
    [
        ("v2/cpi_p4", "hpctoolkit_cpi_p4", "time_incl_max_us", 1e-6),
        ("v2/osu_allgather_p10x2", "hpctoolkit_osu_allgather_p10x2", "time_incl_max_us", 1e-6),
    ],
)
def test_databases_hold_the_time_of_the_slowest_process(shared_data, profile, table, column, unit):
    experiment = cpm.load(shared_data / "third_party" / "hpctoolkit" / profile)
    with (shared_data / "third_party" / "expected" / f"{table}.csv").open() as file:
        largest = max(float(row[column]) * unit for row in csv.DictReader(file))
    run_time = experiment.columns[experiment.metric().name].run_time
    assert run_time is not None
    assert run_time.tolist() == pytest.approx([largest], rel=WITHIN)


def test_caliper_maxima_are_the_time_of_the_slowest_process(shared_data):
    folder = shared_data / "third_party" / "caliper" / "lulesh_opal_weak"
    experiment = cpm.load(folder)
    run_time = experiment.columns["time"].run_time
    assert run_time is not None
    assert (run_time >= experiment.columns["time"].total * (1 - 1e-6)).all()
    assert run_time == pytest.approx(experiment.columns["time"].total, rel=0.02)
