"""The interactive page under Chromium: its numbers are those of the library."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.modeling.products import (
    TO_OTHERS,
    TRANSPOSED,
    Break,
    BreakKind,
    breaks,
)
from callpath_modeler.modeling.shapes import shape_table
from callpath_modeler.modeling.terms import Term
from callpath_modeler.report.model_formulas import growth_range_texts
from callpath_modeler.report.page import page_data as stored
from callpath_modeler.report.page.document import page
from callpath_modeler.studies.loading import load
from callpath_modeler.studies.pipeline import fit
from callpath_modeler.studies.study import Study
from chromium import driven, needs_browser, opened
from synthetic import fitted
from unit.report.page.test_page import WICKED, content, large, renamed

SAMPLES = Path(__file__).parents[4] / "sample_profiles"
pytestmark = needs_browser

NUMBERS = """
  const model = await unpack(document.getElementById("data").textContent);
  const plain = (x) => Number.isNaN(x) ? "nan" : x === Infinity ? "inf" : x;
  return %s.map((p) => {
    const values = model.at(p), total = [values.total, values.low, values.high].map(plain);
    const told = { p, total, basis: values.isMeasured };
    for (const inclusive of [false, true]) {
      told[inclusive] = Array.from({ length: model.size }, (_, row) => [
        values.value(row, inclusive), ...values.band(row, inclusive), values.share(row, inclusive),
        values.excess(row, inclusive), values.trust(row, inclusive)].map(plain));
    }
    return told;
  });
