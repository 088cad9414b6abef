"""Maxima over processes and the imbalance of the lines of the browser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.studies import pipeline
from callpath_modeler.tui.session import Session
from callpath_modeler.tui.tree_table import page
from synthetic import POINTS, experiment

VALUES = {
    "main": [10.0] * 5,
    "main/f": [4.0] * 5,
    "main/f/MPI_Wait": [1.0, 2.0, 4.0, 8.0, 16.0],
    "main/MPI_Wait": [3.0] * 5,
}
RATIOS = [[1.0], [1.5], [2.0], [1.25]]


def session(reduction=Reduction.MEAN):
    made = experiment(VALUES, POINTS, reduction=reduction)
    uneven = np.repeat(np.array(RATIOS, np.float32), len(POINTS), axis=1)
    column = replace(made.columns["time"], imbalance=uneven)
    return Session(answer_at(pipeline.fit(replace(made, columns={"time": column})), 64.0))


def shown(of, width=200):
    found = page(of, 0, 20, width)
    return [found.header.plain, *(line.plain for line in found.lines)]


def test_exclusive_lines_of_one_call_path_have_both():
    of = session()
    of.lead_with_other()
    header, *lines = shown(of)
    assert "max p=32" in header
    assert "imbalance" in header
    (wait,) = [line for line in lines if "MPI_Wait" in line and "16.0 s" in line]
    assert "32.0 s" in wait
    assert "2.00" in wait


@pytest.mark.parametrize("reduction", [Reduction.MAX, Reduction.MIN])
def test_values_that_are_no_means_have_neither(reduction):
    of = session(reduction)
    of.lead_with_other()
    assert "imbalance" not in shown(of)[0]


def test_inclusive_lines_have_neither():
    of = session()
    assert of.leads_inclusive
    assert "imbalance" not in shown(of)[0]


def test_lines_of_several_call_paths_have_none():
    of = session()
    of.show(ViewKind.BOTTOM_UP)
    header, *lines = shown(of)
    at = header.index("imbalance")
    both = next(line for line in lines if "MPI_Wait" in line)
    assert not both[at : at + len("imbalance")].strip()


def test_columns_of_maxima_are_the_first_to_go_where_there_is_no_room():
    of = session()
    of.lead_with_other()
    assert "imbalance" not in shown(of, 80)[0]
    assert "share" in shown(of, 80)[0]
