"""The scale at which a program is fastest, in text and machine-readable output."""

from __future__ import annotations

import json

import numpy as np
import pytest

from callpath_modeler.analysis.answer import answer_at, rank
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.headline import turning_notes
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle
from callpath_modeler.report.ranking_table import ranking_table
from callpath_modeler.report.ranking_text import ShownRanking
from callpath_modeler.report.table_formats import to_json
from callpath_modeler.report.views_text import ForecastView
from synthetic import fitted

POINTS = (8.0, 16.0, 32.0, 64.0, 128.0)
P = np.array(POINTS)
RANDOM = np.random.default_rng(1)
NOISE = np.exp(0.03 * RANDOM.standard_normal((2, 5)))


def models(scaling=Scaling.STRONG, *, shared=1000.0, alone=0.01, noise=NOISE):
    laws = {"main": shared / P * noise[0], "main/f": alone * P * noise[1]}
    return fitted({name: list(law) for name, law in laws.items()}, POINTS, scaling=scaling)


@pytest.fixture(scope="module")
def fit():
    return models()


def said(fit, target, *, ascii_only=False):
    return turning_notes(rank(fit, target), style=TextStyle(ascii_only=ascii_only))


def shown(ranking, width=None, *, ascii_only=False):
    made = ShownRanking(ranking, ranking.order).text(TextStyle(width=width, ascii_only=ascii_only))
    return [line.plain for line in made]


def test_the_second_line_says_from_how_many_processes_on_it_is_not_faster(fit):
    ranking = rank(fit, 4096)
    first, second, third, *_ = shown(ranking)
    assert "at p = 4096 (32 × the largest run; " in first
    assert second.startswith("Fastest at about p = 3")
    assert second.endswith(" may be as fast, and more processes make it slower.")
    assert third.startswith("app · time")


def test_more_processes_are_said_to_make_a_run_slower_only_where_bands_tell(fit):
    (far,), (near,) = said(fit, 4096), said(fit, 400)
    assert "and more processes make it slower." in far
    assert " … 400 may be as fast, and more processes may make it slower." in near


def test_scales_are_rounded_as_far_as_they_are_known():
    (line,) = said(models(noise=np.ones((2, 5))), 4096)
    assert line.startswith("Fastest at about p = 320: 6.32 s (")


def test_a_range_that_rounds_to_one_scale_is_not_told():
    fit = models(noise=np.ones((2, 5)))
    ranking = rank(fit, 4096)
    ends = ranking.turning.first, ranking.turning.last
    (line,) = turning_notes(ranking, style=DEFAULT_STYLE)
    told = "may be as fast" in line
    assert told == (f"{ends[0]:.2g}" != f"{ends[1]:.2g}")


def test_inside_the_data_it_is_said_who_says_so():
    (line,) = said(models(shared=100, alone=0.1), 1024)
    assert line.startswith("Fastest in the models at about p = 3")


def test_of_a_program_that_more_processes_never_help_the_smallest_run_is_named():
    (line,) = said(models(shared=1, alone=1), 1024)
    assert line.startswith("Fastest in the models at p = 8, the smallest run: ")


def test_at_infinity_it_is_said_as_well(fit):
    _, second, *_ = shown(rank(fit, np.inf))
    assert second.startswith("Fastest at about p = 3")


def test_with_weak_scaling_nothing_is_said():
    assert said(models(Scaling.WEAK), 4096) == []
    assert not any("astest" in line for line in shown(rank(models(Scaling.WEAK), 4096)))


def test_the_fastest_scale_is_wrapped_and_written_in_ascii(fit):
    lines = shown(rank(fit, 4096), 60, ascii_only=True)
    assert max(map(len, lines)) <= 60
    assert "".join(lines).isascii()
    told = " ".join(line.strip() for line in lines)
    assert "more processes make it slower." in told


def test_json_has_it_in_full_and_null_where_it_is_not(fit):
    ranking = rank(fit, 4096)
    found = json.loads(to_json(ranking_table(ranking)))["fastest"]
    turning = ranking.turning
    assert found == {
        "at": turning.at,
        "value": turning.total[0],
        "low": turning.total[1],
        "high": turning.total[2],
        "from": turning.first,
        "to": turning.last,
        "until": 4096.0,
        "is_slower": True,
    }
    assert json.loads(to_json(ranking_table(rank(fit, 256))))["fastest"] is None


@pytest.mark.parametrize("target", [4096.0, np.inf])
def test_views_say_it_in_the_words_and_numbers_of_the_ranking(fit, target):
    view = ForecastView(answer_at(fit, target), ViewRequest(kind=ViewKind.FLAT))
    lines = [row.plain for row in view.text(DEFAULT_STYLE)]
    assert lines[1] == said(fit, target)[0]
    of_view, of_ranking = (
        json.loads(to_json(table))["fastest"]
        for table in (view.table(), ranking_table(rank(fit, target)))
    )
    assert of_view == of_ranking
    assert of_view is not None


def test_a_forecast_without_bands_does_not_know_it_yet(fit):
    without = answer_at(fit, 4096.0, bands=False)
    assert without.turning is None
    assert without.with_bands().turning is not None
