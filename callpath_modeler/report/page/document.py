"""The page as one file, controls of a served page, and representations in notebooks."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import singledispatch
from importlib.resources import files

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.ensemble import Losses
from callpath_modeler.analysis.expectations.check_result import Check
from callpath_modeler.arrays import IntArray
from callpath_modeler.fitted import CallPathModel, Fitted
from callpath_modeler.modeling import FitStatus
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.curve import sketch
from callpath_modeler.report.diff_text import difference_text
from callpath_modeler.report.excess_text import ExcessView
from callpath_modeler.report.experiment_text import summary
from callpath_modeler.report.exports import identifiers
from callpath_modeler.report.headline import (
    at_text,
    cost_text,
    headline,
    known_notes,
    missing_notes,
    model_notes,
    sum_notes,
    takes_text,
    turning_notes,
)
from callpath_modeler.report.layout import DEFAULT_STYLE, NEXT, TextStyle, cut, tied
from callpath_modeler.report.losses_text import comparison_sentence
from callpath_modeler.report.model_formulas import latex_formula, latex_name
from callpath_modeler.report.model_text import CallPathReport
from callpath_modeler.report.node import equation, other_models
from callpath_modeler.report.page.cards import (
    alternatives,
    cards_section,
    efficiency_section,
    expectations_section,
    findings_table,
    isoefficiency_section,
    quality_section,
)
from callpath_modeler.report.page.markup import (
    CallPathLinks,
    Html,
    PageContent,
    Provenance,
    cell,
    figure,
    head,
    joined,
    legend,
    pairs,
    spark,
    table,
    tag,
)
from callpath_modeler.report.page.page_data import has_page_data, page_data
from callpath_modeler.report.page.trees import ranking_rows, ranking_section, tree_section
from callpath_modeler.report.ranking_text import ShownRanking, context
from callpath_modeler.report.scale_cost_text import scale_cost_notes
from callpath_modeler.studies.comparison import Compared
from callpath_modeler.studies.question import FURTHER
from callpath_modeler.studies.study import Study
from callpath_modeler.support.atomic import Fingerprint
from callpath_modeler.units import counted, percent

_MOST = 0.5
"""Share of the total that the named call paths reach."""
_NAMED = 3


def page_headline(ranking: Ranking) -> str:
    """Return the cost at the target, its uncertainty, and the number of main call paths."""
    rows = main_rows(ranking)
    if not len(rows):
        return headline(ranking, style=DEFAULT_STYLE)
    if ranking.is_unknown:
        known = [f"{cost_text(ranking, style=DEFAULT_STYLE)}.", *known_notes(ranking)]
        return " ".join(known)
    share = percent(float(ranking.own_share[rows].sum()))
    where = f"{share} of the {ranking.fitted.metric.name} is in {counted(len(rows), 'call path')}"
    return f"{cost_text(ranking, style=DEFAULT_STYLE)}. {where}."


def main_rows(ranking: Ranking) -> IntArray:
    """Return the costliest call paths that make up most of the total; empty without a total."""
    share = np.nan_to_num(ranking.own_share)
    if np.isinf(ranking.target) or not 0 < ranking.total[0] < np.inf:
        return np.empty(0, np.intp)
    order = np.argsort(-share, kind="stable")
    sums = np.cumsum(share[order])
    return order[: 1 + int(np.searchsorted(sums, _MOST * sums[-1]))]


def summary_section(ranking: Ranking, names: CallPathLinks) -> Html:
    """Return the headline, the main call paths, and a description of the measurements."""
    rows = main_rows(ranking)[:_NAMED]
    named = zip(rows.tolist(), _last_names(ranking, rows), strict=True)
    told = [_told(ranking, row, name, names) for row, name in named]
    parts = [part for one in told for part in (one, "; ")][:-1]
    because = [tag("p", joined(*parts, "."), class_="lede")] if told else []
    return joined(
        tag("h1", tied(cut(page_headline(ranking), 600))),
        *(tag("p", note) for note in turning_notes(ranking, style=DEFAULT_STYLE)),
        *(tag("p", note) for note in scale_cost_notes(ranking, style=DEFAULT_STYLE)),
        *because,
        *(
            [tag("p", comparison_sentence(ranking, style=DEFAULT_STYLE))]
            if ranking.is_comparison
            else []
        ),
        *(tag("p", note) for note in model_notes(ranking, style=DEFAULT_STYLE)),
        *(tag("p", note) for note in missing_notes(ranking)),
        *(tag("p", note) for note in sum_notes(ranking)),
        tag("p", context(ranking), class_="aside"),
    )


def _last_names(ranking: Ranking, rows: IntArray) -> list[str]:
    """Return the names of functions, with their callers where two would look the same."""
    tree = ranking.fitted.experiment.tree
    paths = [[short_name(name) for name in tree.names(int(row))[-2:]] for row in rows]
    count = Counter(path[-1] for path in paths)
    return [cut(path[-1] if count[path[-1]] == 1 else "/".join(path)) for path in paths]


def _told(ranking: Ranking, row: int, name: str, names: CallPathLinks) -> Html:
    link = names.link(row, tag("code", name))
    return joined(link, f" {takes_text(ranking, row, style=DEFAULT_STYLE)}")


_SCRIPTS = ("model.js", "chart.js", "flame.js", "explorer.js")
_PRINTED = frozenset({"ranking", "models", "tree"})
"""Sections whose contents the script shows in another way; print shows them."""
_VIEW = "View"
_MOST_INPUTS = 500
"""Largest number of inputs that are listed."""


def page(content: PageContent) -> str:
    """Return an HTML document that needs no other file."""
    ranking = content.ranking
    fitted = ranking.fitted
    title = f"{fitted.experiment.name}: {fitted.metric.name} at {at_text(fitted, ranking.target)}"
    names = CallPathLinks(fitted.experiment.tree, ranking.order[: content.top])
    lede = summary_section(ranking, names)
    return document(title, lede, _sections(content, names), data=data_of(content))


def page_script() -> Html:
    """Return the script of the page."""
    return Html("\n".join(map(_asset, _SCRIPTS)))


def data_of(content: PageContent) -> str:
    """Return the data of all call paths for the script; "" = the page has the printed tables."""
    ranking = content.ranking
    show = content.making.invocation.line("show", "@ID")
    return page_data(ranking, show) if has_page_data(ranking) else ""


def served_page(content: PageContent, request: ViewRequest, controls: Html, data: str) -> str:
    """Return the page of one view, with controls for another one at its beginning.

    Parameters
    ----------
    content : the content; it has a forecast
    request : the view, from `trees.page_request`
    controls : a form
    data : from `data_of`

    Raises
    ------
    UsageError
        If no call path matches the filter of the view.
    """
    ranking, forecast = content.ranking, content.forecast
    assert forecast is not None
    names = CallPathLinks(ranking.fitted.experiment.tree, ranking.order[: content.top])
    view = tree_section(forecast, names, request)
    sections = {"tree": (_VIEW, view), **_sections(content, names, with_tree=False)}
    lede = joined(controls, summary_section(ranking, names))
    title = ranking.fitted.experiment.name
    style = _asset("controls.css")
    return document(title, lede, sections, data=data, style=style)


def document(
    title: str,
    lede: Html,
    sections: Mapping[str, tuple[str, Html]],
    *,
    data: str | None = None,
    style: str = "",
) -> str:
    """Return an HTML document that contains its styles and its script.

    Parameters
    ----------
    title : title of the window
    lede : content before the links to the sections
    sections : titles and contents by key
    data : data of the script, from `page_data`; "" = no data; None = no script
    style : styles after those of all pages
    """
    script = None if data is None else page_script()
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(f"{_asset('page.css')}{_asset('explorer.css') if data else ''}{style}")),
    )
    named = [(key, name, _kind(key, sections)) for key, (name, _) in sections.items()]
    links = [tag("li", tag("a", name, href=f"#{key}"), class_=kind) for key, name, kind in named]
    explorer: list[Html] = []
    if data:
        explorer = [
            tag("section", id="explore", hidden=True, aria_label="All call paths"),
            tag("script", Html(data), id="data", type="application/octet-stream"),
        ]
    body = tag(
        "body",
        tag("header", lede),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag(
            "main",
            *explorer,
            *(
                _section(key, *each, kind=_kind(key, sections) if data else None)
                for key, each in sections.items()
            ),
        ),
        "" if script is None else tag("script", script),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _sections(
    content: PageContent, names: CallPathLinks, *, with_tree: bool = True
) -> dict[str, tuple[str, Html]]:
    """Return the sections of the page by key, in order: titles and contents."""
    ranking, making = content.ranking, content.making
    fitted, rows = ranking.fitted, ranking.order[: content.top]
    listing = ranking_section(ranking, names, content.top, making.listing)
    found = {"ranking": ("Ranking", listing)}
    if len(rows):
        title = "Call paths" if fitted.is_measured_only else "Models"
        found["models"] = (title, cards_section(content, rows, names))
    if with_tree and content.forecast is None:
        none = f"{fitted.metric.name} does not add up over call paths: it has no tree."
        found["tree"] = ("Call tree", tag("p", none))
    elif with_tree and content.forecast is not None:
        found["tree"] = ("Call tree", tree_section(content.forecast, names))
    if content.efficiency:
        found["efficiency"] = ("Efficiency", efficiency_section(content.efficiency))
    if content.isoefficiency is not None:
        section = isoefficiency_section(content.isoefficiency)
        found["isoefficiency"] = ("Isoefficiency", section)
    if content.check is not None:
        found["expectations"] = ("Expectations", expectations_section(content.check))
    found["quality"] = ("Data quality", quality_section(fitted.experiment, content.findings))
    found["making"] = ("How this was made", provenance_section(making, fitted))
    return found


def _section(key: str, title: str, content: Html, *, kind: str | None) -> Html:
    heading = tag("h2", title, id=f"{key}-title")
    return tag("section", heading, content, id=key, aria_labelledby=f"{key}-title", class_=kind)


def _kind(key: str, sections: Mapping[str, tuple[str, Html]]) -> str | None:
    """Return the class of a section: the script replaces printed ones, but no chosen view."""
    is_view = key == "tree" and sections[key][0] == _VIEW
    return "printed" if key in _PRINTED and not is_view else None


def policy(script: Html | None) -> str:
    """Return the content security policy: nothing from elsewhere, and no other script."""
    sources = {"default": "'none'", "style": "'unsafe-inline'", "img": "data:"}
    if script is not None:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        sources["script"] = f"'sha256-{digest}'"
    return "; ".join(f"{kind}-src {source}" for kind, source in sources.items())


def _asset(name: str) -> str:
    return files("callpath_modeler.report.page").joinpath(name).read_text(encoding="utf-8").strip()


def provenance_section(making: Provenance, fitted: Fitted) -> Html:
    """Return everything that is needed to repeat the page and to compare the inputs."""
    versions = ", ".join(f"{name} {version}" for name, version in making.versions)
    settings = {**fitted.settings, "repetitions": fitted.models.aggregate}
    settings["hypotheses"] = _listed(json.loads(settings["hypotheses"]))
    return joined(
        pairs(
            [
                ("command", tag("code", making.command)),
                ("versions", versions),
                *(
                    ("configuration", joined(one.path, " · SHA-256 ", tag("code", one.sha256)))
                    for one in making.configuration
                ),
                *((name, value) for name, value in settings.items()),
            ]
        ),
        *_inputs(making.inputs),
    )


def _listed(space: Mapping[str, object]) -> str:
    """Return the settings of a space of hypotheses as text."""
    parts = []
    for name, held in space.items():
        words = ", ".join(map(str, held)) if isinstance(held, list) else str(held).lower()
        if words:
            parts.append(f"{name.replace('_', ' ')}: {words}")
    return "; ".join(parts)


def _inputs(inputs: Sequence[Fingerprint]) -> list[Html]:
    heads = [head("input"), head("size", right=True), head("SHA-256")]
    body = [
        tag(
            "tr",
            tag("th", one.path, scope="row"),
            cell("-" if one.size is None else f"{one.size} B", right=True),
            cell(tag("code", one.sha256) if one.sha256 else _without(one)),
        )
        for one in inputs[:_MOST_INPUTS]
    ]
    more = counted(len(inputs) - _MOST_INPUTS, "more input")
    rest = [tag("p", f"… {more}", class_="aside")] if len(inputs) > _MOST_INPUTS else []
    shown = tag("details", tag("summary", counted(len(inputs), "input")),
                table(heads, body, caption="Inputs"), *rest)  # fmt: skip
    return [shown]


def _without(one: Fingerprint) -> str:
    return "no longer exists" if one.size is None else "too large to be hashed"


SHARES = {"1%": "at least 1 %", "0.1%": "at least 0.1 %", "0": "all"}
"""Choices of the least share of a line, by their text in a query."""
VALUES = {"": "usual", "inclusive": "inclusive", "exclusive": "exclusive"}
"""Choices of the leading values."""


@dataclass(frozen=True, slots=True)
class PageQuery:
    """The texts of the controls, as the query of an address has them; "" = the usual.

    Attributes
    ----------
    metric : name of the metric
    target : value of the parameter
    view : top-down, bottom-up or flat
    values : inclusive or exclusive
    sort : order of siblings
    share : least share of a line
    filter : pattern of call paths
    """

    metric: str = ""
    target: str = ""
    view: str = ""
    values: str = ""
    sort: str = ""
    share: str = ""
    filter: str = ""

    @classmethod
    def of(cls, query: Mapping[str, Sequence[str]]) -> PageQuery:
        """Return the controls of a parsed query; unknown names are ignored."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: query[name][-1].strip() for name in names if query.get(name)})


