"""Cards of the first call paths: formula, chart, alternatives, excess work."""

from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.imbalance_sources import ImbalanceSources
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.analysis.trust import marks_text
from callpath_modeler.arrays import IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.report.causes import conclusion, imbalance_facts, requirement_rows
from callpath_modeler.report.change_points import formula_from_text, from_text
from callpath_modeler.report.columns import band_text
from callpath_modeler.report.curve import Curve
from callpath_modeler.report.growths import formula_text, growth_range_text, growth_text
from callpath_modeler.report.headline import at_text
from callpath_modeler.report.hypotheses import NO_OTHER, compared_text, hypotheses
from callpath_modeler.report.layout import DEFAULT_STYLE, tied
from callpath_modeler.report.measured_only import excess_symbol
from callpath_modeler.report.model import (
    ExcessStep,
    equation,
    excess_steps,
    imbalances,
    neighbour_facts,
    no_model,
    origin,
    predicted_text,
    quality_facts,
    rows_of,
    sketch_of,
    whole_formula,
)
from callpath_modeler.report.page.content import PageContent
from callpath_modeler.report.page.figure import figure, legend
from callpath_modeler.report.page.markup import (
    Html,
    cell,
    head,
    joined,
    number,
    pairs,
    plain_table,
    table,
    tag,
)
from callpath_modeler.report.page.names import CallPathLinks, cut
from callpath_modeler.report.page.processes import processes_part
from callpath_modeler.report.page.ranking import coloured, trust_text
from callpath_modeler.report.value_columns import loss_columns
from callpath_modeler.units import parameter_value, percent, quantity

_GRID = 72
"""Number of points of a curve, equal factors apart: enough to look smooth."""
_LONGEST = 400
"""Longest formula, in characters; sums over thousands of call paths are cut."""


def cards_section(content: PageContent, rows: IntArray, names: CallPathLinks) -> Html:
    """Return the cards of call paths."""
    steps, ranking = excess_steps(content.ranking), content.ranking
    uneven = None if ranking.inclusive else ImbalanceSources.of(ranking.fitted)
    cards = [
        _card(content, place, int(row), path, steps, uneven, names)
        for place, (row, path) in enumerate(zip(rows, names.paths(rows), strict=True), start=1)
    ]
    signs = () if ranking.fitted.is_measured_only else (legend(),)
    if content.no_processes:
        told = f"The values of single ranks are not shown: {cut(content.no_processes)}"
        signs = (*signs, tag("p", told, class_="aside"))
    return joined(*signs, tag("div", *cards, class_="cards"))


def _card(
    content: PageContent,
    place: int,
    row: int,
    path: Html,
    steps: list[ExcessStep],
    uneven: ImbalanceSources | None,
    names: CallPathLinks,
) -> Html:
    ranking, cause = content.ranking, content.causes.get(row)
    cause = cause if cause and cause.has_needs else None
    is_one_model = not ranking.inclusive and ranking.leader[row] >= 0
    fitted, key = ranking.fitted, names.anchor(row)
    curve = sketch_of(ranking, row, _GRID)
    drawn = figure(
        curve, fitted.metric.unit, fitted.parameter, key=key, label=_told(ranking, row, curve)
    )
    only_values, of_ranks = fitted.is_measured_only, content.processes.get(row)
    facts = [(word, " · ".join(text.split("   "))) for word, text in quality_facts(ranking, row)]
    source = origin(fitted, row)
    facts += [("source", source)] if source else []
    facts += imbalance_facts(uneven, row)
    facts += neighbour_facts(ranking, row)
    facts += [("why", conclusion(ranking, cause))] if cause else []
    more = tag(
        "details",
        tag("summary", "Numbers"),
        _numbers(ranking, row, curve),
        *([plain_table(requirement_rows(ranking, cause), "Requirements")] if cause else []),
        *_excess(ranking.fitted, steps, row),
        tag(
            "p",
            tag("code", content.making.invocation.line("show", names.mark(row))),
            class_="command",
        ),
    )
    return tag(
        "article",
        tag("h3", tag("span", str(place), class_="place"), " ", path),
        *([] if only_values else [tag("p", *_model(ranking, row), class_="formula")]),
        _prediction(ranking, row),
        *([] if only_values else [drawn]),
        *(alternatives(fitted, row, ranking.target) if is_one_model else ()),
        *([processes_part(of_ranks, key=key)] if of_ranks else []),
        pairs([(word, cut(text)) for word, text in facts]),
        more,
        class_="card",
        id=key,
    )


