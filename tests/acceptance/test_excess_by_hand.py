"""Excess work of measured programs, compared with the formulas of the paper."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.ensemble import losses
from callpath_modeler.profile.pattern import find_one

ROOT_CNODE, ALL_REDUCE_CNODE = 0, 16
"""Numbers of the root and of main/TimeIncrement/MPI_Allreduce in the dumps."""


def of_ranks(path, cnode):
    """Return the times of one call path in all ranks from the dump of another tool."""
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["Cnode ID"]) == cnode]
    if cnode == ALL_REDUCE_CNODE:
        assert {row["visits"] for row in rows} == {"24"}  # one per time step, so it is the one
    return [float(row["time"]) for row in rows]


def test_root_and_all_reduce_of_lulesh_lose_what_the_dumped_profiles_say(shared_data):
    folder = shared_data / "scorep" / "lulesh.weak"
    runs = [folder / "lulesh.p8.r1", folder / "lulesh.p27.r1"]
    read = cpm.ReadOptions(locations=cpm.Reduction.MEAN, scaling=cpm.Scaling.WEAK)
    found = losses(cpm.load(runs, cpm.LoadOptions(read)), pair=(8, 27))
    tree = found.experiment.tree
    dumps = shared_data / "scorep" / "oracle"

    def cost(p, flavour, cnode):
        return np.mean(of_ranks(dumps / f"lulesh.p{p}.r1.{flavour}.csv", cnode))

    slowest = {p: max(of_ranks(dumps / f"lulesh.p{p}.r1.incl.csv", ROOT_CNODE)) for p in (8, 27)}
    run_time = slowest[27]
    assert found.total[0] == pytest.approx(1 - slowest[8] / run_time, abs=2e-5)
    for row, cnode in ((0, ROOT_CNODE), (find_one(tree, "TimeIncrement/MPI_Allreduce"), 16)):
        for flavour, values in (
            ("incl", found.excess.inclusive),
            ("excl", found.excess.exclusive),
        ):
            by_hand = (cost(27, flavour, cnode) - cost(8, flavour, cnode)) / run_time
            # The dumps have six digits.
            assert values[row, 0] == pytest.approx(by_hand, abs=2e-5)
    assert found.excess.inclusive[0, 0] > 0.5


# Mean over the ranks of lulesh.p8.r2 and lulesh.p125.r2 of the sample profiles, in seconds,
# inclusive, as pycubexr reads them: the program, main, and its calls of MPI_Allreduce.
P8 = {"program": 0.85882633725, "main": 0.85877846475, "all-reduce": 0.1339138635}
P125 = {"program": 19.677478885384, "main": 19.672777422943998, "all-reduce": 3.168999268984}
SLOWEST = {8: 0.898668099, 125: 21.092743863}
"""Inclusive time of the program on the slowest of the ranks."""


@pytest.mark.parametrize("scaling", [cpm.Scaling.WEAK, cpm.Scaling.STRONG])
def test_root_and_all_reduce_of_the_sample_lose_what_was_worked_out_by_hand(samples, scaling):
    runs = [samples / "lulesh" / "lulesh.p8.r2", samples / "lulesh" / "lulesh.p125.r2"]
    read = cpm.ReadOptions(locations=cpm.Reduction.MEAN, scaling=scaling)
    found = losses(cpm.load(runs, cpm.LoadOptions(read)))
    call = find_one(found.experiment.tree, "TimeIncrement/MPI_Allreduce")

    def by_hand(before, after):
        if scaling is cpm.Scaling.STRONG:
            return (125 * after - 8 * before) / (125 * SLOWEST[125])
        return (after - before) / SLOWEST[125]

    inclusive, exclusive = found.excess.inclusive[:, 0], found.excess.exclusive[:, 0]
    assert inclusive[0] == pytest.approx(by_hand(P8["program"], P125["program"]), rel=1e-9)
    own = [values["program"] - values["main"] for values in (P8, P125)]
    assert exclusive[0] == pytest.approx(by_hand(*own), abs=1e-9)
    all_reduce = by_hand(P8["all-reduce"], P125["all-reduce"])
    assert inclusive[call] == exclusive[call] == pytest.approx(all_reduce, rel=1e-9)
    assert found.total[0] == pytest.approx(by_hand(SLOWEST[8], SLOWEST[125]), rel=1e-9)
    expected = {cpm.Scaling.WEAK: (0.892186, 0.143893), cpm.Scaling.STRONG: (0.930297, 0.149835)}
    assert (inclusive[0], inclusive[call]) == pytest.approx(expected[scaling], abs=1e-6)


def test_lulesh_on_opal_loses_in_its_all_reduce(shared_data):
    # Means over ranks, Caliper, 27 and 343 ranks: 47.2 s and 52.6 s in total. Others gained, so the
    # call that loses 16 % makes the program lose 10 %.
    table = shared_data / "third_party" / "caliper" / "lulesh_opal_weak.jsonl"
    found = losses(cpm.load([table]), pair=(27, 343))
    call = find_one(found.experiment.tree, "TimeIncrement/MPI_Allreduce")
    inclusive, exclusive = found.excess.inclusive[:, 0], found.excess.exclusive[:, 0]
    assert inclusive[find_one(found.experiment.tree, "main")] == pytest.approx(0.102, abs=1e-3)
    assert found.total[0] == pytest.approx(0.102, abs=1e-3)
    assert inclusive[call] == exclusive[call] == pytest.approx(0.163, abs=5e-4)
    assert exclusive.min() < 0