"""


def numbers(models, targets, tmp_path, **options):
    """Return what the page computes at each target."""
    text = page(content(models, options.pop("target", 1000.0), **options))
    return driven(text, NUMBERS % json.dumps(targets), tmp_path / "page.html")


@cache
def models_of(sample):
    """Return the models of a sample, which no test changes."""
    return fit(load([SAMPLES / sample]))


def as_array(rows):
    return np.array(rows, float)  # "nan" and "inf" are texts in JSON


def library(models, target):
    made = answer_at(models, target)
    columns = [
        np.stack([v.value, v.low, v.high, v.share, v.excess, v.trust], axis=1)
        for v in made.call_paths
    ]
    return made, columns


@pytest.mark.parametrize("sample", ["stencil", "snap", "lulesh"])
def test_numbers_of_all_call_paths_are_those_of_the_library(sample, tmp_path):
    models = models_of(sample)
    last = float(models.points[-1])
    ranking = content(models, 1000.0).ranking
    grid = stored.targets_of_page(ranking)
    targets = [*models.points.tolist(), 1000.0, float(grid[5]), float(grid[-1]), 4 * last]
    targets = [t for t in targets if t in grid or t in models.points]
    assert len(targets) >= len(models.points) + 3
    for told in numbers(models, targets, tmp_path):
        made, columns = library(models, told["p"])
        assert told["basis"] == (made.repetitions > 0)
        np.testing.assert_allclose(as_array(told["total"]), made.program_total, rtol=1e-9)
        for key, expected in zip(("false", "true"), columns, strict=True):
            found = as_array(told[key])
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=told["p"])


@pytest.mark.parametrize("sample", ["stencil", "snap", "lulesh"])
def test_bands_between_targets_are_within_two_percent_or_left_out(sample, tmp_path):
    models = models_of(sample)
    grid = stored.targets_of_page(content(models, 1000.0).ranking)
    part = np.resize([0.3, 0.5], len(grid) - 1)
    targets = (grid[1:] ** part * grid[:-1] ** (1 - part))[1:].tolist()
    shown = left_out = 0
    for told in numbers(models, targets, tmp_path):
        made, columns = library(models, told["p"])
        np.testing.assert_allclose(told["total"][0], made.program_total[0], rtol=0.02)
        for key, expected in zip(("false", "true"), columns, strict=True):
            found, counts = as_array(told[key]), np.nan_to_num(expected[:, 3]) > 1e-4
            ours, theirs = found[counts, :3], expected[counts, :3]
            is_shown = np.isfinite(ours)
            np.testing.assert_allclose(ours[is_shown], theirs[is_shown], rtol=0.02)
            assert is_shown[:, 0].all()  # values always are
            shown += int(is_shown.all(axis=1).sum())
            left_out += int((~is_shown & np.isfinite(theirs)).any(axis=1).sum())
    assert left_out < 0.05 * shown


def test_every_shape_has_the_values_of_the_library(tmp_path):
    points = np.array([2.0, 4, 8, 16, 32, 64, 128])
    terms = [Term(Fraction(n, 6), log) for n in range(-12, 19, 3) for log in (0, 1, 2)]
    terms += [Term(Fraction(1, 2), 0, Fraction(1, 64)), Term(Fraction(1), Fraction(1, 2))]
    shapes = [*terms, *breaks(points), TO_OTHERS, TRANSPOSED]
    assert {shape.kind for shape in shapes if isinstance(shape, Break)} == set(BreakKind)
    targets = [1.0, 2.0, 3.3, 8.0, 11.5, 31.0, 64.0, 128.0, 500.0, 4096.0, 1e6]
    listed = json.dumps([stored.shape_numbers(shape) for shape in shapes])
    act = f"""return {listed}.map(([kind, ...numbers]) => {targets}.map((p) => {{
      const value = SHAPES[kind](p, ...numbers);
      return Number.isFinite(value) ? value : value > 0 ? "inf" : "nan";
    }}));"""
    found = as_array(driven(page(content()), act, tmp_path / "page.html"))
    expected = shape_table(shapes, np.array(targets))[:-1]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_models_with_a_change_point_have_their_earlier_law(tmp_path):
    models = content().ranking.fitted
    laws, rows = models.models, len(models.models)
    since, before = np.full(rows, np.nan), np.full(rows, -1, np.int16)
    coefficients = np.zeros((rows, 2))
    since[1:3], before[2], coefficients[1:3] = 12.0, 0, [[3.0, 0.0], [0.5, 0.25]]
    laws = replace(laws, since=since, before=before, before_coefficients=coefficients)
    models = replace(models, models=laws, run_time=None)
    for told in numbers(models, [5.0, 13.0], tmp_path, target=64.0):
        expected = laws.values(np.array([told["p"]]))[:, 0]
        np.testing.assert_allclose(as_array(told["false"])[:, 0], expected, rtol=1e-9)


def test_other_call_paths_have_bands_within_two_percent(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "MAIN", 10)
    models = models_of("lulesh")
    (told,) = numbers(models, [1000.0], tmp_path)
    _, columns = library(models, 1000.0)
    for key, expected in zip(("false", "true"), columns, strict=True):
        np.testing.assert_allclose(as_array(told[key])[:, :3], expected[:, :3], rtol=0.02)


UI = """
  await ready();
  const all = (text) => [...document.querySelectorAll(text)];
  const one = (text) => document.querySelector(`#explore ${text}`);
  const fire = (found, kind) => found.dispatchEvent(new Event(kind, { bubbles: true }));
  const value = (kind = "value") => Object.fromEntries(all("#explore tr[data-row]").map((line) =>
    [line.dataset.row, Number(line.querySelector(`td.${kind} data`)?.value)]));
  const told = { first: value(), excess: value("excess") };
  one(".tools input[type=text]").value = "512";
  fire(one(".tools input[type=text]"), "change");
  told.typed = value();
  one(".tools input[type=range]").value = 0;
  fire(one(".tools input[type=range]"), "input");
  told.slid = [one(".tools input[type=text]").value, one(".basis").textContent, value()];
  one(".tools input[type=text]").value = "1e9";
  fire(one(".tools input[type=text]"), "change");
  told.refused = one(".basis").textContent;
  one(".tools input[type=search]").value = "mpi_";
  fire(one(".tools input[type=search]"), "input");
  told.names = all("#explore tr[data-row] td.name").map((each) => each.textContent);
  told.marked = all("#explore .frame.found").length;
  one(".tools input[type=search]").value = "";
  fire(one(".tools input[type=search]"), "input");
  const third = all("#explore tr[data-row]")[2];
  third.click();
  told.chosen = [third.dataset.row, one(".details strong").textContent,
    all("#explore .chosen").map((each) => each.dataset.row), all("#explore .curve circle").length];
  third.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
  told.next = [document.activeElement.dataset.row, all("#explore tr[data-row]")[3].dataset.row];
  third.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  const widest = (row) => Number(one(`.frame[data-row="${row}"] rect`)?.getAttribute("width"));
  told.zoomed = [widest(third.dataset.row), one(".flame").clientWidth];
  all("#explore .tabs button")[1].click();
  told.tree = all("#explore .node").length;
  const frame = one(".frame");
  frame.dispatchEvent(new PointerEvent("pointermove", { clientX: 10, clientY: 10, bubbles: true }));
  told.tip = one(".tip").textContent;
  const kind = all("#explore .tools select")[1];
  kind.value = "true";
  fire(kind, "change");
  all("#explore .tabs button")[0].click();
  told.inclusive = value();
  one("tr[data-row]").click();
  const [, , beside] = all("#explore .tools select, #explore .tools input");
  beside.value = "32";
  fire(beside, "change");
  told.beside = Object.fromEntries(all("#explore tr[data-row]").map((line) => [line.dataset.row,
    ["measured", "ratio"].map((name) => line.querySelector(`td.${name} data`)?.value)]));
  return told;
