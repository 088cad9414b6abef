"""Who is waited for: each delay of computation is spent once, where it is met first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.spent_delays import SpentDelays
from callpath_modeler.profile.pattern import find_one
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.studies import pipeline
from synthetic import POINTS, experiment


def spent(means, ratios):
    """Return the delays that operations spend at the largest scale, and who causes them."""
    made = experiment({path: [value] * len(POINTS) for path, value in means.items()})
    column, tree = made.columns["time"], made.tree
    uneven = np.ones(column.exclusive.shape, np.float32)
    for path, ratio in ratios.items():
        uneven[find_one(tree, path)] = ratio
    columns = {"time": replace(column, imbalance=uneven)}
    found = SpentDelays.of(pipeline.fit(replace(made, columns=columns, reduction=Reduction.MEAN)))
    named = [tree.name(row) if row >= 0 else "" for row in found.source.tolist()]
    told = zip(found.rows.tolist(), found.delay[:, -1].tolist(), named, strict=True)
    return {tree.name(row): (pytest.approx(delay), name) for row, delay, name in told}


def test_the_first_operation_behind_a_computation_spends_its_delay():
    means = {"main": 1, "main/a": 4, "main/MPI_Bcast": 5, "main/b": 4, "main/MPI_Barrier": 5}
    found = spent(means, {"main/a": 2.0})
    assert found == {"MPI_Bcast": (4, "a"), "MPI_Barrier": (0, "")}


def test_an_operation_spends_no_more_than_its_time_and_the_next_one_the_rest():
    means = {"main": 1, "main/a": 4, "main/MPI_Bcast": 1, "main/b": 4, "main/MPI_Barrier": 5}
    found = spent(means, {"main/a": 2.0})
    # A quarter of the delay names nobody at the broadcast.
    assert found == {"MPI_Bcast": (1, ""), "MPI_Barrier": (3, "a")}


def test_what_is_left_at_the_end_of_a_loop_is_spent_at_its_start():
    means = {"main": 1, "main/MPI_Recv": 5, "main/a": 4}
    assert spent(means, {"main/a": 2.0}) == {"MPI_Recv": (4, "a")}


def test_operations_below_the_same_caller_come_first():
    means = {"main": 1, "main/s": 0, "main/s/MPI_Recv": 5, "main/s/a": 4, "main/MPI_Barrier": 5}
    assert spent(means, {"main/s/a": 2.0}) == {"MPI_Recv": (4, "a"), "MPI_Barrier": (0, "")}


def test_the_latest_computation_is_spent_first():
    means = {"main": 1, "main/a": 4, "main/b": 4, "main/MPI_Bcast": 4}
    assert spent(means, {"main/a": 2.0, "main/b": 2.0}) == {"MPI_Bcast": (4, "b")}


def test_the_end_of_mpi_spends_nothing_and_balanced_computation_delays_nobody():
    means = {"main": 1, "main/a": 4, "main/MPI_Barrier": 1, "main/MPI_Finalize": 5}
    assert spent(means, {}) == {"MPI_Barrier": (0, "")}
    assert "MPI_Finalize" not in spent(means, {"main/a": 2.0})


@pytest.mark.parametrize(
    ("series", "largest", "far", "names"),
    [
        ("sweep-strong-fattree", 64, 256, {"check_convergence/MPI_Bcast": "waits for root_norm"}),
        (
            "ensemble-weak-fattree",
            128,
            512,
            {
                "output/MPI_Barrier": "waits for write_file",
                "hand_out_tasks/MPI_Recv": "waits for hand_out_tasks",
            },
        ),
        ("multigrid-weak-fattree", 128, 256, {"MPI_Scatter": "waits for setup_hierarchy"}),
    ],
)
def test_simulated_programs_name_the_computation_whose_removal_helps(
    shared_data, series, largest, far, names
):
    folder = shared_data / "smpi" / series
    if not folder.is_dir():
        pytest.skip("needs the simulated programs in ../shared/data/smpi")
    runs = [run for run in sorted(folder.iterdir()) if scale(run.name) <= largest]
    ranking = cpm.rank(cpm.fit(cpm.load(runs)), far)
    tree = ranking.fitted.experiment.tree
    for path, label in names.items():
        assert ranking.why([find_one(tree, path)]) == [label]
    # Removing root_norm saves nothing in the all-reduce: its delay is spent before.
    others = [row for row in range(len(tree)) if tree.name(row) == "MPI_Allreduce"]
    assert not [label for label in ranking.why(others) if label.startswith("waits for")]


def scale(name):
    return int(name.split(".p")[1].split(".")[0])
