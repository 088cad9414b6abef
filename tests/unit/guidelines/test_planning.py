"""Plans of campaigns: what is measured, how long it takes, and what fits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from callpath_modeler.errors import UsageError
from cells import cells
from cpmodel_guidelines.planning.files import Programs, osu_commands, plan_files
from cpmodel_guidelines.planning.plan import FILLED, Scale, Wish, planned
from cpmodel_guidelines.planning.workloads import Machine, SuiteToRun, workload
from cpmodel_guidelines.rules import GuidelineTerm, Size, parse, patterns

MACHINE = Machine(latency=1e-6, bandwidth=1e9, startup=10.0)
SIZES = (8, 64, 512, 4096, 32768)
TWO_NODES = (Scale(2, 8),)


def wish(budget=3600.0, scales=TWO_NODES, sizes=SIZES, **changes):
    values = {"noise": 0.05, "rate": 0.05, "slowdown": 0.1, "repetitions": 50, **changes}
    return Wish(scales=scales, sizes=sizes, machine=MACHINE, budget=budget, **values)


def of(suite=SuiteToRun.REPROMPI, texts=()):
    return workload(suite, patterns(texts))


def test_mock_ups_are_those_of_published_lists(shared_data):
    files = plan_files([planned(of(), wish())], Programs(("srun",), "bench", ""), (), (1, 2, 1), ())
    known = (shared_data / "mpi_guidelines" / "guidelines_list.txt").read_text().splitlines()
    assert {*known} <= {*files["mock_ups.txt"].splitlines()}
    jobs = (shared_data / "mpi_guidelines" / "input.txt").read_text().splitlines()
    ours = {row.split()[0] for row in files["p16/reprompi/input.txt"].splitlines()}
    assert {row.split()[0] for row in jobs} <= ours


def test_a_sum_needs_all_functions_of_the_suite():
    found = workload(SuiteToRun.REPROMPI, [parse("Gather <= Gatherv"), parse("Bcast <= Allreduce")])
    assert [each.name for each in found.functions] == ["MPI_Allreduce", "MPI_Bcast"]
    assert [(g.text, lacking) for g, lacking in found.left_out] == [
        ("Gather <= Gatherv", ("Gatherv",))
    ]


def test_times_follow_from_latency_and_bandwidth():
    bcast = [GuidelineTerm("Bcast")]
    assert MACHINE.call(bcast, 1000, 16) == pytest.approx(4 * (1e-6 + 1e-6))
    whole = [GuidelineTerm("Bcast", Size.ALL)]
    assert MACHINE.call(whole, 1000, 16) == pytest.approx(MACHINE.call(bcast, 16000, 16))
    both = [GuidelineTerm("Gather"), GuidelineTerm("Bcast", Size.ALL)]
    assert MACHINE.call(both, 1000, 16) > MACHINE.call(whole, 1000, 16)
    assert MACHINE.call([GuidelineTerm("Barrier")], 1000, 1) == pytest.approx(1e-6)


@cells("suite", [*SuiteToRun])
@cells("budget", [700.0, 1500.0, 7200.0, 86400.0])
def test_a_plan_fits_its_budget_at_all_scales_together(suite, budget):
    scales = (Scale(1, 4), Scale(2, 4))
    launches = len(of(suite).functions) if suite is SuiteToRun.OSU else 1
    if launches * 5 * len(scales) * 10.0 > FILLED * budget:
        with pytest.raises(UsageError, match="too small"):
            planned(of(suite), wish(budget, scales))
        return
    found = planned(of(suite), wish(budget, scales))
    starts = found.mpiruns * found.workload.launches * 10.0 * len(scales)
    assert starts < found.times.sum() <= FILLED * budget
    assert sum(found.limits) <= budget
    assert all(limit >= time for limit, time in zip(found.limits, found.times, strict=True))
    assert found.mpiruns >= 5
    assert found.repetitions[found.repetitions > 0].min() >= 10


def test_the_time_of_a_plan_is_that_of_its_lines():
    found = planned(of(), wish())
    terms = {each.name: each.terms for each in found.workload.functions}
    each = sum(
        count * (MACHINE.call(terms[name], size, 16) + MACHINE.barrier(16))
        for name, size, count in found.lines(0)
    )
    assert found.times[0] == pytest.approx(found.mpiruns * (10.0 + each))
    assert found.node_hours[0] == pytest.approx(2 * found.times[0] / 3600)


def test_as_many_mpiruns_as_find_the_wanted_violation():
    found = planned(of(), wish(1e6))
    assert found.power.slowdown <= 0.1
    assert found.power.with_mpiruns(found.mpiruns - 1).slowdown > 0.1
    assert not any("mpiruns" in each for each in found.left_out)
    # Ten mpiruns are aimed at, even if fewer would do.
    assert planned(of(), wish(1e6, slowdown=5.0)).mpiruns == 10


def test_more_noise_needs_more_mpiruns():
    counts = [planned(of(), wish(1e7, noise=noise)).mpiruns for noise in (0.02, 0.05, 0.15)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_costly_sizes_are_left_out_before_there_are_less_than_ten_mpiruns():
    sizes = (8, 64, 512, 4096, 10**6, 5 * 10**6)
    found = planned(of(), wish(400.0, (Scale(4, 16),), sizes))
    assert (found.mpiruns, max(found.sizes)) == (10, 10**6) or max(found.sizes) < 10**6
    assert any("message sizes in bytes: " in each for each in found.left_out)
    assert math.isclose(found.power.noise, 0.05 * np.sqrt(2))


def test_the_commands_of_osu_have_whole_vectors_of_reductions_that_scatter():
    found = planned(of(SuiteToRun.OSU), wish(1e5))
    rows = {row.split()[0]: row for row in osu_commands(found, 0)}
    assert rows["osu_bcast"] == "osu_bcast -m 8:32768 -i 50 -x 5"
    assert rows["osu_reduce_scatter"] == f"osu_reduce_scatter -m {8 * 16}:{32768 * 16} -i 50 -x 5"
    assert rows["osu_barrier"] == "osu_barrier -i 50 -x 5"
