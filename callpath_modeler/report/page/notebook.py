"""Representations in notebooks of experiments, models, rankings, and other results."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from importlib.resources import files

import numpy as np

from callpath_modeler.analysis.ensemble import Losses
from callpath_modeler.analysis.expectations.check import Check
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.comparison import Compared
from callpath_modeler.fitted import CallPathModel, Fitted
from callpath_modeler.modeling import FitStatus
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.question import FURTHER
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.curve import sketch
from callpath_modeler.report.diff import difference_text
from callpath_modeler.report.excess import excess_text
from callpath_modeler.report.excess_view import ExcessView
from callpath_modeler.report.expressions import latex_formula, latex_name
from callpath_modeler.report.headline import at_text, model_notes, turning_notes
from callpath_modeler.report.info import summary
from callpath_modeler.report.layout import DEFAULT_STYLE, NEXT, TextStyle
from callpath_modeler.report.model import sketch_of
from callpath_modeler.report.page.cards import alternatives
from callpath_modeler.report.page.expectations import expectations_section
from callpath_modeler.report.page.figure import figure, legend, spark
from callpath_modeler.report.page.markup import Html, joined, tag
from callpath_modeler.report.page.names import CallPathLinks
from callpath_modeler.report.page.quality import findings_table, quality_section
from callpath_modeler.report.page.ranking import ranking_rows
from callpath_modeler.report.page.summary import page_headline
from callpath_modeler.report.python_source import identifiers
from callpath_modeler.report.ranking_text import context, remainder
from callpath_modeler.study import Study
from callpath_modeler.units import counted

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
    charts = [spark(sketch_of(ranking, int(row), _SPARK)) for row in rows]
    return joined(told, ranking_rows(ranking, names, rows, remainder(ranking, rows), charts))


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
    said = f"{fitted.metric.name}({fitted.parameter}) = {model.formula(pretty=True)}"
    said += f"  [{unit}]" * (unit != "1")
    grows = fitted.models.growth(row).text(fitted.parameter, pretty=True)
    return joined(
        title,
        tag("p", tag("code", said)),
        tag("p", f"{grows} · at {at_text(fitted, target)}: ", tag("strong", amount)),
        tag("p", f"{model.status}: {status.sentence}", class_="aside"),
        _chart(model),
        legend(),
        *alternatives(fitted, row, target),
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
    return _lines(excess_text(shown, style=TextStyle(width=_WIDTH)))


def _lines(lines: Iterable[object]) -> Html:
    """Return the lines of a command, without its proposals of further commands."""
    texts = (str(line) for line in lines)
    return tag("pre", "\n".join(text for text in texts if not text.startswith(NEXT)))
