"""Profiles of one timeline have the same run time, excess work and efficiency in every format."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product

import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.efficiency_factors import PopFactor, Scheme
from callpath_modeler.analysis.excess_work import measured_excess
from cells import cells
from hybrid_timelines import FORMATS, Timeline

SCALES = (4, 8)
CASES: dict[str, Callable[[int, bool], list[Timeline]]] = {
    "two equal threads": lambda p, waits: [Timeline([1.0] * 2, 0.2 * p, waits)] * p,
    "eight equal threads": lambda p, waits: [Timeline([1.0] * 8, 0.1 * p, waits)] * p,
    "workers with less work": lambda p, waits: [Timeline([2.0, 1.5, 1.0], 0.3 * p, waits)] * p,
    "workers without work": lambda p, waits: [Timeline([1.0, 0.0, 0.0, 0.0], 0.2 * p, waits)] * p,
    "unequal processes": lambda p, waits: [
        Timeline([1.0 + r / p, 1.0], 0.2 * p - r / p, waits) for r in range(p)
    ],
    "unequal numbers of threads": lambda p, waits: [
        Timeline([1.0] * (1 + r % 3), 0.2 * p, waits) for r in range(p)
    ],
}
KINDS = list(product(CASES, (False, True)))
Studied = Callable[[str, bool], cpm.Study]


@pytest.fixture(scope="module", params=FORMATS)
def study(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Studied:
    """Return the study of a case in one format, written and read once."""
    if request.param == "otf2":
        pytest.importorskip("otf2")

    @cache
    def studied(case: str, waits: bool) -> cpm.Study:
        folder = tmp_path_factory.mktemp("runs")
        for p in SCALES:
            FORMATS[request.param](folder / f"app.p{p}.r1", CASES[case](p, waits))
        return cpm.Study(folder)

    return studied


@cells(("case", "waits"), KINDS)
def test_the_run_time_is_that_of_the_longest_thread(study, case, waits):
    experiment = study(case, waits).experiment()
    values = experiment.columns[experiment.metric(None).name]
    slowest = [max(one.run_time for one in CASES[case](p, waits)) for p in SCALES]
    assert values.run_time == pytest.approx(slowest)
    mean = [sum(one.run_time for one in CASES[case](p, waits)) / p for p in SCALES]
    assert values.exclusive.sum(axis=0) == pytest.approx(mean)
    assert values.total == pytest.approx(mean)


@cells(("case", "waits"), KINDS)
def test_excess_work_is_a_share_of_the_elapsed_time(study, case, waits):
    experiment = study(case, waits).experiment()
    found = measured_excess(experiment, experiment.metric(None).name, "p", *SCALES)
    (row,) = [row for row in range(len(experiment.tree))
              if experiment.tree.path(row) == "main/MPI_Allreduce"]  # fmt: skip

    def mean(p: int, what: Callable[[Timeline], float]) -> float:
        return sum(what(one) for one in CASES[case](p, waits)) / p

    before, after = (mean(p, lambda one: one.mpi) for p in SCALES)
    whole = mean(SCALES[-1], lambda one: one.run_time)
    assert found.exclusive[row] == pytest.approx((after - before) / whole)


def _expected(timelines: list[Timeline]) -> dict[PopFactor, float]:
    """Return the factors: a process is outside of MPI as long as its first thread computes."""
    threads = sum(len(one.solve) for one in timelines)
    useful = sum(sum(one.solve) for one in timelines) / threads
    outside = sum(len(one.solve) * one.solve[0] for one in timelines) / threads
    longest = max(one.solve[0] for one in timelines)
    run_time = max(one.run_time for one in timelines)
    return {
        PopFactor.PARALLEL: useful / run_time,
        PopFactor.PROCESSES: outside / run_time,
        PopFactor.BALANCE: outside / longest,
        PopFactor.COMMUNICATION: longest / run_time,
        PopFactor.THREADS: useful / outside,
    }


@cells(("case", "waits"), KINDS)
def test_idle_workers_are_lost_to_the_mpi_of_their_master(study, case, waits):
    found = study(case, waits).efficiency().efficiency
    for p, at in zip(SCALES, found.estimates, strict=True):
        for factor, value in _expected(CASES[case](p, waits)).items():
            told = at.value[Scheme.MULTIPLICATIVE, factor][0]
            assert told == pytest.approx(value), f"{factor} at p = {p}"
