"""Weak or strong scaling of all measured series whose kind is known."""

from __future__ import annotations

import re

import pytest

import callpath_modeler as cpm
from callpath_modeler.readers.process_groups import RankCondition
from callpath_modeler.readers.process_selection import ProcessSelection
from cells import cells

SCORE_P = ("amg.weak", "comd.weak", "lulesh.weak", "snap.weak", "npb_ft.strong")
SIMULATED = (
    "amr-weak-fattree",
    "ensemble-weak-disturbed",
    "ensemble-weak-fattree",
    "fft-strong-fattree",
    "multigrid-weak-fattree",
    "sweep-strong-fattree",
)
SORTS = ("team6_mergesort_random", "team16_bitonic_random", "team22_samplesort_random")
SIZES = [2**k for k in range(16, 30, 2)]


def kind_of(path, where="", **reading):
    made = cpm.load(path, cpm.LoadOptions(cpm.ReadOptions(**reading), where=where))
    assert not [each for each in made.findings if each.code in {"CPM156", "CPM157"}]
    return made.scaling


def stated(name):
    return re.search("weak|strong", name)[0]


@cells("name", ["lulesh", "snap", "stencil"])
@cells("locations", ["mean", "max", "sum"])
def test_samples_are_weak(samples, name, locations):
    assert kind_of(samples / name, locations=locations) == "weak"


@pytest.mark.parametrize("series", [f"scorep/{name}" for name in SCORE_P] +
                                   [f"smpi/{name}" for name in SIMULATED])  # fmt: skip
def test_profiles_of_score_p_have_the_kind_of_their_folder(shared_data, series):
    assert kind_of(shared_data / series) == stated(series)


@pytest.mark.parametrize("size", [30, 40])
def test_lulesh_on_piz_daint_is_weak(shared_data, size):
    daint = shared_data / "third_party" / "cubex" / "lulesh_daint"
    assert kind_of(daint, f"size={size}") == "weak"


@pytest.mark.parametrize("size", [10, 50])
def test_lulesh_on_quartz_is_weak(shared_data, size):
    quartz = shared_data / "third_party" / "caliper" / "lulesh_quartz_weak"
    assert kind_of(quartz, f"size={size}") == "weak"


def test_lulesh_on_opal_is_weak(shared_data):
    assert kind_of(shared_data / "third_party" / "caliper" / "lulesh_opal_weak") == "weak"


@pytest.mark.parametrize("size", [SIZES[0], SIZES[-1]])
@pytest.mark.parametrize("team", SORTS)
def test_sorts_of_a_fixed_input_are_strong(shared_data, team, size):
    sorts = shared_data / "third_party" / "caliper" / "sort" / team
    assert kind_of(sorts, f"n={size}") == "strong"


@pytest.mark.parametrize("team", SORTS)
def test_sorts_of_all_sizes_are_strong(shared_data, team):
    assert kind_of(shared_data / "third_party" / "caliper" / "sort" / team) == "strong"


def test_sorts_that_state_their_kind_are_strong(shared_data):
    case = shared_data / "cases" / "t3_metadata_missing_in_some_files"
    sources = {"p": "name", "a": "name", "input_size": "none"}
    assert kind_of(case, parameter_sources=sources) == "strong"


@pytest.mark.parametrize("condition", ["rank == 0", "rank % 2 == 0"])
@pytest.mark.parametrize("name", ["lulesh", "snap"])
def test_groups_of_ranks_do_not_change_the_kind(samples, name, condition):
    groups = ProcessSelection(conditions=(RankCondition(condition),))
    assert kind_of(samples / name, processes=groups) == "weak"


@pytest.mark.parametrize("series", ["snap.weak", "npb_ft.strong"])
def test_groups_of_ranks_of_other_series_do_not_change_the_kind(shared_data, series):
    groups = ProcessSelection(conditions=(RankCondition("rank == 0"),))
    assert kind_of(shared_data / "scorep" / series, processes=groups) == stated(series)
