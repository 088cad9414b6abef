from __future__ import annotations

import csv

import numpy as np
import pytest

from cpmodel_guidelines.campaigns.campaign import Campaign, Cell, Detail, Measurement
from cpmodel_guidelines.published import PATTERNS, published_violations, stars
from cpmodel_guidelines.suites.files import benchmark_files, read_campaign

CAMPAIGNS = ("openmpi414_p4", "openmpi414_p8", "openmpi414_quiet_p2", "openmpi414_quiet_p4")


def campaign(values):
    """Return a campaign from the medians of mpiruns of each function and size."""
    return Campaign("made", tuple(
        Measurement("", 4, Cell(*cell), k, np.array([time]), Detail.OBSERVATIONS, "made")
        for cell, times in values.items()
        for k, time in enumerate(times, 1)
    ))  # fmt: skip


def rows(found):
    return [(each.start, each.end, each.function, each.kind, each.significance) for each in found]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_measured_campaigns_have_the_violations_that_the_published_code_prints(shared_data, name):
    home = shared_data / "mpi_guidelines" / name
    with (home / "results" / "violations_pgmpi_R.csv").open() as file:
        known = [*csv.reader(file, delimiter=";")][1:]
    found = published_violations(read_campaign(benchmark_files([str(home / "raw_data")])))
    assert [
        [f"{each.start:.0f}", f"{each.end:.0f}", each.function, each.kind, each.significance,
         each.description]
        for each in found
    ] == known  # fmt: skip


def test_a_message_in_pieces_has_to_be_faster_by_the_published_factor():
    flat = {("MPI_Bcast", 8.0): [1.0] * 5, ("MPI_Bcast", 20.0): [6.1] * 5}
    assert rows(published_violations(campaign(flat))) == []
    flat["MPI_Bcast", 20.0] = [6.2] * 5  # 3 messages of 8 bytes: 2.05 * 3 = 6.15
    assert rows(published_violations(campaign(flat))) == [(8.0, 20.0, "MPI_Bcast", "split", "*")]


def test_the_largest_piece_that_violates_is_reported():
    times = {("MPI_Bcast", 2.0**k): [1.0] * 5 for k in range(4)} | {("MPI_Bcast", 16.0): [9.0] * 5}
    (row,) = published_violations(campaign(times))
    assert (row.start, row.end, row.description) == (8.0, 16.0, "2*t(8)=2 < t(16)=9")


def test_patterns_and_monotony_have_the_stars_of_the_rank_sum():
    few = np.arange(5.0)
    times = {
        ("MPI_Gather", 8.0): 20 + few, ("MPI_Gather", 16.0): 15 + few,
        ("GL_Gather_as_Reduce", 8.0): 10 + few, ("GL_Gather_as_Reduce", 32.0): few + 1,
    }  # fmt: skip
    found = published_violations(campaign(times))
    assert rows(found) == [
        (8.0, 8.0, "MPI_Gather<Reduce", "pattern", "**"),
        (8.0, 16.0, "MPI_Gather", "monotony", "**"),
    ]
    assert found[0].description == "time(8)=22 > time(8)=12"


def test_functions_without_a_pattern_are_not_counted():
    times = {("MPI_Alltoall", 8.0): [9.0] * 5, ("MPI_Alltoall", 16.0): [1.0] * 5}
    assert published_violations(campaign(times)) == []
    assert len({left for left, _ in PATTERNS}) == 9
    assert len(PATTERNS) == 15


@pytest.mark.parametrize(
    ("chance", "text"), [(0.001, "***"), (0.01, "**"), (0.05, "*"), (0.06, "")]
)
def test_stars_include_their_limit(chance, text):
    assert stars(chance) == text