def controls(
    query: PageQuery,
    *,
    metrics: Sequence[str],
    views: Sequence[str],
    sorts: Sequence[str],
    parameter: str,
    command: str = "",
    refused: str = "",
) -> Html:
    """Return the form, the command of the view, and the reason why a query was refused.

    Parameters
    ----------
    query : the texts that are filled in
    metrics, views, sorts : choices
    parameter : name of the parameter
    command : command that prints the view; "" = none
    refused : the reason; "" = the query was answered
    """
    form = tag(
        "form",
        _choice("metric", "metric", query.metric, dict(zip(metrics, metrics, strict=True))),
        _typed("target", f"target {parameter}", query.target),
        _choice("view", "view", query.view, dict(zip(views, views, strict=True))),
        _choice("values", "values", query.values, VALUES),
        _choice("sort", "order", query.sort, dict(zip(sorts, sorts, strict=True))),
        _choice("share", "lines", query.share, SHARES),
        _typed("filter", "filter, e.g. main/**/MPI_*", query.filter),
        tag("button", "Show"),
        class_="controls",
        method="get",
    )
    said = tag("p", refused, class_="refused", role="alert") if refused else ""
    same = tag("p", "the same on the command line: ", tag("code", command), class_="aside")
    return joined(form, said, same if command else "")


