"""The page as one file, controls of a served page, and representations in notebooks."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.arrays import IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.pattern import short_name
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
from callpath_modeler.report.layout import DEFAULT_STYLE, cut, tied
from callpath_modeler.report.losses_text import comparison_sentence
from callpath_modeler.report.page import markup
from callpath_modeler.report.page.cards import (
    cards_section,
    efficiency_section,
    expectations_section,
    isoefficiency_section,
    quality_section,
)
from callpath_modeler.report.page.page_data import has_page_data, page_data
from callpath_modeler.report.page.trees import ranking_section, tree_section
from callpath_modeler.report.ranking_text import context
from callpath_modeler.report.scale_cost_text import scale_cost_notes
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


def summary_section(ranking: Ranking, names: markup.CallPathLinks) -> markup.Html:
    """Return the headline, the main call paths, and a description of the measurements."""
    rows = main_rows(ranking)[:_NAMED]
    named = zip(rows.tolist(), _last_names(ranking, rows), strict=True)
    told = [_told(ranking, row, name, names) for row, name in named]
    parts = [part for one in told for part in (one, "; ")][:-1]
    because = [markup.tag("p", markup.joined(*parts, "."), class_="lede")] if told else []
    return markup.joined(
        markup.tag("h1", tied(cut(page_headline(ranking), 600))),
        *(markup.tag("p", note) for note in turning_notes(ranking, style=DEFAULT_STYLE)),
        *(markup.tag("p", note) for note in scale_cost_notes(ranking, style=DEFAULT_STYLE)),
        *because,
        *(
            [markup.tag("p", comparison_sentence(ranking, style=DEFAULT_STYLE))]
            if ranking.is_comparison
            else []
        ),
        *(markup.tag("p", note) for note in model_notes(ranking, style=DEFAULT_STYLE)),
        *(markup.tag("p", note) for note in missing_notes(ranking)),
        *(markup.tag("p", note) for note in sum_notes(ranking)),
        markup.tag("p", context(ranking), class_="aside"),
    )


def _last_names(ranking: Ranking, rows: IntArray) -> list[str]:
    """Return the names of functions, with their callers where two would look the same."""
    tree = ranking.fitted.experiment.tree
    paths = [[short_name(name) for name in tree.names(int(row))[-2:]] for row in rows]
    count = Counter(path[-1] for path in paths)
    return [cut(path[-1] if count[path[-1]] == 1 else "/".join(path)) for path in paths]


def _told(ranking: Ranking, row: int, name: str, names: markup.CallPathLinks) -> markup.Html:
    link = names.link(row, markup.tag("code", name))
    return markup.joined(link, f" {takes_text(ranking, row, style=DEFAULT_STYLE)}")


_SCRIPTS = ("model.js", "chart.js", "flame.js", "explorer.js", "pair.js", "start.js")
_PRINTED = frozenset({"ranking", "models", "tree"})
"""Sections whose contents the script shows in another way; print shows them."""
_MOST_INPUTS = 500
"""Largest number of inputs that are listed."""


def page(content: markup.PageContent) -> str:
    """Return an HTML document that needs no other file."""
    ranking = content.ranking
    fitted = ranking.fitted
    title = f"{fitted.experiment.name}: {fitted.metric.name} at {at_text(fitted, ranking.target)}"
    names = markup.CallPathLinks(fitted.experiment.tree, ranking.order[: content.top])
    lede = summary_section(ranking, names)
    return document(title, lede, _sections(content, names), data=data_of(content))


def page_script() -> markup.Html:
    """Return the script of the page."""
    return markup.Html("\n".join(map(_asset, _SCRIPTS)))


def data_of(content: markup.PageContent) -> str:
    """Return the data of all call paths for the script; "" = the page has the printed tables."""
    ranking = content.ranking
    making = content.making
    show = "" if making is None else making.invocation.line("show", "@ID")
    return page_data(ranking, show) if has_page_data(ranking) else ""


def document(
    title: str,
    lede: markup.Html,
    sections: Mapping[str, tuple[str, markup.Html]],
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
    preamble = markup.tag(
        "head",
        markup.tag("meta", charset="utf-8"),
        markup.tag("meta", http_equiv="Content-Security-Policy", content=policy(script)),
        markup.tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        markup.tag("meta", name="color-scheme", content="light dark"),
        markup.tag("title", title),
        markup.tag("link", rel="icon", href="data:,"),
        markup.tag(
            "style",
            markup.Html(f"{_asset('page.css')}{_asset('explorer.css') if data else ''}{style}"),
        ),
    )
    named = [(key, name, _kind(key)) for key, (name, _) in sections.items()]
    links = [
        markup.tag("li", markup.tag("a", name, href=f"#{key}"), class_=kind)
        for key, name, kind in named
    ]
    explorer: list[markup.Html] = []
    if data:
        explorer = [
            markup.tag("section", id="explore", hidden=True, aria_label="All call paths"),
            markup.tag("script", markup.Html(data), id="data", type="application/octet-stream"),
        ]
    body = markup.tag(
        "body",
        markup.tag("header", lede),
        markup.tag("nav", markup.tag("ul", *links), aria_label="Sections"),
        markup.tag(
            "main",
            *explorer,
            *(
                _section(key, *each, kind=_kind(key) if data else None)
                for key, each in sections.items()
            ),
        ),
        "" if script is None else markup.tag("script", script),
    )
    return f"<!DOCTYPE html>\n{markup.tag('html', preamble, body, lang='en')}\n"


def _sections(
    content: markup.PageContent, names: markup.CallPathLinks
) -> dict[str, tuple[str, markup.Html]]:
    """Return the sections of the page by key, in order: titles and contents."""
    ranking, making = content.ranking, content.making
    fitted, rows = ranking.fitted, ranking.order[: content.top]
    command = "" if making is None else making.listing
    listing = ranking_section(ranking, names, content.top, command)
    found = {"ranking": ("Ranking", listing)}
    if len(rows):
        title = "Call paths" if fitted.is_measured_only else "Models"
        found["models"] = (title, cards_section(content, rows, names))
    if content.forecast is None:
        none = f"{fitted.metric.name} does not add up over call paths: it has no tree."
        found["tree"] = ("Call tree", markup.tag("p", none))
    else:
        found["tree"] = ("Call tree", tree_section(content.forecast, names))
    if content.efficiency:
        found["efficiency"] = ("Efficiency", efficiency_section(content.efficiency))
    if content.isoefficiency is not None:
        section = isoefficiency_section(content.isoefficiency)
        found["isoefficiency"] = ("Isoefficiency", section)
    if content.check is not None:
        found["expectations"] = ("Expectations", expectations_section(content.check))
    found["quality"] = ("Data quality", quality_section(fitted.experiment, content.findings))
    if making is not None:
        found["making"] = ("How this was made", provenance_section(making, fitted))
    return found


def _section(key: str, title: str, content: markup.Html, *, kind: str | None) -> markup.Html:
    heading = markup.tag("h2", title, id=f"{key}-title")
    return markup.tag(
        "section", heading, content, id=key, aria_labelledby=f"{key}-title", class_=kind
    )


def _kind(key: str) -> str | None:
    """Return the class of a section: the script replaces printed ones."""
    return "printed" if key in _PRINTED else None


def policy(script: markup.Html | None) -> str:
    """Return the content security policy: nothing from elsewhere, and no other script."""
    sources = {"default": "'none'", "style": "'unsafe-inline'", "img": "data:"}
    if script is not None:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        sources["script"] = f"'sha256-{digest}'"
    return "; ".join(f"{kind}-src {source}" for kind, source in sources.items())


def _asset(name: str) -> str:
    return files("callpath_modeler.report.page").joinpath(name).read_text(encoding="utf-8").strip()


def provenance_section(making: markup.Provenance, fitted: Fitted | None) -> markup.Html:
    """Return everything that is needed to repeat the page and to compare the inputs.

    Parameters
    ----------
    making : the origin of the page
    fitted : models with their settings; None = there are none
    """
    versions = ", ".join(f"{name} {version}" for name, version in making.versions)
    settings: dict[str, str] = {}
    if fitted is not None:
        settings = {**fitted.settings, "repetitions": fitted.models.aggregate}
        settings["hypotheses"] = _listed(json.loads(settings["hypotheses"]))
    return markup.joined(
        markup.pairs(
            [
                ("command", markup.tag("code", making.command)),
                ("versions", versions),
                *(
                    (
                        "configuration",
                        markup.joined(one.path, " · SHA-256 ", markup.tag("code", one.sha256)),
                    )
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


def _inputs(inputs: Sequence[Fingerprint]) -> list[markup.Html]:
    heads = [markup.head("input"), markup.head("size", right=True), markup.head("SHA-256")]
    body = [
        markup.tag(
            "tr",
            markup.tag("th", one.path, scope="row"),
            markup.cell("-" if one.size is None else f"{one.size} B", right=True),
            markup.cell(markup.tag("code", one.sha256) if one.sha256 else _without(one)),
        )
        for one in inputs[:_MOST_INPUTS]
    ]
    more = counted(len(inputs) - _MOST_INPUTS, "more input")
    rest = [markup.tag("p", f"… {more}", class_="aside")] if len(inputs) > _MOST_INPUTS else []
    title = markup.tag("summary", counted(len(inputs), "input"))
    shown = markup.tag("details", title, markup.table(heads, body, caption="Inputs"), *rest)
    return [shown]


def _without(one: Fingerprint) -> str:
    return "no longer exists" if one.size is None else "too large to be hashed"