def _model(ranking: Ranking, row: int) -> list[Html]:
    fitted = ranking.fitted
    if ranking.leader[row] < 0:
        return [joined(no_model(ranking, row))]
    formula = formula_text(ranking, row, pretty=True)
    if len(formula) > _LONGEST:
        formula = f"{formula[:_LONGEST].rpartition(' + ')[0]} + …"
    formula += formula_from_text(fitted, rows_of(ranking, row))
    lines = [*whole_formula(ranking, row, style=DEFAULT_STYLE), equation(fitted, formula)]
    shown = [tag("code", line) for line in lines]
    return [part for one in shown for part in (one, tag("br"))][:-1]


def _prediction(ranking: Ranking, row: int) -> Html:
    fitted, unit = ranking.fitted, ranking.fitted.metric.unit
    growth = growth_range_text(ranking, row, pretty=True)
    trust = int(ranking.trust[row])
    marks = trust_text(marks_text(trust), trust if trust >= 0 else None)
    share = float(ranking.share[row])
    parts: list[str] = [f"{percent(share)} of the total"] if np.isfinite(share) else []
    parts += [growth + from_text(fitted, int(ranking.leader[row]))] if growth else []
    if np.isfinite(ranking.target):
        value, low, high = ranking.total_of(row)
        band = band_text(low, high, unit, style=DEFAULT_STYLE)
        amount = tag("strong", number(value, tied(quantity(value, unit))))
        at = f"at {at_text(fitted, ranking.target)}{', measured' * (ranking.repetitions > 0)}: "
        is_alone = fitted.is_measured_only and np.isnan(ranking.low[row])
        reach = "" if is_alone else f" ({tied(band)})"
        parts.insert(0, joined(at, amount, reach))
    if ranking.is_comparison:
        parts += _lost(ranking, row)
    elif not fitted.is_measured_only:
        parts += [marks] if marks else []
    spread = [piece for part in parts for piece in (part, " · ")][:-1]
    return joined(tag("p", *spread, class_="value"), *_model_there(ranking, row))


def _lost(ranking: Ranking, row: int) -> list[str]:
    """Return the value at the smaller scale and the excess work of a comparison."""
    fitted, name = ranking.fitted, excess_symbol(ranking.fitted)
    losses = loss_columns(ranking, *ranking.of_rows(np.array([row])))
    cells = {key: coloured(column, 0) for key, column in losses.items()}
    before = quantity(float(ranking.at_base[row]), fitted.metric.unit)
    return [
        f"{before} at {at_text(fitted, ranking.base)}",
        joined(f"{name} ", cells["loss"], " inclusive, ", cells["own_loss"], " exclusive"),
    ]


def _model_there(ranking: Ranking, row: int) -> list[Html]:
    """Return the prediction of the model where the target was measured."""
    if not ranking.repetitions or ranking.leader[row] < 0:
        return []
    return [tag("p", f"model {tied(predicted_text(ranking, row))}", class_="aside")]


