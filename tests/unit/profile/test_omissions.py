"""Omissions: their words, their sums, and those that no store can have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callpath_modeler import store
from callpath_modeler.errors import InputError
from callpath_modeler.profile.omissions import (
    Omission,
    OmissionKind,
    is_partial,
    omissions_text,
    share_of,
    with_omission,
)
from callpath_modeler.studies.loading import load
from callpath_modeler.studies.pipeline import fit
from cells import cells
from store_mutations import Stored

OF_PATHS = Omission(OmissionKind.CALL_PATHS, 16, share=0.72, metric="time")


@cells(
    ("omission", "text"),
    [
        (OF_PATHS, "without 16 call paths, 72 % of the time"),
        (Omission(OmissionKind.CALL_PATHS, 1), "without 1 call path"),
        (Omission(OmissionKind.FOLDED, 2, share=0.5, metric="time"),
         "with 2 call paths folded into callers, 50 % of the time"),
        (Omission(OmissionKind.RUNS, 4, 10, 0.8, "time"), "without 4 of 10 runs, 80 % of the time"),
        (Omission(OmissionKind.PROFILES, 3, 15), "without 3 of 15 profiles"),
        (Omission(OmissionKind.PROCESSES, condition="rank > 0"), "with processes of rank > 0 only"),
    ],
)  # fmt: skip
def test_an_omission_is_told_with_its_share(omission, text):
    assert omission.text == text


def test_several_omissions_are_told_in_order():
    runs = Omission(OmissionKind.RUNS, 4, 10)
    text = f"{OF_PATHS.text}, without 4 of 10 runs"
    assert omissions_text([OF_PATHS, runs, runs]) == text
    assert omissions_text([]) == ""


def test_an_omission_of_the_rest_adds_to_the_first_one():
    rest = Omission(OmissionKind.CALL_PATHS, 2, share=0.5, metric="time")
    (both,) = with_omission((OF_PATHS,), rest)
    assert (both.count, both.share) == (18, pytest.approx(0.86))
    (both,) = with_omission((OF_PATHS,), replace(rest, metric="visits"))
    assert (both.count, both.share) == (18, None)
    folded = Omission(OmissionKind.FOLDED, 2)
    assert with_omission((OF_PATHS,), folded) == (OF_PATHS, folded)


def test_only_lost_cost_makes_a_program_partial():
    kinds = {kind for kind in OmissionKind if is_partial([Omission(kind, 1)])}
    assert kinds == {
        OmissionKind.CALL_PATHS, OmissionKind.PROCESSES, OmissionKind.UNSELECTED,
        OmissionKind.CHEAP,
    }  # fmt: skip


def test_a_cost_without_a_total_has_no_share():
    assert share_of(1.0, 0.0) is None
    assert share_of(float("nan"), 2.0) is None
    assert share_of(1.0, 4.0) == 0.25


@cells("change", [{"count": -1}, {"share": 1.5}, {"kind": "none"}, {"metric": 7}, {"whole": -1}])
def test_a_store_with_an_impossible_omission_is_refused(samples, tmp_path, change):
    path = tmp_path / "a.cpm"
    experiment = replace(load(samples / "stencil"), omissions=(OF_PATHS,))
    store.write([fit(experiment)], path)
    assert store.read_experiment(path).omissions == (OF_PATHS,)
    changed = Stored(path)
    changed.header["omissions"][0] |= change
    other = tmp_path / "b.cpm"
    changed.write(other)
    with pytest.raises(InputError, match=r"header\.json"):
        store.read_experiment(other)
