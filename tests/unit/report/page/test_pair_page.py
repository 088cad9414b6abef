"""The page of two experiments: its numbers are those of the comparison, under Chromium."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.difference import Differences
from callpath_modeler.profile.schema import Metric
from callpath_modeler.report.page import pair_data as stored
from callpath_modeler.report.page.pair_page import pair_page
from chromium import driven, needs_browser, opened
from synthetic import experiment
from unit.report.page.test_page import WICKED, Parsed

POINTS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
P = np.array(POINTS)
BASE = {
    "main": 5 + 0 * P,
    "main/f": 0.2 * P,
    "main/f/MPI_Wait": 0.02 * P**1.5,
    "main/g": 3 + 0 * P,
    "main/gone": 0.4 * P**0.5,
    "main/zero": 0 * P,
}
NEW = {
    **{name: law for name, law in BASE.items() if name != "main/gone"},
    "main/f": 0.5 * P,
    "main/g": 2 + 0.01 * P,
    "main/fresh": 0.3 * P,
}


def repeated(laws, *, points=POINTS, seed=1, **options):
    """Return an experiment with three repetitions that scatter by 1 %."""
    noise = np.random.default_rng(seed)
    values = {
        name: np.asarray(law)[: len(points), None] * noise.lognormal(0, 0.01, (len(points), 3))
        for name, law in laws.items()
    }
    return experiment(values, points, **options)


def compared(target=300.0, base=None, new=None, **options):
    """Return a comparison of models of two experiments."""
    sides = base or repeated(BASE), new or repeated(NEW, seed=2)
    if target is None:
        return cpm.compare(*sides, **options)
    return cpm.compare(*map(cpm.fit, sides), target=target, **options)


NUMBERS = """
  const model = await unpack(document.getElementById("data").textContent);
  const plain = (x) => Number.isNaN(x) ? "nan" : x === Infinity ? "inf" : x;
  return %s.map((p) => {
    const values = model.at(p), told = {};
    for (const inclusive of [false, true]) {
      const { gap, mark } = values.all(inclusive);
      told[`total ${inclusive}`] = [values.former.total, values.total, ...gap, mark].map(plain);
      told[inclusive] = Array.from({ length: model.size }, (_, row) => [
        values.former.value(row, inclusive), values.value(row, inclusive),
        values.change(row, inclusive), ...values.gap(row, inclusive),
        values.mark(row, inclusive)].map(plain));
    }
    return told;
  });