def _told(ranking: Ranking, row: int, curve: Curve) -> str:
    """Return a description of the chart for screen readers; its numbers are below the chart."""
    fitted, unit = ranking.fitted, ranking.fitted.metric.unit
    known = np.flatnonzero(np.isfinite(curve.measured))
    growth = growth_text(ranking, row)
    said = f"The model grows as {growth}." if growth else "There is no model."
    if len(known):
        first, last = (
            f"{quantity(float(curve.measured[k]), unit)} at {fitted.parameter} = "
            f"{parameter_value(float(curve.points[k]))}"
            for k in (known[0], known[-1])
        )
        said = f"Measured {first} to {last}. {said}"
    if curve.target is None:
        return said
    value, low, high = ranking.total_of(row)
    band = band_text(low, high, unit, style=DEFAULT_STYLE)
    told = f"{ranking.basis.capitalize()} {quantity(value, unit)} ({band})"
    return f"{said} {told} at {at_text(fitted, ranking.target)}."


def alternatives(fitted: Fitted, row: int, target: float) -> list[Html]:
    """Return the alternative models of a call path and their predictions at a target."""
    unit = fitted.metric.unit
    others = hypotheses(fitted, row, target, style=DEFAULT_STYLE).others
    if not others:
        said = f"could also be: {NO_OTHER} ({compared_text(fitted)})"
        return [tag("p", said, class_="aside")]
    classic = fitted.models.method == "classic"
    heads = [
        head("could also be" if classic else "could also be (or similar)"),
        head("weight" if classic else "probability", right=True),
    ]
    body = []
    for other in others:
        formula = tag("th", tag("code", other.formula), scope="row")
        body.append([formula, cell(percent(other.weight), right=True)])
    if np.isfinite(target):  # at infinity, predictions do not differ
        heads.append(head(f"at {at_text(fitted, target)}", right=True))
        for cells, other in zip(body, others, strict=True):
            value = float(other.values([target])[0])
            cells.append(cell(quantity(value, unit), right=True))
    rows = [tag("tr", *cells) for cells in body]
    return [table(heads, rows, caption="Other models that fit the data", narrow=True)]


def _numbers(ranking: Ranking, row: int, curve: Curve) -> Html:
    """Return the data of the chart as a table, and the imbalance of processes."""
    fitted, unit = ranking.fitted, ranking.fitted.metric.unit
    rows = rows_of(ranking, row)
    model = np.full(len(fitted.points), np.nan)
    if fitted.modelled[rows].any():
        model = fitted.models.sum_values(rows[fitted.modelled[rows]], fitted.points)
    uneven = dict(imbalances(fitted, row))
    lines: list[tuple[str, ...]] = [(fitted.parameter, "measured", "model")]
    for point, measured, value in zip(
        fitted.points.tolist(), curve.measured.tolist(), model.tolist(), strict=True
    ):
        texts = [quantity(number_, unit) for number_ in (measured, value)]
        lines.append((parameter_value(point), *texts))
    if curve.target is not None and curve.target > curve.end_of_data:
        predicted = quantity(float(ranking.value[row]), unit)
        lines.append((parameter_value(curve.target), "", predicted))
    if uneven:
        what = "imbalance" + " of the exclusive cost" * (len(rows) > 1)
        ratios = [f"{uneven[p]:.2f}" if p in uneven else "" for p in fitted.points.tolist()]
        cells = [what, *ratios, *[""] * (len(lines) - 1 - len(ratios))]
        lines = [(*line, text) for line, text in zip(lines, cells, strict=True)]
    if fitted.is_measured_only:
        lines = [(*line[:2], *line[3:]) for line in lines]
        return plain_table(lines, "Measured values")
    return plain_table(lines, "Measured values and model")


def _excess(fitted: Fitted, steps: list[ExcessStep], row: int) -> list[Html]:
    if not steps:
        return []
    lines: list[tuple[str, ...]] = [("excess work", "inclusive", "exclusive")]
    lines += [
        (step.title, percent(step.inclusive[row], 1), percent(step.exclusive[row], 1))
        for step in steps
    ]
    base = "" if fitted.ideal is None else f", {fitted.ideal.meaning}"
    return [plain_table(lines, f"Excess work between scales{base}")]