"""


def test_one_target_and_one_selection_move_every_view(tmp_path):
    models = models_of("stencil")
    told = driven(page(content(models, 1024.0)), UI, tmp_path / "page.html")
    for key, target in (("first", 1024.0), ("typed", 512.0)):
        (own, _), shown = answer_at(models, target).call_paths, told[key]
        found = {int(row): value for row, value in shown.items()}
        assert len(found) == int(np.isfinite(own.value).sum())
        for row, value in found.items():
            assert value == pytest.approx(own.value[row], rel=1e-9)
    at, basis, slid = told["slid"]
    assert (at, basis) == ("8", "measured")
    own, _ = answer_at(models, 8.0).call_paths
    assert slid["0"] == pytest.approx(own.value[0], rel=1e-9)
    assert "targets from 8 to 8192" in told["refused"]
    assert told["names"]
    assert all("mpi_" in name.rpartition("/")[2].lower() for name in told["names"])
    assert told["marked"]
    excess = {int(row): value for row, value in told["excess"].items()}
    assert excess[0] == pytest.approx(answer_at(models, 1024.0).call_paths[0].excess[0], rel=1e-9)
    row, name, chosen, points = told["chosen"]
    assert models.experiment.tree.name(int(row)) == name
    assert chosen == [row] * len(chosen)
    assert len(chosen) >= 2  # a line of the ranking, and a frame
    assert points >= 5
    assert told["next"][0] == told["next"][1]
    width, whole = told["zoomed"]
    assert width == pytest.approx(whole, abs=4)
    assert told["tree"] > 5
    assert "exclusive" in told["tip"]
    assert "inclusive" in told["tip"]
    _, below = answer_at(models, 8.0).call_paths
    _, there = answer_at(models, 32.0).call_paths
    first, change = map(float, told["beside"]["0"])
    assert first == pytest.approx(there.value[0], rel=1e-9)
    assert change == pytest.approx(below.value[0] / there.value[0], rel=1e-9)
    assert told["inclusive"]["0"] == pytest.approx(below.value[0], rel=1e-9)


@cache
def page_of_training():
    """Return a page that is looked at in several widths."""
    return page(content(models_of("ddp"), 16.0))


@pytest.mark.parametrize("width", [400, 900, 1400, 1920, 2560])
def test_no_width_scrolls_sideways(tmp_path, width):
    act = """await ready();
      const page = document.documentElement, all = [...document.querySelectorAll("#explore *")];
      const right = Math.max(...all.filter((each) => !each.closest(".frames, .card"))
        .map((each) => each.getBoundingClientRect().right));
      const list = document.querySelector(".list"), found = [list.scrollWidth, list.clientWidth];
      document.querySelectorAll("#explore .tabs button")[1].click();
      return [page.scrollWidth, page.clientWidth, right, ...found, list.scrollWidth];"""
    told = driven(page_of_training(), act, tmp_path / "page.html", width)
    whole, seen, right, ranking, room, tree = told
    assert whole <= seen
    assert right <= seen + 1
    assert max(ranking, tree) <= room


def test_the_policy_of_the_page_lets_its_script_run_and_nothing_else(tmp_path):
    path = tmp_path / "page.html"
    text = page(content(renamed(WICKED)))
    path.write_text(text.replace("</main>", "<script>document.title = 'bad'</script></main>"))
    shown, said = opened(path)
    assert 'data-ready="yes"' in shown
    assert "<title>bad" not in shown
    assert said.count("Refused to execute") + said.count("violates the following") == 1


def test_series_without_models_and_without_costs_have_a_page(samples, tmp_path):
    nan = float("nan")
    series = (
        fitted({"main": [0] * 5, "main/f": [0] * 5}),
        fitted({"main": [1, nan, nan, nan, 2], "main/f": [nan, nan, nan, 1, 1]}),
        Study(samples / "stencil.p1024").measured("time"),
        Study(samples / "stencil").measured("time", pairs=[(8.0, 64.0)]),
    )
    act = """await ready();
      document.querySelector("#explore .tabs button:nth-child(2)").click();
      return document.getElementById("explore").textContent;"""
    for models in series:
        text = page(content(models, float(models.points[-1])))
        told = driven(text, act, tmp_path / "page.html")
        assert "measured" in told
        assert "NaN" not in told
        assert "undefined" not in told


def test_chains_of_calls_may_be_deep(tmp_path):
    text = page(content(large(6_000, 5_990)))
    act = """await ready();
      const explorer = new Explorer(await unpack(data), document.createElement("section"));
      explorer.select(5989);
      return [explorer.details.querySelector("strong").textContent,
        document.querySelectorAll("#explore tr[data-row]").length];"""
    act = f'const data = document.getElementById("data").textContent; {act}'
    name, lines = driven(text, act, tmp_path / "page.html")
    assert name.endswith("_5989")
    assert lines == 100


def test_wicked_names_are_text(tmp_path):
    text = page(content(renamed(WICKED)))
    act = """await ready();
      document.querySelector("#explore .tabs button:nth-child(2)").click();
      return [document.querySelectorAll("#explore script").length,
        [...document.querySelectorAll("#explore .node .name")].map((each) => each.textContent)];"""
    count, names = driven(text, act, tmp_path / "page.html")
    assert count == 0
    assert any("</code>" in name or "std::map" in name for name in names)


GROWTHS = """
  const model = await unpack(document.getElementById("data").textContent);
  const text = (codes) => [...codes].map((code) => (code < 0 ? "" : model.growthTexts[code]));
  return [text(model.growthText), text(model.growthTextBelow)];
"""


def test_growths_are_the_ranges_of_the_ranking(tmp_path):
    study = Study(str(SAMPLES / "lulesh"))
    rankings = [study.ranking(target=1000.0, inclusive=each) for each in (False, True)]
    text = page(content(rankings[0].fitted, 1000.0))
    found = driven(text, GROWTHS, tmp_path / "page.html")
    for ranking, shown in zip(rankings, found, strict=True):
        rows = np.arange(len(ranking.tree))
        assert shown == growth_range_texts(ranking, rows, pretty=True)
        assert any("…" in each for each in shown)