"""


def numbers(found, targets, tmp_path):
    """Return what the page computes at each target."""
    return driven(pair_page(found), NUMBERS % json.dumps(targets), tmp_path / "page.html")


def library(found, target):
    """Return the differences at a target as the command finds them."""
    differences = Differences(found.pair, found.confidence)
    for inclusive in (False, True):
        whole = differences.at(target, inclusive=inclusive)
        changes = whole.at_target
        mark = np.where(np.isnan(changes.p), stored.UNTESTED, changes.mark)
        ends = 1 + np.stack([changes.low, changes.high])
        yield np.stack([changes.base, changes.new, changes.change, *ends, mark], axis=1)


@needs_browser
@pytest.mark.parametrize("main", [stored.MAIN, 3])
def test_numbers_of_all_call_paths_are_those_of_the_comparison(tmp_path, monkeypatch, main):
    monkeypatch.setattr(stored, "MAIN", main)
    made = compared()
    found = made.difference
    targets = [2.0, 16.0, 64.0, 128.0, 300.0, 1024.0]
    tolerance = {"rtol": 1e-6 if main > 10 else 2e-3, "atol": 1e-12}
    marks = set()
    for target, told in zip(targets, numbers(made, targets, tmp_path), strict=True):
        for inclusive, expected in zip(("false", "true"), library(found, target), strict=True):
            shown = np.array(told[inclusive], float)
            np.testing.assert_allclose(shown, expected[:-1], **tolerance, err_msg=f"p = {target}")
            total = np.array(told[f"total {inclusive}"], float)
            np.testing.assert_allclose(total, expected[-1, [0, 1, 3, 4, 5]], rtol=1e-6)
            marks |= set(expected[:, -1].tolist())
    assert marks >= {-1, 0, 1}


@needs_browser
def test_values_between_two_stops_have_no_interval_and_the_doubts_of_both(tmp_path):
    made = compared()
    found = made.difference
    differences = Differences(found.pair, found.confidence)
    stops = [stop for stop in stored._stops(differences, found, 300.0) if not stop.is_measured]
    near = [stops[sum(stop.at < 70 for stop in stops) - k] for k in (1, 0)]
    assert near[0].at < 70 < near[1].at
    (told,) = numbers(made, [70.0], tmp_path)
    marks = set()
    for k, (inclusive, expected) in enumerate(
        zip(("false", "true"), library(found, 70.0), strict=True)
    ):
        shown = np.array(told[inclusive], float)
        np.testing.assert_allclose(shown[:, :2], expected[:-1, :2], rtol=1e-3, atol=1e-12)
        assert np.isnan(shown[:, 3:5]).all()
        in_doubt = np.any([stored._marks(stop.views[k]) == 0 for stop in near], axis=0)
        expected_marks = np.where(in_doubt, 0, stored.UNTESTED)
        assert shown[:, 5].tolist() == expected_marks[:-1].tolist()
        assert told[f"total {inclusive}"][-1] == expected_marks[-1]
        marks |= set(shown[:, 5].tolist())
    assert marks == {0, stored.UNTESTED}


@needs_browser
def test_predictions_are_shown_at_measured_scales_if_they_were_asked_for(tmp_path):
    made = compared(target=64.0, predicted=True)
    (told,) = numbers(made, [64.0], tmp_path)
    predicted = made.difference.predicted
    shown = np.array(told["false"], float)
    np.testing.assert_allclose(shown[:, 0], predicted.base[:-1], rtol=1e-6)
    np.testing.assert_allclose(shown[:, 1], predicted.new[:-1], rtol=1e-6)


UI = """
  await ready();
  const all = (text) => [...document.querySelectorAll(text)];
  const one = (text) => document.querySelector(`#explore ${text}`);
  const fire = (place, kind) => place.dispatchEvent(new Event(kind, { bubbles: true }));
  const name = (line) => line.querySelector(".name code").title;
  const told = (line, kind) =>
    line.querySelector(`td.${kind} data`)?.value ?? line.querySelector(`td.${kind}`).textContent;
  const lines = () => all("#explore tr[data-row]").map((line) => [
    name(line), ...["base", "new", "change", "ratio"].map((kind) => told(line, kind))]);
  const found = { first: lines(), lede: one(".lede").textContent };
  one(".tools input[type=text]").value = "64";
  fire(one(".tools input[type=text]"), "change");
  found.measured = [one(".basis").textContent, lines()];
  all("#explore tr[data-row]").find((line) => name(line) === "main/f").click();
  found.details = one(".details").textContent;
  found.marks = ["circle.new", ".point.base", "path.model.new", "path.model.base"].map(
    (kind) => all(`.curve svg[role=img] ${kind}`).length);
  found.frames = all("#explore .frame rect").map((each) => each.getAttribute("fill"));
  const frames = one(".tools select");
  frames.value = "base";
  fire(frames, "change");
  found.base = all("#explore .frame").map((each) => each.getAttribute("aria-label"));
  all("#explore .tabs button")[1].click();
  found.tree = all("#explore .node .name").map((each) => each.textContent);
  found.bad = /NaN|undefined/.test(document.getElementById("explore").textContent);
  return found;
