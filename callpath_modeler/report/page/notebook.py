"""Representations in notebooks: results as HTML, models as LaTeX and SVG, and the page in a frame.

The frame is a sandbox: its document has no origin, so it reaches neither the notebook nor the
network, and its policy allows only the script of the page. Several frames do not know each other.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from functools import singledispatch
from importlib.resources import files

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.ensemble import Losses
from callpath_modeler.analysis.expectations.check_result import Check
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import CallPathModel, Fitted
from callpath_modeler.modeling import FitStatus
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.curve import sketch
from callpath_modeler.report.diff_text import difference_text
from callpath_modeler.report.excess_text import ExcessView
from callpath_modeler.report.experiment_text import summary
from callpath_modeler.report.exports import identifiers
from callpath_modeler.report.headline import at_text, model_notes, turning_notes
from callpath_modeler.report.layout import DEFAULT_STYLE, NEXT, TextStyle
from callpath_modeler.report.model_formulas import latex_formula, latex_name
from callpath_modeler.report.model_text import CallPathReport
from callpath_modeler.report.node import equation, other_models
from callpath_modeler.report.page import markup
from callpath_modeler.report.page.cards import (
    alternatives,
    expectations_section,
    findings_table,
    quality_section,
)
from callpath_modeler.report.page.document import page, page_headline
from callpath_modeler.report.page.pair_page import pair_page
from callpath_modeler.report.page.trees import ranking_rows
from callpath_modeler.report.ranking_text import ShownRanking, context
from callpath_modeler.studies.comparison import Compared
from callpath_modeler.studies.pipeline import explain_all
from callpath_modeler.studies.question import FURTHER, findings_at
from callpath_modeler.studies.study import Study
from callpath_modeler.units import counted

_CARDS = 20
"""Number of call paths with cards on a page."""
_LEAST_HEIGHT, _MOST_HEIGHT = 200, 10_000
"""Limits of the height of a frame, in pixels."""


@dataclass(frozen=True, slots=True)
class NotebookPage:
    """The page of an answer, which a notebook shows in a frame.

    Attributes
    ----------
    text : the HTML document, the same as in a file of `cpmodel report` without its provenance
    height : height of the frame in pixels
    """

    text: str
    height: int

    def __repr__(self) -> str:
        return f"<Page: {len(self.text) / 1000:.0f} kB of HTML in .text>"

    def _repr_html_(self) -> str:
        # The document is the value of an attribute, so both of its quotes and & are escaped.
        return (
            '<iframe sandbox="allow-scripts" title="call paths" '
            f'style="width: 100%; height: {self.height}px; border: 1px solid #8885" '
            f'srcdoc="{html.escape(self.text)}"></iframe>'
        )


def page_of(thing: object, height: int) -> NotebookPage:
    """Return the page of a ranking or of a comparison for a notebook.

    Parameters
    ----------
    height : height of the frame in pixels, 200 to 10,000

    Raises
    ------
    UsageError
        If the height is outside these limits.
    """
    if isinstance(height, bool) or not isinstance(height, int | np.integer):
        raise UsageError(f"height: {height!r} is no whole number", hint="e.g. 900")
    if not _LEAST_HEIGHT <= height <= _MOST_HEIGHT:
        hint = f"{_LEAST_HEIGHT} to {_MOST_HEIGHT} pixels"
        raise UsageError(f"height: {height} pixels", hint=hint)
    return NotebookPage(_page(thing), int(height))


@singledispatch
def _page(thing: object) -> str:
    raise TypeError(f"{thing!r} has no page")


@_page.register
def _(ranking: Ranking) -> str:
    content = markup.PageContent(
        ranking=ranking,
        forecast=ranking if ranking.fitted.metric.additive else None,
        causes=explain_all(ranking, ranking.order[:_CARDS].tolist()),
        check=None,
        findings=findings_at(ranking.fitted, ranking.target),
        making=None,
        top=_CARDS,
    )
    return page(content)


@_page.register
def _(compared: Compared) -> str:
    return pair_page(compared)


_TOP = 10
"""Number of call paths with rows."""
_GRID, _SPARK = 72, 24
"""Numbers of points of a chart, and of a chart as high as a line of text."""
_WIDTH = 120
"""Width of lines of text, in characters."""
_NOWHERE = np.empty(0, np.intp)


def html_of(thing: object) -> markup.Html:
    """Return the HTML of a result for a notebook, with its styles."""
    return markup.tag("div", markup.tag("style", _styles()), _content(thing), class_="cpmodel")


def latex_of(model: CallPathModel) -> str:
    """Return the model of a call path as LaTeX mathematics."""
    fitted = model.fitted
    if not fitted.modelled[model.row]:
        return rf"$\text{{{model.formula()}}}$"
    (name,) = identifiers([fitted.parameter])
    formula = latex_formula()(fitted.models.formula(model.row, name))
    return f"${latex_name(fitted.metric.name)}({latex_name(name)}) = {formula}$"


def svg_of(model: CallPathModel) -> markup.Html:
    """Return the chart of the model of a call path as a separate picture."""
    return _chart(model, style=markup.tag("style", _styles()))


def _styles() -> markup.Html:
    path = files("callpath_modeler.report.page").joinpath("notebook.css")
    return markup.Html(path.read_text(encoding="utf-8").strip())


@singledispatch
def _content(thing: object) -> markup.Html:
    raise TypeError(f"{thing!r} has no representation in notebooks")


@_content.register
def _(experiment: Experiment) -> markup.Html:
    return markup.joined(
        markup.tag("p", summary(experiment)), quality_section(experiment, experiment.findings)
    )


@_content.register
def _(study: Study) -> markup.Html:
    return _content(study.runs())


@_content.register
def _(fitted: Fitted) -> markup.Html:
    count = fitted.status_counts().most_common()
    told = ", ".join(f"{name.replace('_', ' ')}: {n}" for name, n in count)
    over = ", ".join(fitted.parameters)
    first = (
        f"{fitted.experiment.name} · models of {fitted.metric.name} over {over} · "
        f"{counted(len(fitted.models), 'call path')} ({told})"
    )
    return markup.joined(markup.tag("p", first), *findings_table(fitted.findings))


@_content.register
def _(ranking: Ranking) -> markup.Html:
    fitted, rows = ranking.fitted, ranking.order[:_TOP]
    notes = [
        *turning_notes(ranking, style=DEFAULT_STYLE),
        *model_notes(ranking, style=DEFAULT_STYLE),
    ]
    told = markup.joined(
        markup.tag("p", markup.tag("strong", page_headline(ranking))),
        *(markup.tag("p", note) for note in notes),
        markup.tag("p", context(ranking), class_="aside"),
    )
    if not len(rows):
        return told
    names = markup.CallPathLinks(fitted.experiment.tree, _NOWHERE)
    charts = [markup.spark(CallPathReport.of(ranking, row).curve(_SPARK)) for row in rows.tolist()]
    return markup.joined(told, ranking_rows(ShownRanking(ranking, rows), names, charts))


@_content.register
def _(model: CallPathModel) -> markup.Html:
    fitted, row = model.fitted, model.row
    tree, unit = fitted.experiment.tree, fitted.metric.unit
    status = FitStatus(int(fitted.models.status[row]))
    title = markup.tag("p", markup.tag("code", model.callpath), f" @{tree.id_of(row)}")
    if not fitted.modelled[row]:
        return markup.joined(title, markup.tag("p", f"no model: {model.status}: {status.sentence}"))
    target = _further(fitted)
    amount = amount_text(*_at(model, target), unit, style=DEFAULT_STYLE)
    said = equation(fitted, model.formula(pretty=True))
    grows = fitted.models.growth(row).text(fitted.parameter, pretty=True)
    return markup.joined(
        title,
        markup.tag("p", markup.tag("code", said)),
        markup.tag("p", f"{grows} · at {at_text(fitted, target)}: ", markup.tag("strong", amount)),
        markup.tag("p", f"{model.status}: {status.sentence}", class_="aside"),
        _chart(model),
        markup.legend(),
        *alternatives(other_models(fitted, row, target, DEFAULT_STYLE)),
    )


def _further(fitted: Fitted) -> float:
    return FURTHER * float(fitted.points[-1])


def _at(model: CallPathModel, target: float) -> tuple[float, float, float]:
    found = model.predict([target])
    return float(found.value[0]), float(found.low[0]), float(found.high[0])


def _chart(model: CallPathModel, style: markup.Html | None = None) -> markup.Html:
    fitted, row, target = model.fitted, model.row, _further(model.fitted)
    at = _at(model, target)
    curve = sketch(fitted, np.array([row]), target, at, measured=False, count=_GRID)
    key = f"nb-{fitted.experiment.tree.id_of(row)}"
    told = f"{model!r}, {model.growth}"
    return markup.figure(
        curve, fitted.metric.unit, fitted.parameter, key=key, label=told, style=style
    )


@_content.register
def _(check: Check) -> markup.Html:
    return expectations_section(check)


@_content.register
def _(compared: Compared) -> markup.Html:
    found = compared.difference
    return _lines(
        difference_text(
            found, found.order[:_TOP], TextStyle(width=_WIDTH, full_names=False, ascii_only=False)
        )
    )


@_content.register
def _(losses: Losses) -> markup.Html:
    shown = ExcessView(losses, ViewRequest(most=_TOP))
    return _lines(shown.text(TextStyle(width=_WIDTH)))


def _lines(lines: Iterable[object]) -> markup.Html:
    """Return the lines of a command, without its proposals of further commands."""
    texts = (str(line) for line in lines)
    return markup.tag("pre", "\n".join(text for text in texts if not text.startswith(NEXT)))