def _typed(name: str, label: str, value: str) -> Html:
    field = tag("input", name=name, value=value, autocomplete="off", spellcheck="false")
    return tag("label", label, field)


def _choice(name: str, label: str, value: str, choices: Mapping[str, str]) -> Html:
    options = [
        tag("option", text, value=key, selected=key == value) for key, text in choices.items()
    ]
    return tag("label", label, tag("select", *options, name=name))


_TOP = 10
"""Number of call paths with rows."""
_GRID, _SPARK = 72, 24
"""Numbers of points of a chart, and of a chart as high as a line of text."""
_WIDTH = 120
"""Width of lines of text, in characters."""
_NOWHERE = np.empty(0, np.intp)


def html_of(thing: object) -> Html:
    """Return the HTML of a result for a notebook, with its styles."""
    return tag("div", tag("style", _styles()), _content(thing), class_="cpmodel")


def latex_of(model: CallPathModel) -> str:
    """Return the model of a call path as LaTeX mathematics."""
    fitted = model.fitted
    if not fitted.modelled[model.row]:
        return rf"$\text{{{model.formula()}}}$"
    (name,) = identifiers([fitted.parameter])
    formula = latex_formula()(fitted.models.formula(model.row, name))
    return f"${latex_name(fitted.metric.name)}({latex_name(name)}) = {formula}$"