"""


@needs_browser
def test_one_target_and_one_selection_move_both_experiments(tmp_path):
    made = compared()
    told = driven(pair_page(made), UI, tmp_path / "page.html")
    found = made.difference
    paths = [found.pair.tree.path(row) for row in found.order.tolist()]
    assert [line[0] for line in told["first"]] == paths  # the order of the command
    changes = found.at_target
    for (_, base, new, change, _), row in zip(told["first"], found.order.tolist(), strict=True):
        for shown, column in ((base, changes.base), (new, changes.new), (change, changes.change)):
            expected = float(column[row])
            assert shown == "-" if np.isnan(expected) else float(shown) == pytest.approx(expected)
    named = {line[0]: line[4] for line in told["first"]}
    assert named["main/gone"] == "gone"
    assert named["main/fresh"] == "new"
    assert " in base, " in told["lede"]
    basis, lines = told["measured"]
    assert basis.startswith("measured")
    first = next(line for line in lines if line[0] == "main/f")
    assert float(first[2]) / float(first[1]) == pytest.approx(2.5, rel=0.03)
    assert "beyond noise" in told["details"]
    assert told["marks"][:2] == [len(POINTS)] * 2
    assert min(told["marks"][2:]) >= 1
    assert len(set(told["frames"])) >= 3  # worse, better, doubted
    assert any(text.startswith("gone") for text in told["base"])
    assert any("fresh" in text for text in told["tree"])
    assert not told["bad"]


@needs_browser
@pytest.mark.parametrize("width", [400, 900, 1400, 2560])
def test_no_width_scrolls_sideways(tmp_path, width):
    long = "void very_long_name_of_a_template_instance<double, 3, Kokkos::Serial>(double*)"
    laws = {name.replace("/f", f"/{long}"): law for name, law in NEW.items()}
    made = compared(base=repeated(laws), new=repeated({**laws, "main/g": P}, seed=3))
    act = """await ready();
      const page = document.documentElement, list = document.querySelector(".list");
      const found = [page.scrollWidth - page.clientWidth, list.scrollWidth - list.clientWidth];
      document.querySelectorAll("#explore .tabs button")[1].click();
      return [...found, list.scrollWidth - list.clientWidth];"""
    assert max(driven(pair_page(made), act, tmp_path / "page.html", width)) <= 0


@needs_browser
def test_the_policy_lets_the_script_run_and_names_are_text(tmp_path):
    laws = {name.replace("/f", f"/{WICKED.replace('/', '_')}"): law for name, law in BASE.items()}
    path = tmp_path / "page.html"
    text = pair_page(compared(base=repeated(laws), new=repeated(laws, seed=2)))
    path.write_text(text.replace("</main>", "<script>document.title = 'bad'</script></main>"))
    shown, said = opened(path)
    assert 'data-ready="yes"' in shown
    assert "<title>bad" not in shown
    assert "<script>alert" not in shown
    assert said.count("Refused to execute") + said.count("violates the following") == 1


@needs_browser
def test_two_profiles_of_few_scales_are_compared_as_measured(tmp_path):
    sides = [repeated(laws, points=POINTS[:2], seed=k) for k, laws in enumerate((BASE, NEW))]
    made = compared(None, *sides)
    act = """await ready();
      const told = document.getElementById("explore").textContent;
      return [told, document.querySelectorAll(".curve path.model").length];"""
    text, curves = driven(pair_page(made), act, tmp_path / "page.html")
    assert "measured" in text
    assert "NaN" not in text
    assert not curves


def test_print_and_browsers_without_javascript_have_the_table_of_the_command():
    made = compared()
    told = Parsed(pair_page(made))
    table = cpm.difference_table(made).to_frame()
    for path in table["callpath"]:
        assert path.rpartition("/")[2] in told.words["ranking"].replace(" ", "")
    assert "should be due to chance" in told.words["ranking"]
    assert "before" in told.words["header"]


def test_a_metric_that_does_not_add_up_has_the_table_only():
    least = Metric("least", "s", additive=False)
    sides = [repeated(laws, metric=least, seed=k) for k, laws in enumerate((BASE, NEW))]
    text = pair_page(cpm.compare(*sides))
    assert 'id="data"' not in text
    assert "main" in Parsed(text).words["ranking"]


def test_the_page_is_the_same_for_the_same_experiments():
    assert pair_page(compared()) == pair_page(compared())
    assert not re.search(r'(?:src|href)="(?!#|data:)', pair_page(compared()))
