from __future__ import annotations

import functools
import re
import shutil
import subprocess
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from callpath_modeler.analysis.answer import answer_at, rank
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.schema import Region
from callpath_modeler.report.layout import Invocation
from callpath_modeler.report.page.document import page
from callpath_modeler.report.page.markup import PageContent, Provenance
from callpath_modeler.report.ranking_table import ranking_table
from callpath_modeler.studies.expectation_check import check
from callpath_modeler.studies.loading import load
from callpath_modeler.studies.pipeline import fit
from callpath_modeler.support.atomic import Fingerprint
from cells import cells
from synthetic import POINTS, TIME, experiment, fitted

P = np.array(POINTS)
LAWS = {
    "main": P * 0 + 1,
    "main/f": 0.2 * P,
    "main/f/MPI_Wait": 0.01 * P**2,
    "main/g": 3 + 0 * P,
    "main/h": 1e-6 + 0 * P,
}
WICKED = "std::map<A&, \"B\">::f<'x'></code><script>alert</script>"
MAKING = Provenance(
    "cpmodel report EXP",
    "cpmodel rank EXP --format csv",
    Invocation("EXP", "--target 64"),
    [("x", "1.2")],
    [Fingerprint("a.cubex", 3, "abc")],
)


def content(models=None, target=64.0, *, inclusive=False, top=20, **others):
    models = fitted({name: list(law) for name, law in LAWS.items()}) if models is None else models
    told = {"check": None, "findings": (), "making": MAKING, "top": top, **others}
    ranking = rank(models, target, inclusive=inclusive)
    seen = answer_at(models, target) if models.metric.additive else None
    return PageContent(ranking=ranking, forecast=seen, **told)


def renamed(name: str):
    """Return models of an experiment with a function called `name`."""
    found = experiment({key: list(law) for key, law in LAWS.items()})
    tree = found.tree
    regions = tuple(Region(name) if region.name == "f" else region for region in tree.regions)
    tree = CallTree.from_columns(np.array(tree.columns), regions, tree.annotations)
    return fit(replace(found, tree=tree, name=name))


TIE = "\N{NO-BREAK SPACE}"


