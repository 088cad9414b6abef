"""Notebook representations, requested as IPython requests them."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.profile.schema import Metric
from callpath_modeler.report.page.notebook import html_of
from callpath_modeler.support.front_ends import HtmlReprMixin
from chromium import needs_browser, opened
from synthetic import experiment

POINTS = (2.0, 4.0, 8.0, 16.0, 32.0)
VALUES = {
    "main": [1.0, 1.0, 1.0, 1.0, 1.0],
    "main/<b>&f": [2.0 * p for p in POINTS],
    "main/once": [float("nan")] * 4 + [1.0],
    "main/zero": [0.0] * 5,
}


class Parts(HTMLParser):
    """A parser that checks that all elements are closed, and collects the text."""

    VOID = frozenset({"wbr", "br", "col"})

    def __init__(self, text):
        super().__init__()
        self.open, self.count, self.said = [], {}, ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):  # noqa: ARG002
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):  # noqa: ARG002
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] != "style":
            self.said += data


@pytest.fixture(scope="module")
def fitted():
    return cpm.fit(experiment(VALUES, POINTS))


def shown(thing):
    assert isinstance(thing, HtmlReprMixin)
    return Parts(thing._repr_html_())


def test_an_experiment_is_what_was_read_and_what_to_know_of_it(fitted):
    found = shown(fitted.experiment)
    assert "4 call paths" in found.said
    assert "CPM" in shown(cpm.load("sample_profiles/lulesh")).said


def test_models_tell_how_they_stand(fitted):
    assert "models of time over p · 4 call paths (" in shown(fitted).said
    assert "too few points: 1" in shown(fitted).said


def test_a_ranking_has_a_chart_in_every_row_and_its_total(fitted):
    ranking = cpm.rank(fitted, target=1024)
    found = shown(ranking)
    assert found.count["svg"] == len(ranking.order) - 1  # what is zero has no scale
    assert "main/<b>&f" in found.said
    assert "b" not in found.count
    assert "at p = 1024" in found.said
    assert "total" in found.said


@pytest.mark.parametrize("target", [16, 32, float("inf")])
def test_rankings_of_all_targets_are_shown(fitted, target):
    assert shown(cpm.rank(fitted, target=target)).count["tr"] > 3


def test_a_model_is_formula_chart_and_what_else_it_could_be(fitted):
    found = shown(fitted["main/<b>&f"])
    assert "time(p) = 2 p  [s]" in found.said
    assert "at p = 128: 256 s" in found.said
    assert found.count["svg"] > 1
    assert "could also be" in found.said


@pytest.mark.parametrize("path", ["main/once", "main/zero", "main"])
def test_what_has_no_model_or_no_chart_is_shown_as_well(fitted, path):
    model = fitted[path]
    assert model.status.replace("_", " ") in shown(model).said.replace("_", " ")
    assert model._repr_latex_().startswith("$")
    assert model._repr_latex_().endswith("$")


def test_a_model_is_mathematics(fitted):
    assert fitted["main/<b>&f"]._repr_latex_() == r"$\mathit{time}(p) = 2\,p$"
    sized = cpm.fit(experiment(VALUES, POINTS, parameter="a size"))
    written = r"$\mathit{time}(\mathit{a\_size}) = 2\,\mathit{a\_size}$"
    assert sized["main/<b>&f"]._repr_latex_() == written


def test_a_metric_of_any_name_is_mathematics(fitted):
    for name, written in {
        "a_b": r"a\_b",
        "50% $": r"50\% \$",
        "a^b\\c": "a b c",
        "%": r"\%",
    }.items():
        named = replace(fitted, metric=replace(fitted.metric, name=name))
        math = named["main/<b>&f"]._repr_latex_()
        assert math == rf"$\mathit{{{written}}}(p) = 2\,p$"


def test_the_chart_of_a_model_is_a_picture_by_itself(fitted):
    root = ET.fromstring(fitted["main/<b>&f"]._repr_svg_())  # noqa: S314 - ours
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(root.findall(".//{*}circle")) == len(POINTS)
    assert root.find("{*}style") is not None


def test_models_of_what_does_not_add_up_and_in_several_parameters_are_shown():
    least = Metric("least", "s", additive=False)
    ranking = cpm.rank(cpm.fit(experiment(VALUES, POINTS, metric=least), "least"), target=64)
    assert "least" in shown(ranking).said
    several = cpm.fit(
        cpm.from_frame(_frame(), callpath="c", parameters=["p", "n"], metrics={"t": "s"})
    )
    assert "over p, n" in shown(several).said
    assert "t(p" in shown(several["f"]).said


def _frame():
    import pandas as pd

    rows = [("f", p, n, p * n) for p in (2, 4, 8, 16, 32) for n in (1, 2, 4, 8, 16)]
    return pd.DataFrame(rows, columns=["c", "p", "n", "t"])


def test_losses_comparisons_and_checks_are_shown(fitted, tmp_path):
    assert "main" in shown(cpm.losses(fitted.experiment)).said
    compared = shown(cpm.compare(fitted, fitted, target=64))
    assert "no difference" in compared.said
    assert "next:" not in compared.said
    path = tmp_path / "e.toml"
    path.write_text(
        'schema = 1\ntarget = { p = 64 }\n[[expect]]\nname = "<i>"\nvalue = "<= 1 ms"\n'
    )
    found = shown(cpm.check(fitted, path))
    assert "FAIL" in found.said
    assert "<i>" in found.said


def test_of_anything_else_it_is_said_that_nothing_is_known():
    with pytest.raises(TypeError, match="7 has no representation in notebooks"):
        html_of(7)


def test_pages_are_not_imported_before_a_notebook_asks():
    script = (
        "import sys, callpath_modeler as cpm; cpm.rank, cpm.fit, cpm.load; "
        "print([n for n in sys.modules if n.startswith('callpath_modeler.report')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


class Frames(HTMLParser):
    """The attributes of frames; a parser of HTML decodes them as a browser does."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        assert tag == "iframe"
        self.found.append(dict(attrs))


