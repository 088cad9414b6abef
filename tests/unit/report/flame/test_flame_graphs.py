"""Flame graphs: widths, colours, merged frames and foreign names."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace

import html5lib
import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import UsageError
from callpath_modeler.modeling import Growth
from callpath_modeler.modeling.growth import CONSTANT_GROWTH
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import Metric, Region
from callpath_modeler.report.flame_graph import (
    DEEPEST,
    LARGEST,
    LEAST,
    OTHER,
    ColorBy,
    flame_svg,
    layout,
    of_losses,
    of_ranking,
    plain,
)
from callpath_modeler.report.page.page_data import GROWTHS, growth_class
from cells import cells
from synthetic import chain, experiment

SVG = "{http://www.w3.org/2000/svg}"
POINTS = (2.0, 4.0, 8.0, 16.0, 32.0)
NAN = float("nan")
LAWS = {
    "main": [1.0] * 5,
    "main/solve": [8.0] * 5,
    "main/solve/halo": [0.1 * p for p in POINTS],
    "main/shrinks": [16 / p for p in POINTS],
    "main/log": [float(np.log2(p)) for p in POINTS],
    "main/gone": [1.0, 1.0, 1.0, 1.0, NAN],
}


def drawn(flame):
    return ET.fromstring(flame_svg(flame))  # noqa: S314 - ours


def frames(svg):
    """The frames by name: (class, x, width, lines of the title)."""
    found = {}
    for group in svg.iter(f"{SVG}g"):
        name, *told = group.find(f"{SVG}title").text.split("\n")
        rect = group.find(f"{SVG}rect")
        at = float(rect.get("x")), float(rect.get("width"))
        found[name] = (group.get("class").split()[1], *at, told)
    return found


def texts(svg):
    return [text.text or "" for text in svg.iter(f"{SVG}text")]


@pytest.fixture(scope="module")
def made():
    return experiment(LAWS, POINTS)


@pytest.fixture(scope="module")
def fitted(made):
    return cpm.fit(made)


# Layout


def test_widths_are_inclusive_costs_and_callees_are_inside_of_their_callers(made):
    found = frames(drawn(of_losses(cpm.losses(made), ColorBy.EXCESS)))
    costs = [1.0, 8.0, 3.2, 0.5, 5.0]
    _, x, width, told = found["main"]
    assert (x, width) == (10, 1180)
    assert told[0] == "17.7 s, 100.0 %; 1.00 s exclusive"
    assert found["solve"][2] == pytest.approx(1180 * (8 + 3.2) / sum(costs), abs=0.01)
    for caller, callee in (("main", "solve"), ("solve", "halo"), ("main", "log")):
        (_, x, width, _), (_, at, inner, _) = found[caller], found[callee]
        assert x <= at
        assert at + inner <= x + width + 0.01


def test_every_call_path_has_a_frame_or_is_counted_in_one():
    rng = np.random.default_rng(5)
    for _ in range(30):
        parents = [-1]
        for row in range(1, int(rng.integers(2, 400))):
            above = [row - 1]
            while parents[above[-1]] != -1:
                above.append(parents[above[-1]])
            parents.append(int(rng.choice(above)))
        tree = CallTree.from_parents(parents, np.zeros(len(parents), int), [Region("f")])
        own = rng.pareto(0.5, len(parents)) * (rng.random(len(parents)) < 0.8) + 1e-30
        inclusive = tree.inclusive(own * (rng.random() < 0.9))
        if not inclusive[0] > 0:
            continue
        for least in (0.0, 0.001, 0.1, 2.0):
            placed = layout(tree, inclusive, least)
            counted = sum(frame.callpaths for frame in placed.frames) + placed.without_cost
            assert counted == len(tree)
            rows = [frame.row for frame in placed.frames if frame.row != OTHER]
            assert len(set(rows)) == len(rows)
            assert all(inclusive[row] >= least * inclusive[0] for row in rows)
            by_level = Counter()
            for frame in placed.frames:
                by_level[frame.depth] += frame.width
                assert frame.left >= -1e-9
                assert frame.left + frame.width <= 1 + 1e-9
            assert max(by_level.values()) <= 1 + 1e-9


def test_narrow_siblings_share_a_visible_frame_that_tells_how_many():
    values = {"main": [1.0, 1.0], **{f"main/f{k}": [1e-4, 1e-4] for k in range(50)}}
    svg = drawn(of_losses(cpm.losses(experiment(values, (2.0, 4.0))), ColorBy.EXCESS))
    kind, _, width, told = frames(svg)["other: 50 call paths"]
    assert kind == "o"
    assert width == pytest.approx(1180 * 0.005 / 1.005, abs=0.01)
    assert told[0] == "5.00 ms, 0.5 %"
    note = "other: 50 call paths in 1 hatched frame: narrower than 0.1 % of the width"
    assert any(text.startswith(note) for text in texts(svg))


def test_what_costs_nothing_has_no_frame_and_is_counted(made):
    svg = drawn(of_losses(cpm.losses(made), ColorBy.EXCESS))
    assert "gone" not in frames(svg)
    assert "without a frame: 1 call path without cost at this scale" in texts(svg)
    assert any(text.startswith("no width: 1 call path without own cost at p = 32") for text in
               texts(svg))  # fmt: skip


def deep(depth):
    made = experiment({"main": [1.0, 2.0]}, (2.0, 4.0))
    column = replace(made.columns["time"], exclusive=np.ones((depth, 2)) * [1.0, 2.0])
    return replace(made, tree=chain(depth), columns={"time": column})


def test_a_thousand_levels_have_frames():
    found = of_losses(cpm.losses(deep(1000)), ColorBy.EXCESS)
    placed = layout(found.tree, found.inclusive, LEAST)
    assert placed.levels == 1000
    assert len(flame_svg(found).encode()) < LARGEST


def test_levels_that_are_too_deep_share_a_frame():
    found = of_losses(cpm.losses(deep(3000)), ColorBy.EXCESS)
    placed = layout(found.tree, found.inclusive, 0.0)
    (rest,) = placed.others
    assert (rest.depth, rest.callpaths) == (DEEPEST, 3000 - DEEPEST)


def test_with_many_call_paths_and_long_names_a_picture_is_below_its_limit():
    parents = [-1]
    for _ in range(900):
        parents += [0, *range(len(parents), len(parents) + 110)]
    names = [Region("名" * 200 + str(k)) for k in range(500)]
    numbers = np.arange(len(parents)) % len(names)
    tree = CallTree.from_parents(parents, numbers, names)
    made = experiment({"main": [1.0, 2.0]}, (2.0, 4.0))
    own = np.random.default_rng(1).random((len(tree), 2))
    column = replace(made.columns["time"], exclusive=own)
    many = replace(made, tree=tree, columns={"time": column})
    text = flame_svg(of_losses(cpm.losses(many), ColorBy.EXCESS))
    assert len(tree) > 99_000
    assert len(text.encode()) < LARGEST
    counted = sum(int(n) for n in re.findall(r"<title>other: (\d+) call path", text))
    shown = text.count('<g class="f c') + text.count('<g class="f l')
    assert counted + shown == len(tree)


def test_several_roots_share_the_width():
    svg = drawn(of_losses(cpm.losses(experiment({"a": [1.0, 1.0], "b": [3.0, 3.0]}, (2.0, 4.0))),
                          ColorBy.EXCESS))  # fmt: skip
    assert {name: round(at[2]) for name, at in frames(svg).items()} == {"a": 295, "b": 885}


# Colours


def steps(flame):
    return dict(zip(flame.tree.paths(range(len(flame.tree))), flame.colours.tolist(), strict=True))


def test_colours_are_the_part_of_the_cost_that_is_excess_work(made):
    losses = cpm.losses(made)
    flame = of_losses(losses, ColorBy.EXCESS)
    found = steps(flame)
    assert found["main/solve"] == round(10 * 3.0 / 11.2)
    assert found["main/log"] == 8
    assert found["main/shrinks"] == -10
    excess = losses.excess.exclusive[:, -1]
    own = [re.search(r"([-\d.]+) % exclusive", text)[1] for text in flame.texts[0]]
    np.testing.assert_allclose(np.array(own, float), 100 * np.nan_to_num(excess), atol=0.051)


@pytest.mark.parametrize("scaling", ["weak", "strong"])
def test_excess_work_at_a_target_is_that_of_the_ranking(scaling):
    made = replace(experiment(LAWS, POINTS), scaling=cpm.Scaling(scaling))
    ranking = cpm.rank(cpm.fit(made), 256)
    flame = of_ranking(ranking, ColorBy.EXCESS, None, at_largest=False)
    said = [re.search(r": ([-\d.]+) % of the total", text)[1] for text in flame.texts[0]]
    expected = np.nan_to_num(ranking.excess.inclusive) * 100
    np.testing.assert_allclose(np.array(said, float), expected, atol=0.051)
    np.testing.assert_allclose(flame.exclusive, np.nan_to_num(ranking.value))


def test_a_share_that_has_grown_is_red_and_one_that_has_shrunk_is_blue(made):
    svg = drawn(of_losses(cpm.losses(made, base=8), ColorBy.SHARE))
    found = frames(svg)
    assert found["halo"][0].startswith("c")
    assert found["shrinks"][0].startswith("l")
    assert found["main"][0] == "c0"
    before, after = 0.8 / (1 + 8 + 0.8 + 2 + 3 + 1), 3.2 / 17.7
    assert found["halo"][0] == f"c{round(10 * (after - before) / after)}"
    assert found["halo"][3][1] == f"share: {before:.1%} at p = 8, {after:.1%} at p = 32".replace(
        "%", " %"
    )


def test_growth_colours_each_call_path_by_its_own_model(fitted):
    flame = of_ranking(cpm.rank(fitted, 64), ColorBy.GROWTH, None, at_largest=True)
    found = steps(flame)
    assert GROWTHS[found["main/solve/halo"]] == "linear"
    assert GROWTHS[found["main/shrinks"]] == GROWTHS[found["main"]] == "O(1) or falling"
    assert found["main/gone"] == -1
    np.testing.assert_allclose(flame.exclusive, np.nan_to_num(fitted.measured[:, -1]))
    assert "exclusive cost grows as O(p)" in frames(drawn(flame))["halo"][3]


def test_growths_are_in_the_order_of_their_classes():
    growths = [Growth(-1, 0), CONSTANT_GROWTH, Growth(0, 2), Growth(1, 0) ** 0, Growth(1, 0) ** 1]
    assert [growth_class(growth) for growth in growths[:3]] == [0, 0, 1]
    assert growth_class(Growth(1, 0)) == 3
    assert growth_class(Growth(1, -1)) == 2
    assert growth_class(Growth(1, 1)) == growth_class(Growth(2, 0)) == 4
    assert growth_class(Growth(0, 0, 1)) == 4


def test_one_profile_has_a_picture_without_colours():
    one = experiment({"main": [1.0], "main/f": [2.0]}, (2.0,))
    svg = drawn(plain(one, one.metric(None), np.array([1.0, 2.0])))
    assert {found[0] for found in frames(svg).values()} == {"c0"}
    assert not any(text.startswith("colour") for text in texts(svg))


def test_call_paths_without_a_model_are_named_at_a_target():
    values = {"main": POINTS, "main/once": [NAN] * 3 + [1.0, 2.0]}
    ranking = cpm.rank(cpm.fit(experiment(values, POINTS)), 64)
    svg = drawn(of_ranking(ranking, ColorBy.EXCESS, None, at_largest=False))
    assert any(text.startswith("not modelled: 1 call path") for text in texts(svg))


@pytest.mark.parametrize("base", [3, 64, 128])
def test_a_base_is_a_measured_scale_below_the_target(fitted, base):
    with pytest.raises(UsageError, match="no measured scale below the target"):
        of_ranking(cpm.rank(fitted, 64), ColorBy.EXCESS, base, at_largest=False)


def test_what_does_not_add_up_has_no_flame_graph():
    least = Metric("least", "s", additive=False)
    one = experiment({"main": [1.0]}, (2.0,), metric=least)
    with pytest.raises(UsageError, match="does not add up"):
        plain(one, least, np.ones(1))


def test_where_all_is_zero_there_is_no_flame_graph():
    one = experiment({"main": [0.0]}, (2.0,))
    with pytest.raises(UsageError, match="zero everywhere"):
        plain(one, one.metric(None), np.zeros(1))


# Foreign names

HOSTILE = (
    "</title><script>alert(1)</script>",
    "]]></script><script>alert(1)</script>",
    '" onload="alert(1)',
    "&lt;b&gt;&amp;",
    "\x1b[31m\0\x07\u202e\ufffe",
    "\ud800",
    "${alert(1)}`",
    "*/ fill: red } /*",
    "<!--",
    "x" * 100_000,
)


@cells("name", HOSTILE)
def test_hostile_names_are_nothing_but_text(name):
    short = name.replace("/", ":")
    tree = {"main": [1.0, 1.0], f"main/{short}": [3.0, 5.0]}
    hostile = experiment(tree, (2.0, 4.0), metric=Metric(f"t{name[:50]}", f"s{name[:50]}"))
    harmless = experiment({"main": [1.0, 1.0], "main/f": [3.0, 5.0]}, (2.0, 4.0))
    hostile = replace(hostile, name=name[:300])
    text, other = (
        flame_svg(of_losses(cpm.losses(each), ColorBy.EXCESS)) for each in (hostile, harmless)
    )
    text.encode()
    assert len(text) < 60_000
    for parse in (parsed_as_xml, parsed_as_html):
        assert parse(text) == parse(other)
    svg = ET.fromstring(text)  # noqa: S314 - ours
    assert not [*svg.iter(f"{SVG}script")]
    assert all(name not in style.text for style in svg.iter(f"{SVG}style"))
    assert not any(ord(sign) < 32 and sign != "\n" for sign in text)
    assert "\u202e" not in text


def parsed_as_xml(text):
    return Counter(
        (each.tag, tuple(sorted(each.attrib)))
        for each in ET.fromstring(text).iter()  # noqa: S314
    )


def parsed_as_html(text):
    body = text.partition("?>")[2]
    tree = html5lib.parse(f"<!doctype html><title>x</title>{body}", namespaceHTMLElements=False)
    return Counter((str(each.tag), tuple(sorted(map(str, each.attrib)))) for each in tree.iter())


def test_the_same_flame_graph_is_the_same_file(made):
    one, other = (flame_svg(of_losses(cpm.losses(made), ColorBy.EXCESS)) for _ in range(2))
    assert one == other


def test_a_flame_graph_needs_nothing_from_elsewhere(made):
    text = flame_svg(of_losses(cpm.losses(made), ColorBy.EXCESS))
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in text