def svg_of(model: CallPathModel) -> Html:
    """Return the chart of the model of a call path as a separate picture."""
    return _chart(model, style=tag("style", _styles()))


def _styles() -> Html:
    path = files("callpath_modeler.report.page").joinpath("notebook.css")
    return Html(path.read_text(encoding="utf-8").strip())


@singledispatch
def _content(thing: object) -> Html:
    raise TypeError(f"{thing!r} has no representation in notebooks")


@_content.register
def _(experiment: Experiment) -> Html:
    return joined(tag("p", summary(experiment)), quality_section(experiment, experiment.findings))


@_content.register
def _(study: Study) -> Html:
    return _content(study.runs())


@_content.register
def _(fitted: Fitted) -> Html:
    count = fitted.status_counts().most_common()
    told = ", ".join(f"{name.replace('_', ' ')}: {n}" for name, n in count)
    over = ", ".join(fitted.parameters)
    first = (
        f"{fitted.experiment.name} · models of {fitted.metric.name} over {over} · "
        f"{counted(len(fitted.models), 'call path')} ({told})"
    )
    return joined(tag("p", first), *findings_table(fitted.findings))


@_content.register
def _(ranking: Ranking) -> Html:
    fitted, rows = ranking.fitted, ranking.order[:_TOP]
    notes = [
        *turning_notes(ranking, style=DEFAULT_STYLE),
        *model_notes(ranking, style=DEFAULT_STYLE),
    ]
    told = joined(
        tag("p", tag("strong", page_headline(ranking))),
        *(tag("p", note) for note in notes),
        tag("p", context(ranking), class_="aside"),
    )
    if not len(rows):
        return told
    names = CallPathLinks(fitted.experiment.tree, _NOWHERE)
    charts = [spark(CallPathReport.of(ranking, row).curve(_SPARK)) for row in rows.tolist()]
    return joined(told, ranking_rows(ShownRanking(ranking, rows), names, charts))


