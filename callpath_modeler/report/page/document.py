"""The page as one file that contains its styles and its script."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files

from callpath_modeler.fingerprints import Fingerprint
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.headline import at_text
from callpath_modeler.report.page.cards import cards_section
from callpath_modeler.report.page.content import PageContent, Provenance
from callpath_modeler.report.page.efficiency import efficiency_section
from callpath_modeler.report.page.expectations import expectations_section
from callpath_modeler.report.page.markup import Html, cell, head, joined, pairs, table, tag
from callpath_modeler.report.page.names import CallPathLinks
from callpath_modeler.report.page.quality import quality_section
from callpath_modeler.report.page.ranking import ranking_section
from callpath_modeler.report.page.summary import summary
from callpath_modeler.report.page.tree import tree_section
from callpath_modeler.units import counted

_MOST_INPUTS = 500
"""Largest number of inputs that are listed."""


def page(content: PageContent) -> str:
    """Return an HTML document that needs no other file."""
    ranking = content.ranking
    fitted = ranking.fitted
    title = f"{fitted.experiment.name}: {fitted.metric.name} at {at_text(fitted, ranking.target)}"
    names = CallPathLinks(fitted.experiment.tree, ranking.order[: content.top])
    lede = summary(ranking, names)
    return document(title, lede, _sections(content, names), script=page_script())


def page_script() -> Html:
    """Return the script of the page."""
    return Html(_asset("page.js"))


def served_page(content: PageContent, request: ViewRequest, controls: Html) -> str:
    """Return the page of one view, with controls for another one at its beginning.

    Parameters
    ----------
    content : the content; it has a forecast
    request : the view, from `tree.page_request`
    controls : a form

    Raises
    ------
    UsageError
        If no call path matches the filter of the view.
    """
    ranking, forecast = content.ranking, content.forecast
    assert forecast is not None
    names = CallPathLinks(ranking.fitted.experiment.tree, ranking.order[: content.top])
    view = tree_section(forecast, names, request)
    sections = {"tree": ("View", view), **_sections(content, names, with_tree=False)}
    lede = joined(controls, summary(ranking, names))
    title = ranking.fitted.experiment.name
    return document(title, lede, sections, script=page_script(), style=_asset("controls.css"))


def document(
    title: str,
    lede: Html,
    sections: Mapping[str, tuple[str, Html]],
    *,
    script: Html | None = None,
    style: str = "",
) -> str:
    """Return an HTML document that contains its styles and its script.

    Parameters
    ----------
    title : title of the window
    lede : content before the links to the sections
    sections : titles and contents by key
    script : script; None = none
    style : styles after those of all pages
    """
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(f"{_asset('page.css')}{style}")),
    )
    links = [tag("li", tag("a", name, href=f"#{key}")) for key, (name, _) in sections.items()]
    body = tag(
        "body",
        tag("header", lede),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag("main", *(_section(key, *each) for key, each in sections.items())),
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
    if content.check is not None:
        found["expectations"] = ("Expectations", expectations_section(content.check))
    found["quality"] = ("Data quality", quality_section(fitted.experiment, content.findings))
    found["making"] = ("How this was made", provenance_section(making, fitted))
    return found


def _section(key: str, title: str, content: Html) -> Html:
    heading = tag("h2", title, id=f"{key}-title")
    return tag("section", heading, content, id=key, aria_labelledby=f"{key}-title")


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
                *(("configuration", _configured(one)) for one in making.configuration),
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


def _configured(one: Fingerprint) -> Html:
    return joined(one.path, " · SHA-256 ", tag("code", one.sha256))


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