def test_a_page_is_in_a_sandbox_of_its_own(fitted):
    for answer in (cpm.rank(fitted, target=64), cpm.compare(fitted, fitted, target=64)):
        made = answer.page(height=700)
        (frame,) = Frames(made._repr_html_()).found
        assert frame["sandbox"] == "allow-scripts"
        assert "height: 700px" in frame["style"]
        assert frame["srcdoc"] == made.text
        assert "default-src &#x27;none&#x27;" in made.text
        assert not re.search(r'(?:src|href)="(?!#|data:)', made.text)
        assert "main/<b>" not in made.text
        assert repr(made).startswith("<Page: ")


@pytest.mark.parametrize("height", [0, 199, 10_001, "900", 9.5, True, None])
def test_a_frame_has_a_height_of_some_pixels(fitted, height):
    with pytest.raises(CallpathModelerError, match="height"):
        cpm.rank(fitted, target=64).page(height)


TELL = """<script>(async () => {
  while (!document.documentElement.dataset.ready) await new Promise((go) => setTimeout(go, 20));
  const one = (text) => document.querySelector(`#explore ${text}`);
  const name = () => one(".details strong").textContent, before = name();
  document.querySelector("header a")?.click();
  await new Promise((go) => setTimeout(go, 200));
  parent.postMessage([one("").className, document.querySelectorAll("#explore .frame").length,
    before, name(), origin, location.href], "*");
})();</script></body>"""
LISTEN = """<script>
  const told = [];
  addEventListener("message", ({ data }) => {
    document.documentElement.dataset.told = JSON.stringify([...told, told.push(data) && data]);
  });
</script>"""


@needs_browser
def test_several_pages_in_one_notebook_do_not_know_each_other(fitted, tmp_path):
    pages = [cpm.rank(fitted, target=64).page(), cpm.compare(fitted, fitted, target=64).page()]
    frames = []
    for page in pages:
        # A script of a test speaks for the frame, so the policy is taken off here.
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.text)
        frames.append(replace(page, text=text.replace("</body>", TELL))._repr_html_())
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html><body>{LISTEN}{''.join(frames)}</body>", encoding="utf-8")
    # Virtual time of the browser waits for frames of its own process only.
    shown, said = opened(path, "--disable-features=IsolateSandboxedIframes")
    told = re.findall(r'data-told="([^"]*)"', shown)
    assert told, said
    answers = sorted(json.loads(html.unescape(told[0])))
    assert [kind for kind, *_ in answers] == ["", "pair"]
    for _, frames_, before, after, origin, address in answers:
        assert frames_ > 0
        assert before == after  # a link leads to its call path, and not out of the page
        assert origin == "null"
        assert address == "about:srcdoc"


@needs_browser
def test_the_policy_of_a_page_holds_in_its_frame(fitted, tmp_path):
    page = cpm.rank(fitted, target=64).page()
    bad = "<script>top.document.title = 'bad'</script><img src='http://127.0.0.1:9/x'>"
    text = page.text.replace("</main>", f"{bad}</main>")
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html><body>{replace(page, text=text)._repr_html_()}</body>")
    shown, said = opened(path)
    assert "<title>bad" not in shown
    assert "script-src" in said
    assert "img-src" in said


def test_plots_leave_the_settings_of_matplotlib_as_they_are(fitted):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    matplotlib.rcParams["font.size"] = 17.5
    before = dict(matplotlib.rcParams)
    ranking = cpm.rank(fitted, target=64)
    drawn = [ranking.plot(), ranking[0].plot(), cpm.losses(fitted.experiment).plot()]
    for axes in drawn:
        axes.figure.canvas.draw()
        plt.close(axes.figure)
    assert dict(matplotlib.rcParams) == before
    matplotlib.rcdefaults()


def test_many_call_paths_have_ten_rows_and_the_others_one():
    values = {f"f{k}": [float(k + 1)] * 5 for k in range(30)}
    found = shown(cpm.rank(cpm.fit(experiment(values, POINTS)), target=64))
    assert "20 others" in found.said
    assert found.count["tr"] == 1 + 10 + 2
    assert np.isclose(found.count["svg"], 10)
