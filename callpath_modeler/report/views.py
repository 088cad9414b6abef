"""Costs of nodes at a target in one of the three views, as text and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.node_values import NodeValues
from callpath_modeler.analysis.trust import is_unknown, marks_text
from callpath_modeler.arrays import FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.report.columns import (
    MODEL_NOTE,
    band_text,
    band_title,
    informative,
    share_texts,
    value_titles,
)
from callpath_modeler.report.headline import (
    at_text,
    cost_text,
    known_notes,
    left_out,
    model_notes,
    off_by,
    sum_notes,
    turning_notes,
)
from callpath_modeler.report.invocation import EXPERIMENT, Invocation
from callpath_modeler.report.layout import TextColumn, TextStyle, wrap
from callpath_modeler.report.measured_only import (
    OVERLAP_NOTE,
    comparison_note,
    comparison_sentence,
    excess_styles,
    excess_symbol,
    excess_texts,
    scales_note,
)
from callpath_modeler.report.outlined_view import (
    ViewOfForecast,
    node_columns,
    sum_check_text,
    tree_lines,
    view_header,
)
from callpath_modeler.report.pair_columns import (
    pair_cells,
    pair_header,
    pair_note,
    pair_text_columns,
)
from callpath_modeler.report.ranking_table import (
    fit_settings,
    imbalance_json,
    measured_json,
    run_time_json,
    turning_json,
)
from callpath_modeler.report.ranking_text import points_text, scaling_text
from callpath_modeler.report.table_formats import Cell, Table, json_number, provenance
from callpath_modeler.units import (
    counted,
    percent,
    signed_percent,
)

_GREY = "dim"


@dataclass(frozen=True, eq=False)
class ForecastView(ViewOfForecast):
    """A forecast in one of the three views.

    Attributes
    ----------
    forecast : the predictions
    request : view, depth, filter and zoom
    """

    forecast: Answer
    request: ViewRequest

    @property
    def leads(self) -> Costs:
        """The values that the hot path follows."""
        return self.forecast.leads

    @cached_property
    def values(self) -> tuple[NodeValues, NodeValues]:
        """Exclusive and inclusive values, each [lines]."""
        return self.forecast.of_outline(self.outline)


def _growths(forecast: Answer, values: NodeValues, *, pretty: bool = False) -> list[str | None]:
    known = forecast.inputs
    return [known.growth_text(code, pretty=pretty) for code in values.growth.tolist()]


def views_table(shown: ForecastView, findings: Sequence[Finding] = ()) -> Table:
    """Return a table with one row per line of the view."""
    fitted, lines = shown.forecast.fitted, shown.outline.lines
    columns = node_columns(shown.outline)
    columns["metric"] = [fitted.metric.name] * len(lines)
    own, whole = shown.values
    both = (("inclusive", whole), ("exclusive", own))
    for kind, values in both:
        columns[f"growth_{kind}"] = list(_growths(shown.forecast, values))
    numbers: dict[str, list[Cell]] = {}
    for kind, values in both:
        named = {
            "value_at_base": values.at_base,
            "value_at_largest": values.at_largest,
            "value_at_target": values.value,
            "low": values.low,
            "high": values.high,
            "share_at_largest": values.share_at_largest,
            "share_at_target": values.share,
            "excess": values.excess,
            "excess_low": values.excess_low,
            "excess_high": values.excess_high,
            "predicted": values.predicted,
        }
        numbers |= {f"{name}_{kind}": column.tolist() for name, column in named.items()}
        numbers[f"trust_{kind}"] = [int(t) if t >= 0 else None for t in values.trust]
    numbers |= pair_cells(shown.forecast, shown.outline.values)
    has_value = ~np.isnan(whole.value)
    flags: dict[str, list[Cell]] = {
        "is_hot": list(shown.is_hot),
        "basis": [shown.forecast.basis if known else None for known in has_value],
    }
    united = [name for name in numbers if name.startswith(("value", "low", "high", "predicted"))]
    units = dict.fromkeys(united, fitted.metric.unit)
    return Table({**columns, **numbers, **flags}, units, _header(shown, findings))


def _header(shown: ForecastView, findings: Sequence[Finding]) -> dict[str, object]:
    forecast, fitted = shown.forecast, shown.forecast.fitted
    total, low, high = (json_number(number) for number in forecast.total)
    return {
        **provenance(fitted.experiment, findings),
        "metric": fitted.metric.name,
        **measured_json(fitted),
        "target": json_number(forecast.target),
        "base": forecast.base,
        "view": str(shown.request.kind),
        "basis": forecast.basis,
        "repetitions": forecast.repetitions,
        "total": {
            "at_largest": json_number(forecast.inputs.whole_at_largest),
            "at_target": total,
            "low": low,
            "high": high,
            "predicted": json_number(forecast.predicted_total),
        },
        "run_time": run_time_json(forecast),
        "imbalance": imbalance_json(forecast),
        "fastest": turning_json(forecast.turning),
        "unmodelled": {
            "callpaths": len(forecast.inputs.unmodelled),
            "share": forecast.inputs.unmodelled_share,
        },
        **pair_header(forecast),
        **view_header(shown),
        "fit": fit_settings(fitted),
    }


def views_text(
    shown: ForecastView,
    *,
    style: TextStyle,
    invocation: Invocation = EXPERIMENT,
) -> list[Text]:
    """Return a view as text: the answer, the tree, and notes.

    Parameters
    ----------
    shown : the view
    style : width, length of names, and characters of text
    invocation : command lines for the same experiment
    """
    say = style.say
    columns = _columns(shown, style=style)
    body = tree_lines(shown.outline, columns, style=style, below=lines_below(shown))
    answer = [
        _verdict(shown, style=style),
        *turning_notes(shown.forecast, style=style),
    ]
    head = [part for line in answer for part in wrap(say(line), style.width, "bold")]
    lines = [*head, *wrap(say(_context(shown)), style.width, _GREY), Text(""), *body, Text("")]
    for line in _footer(shown, invocation, body[0].plain, style=style):
        lines += wrap(say(line), style.width, _GREY, indent="  ")
    return lines


def _verdict(shown: ForecastView, *, style: TextStyle) -> str:
    """Return the sentence that answers: the cost, its uncertainty, and its place."""
    forecast, fitted = shown.forecast, shown.forecast.fitted
    is_finite = np.isfinite(forecast.target)
    at = at_text(fitted, forecast.target)
    if not forecast.repetitions and not forecast.inputs.modelled.any():
        return f"At {at}: nothing could be predicted."
    if forecast.total[0] == 0:
        zero = "zero" if forecast.repetitions else "predicted to be zero"
        return f"At {at}: {fitted.metric.name} is {zero}."
    if not shown.hot or fitted.formula is not None:
        return f"{cost_text(forecast, style=style)}."
    answer = f"As {fitted.parameter} grows without end, "
    if is_finite:
        answer = f"{cost_text(forecast, style=style)}. "
    if forecast.is_comparison:
        answer += f"{comparison_sentence(forecast, style=style)} "
    node, name = shown.culprit
    own, whole = forecast.of_nodes(shown.view, np.array([node]))
    main = whole if shown.inclusive else own
    part = main.excess if forecast.is_comparison else main.share
    (growth,) = _growths(forecast, main, pretty=not style.ascii_only)
    is_predicted = is_finite and forecast.has_models and not forecast.repetitions
    if is_predicted and is_unknown(int(main.trust[0])):
        growth = "growth not known"
    share = f"{percent(float(part[0]))}{'' if shown.inclusive else ' exclusive'}"
    told = [] if is_predicted and forecast.is_unknown else [share]
    told += [growth] if growth else []
    verb = "lost " * forecast.is_comparison
    top_down = shown.request.kind is ViewKind.TOP_DOWN
    where = f"the hot path leads to {name}" if top_down else f"most is {verb}in {name}"
    where = where[0].upper() + where[1:] if is_finite else where
    answer += f"{where}: {', '.join(told)}." if told else f"{where}."
    return " ".join([answer, *known_notes(forecast), *model_notes(forecast, style=style)])


def _context(shown: ForecastView) -> str:
    fitted, experiment = shown.forecast.fitted, shown.forecast.fitted.experiment
    return (
        f"{experiment.name} · {fitted.metric.name}, {experiment.reduction.words} · "
        f"{points_text(fitted)}{scaling_text(fitted)}{left_out(experiment)}"
    )


def _columns(shown: ForecastView, *, style: TextStyle) -> list[TextColumn]:
    """Return the columns, each with a last cell for the total."""
    forecast = shown.forecast
    own, whole = shown.values
    cells = value_cells(forecast, own, whole, inclusive=shown.inclusive, style=style)
    below = lines_below(shown)
    last = _cells_below(shown, style=style)[-len(below) :]
    columns = [
        replace(
            column,
            cells=[*column.cells, *(texts.get(name, "") for texts in last)],
            styles=[*column.styles, *[""] * len(below)] if column.styles else (),
        )
        for name, column in cells.items()
    ]
    kind = 1 if shown.inclusive else 0

    def pairs_below(costs: Costs) -> list[FloatArray]:
        nothing = np.full_like(costs.total, np.nan)
        total = costs.total if shown.outline.start == ROOT else nothing
        return [*[nothing] * (len(below) - 1), total]

    pairs = pair_text_columns(
        forecast,
        lambda costs: shown.outline.values(costs)[kind],
        pairs_below,
        without_last=forecast.is_comparison,
    )
    columns += pairs.values()
    flags = [">" * is_hot for is_hot in shown.is_hot]
    return [*columns, TextColumn("", [*flags, *[""] * len(below)])]


def lines_below(shown: ForecastView) -> list[str]:
    """Return the names of the lines below those of nodes."""
    is_whole = shown.outline.start == ROOT
    return [*["imbalance"] * (is_whole and shown.forecast.has_imbalance), "total"]


def _cells_below(shown: ForecastView, *, style: TextStyle) -> tuple[dict[str, str], dict[str, str]]:
    """Return the cells of the imbalance and of the total, by name of the column."""
    forecast, unit = shown.forecast, _unit(shown)
    if shown.outline.start != ROOT:
        return {}, {}
    total = {
        "measured": style.amount(forecast.program_at_largest, unit),
        "base": style.amount(forecast.program_at_base, unit),
        "value": style.amount(forecast.program_total[0], unit),
        "band": band_text(*forecast.program_total[1:], unit, style=style),
        "model": off_by(forecast),
        **dict.fromkeys(("excess", "loss"), percent(forecast.total_excess)),
    }
    imbalance = {
        "measured": style.amount(forecast.imbalance_at_largest, unit),
        "base": style.amount(forecast.imbalance_at_base, unit),
        "value": style.amount(forecast.imbalance, unit),
    }
    return imbalance, total


def value_cells(
    forecast: Answer,
    own: NodeValues,
    whole: NodeValues,
    *,
    inclusive: bool,
    style: TextStyle,
) -> dict[str, TextColumn]:
    """Return the values of lines as text, by name of the column.

    Parameters
    ----------
    forecast : the predictions
    own, whole : exclusive and inclusive values of the lines
    inclusive : whether inclusive values lead
    style : width, length of names, and characters of text

    Returns
    -------
    dict
        ``measured``, ``value``, ``band``, ``model``, ``other``, ``share``, ``excess``, ``growth``,
        ``trust``, as far as `informative` keeps them. In a comparison, ``base`` (at the smaller
        scale), ``loss`` and ``own_loss`` (excess work).
    """
    unit = forecast.fitted.metric.unit
    main, other = (whole, own) if inclusive else (own, whole)

    def texts(values: FloatArray) -> list[str]:
        return [style.amount(value, unit) for value in values.tolist()]

    ends = zip(main.low.tolist(), main.high.tolist(), strict=True)
    bands = [band_text(low, high, unit, style=style) for low, high in ends]
    before, after = np.nan_to_num(main.share_at_largest).tolist(), main.share.tolist()
    growth = [text or "" for text in _growths(forecast, main, pretty=not style.ascii_only)]
    off = main.deviation.tolist()
    largest, target = value_titles(forecast)
    columns = {
        "measured": TextColumn(largest, texts(main.at_largest), droppable=-1),
        "value": TextColumn(target, texts(main.value)),
        "band": TextColumn(band_title(forecast), bands, droppable=-2),
        "model": TextColumn("model", [signed_percent(v) for v in off], droppable=2),
        "other": TextColumn("own" if inclusive else "inclusive", texts(other.value), droppable=6),
        "share": TextColumn("share", share_texts(forecast, before, after), droppable=4),
        "excess": TextColumn(
            "excess",
            [percent(v) for v in main.excess.tolist()],
            droppable=-1 if forecast.fitted.ideal else 5,
        ),
        "growth": TextColumn("growth", growth, right=False, droppable=1),
        "trust": TextColumn("trust", [*map(marks_text, main.trust)], droppable=-3),
    }
    if np.isinf(forecast.target):
        del columns["trust"]
    if not forecast.fitted.metric.additive:
        for name in ("share", "excess", "growth"):
            del columns[name]
    if forecast.is_comparison:
        base = TextColumn(largest, texts(main.at_base), droppable=-1)
        columns = {"base": base, **columns, **_loss_columns(forecast, own, whole)}
    return informative(forecast, columns)


def _loss_columns(forecast: Answer, own: NodeValues, whole: NodeValues) -> dict[str, TextColumn]:
    """Return inclusive and exclusive excess work of lines; a narrow table keeps both."""
    name = excess_symbol(forecast.fitted)
    return {
        key: TextColumn(
            title,
            excess_texts(values.excess, values.doubted),
            droppable=-1,
            styles=excess_styles(values.excess),
        )
        for key, title, values in (("loss", name, whole), ("own_loss", f"own {name}", own))
    }


def _unit(shown: ForecastView) -> str:
    return shown.forecast.fitted.metric.unit


def _footer(
    shown: ForecastView, invocation: Invocation, header: str, *, style: TextStyle
) -> list[str]:
    known, unit = shown.forecast.inputs, _unit(shown)
    lines, of = [], ""
    kind = "inclusive" if shown.inclusive else "exclusive"
    fitted, has_models = known.fitted, not known.fitted.is_measured_only
    grows = "growth: of the fastest growing part; " * has_models
    hot = f"the hot path{' of the loss' * shown.forecast.is_comparison}"
    if fitted.formula is not None:
        operand = shown.forecast.size_metric
        grows, of, unit = "the formula of the sums of each line; ", operand.name, operand.unit
        hot = f"the hot path of {of}, which also decides which lines are shown"
    lines.append(f"values: {kind}; {grows}> is {hot}")
    lines += sum_notes(shown.forecast)
    lines += [MODEL_NOTE] if shown.forecast.repetitions and has_models else []
    if shown.forecast.is_comparison:
        lines.append(comparison_note(fitted))
        lines += [OVERLAP_NOTE] if any(each.doubted.any() for each in shown.values) else []
    lines += pair_note(shown.forecast, inclusive=shown.inclusive, header=header)
    lines += [] if has_models else [scales_note(fitted)]
    if len(known.unmodelled) and has_models:
        part = f", {percent(known.unmodelled_share)} of the total at the largest scale"
        lines.append(
            f"not modelled: {counted(len(known.unmodelled), 'call path')}"
            f"{part * fitted.metric.additive}"
        )
    column = 1 if np.isfinite(shown.forecast.target) else 0
    sums = [
        style.amount(float(values[column]), unit)
        for values in (shown.check.counted, shown.check.total)
    ]
    whole = "the sum" if "imbalance" in lines_below(shown) else f"the total{f' of {of}' * bool(of)}"
    lines.append(sum_check_text(shown.outline, shown.check, sums, whole))
    if shown.request.kind is ViewKind.TOP_DOWN:
        lines.append(invocation.hint("views", "--view bottom-up"))
    return lines
