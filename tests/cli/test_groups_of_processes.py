"""Groups of processes that behave differently: `--ranks` and `--split-ranks`."""

import csv
import io

import numpy as np
import pytest

import benchmark_output
from callpath_modeler import LoadOptions, load
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.readers.process_groups import RankCondition
from callpath_modeler.readers.process_selection import ProcessSelection
from cells import cells
from cube_writer import Machine, MetricToWrite, Tree, write

SCALES = (8, 16, 32, 64, 128)
NAMES = ["main", "solve", "gather", "MPI_Allreduce"]
TREE = Tree([-1, 0, 0, 0], NAMES)
PER_NODE = 4


def first_of_node(p):
    return np.arange(p) % PER_NODE == 0


def nobody(p):
    return np.zeros(p, bool)


def times(p, special):
    """Return exact times [call paths, processes]."""
    gather = np.where(special(p), 0.002 * p * np.log2(p), 0.05)
    rest = np.repeat([[0.1], [3.0 * (8 / p) ** 0.5]], p, axis=1)
    return np.array([*rest, gather, np.full(p, 0.02 * np.log2(p))])


def campaign(folder, special, *, seed=1, noise=0.03, tail=None):
    """Write three repetitions at every scale."""
    rng = np.random.default_rng(seed)
    for p in SCALES:
        for repetition in (1, 2, 3):
            exact = times(p, special)
            factor = np.exp(noise * rng.standard_normal(exact.shape))
            if tail is not None:
                factor *= np.exp(tail * rng.standard_t(2, exact.shape))
            measured = MetricToWrite("time", exact * factor, unit="sec")
            visits = MetricToWrite("visits", np.ones_like(exact), dtype="UINT64")
            path = folder / f"app.p{p}.r{repetition}" / "profile.cubex"
            path.parent.mkdir(parents=True)
            write(path, TREE, [visits, measured], Machine([1] * p))
    return folder


def rows(outcome):
    return list(csv.DictReader(io.StringIO(outcome.out)))


def groups_of(outcome):
    return {row["callpath"].split("/")[0] for row in rows(outcome)}


def options(selection):
    return LoadOptions(ReadOptions(processes=selection))


def test_the_first_process_of_each_node_is_a_group(run, tmp_path):
    folder = campaign(tmp_path / "runs", first_of_node)
    words = ("rank", folder, "--target", "2048", "-f", "csv")
    assert groups_of(run(*words, "--split-ranks", "auto")) == {"rank % 4 == 0", "rank % 4 != 0"}


@pytest.mark.parametrize("seed", range(3))
def test_a_ranking_of_groups_is_nearer_to_the_truth(run, tmp_path, seed):
    folder = campaign(tmp_path / "runs", first_of_node, seed=seed)
    words = ("rank", folder, "--target", "2048", "-f", "csv")
    truth = times(2048, first_of_node)[2].mean()
    whole = {row["callpath"]: float(row["value_at_target[s]"]) for row in rows(run(*words))}
    apart = {row["callpath"]: float(row["value_at_target[s]"])
             for row in rows(run(*words, "--split-ranks", "auto"))}  # fmt: skip
    (one,) = (value for path, value in whole.items() if path.endswith("gather"))
    sum_of_groups = sum(value for path, value in apart.items() if path.endswith("gather"))
    assert abs(sum_of_groups - truth) < 0.1 * truth
    assert abs(sum_of_groups - truth) < max(abs(one - truth), 0.03 * truth)


@pytest.mark.parametrize("tail", [None, 0.2], ids=["normal", "heavy tails"])
def test_processes_that_are_alike_have_no_groups(run, tmp_path, tail):
    folder = campaign(tmp_path / "runs", nobody, tail=tail)
    run("rank", folder, "--target", "2048", "--split-ranks", "auto").fails(4, "no groups")


def test_groups_add_up_to_the_whole(tmp_path):
    folder = campaign(tmp_path / "runs", first_of_node)
    whole = load(folder)
    split = load(folder, options(ProcessSelection(None, (RankCondition("rank % 4 == 0"),))))
    ours, theirs = (each.columns["time"] for each in (split, whole))
    assert np.allclose(ours.total, theirs.total)
    assert np.allclose(np.nansum(ours.exclusive, axis=0), np.nansum(theirs.exclusive, axis=0))
    assert np.allclose(ours.run_time, theirs.run_time)


@pytest.mark.parametrize("condition", ["rank % 4 == 0", "rank == 0"])
def test_maxima_of_groups_are_those_of_their_processes(tmp_path, condition):
    folder = campaign(tmp_path / "runs", first_of_node, noise=0.0)
    split = load(folder, options(ProcessSelection(None, (RankCondition(condition),))))
    rows = [row for row in range(len(split.tree)) if split.tree.path(row).endswith("gather")]
    largest = [times(p, first_of_node)[2][0] for p in SCALES for _ in range(3)]
    first = next(row for row in rows if split.tree.path(row).startswith(condition))
    assert np.allclose(split.maxima("time")[first], largest, rtol=1e-5)


def test_selected_ranks_are_the_only_ones(tmp_path):
    folder = campaign(tmp_path / "runs", first_of_node, noise=0.0)
    chosen = load(folder, options(ProcessSelection(RankCondition("rank % 4 == 0"))))
    expected = [times(p, first_of_node)[2][0] for p in SCALES for _ in range(3)]
    assert np.allclose(chosen.columns["time"].exclusive[2], expected)


def test_a_condition_that_selects_no_rank_is_an_error(run, tmp_path):
    folder = campaign(tmp_path / "runs", nobody)
    run("rank", folder, "--target", "2048", "--ranks", "rank > 1000").fails(4, "selects none")


@cells("text", ["rank", "rank = x", "__import__('os')", "(" * 60, "rank == 1 " * 99])
def test_a_text_that_is_no_condition_is_an_error(run, tmp_path, text):
    folder = campaign(tmp_path / "runs", nobody)
    run("rank", folder, "--target", "2048", "--ranks", text).fails(2, "--ranks")


def test_tables_have_no_single_processes(run, tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("p,callpath,time\n" + "".join(f"{p},main,{p}\n" for p in SCALES))
    run("rank", table, "--target", "2048", "--ranks", "rank == 0").fails(4, "single processes")


def test_groups_need_sums(run, tmp_path):
    folder = campaign(tmp_path / "runs", nobody)
    words = ("--split-ranks", "rank == 0", "--locations", "max")
    run("rank", folder, "--target", "2048", *words).fails(2, "only means and sums")


def test_efficiency_needs_all_processes(run, tmp_path):
    folder = campaign(tmp_path / "runs", nobody)
    run("efficiency", folder, "--ranks", "rank > 0").fails(4, "need all processes")


def test_benchmarks_have_no_single_processes(run, tmp_path):
    folder = benchmark_output.write(tmp_path / "b", "reprompi", benchmark_output.flawless)
    run("guidelines", folder, "--ranks", "rank > 0").fails(2, "single processes")


def test_values_of_a_group_are_no_times_of_its_processes(run, samples):
    stencil = samples / "stencil"
    found = run("rank", stencil, "--split-ranks", "rank == 0", "--target", 1024)
    assert "that of a single process is divided by p" in " ".join(found.out.split())
    table = run("rank", stencil, "--split-ranks", "rank == 0", "--select", "rank == 0/**",
                "--target", 1024, "-f", "csv").out  # fmt: skip
    assert "find_owners" in table
    assert ",imbalance," not in table
    assert "divided by p" not in run("rank", stencil, "--target", 1024).out