class Parsed(HTMLParser):
    """Sections with their tables, numbers and words, as without JavaScript."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.section, self.words, self.numbers, self.tags = "head", {}, {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag in {"section", "header"}:
            self.section = attributes.get("id", tag)
        if tag == "data":
            self.numbers.setdefault(self.section, []).append(float(attributes["value"]))

    def handle_data(self, data):
        self.words[self.section] = self.words.get(self.section, "") + data.replace(TIE, " ") + " "

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def parsed(**options):
    return Parsed(page(content(**options)))


def test_sections_come_in_the_order_in_which_they_are_asked_for(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('schema = 1\n[[expect]]\ncallpath = "main/g"\ngrowth = "<= O(1)"\n')
    models = content().ranking.fitted
    told = parsed(models=models, check=check(models, path))
    sections = [attributes["id"] for attributes in told.of("section")]
    assert sections.pop(0) == "explore"
    assert sections == ["ranking", "models", "tree", "expectations", "quality", "making"]
    links = [a["href"] for a in told.of("a")][: len(sections) + 9]
    assert {f"#{name}" for name in sections} <= set(links)


def test_the_first_line_says_how_much_and_where_most_of_it_is():
    told = parsed()
    assert re.search(
        r"app will run 5\d\.\d s at p = 64 \(2 × the largest run; .*\)\. "
        r"\d\d % of the time is in 1 call path\.",
        told.words["header"],
    )
    assert "MPI_Wait  takes" in told.words["header"]


def test_functions_of_one_name_are_told_apart_by_their_callers():
    laws = {"main": P * 0 + 1, "main/f": P, "main/f/MPI_Wait": 4 * P, "main/g": P}
    laws["main/g/MPI_Wait"] = 3.9 * P
    models = fitted({name: list(law) for name, law in laws.items()})
    told = parsed(models=models).words["header"]
    assert "f/MPI_Wait  takes" in told
    assert "g/MPI_Wait  takes" in told


def test_the_first_line_of_counts_names_no_run_time():
    counts = replace(TIME, name="visits", unit="1")
    models = fitted({name: list(law) for name, law in LAWS.items()}, metric=counts)
    assert re.match(r"app: visits = 57\.8 at p = 64 ", parsed(models=models).words["header"])


def test_numbers_of_the_ranking_are_those_of_tables_for_machines():
    shown = content()
    columns = ranking_table(shown.ranking, shown.ranking.order).columns
    names = ("value_at_largest", "value_at_target", "high", "share_at_target", "excess_exclusive")
    rows = len(shown.ranking.order)
    expected = np.array([columns[name] for name in ("rank", *names, "trust")], float).T
    found = np.array(Parsed(page(shown)).numbers["ranking"]).reshape(rows, -1)
    assert np.array_equal(found, expected)


def test_growths_sort_as_they_grow_and_not_as_they_are_written():
    order = [int(cell["data-order"]) for cell in parsed().of("td") if "data-order" in cell]
    ranking = content().ranking
    growths = [ranking.fitted.models.growth(int(row)) for row in ranking.order]
    assert len(order) == len(growths)
    assert [growth for _, growth in sorted(zip(order, growths, strict=True))] == sorted(growths)


@pytest.mark.parametrize(
    ("target", "said"), [(64.0, "●●●● a factor of 1.1"), (float("inf"), "●●●● 95 %")]
)
def test_the_page_says_what_marks_of_trust_mean(target, said):
    assert said in parsed(target=target).words["ranking"]


def test_beyond_all_bounds_other_models_have_no_values():
    models = fitted({"main": [1.0, 2.2, 3.9, 8.3, 15.5]})
    for target, count in ((64.0, 1), (float("inf"), 0)):
        told = parsed(models=models, target=target).words["models"]
        assert "could also be" in told
        assert " ".join(told.split()).count("probability at p = 64") == count


def test_cards_tell_formula_prediction_alternatives_numbers_and_kin():
    shown = content()
    told = Parsed(page(shown)).words["models"]
    ranking = shown.ranking
    for row in ranking.order:
        formula = ranking.fitted.models.formula(int(row), "p", pretty=True)
        assert f"time(p) = {formula}  [s]" in told
    for word in ("quality", "status", "called by", "calls", "Numbers", "excess work", "2 → 64"):
        assert word in told
    assert "cpmodel show EXP @" in told
    assert Parsed(page(shown)).numbers["models"][0] == ranking.value[ranking.order[0]]


def test_only_the_first_have_cards_and_the_ranking_leads_to_them():
    told = parsed(top=2)
    cards = [attributes["id"] for attributes in told.of("article")]
    assert len(cards) == 2
    links = {attributes["href"] for attributes in told.of("a")}
    assert {f"#{card}" for card in cards} <= links


def test_every_link_leads_somewhere_on_the_page_and_no_id_is_there_twice():
    told = parsed()
    ids = [attributes["id"] for _, attributes in told.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {a["href"].removeprefix("#") for a in told.of("a")} <= set(ids)


def test_the_tree_sums_small_call_paths_in_one_line():
    small = dict.fromkeys(("main/h", "main/i"), LAWS["main/h"])
    models = fitted({name: list(law) for name, law in {**LAWS, **small}.items()})
    told = parsed(models=models).words["tree"]
    assert "2 more" in " ".join(told.split())
    assert "sum check: the lines add up to the total" in told
    assert not re.search(r"\b[hi]\b", told)


def test_numbers_of_the_tree_are_those_of_views():
    shown = content()
    whole = shown.forecast.costs.value.inclusive[0, 0]
    numbers = Parsed(page(shown)).numbers["tree"]
    assert numbers[1] == whole
    assert numbers[2] == pytest.approx(1.0)


def test_expectations_are_told_with_their_status(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(
        'schema = 1\ntarget = { p = 64 }\n[[expect]]\nname = "<i>waits</i>"\n'
        'callpath = "main/f/MPI_Wait"\nvalue = "<= 1 s"\n'
    )
    models = content().ranking.fitted
    told = parsed(models=models, check=check(models, path)).words["expectations"]
    for words in ("1 failed — p = 64, 95 % confidence", "FAIL", "<i>waits</i>", "expected <= 1 s"):
        assert words in told


def test_findings_are_told_with_what_to_do():
    told = parsed(findings=[Finding("CPM203", "models", "3 call paths", 3)]).words["quality"]
    for words in ("CPM203", "too noisy for a model", "3 call paths", "Repeat the measurements"):
        assert words in told
    assert "There are no findings" in parsed().words["quality"]


def test_how_it_was_made_names_command_versions_settings_and_hashes():
    told = parsed().words["making"]
    for words in ("cpmodel report EXP", "x 1.2", "mixture", "a.cubex", "3 B", "abc"):
        assert words in told


def test_of_the_same_the_page_is_the_same():
    assert page(content()) == page(content())


@pytest.mark.parametrize("name", [WICKED, f"int f({WICKED})"])
def test_names_cannot_become_markup(name):
    text = page(content(renamed(name)))
    assert "<script>alert" not in text
    told = Parsed(text)
    assert [one.get("id") for one in told.of("script")] == ["data", None]
    if name == WICKED:
        assert all(name.rpartition("/")[2] in told.words[key] for key in ("ranking", "tree"))
    else:  # arguments are left out, and said in full to who asks
        assert any(name in code.get("title", "") for code in told.of("code"))


def test_the_page_needs_nothing_from_anywhere():
    text = re.sub(r'(<script id="data"[^>]*>)[^<]*', r"\1", page(content()))
    text = text.replace("http://www.w3.org/2000/svg", "the name of a language")
    assert not re.search(r"https?:|//[a-z]|url\(|@import|srcset", text)
    told = Parsed(text)
    assert not [a for _, a in told.tags if "src" in a]
    assert [a["href"] for a in told.of("link")] == ["data:,"]
    assert "default-src 'none'" in told.of("meta")[1]["content"]


def test_tables_name_their_columns_and_rows():
    told = parsed()
    assert all(attributes.get("scope") in {"col", "row"} for attributes in told.of("th"))
    assert len(told.of("caption")) == len(told.of("table"))


@pytest.mark.parametrize(
    "options",
    [{}, {"inclusive": True}, {"target": float("inf")}, {"target": 16.0}, {"top": 1}],
    ids=str,
)
def test_every_page_is_html_without_a_fault_and_without_stray_numbers(options):
    html5lib = pytest.importorskip("html5lib", reason="html5lib is not installed")
    text = page(content(**options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        html5lib.HTMLParser(strict=True).parse(text)
    assert not re.search(r">[^<]*\b(nan|None)\b", text.partition("<script>")[0])


def test_a_metric_that_does_not_add_up_has_no_tree():
    least = replace(TIME, name="least", additive=False)
    models = fitted({name: list(law) for name, law in LAWS.items()}, metric=least)
    told = parsed(models=models)
    assert "least does not add up over call paths" in told.words["tree"]
    assert "is worst" in told.words["header"]


def test_where_nothing_could_be_modelled_the_page_says_so():
    nan = float("nan")
    models = fitted({"main": [1, nan, nan, nan, 2], "main/f": [nan, nan, nan, 1, 1]})
    told = parsed(models=models)
    assert "nothing could be predicted" in told.words["header"]
    assert "not modelled: 2 call paths" in told.words["ranking"]
    assert "No call path could be modelled." in told.words["tree"]
    assert not told.of("article")


def test_metrics_that_are_zero_have_a_page():
    models = fitted({"main": [0] * 5, "main/f": [0] * 5})
    assert "zero" in parsed(models=models).words["header"]


@functools.cache
def large(count: int, depth: int, letters: int = 30):
    """Return models of `count` call paths with long names, `depth` of them in one chain."""
    parents = [*range(-1, depth - 1), *([depth // 2] * (count - depth))]
    names = [f"namespace_{k}::Class<Of, Many>::{'x' * letters}_{k}" for k in range(count)]
    tree = CallTree.from_parents(parents, range(count), [Region(name) for name in names])
    made = experiment({"main": list(P)})
    exclusive = np.linspace(2, 1, count)[:, None] * P
    values = MetricValues(TIME, exclusive, exclusive.sum(axis=0))
    return fit(replace(made, tree=tree, columns={"time": values}))


@cells(("count", "depth", "letters"), [(4000, 1500, 30), (40, 10, 9_000), (150, 60, 300)])
@cells("inclusive", [False, True])
def test_a_page_is_of_a_few_megabytes_at_most_whatever_call_paths_there_are(
    count, depth, letters, inclusive
):
    text = page(content(large(count, depth, letters), inclusive=inclusive))
    assert len(text.encode()) < 3_000_000
    assert max_depth(text) < 200  # browsers stop at 512


def test_call_paths_that_look_the_same_once_shortened_have_their_ids_beside_them():
    laws = {"main": P}
    for name in ("b", "c"):
        laws |= {f"main/{name}": P, f"main/{name}/{'d' * 88}": P}
        laws |= {f"main/{name}/{'d' * 88}/e": 9 * P}
    shown = content(fitted({name: list(law) for name, law in laws.items()}))
    told = Parsed(page(shown)).words["ranking"]
    tree = shown.ranking.fitted.experiment.tree
    marked = [tree.path(row) for row, mark in enumerate(tree.ids()) if f"@{mark}" in told]
    assert marked == [path for path in laws if "d" * 88 in path]


def max_depth(text: str) -> int:
    depth = deepest = 0
    for sign in re.findall(r"<(/?)(?:ul|li|details)\b", text):
        depth += -1 if sign else 1
        deepest = max(deepest, depth)
    return deepest


def repeated(laws=None):
    """Return models of laws with three repetitions at each point."""
    laws = LAWS if laws is None else laws
    random = np.random.default_rng(2)
    cube = {
        name: np.array(law, float)[:, None] * np.exp(0.02 * random.standard_normal((len(P), 3)))
        for name, law in laws.items()
    }
    return fit(experiment(cube))


def test_at_a_measured_target_the_page_says_what_the_run_took_and_then_what_models_say():
    told = parsed(models=repeated(), target=32.0)
    assert re.search(
        r"app ran 2\d\.\d s at p = 32 \(mean of 3 runs, .*\)\. \d\d % of the time is in 2 call",
        told.words["header"],
    )
    assert re.search(
        r"The models predict 2\d\.\d s \(error [+-]?[\d.]+ %\)\.", told.words["header"]
    )
    assert "95% interval" in told.words["ranking"]
    assert "model: error of the models' prediction" in told.words["ranking"]
    assert "at p = 32, measured:" in told.words["models"]
    assert ", error " in told.words["models"]
    assert "95% interval" in told.words["tree"]


def test_counts_were_measured():
    counts = replace(TIME, name="visits", unit="1")
    cube = {name: np.tile(law[:, None], 2) for name, law in LAWS.items()}
    models = fit(experiment(cube, metric=counts))
    told = parsed(models=models, target=32.0).words["header"]
    assert told.startswith("app: visits = 20.6 at p = 32 (mean of 2 runs, ")


@pytest.mark.parametrize("target", [8.0, 32.0, 64.0, np.inf])
def test_lines_of_the_tree_have_as_many_cells_as_columns_have_widths(target):
    told = parsed(models=repeated(), target=target)
    (style,) = [each["style"] for each in told.of("div") if each.get("class") == "tree"]
    widths = re.search(r"--columns: minmax\(6.0rem, 1fr\) ([^;]*);", style).group(1).split()
    text = page(content(repeated(), target))
    heads = re.search(r'<div class="line heads">(.*?)</div>', text).group(1)
    assert heads.count("<span") == len(widths) + 1


def test_a_call_path_without_a_model_has_a_card_where_it_was_measured():
    nan = float("nan")
    models = repeated({**LAWS, "main/once": np.array([nan, nan, 9.0, nan, nan])})
    told = parsed(models=models, target=8.0)
    assert "no model: Too few points" in told.words["models"]
    assert "There is no model." in told.words["models"]
    assert re.search(r"once +takes \d\d % and has no model", told.words["header"])


def test_numbers_at_a_measured_target_are_those_of_tables_for_machines():
    shown = content(repeated(), 8.0)
    columns = ranking_table(shown.ranking, shown.ranking.order).columns
    names = ("value_at_largest", "value_at_target", "high")
    off = np.array(columns["predicted"]) / np.array(columns["value_at_target"]) - 1
    rest = ("share_at_target", "excess_exclusive", "trust")
    rows = len(shown.ranking.order)
    listed = [*(columns[n] for n in ("rank", *names)), off, *(columns[n] for n in rest)]
    found = np.array(Parsed(page(shown)).numbers["ranking"]).reshape(rows, -1)
    np.testing.assert_allclose(found, np.array(listed, float).T)


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
_TELL = """<script>addEventListener("load", () => {
  const cell = document.querySelector("#ranking td.trust"), page = document.documentElement;
  page.title = [cell.getBoundingClientRect().right, page.clientWidth, page.scrollWidth].join(" ");
});</script></body>"""


@pytest.fixture(scope="module")
def measuring(samples, tmp_path_factory):
    """A page with a script that measures it."""
    text = page(content(fit(load([samples / "stencil"])), 1024.0))
    # The page allows only its own scripts.
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    path = tmp_path_factory.mktemp("measuring") / "page.html"
    path.write_text(text.replace("</body>", _TELL), encoding="utf-8")
    return path


@pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [560, 900, 1100, 1400, 1920])
def test_trust_is_in_sight_at_any_width(measuring, width):
    words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900"]
    done = subprocess.run(
        [*words, "--dump-dom", measuring.as_uri()], capture_output=True, check=True, timeout=120
    )
    told = re.search(rb'<html[^>]* title="([^"]*)"', done.stdout)
    assert told is not None
    right, seen, whole = map(float, told[1].split())
    assert right <= seen
    assert whole <= seen
