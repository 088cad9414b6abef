from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from callpath_modeler.report.curve import Curve, value_ticks
from callpath_modeler.report.page.markup import figure, legend
from cells import cells

NAN = float("nan")


def curve(measured=(1.0, 2.0, 4.0), points=(2.0, 4.0, 8.0), target=64.0, spread=0.2):
    points = np.array(points)
    grid = np.geomspace(points[0], max(points[-1], target or 0), 50)
    value = grid / 2
    low, high = value * (1 - spread), value * (1 + spread)
    return Curve(points, np.array(measured), grid, value, low, high, float(points[-1]), target)


def drawn(of, **options):
    told = {"key": "c-1", "label": "said <so>", **options}
    return ET.fromstring(figure(of, "s", "p", **told))  # noqa: S314 - our own


def classes(svg, name):
    return [each for each in svg.iter() if each.get("class") == name]


def texts(svg):
    return ["".join(each.itertext()) for each in svg.iter("text")]


def test_a_figure_has_points_model_band_end_of_data_and_target():
    svg = drawn(curve())
    assert len(classes(svg, "point")) == 3
    for one in ("band", "model", "model beyond", "edge", "target", "reach"):
        assert len(classes(svg, one)) == 1, one
    assert {"2", "4", "8", "64", "p", "end of the data"} <= set(texts(svg))


def test_a_figure_is_told_to_those_who_do_not_see_it():
    svg = drawn(curve())
    named = [svg.find(name).get("id") for name in ("title", "desc")]
    assert svg.get("role") == "img"
    assert svg.get("aria-labelledby").split() == named
    assert svg.find("desc").text == "said <so>"


def test_higher_values_stand_higher_and_larger_scales_further_right():
    points = classes(drawn(curve()), "point")
    across, up = ([float(point.get(name)) for point in points] for name in ("cx", "cy"))
    assert across == sorted(across)
    assert up == sorted(up, reverse=True)
    # Equal factors are equal steps.
    assert across[1] - across[0] == pytest.approx(across[2] - across[1], abs=0.2)


def test_what_was_not_measured_has_no_point():
    assert len(classes(drawn(curve((1.0, NAN, 4.0))), "point")) == 2


def test_without_a_target_there_is_nothing_beyond_the_data():
    svg = drawn(curve(target=None))
    for one in ("model beyond", "edge", "target"):
        assert not classes(svg, one)


def test_a_band_known_at_the_target_alone_is_a_bar():
    known = curve()
    known.low[:-1] = known.high[:-1] = NAN
    svg = drawn(known)
    assert len(classes(svg, "reach")) == 1
    assert not classes(svg, "band")


def test_nothing_is_drawn_off_the_figure():
    wild = curve(spread=0.2)
    wild.high[:] = wild.value * 1e6
    text = figure(wild, "s", "p", key="c", label="")
    width, height = 560, 290
    for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", text):
        assert 0 <= float(x) <= width
        assert 0 <= float(y) <= height


@cells(("bottom", "top"), [(1.0, 1.2), (0.9, 12.0), (1e-9, 1e9), (3.0, 3.0001), (2e-7, 5e-7)])
def test_an_axis_has_two_to_nine_ascending_ticks(bottom, top):
    ticks = value_ticks(bottom, top)
    assert 2 <= len(ticks) <= 9
    assert all(bottom <= tick <= top for tick in ticks)
    assert ticks == sorted(set(ticks))


def test_the_legend_names_every_sign():
    for word in ("measured", "model", "beyond the data", "band", "target"):
        assert f">{word}</li>" in legend()


def test_the_sign_of_a_measured_target_is_at_what_was_measured_with_its_interval():
    plain = curve(target=8.0)
    svg = drawn(replace(plain, seen=(3.0, 2.5, 3.6)))
    (sign,) = classes(svg, "target")
    (bar,) = classes(svg, "reach")
    said = [each.text for each in svg.iter("title")]
    assert "p = 8: 3.00 s measured" in said
    (predicted,) = classes(drawn(plain), "target")
    assert sign.get("d") != predicted.get("d")
    ends = [float(bar.get(name)) for name in ("y1", "y2")]
    (beside,) = classes(drawn(plain), "reach")
    assert ends != [float(beside.get(name)) for name in ("y1", "y2")]


def test_where_everything_is_zero_there_is_no_figure():
    nothing = dict.fromkeys(("value", "low", "high"), np.zeros(50))
    made = replace(curve(), measured=np.zeros(3), **nothing)
    assert figure(made, "s", "p", key="c-1", label="") == ""