@_content.register
def _(model: CallPathModel) -> Html:
    fitted, row = model.fitted, model.row
    tree, unit = fitted.experiment.tree, fitted.metric.unit
    status = FitStatus(int(fitted.models.status[row]))
    title = tag("p", tag("code", model.callpath), f" @{tree.id_of(row)}")
    if not fitted.modelled[row]:
        return joined(title, tag("p", f"no model: {model.status}: {status.sentence}"))
    target = _further(fitted)
    amount = amount_text(*_at(model, target), unit, style=DEFAULT_STYLE)
    said = equation(fitted, model.formula(pretty=True))
    grows = fitted.models.growth(row).text(fitted.parameter, pretty=True)
    return joined(
        title,
        tag("p", tag("code", said)),
        tag("p", f"{grows} · at {at_text(fitted, target)}: ", tag("strong", amount)),
        tag("p", f"{model.status}: {status.sentence}", class_="aside"),
        _chart(model),
        legend(),
        *alternatives(other_models(fitted, row, target, DEFAULT_STYLE)),
    )


def _further(fitted: Fitted) -> float:
    return FURTHER * float(fitted.points[-1])


def _at(model: CallPathModel, target: float) -> tuple[float, float, float]:
    found = model.predict([target])
    return float(found.value[0]), float(found.low[0]), float(found.high[0])


def _chart(model: CallPathModel, style: Html | None = None) -> Html:
    fitted, row, target = model.fitted, model.row, _further(model.fitted)
    at = _at(model, target)
    curve = sketch(fitted, np.array([row]), target, at, measured=False, count=_GRID)
    key = f"nb-{fitted.experiment.tree.id_of(row)}"
    told = f"{model!r}, {model.growth}"
    return figure(curve, fitted.metric.unit, fitted.parameter, key=key, label=told, style=style)


@_content.register
def _(check: Check) -> Html:
    return expectations_section(check)


@_content.register
def _(compared: Compared) -> Html:
    found = compared.difference
    return _lines(
        difference_text(
            found, found.order[:_TOP], TextStyle(width=_WIDTH, full_names=False, ascii_only=False)
        )
    )


@_content.register
def _(losses: Losses) -> Html:
    shown = ExcessView(losses, ViewRequest(most=_TOP))
    return _lines(shown.text(TextStyle(width=_WIDTH)))


def _lines(lines: Iterable[object]) -> Html:
    """Return the lines of a command, without its proposals of further commands."""
    texts = (str(line) for line in lines)
    return tag("pre", "\n".join(text for text in texts if not text.startswith(NEXT)))
