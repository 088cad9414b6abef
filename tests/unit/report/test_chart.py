from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.report.curve import Curve, draw
from callpath_modeler.report.layout import TextStyle
from cells import cells

NAN = float("nan")


def curve(measured=(1, 2, 4, 8), points=(2, 4, 8, 16), target=64.0, model=None, spread=0.2):
    points = np.array(points, float)
    measured = np.array(measured, float)
    grid = np.geomspace(points[0], max(points[-1], target or 0), 200)
    value = grid / 2 if model is None else np.full_like(grid, model)
    return Curve(
        points,
        measured,
        grid,
        value,
        value * (1 - spread),
        value * (1 + spread),
        float(points[-1]),
        target,
    )


def text(of, *, ascii_only=False, **options):
    return "\n".join(draw(of, "s", style=TextStyle(ascii_only=ascii_only), **options))


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_chart_shows_measurements_model_band_and_target(linear, ascii_only):
    chart = text(curve(), linear=linear, ascii_only=ascii_only)
    for sign in "o*:|X" if ascii_only else "●░┊◆":
        assert sign in chart
    assert chart.isascii() is ascii_only


def test_ticks_are_the_measured_points_and_the_target():
    last = draw(curve(), "s")[-1]
    assert last.split() == ["2", "4", "8", "16", "64", "p"]


def test_where_ticks_would_touch_the_target_stays():
    last = draw(curve(points=(2, 4, 8, 63)), "s", width=30)[-1]
    assert "64" in last.split()
    assert "63" not in last.split()


@pytest.mark.parametrize("width", [30, 50, 72])
def test_no_line_is_wider_than_asked_for_and_its_margin(width):
    rows = draw(curve(), "s", width=width)
    margin = rows[-2].index("└") + 1
    assert all(len(row) <= margin + width for row in rows[:-1])
    assert len(rows[-1]) <= margin + width + 8 + 3
    assert len(rows) == 14 + 2


def test_measured_points_rise_with_their_values():
    rows = draw(curve(target=None, spread=0.0), "s")
    places = [(row.index("●"), k) for k, row in enumerate(rows) if "●" in row]
    assert len(places) == 4
    columns, heights = zip(*sorted(places), strict=True)
    assert list(heights) == sorted(heights, reverse=True)
    assert len(set(columns)) == 4


def test_the_edge_of_the_data_is_drawn_only_below_a_target_beyond_it():
    assert "┊" not in text(curve(target=None))
    assert "┊" not in text(curve(target=8.0))
    assert "┊" in text(curve(target=64.0))


@cells("linear", [False, True])
@cells(
    "of",
    [
        curve(measured=[5] * 4, model=5.0),
        curve(measured=[NAN, NAN, 3, 4]),
        curve(measured=[NAN] * 4),
        curve(measured=[0, 1, 2, 3]),
        curve(measured=[1e-12, 1e-9, 1e-3, 1e3]),
        curve(points=[4], measured=[2], target=None),
        curve(points=[4], measured=[2], target=4.0),
        curve(model=3.0, spread=1e6),
        curve(target=1e12),
    ],
)
def test_odd_data_are_drawn(of, linear):
    rows = draw(of, "s", linear=linear)
    assert len(rows) == 16
    seen = int(np.isfinite(of.measured).sum())
    assert "\n".join(rows).count("●") <= seen


def test_a_wild_band_does_not_press_the_data_into_one_line():
    rows = draw(curve(spread=1e9), "s")
    places = {k for k, row in enumerate(rows) if "●" in row}
    assert len(places) == 4


def test_a_constant_is_one_line():
    rows = draw(
        curve(measured=[5] * 4, model=5.0, spread=0.0), "s", style=TextStyle(ascii_only=True)
    )
    assert sum("*" in row for row in rows) == 1


@pytest.mark.parametrize("linear", [False, True])
def test_where_everything_is_zero_no_scale_is_made_up(linear):
    assert draw(curve((0, 0, NAN, 0), model=0.0), "s", linear=linear) == []
    assert draw(curve([NAN] * 4, model=NAN), "s", linear=linear) == []
    assert draw(curve((0, 0, 1e-9, 0), model=0.0), "s", linear=linear)
