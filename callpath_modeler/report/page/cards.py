"""Sections of the page: cards of call paths, efficiency, expectations, data quality."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.efficiency_factors import PopFactor
from callpath_modeler.analysis.expectations.check_result import Check, Outcome, details, sentence
from callpath_modeler.analysis.uncertain import marks_text
from callpath_modeler.arrays import BoolArray, IntArray
from callpath_modeler.diagnostics import KINDS, Finding, by_kind
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report import efficiency_text
from callpath_modeler.report.cause_text import conclusion, requirement_rows
from callpath_modeler.report.columns import band_text
from callpath_modeler.report.curve import Curve
from callpath_modeler.report.experiment_text import coverage_rows, metric_rows, parameter_rows
from callpath_modeler.report.headline import at_text
from callpath_modeler.report.layout import DEFAULT_STYLE, cut, tied
from callpath_modeler.report.model_formulas import formula_from_text, from_text, growth_text
from callpath_modeler.report.model_text import CallPathReport, ExcessStep, excess_steps
from callpath_modeler.report.node import equation, formula_text, imbalances, origin
from callpath_modeler.report.page import markup
from callpath_modeler.report.page.trees import coloured, trust_text
from callpath_modeler.report.process_text import process_sentences
from callpath_modeler.report.ranking_columns import loss_columns
from callpath_modeler.report.test_reports import last_line, worst_names
from callpath_modeler.studies.isoefficiency import Isoefficiency
from callpath_modeler.studies.process_profile import ProcessProfile
from callpath_modeler.units import parameter_value, percent, quantity

BARS = 200
"""Largest number of bars; each is the maximum of several ranks if ranks are more."""
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 560, 96, 70, 6, 20


def processes_part(profile: ProcessProfile, *, key: str) -> markup.Html:
    """Return the values of processes: a bar for each rank, and a sentence on outlying ranks.

    Its size does not depend on the number of processes: there are at most `BARS` bars, and the
    sentence names ten ranks or ranges of ranks. It has less than 12 kB.

    Parameters
    ----------
    profile : values of the processes of a call path
    key : prefix of the ids on the page
    """
    what, verdict = process_sentences(profile)
    ranks, found = profile.ranks, profile.distribution()
    values, each = found.values, ceil(len(found.values) / BARS)
    picture = markup.Html("")
    if len(found.valid) > 1 and found.valid.max() > 0:
        padding = -len(values) % each
        bars = np.append(values, np.full(padding, np.nan)).reshape(-1, each)
        flags = np.append(found.outlying, np.zeros(padding, np.bool_)).reshape(-1, each)
        outlying = np.logical_or.reduce(flags, axis=1)
        heights = np.nan_to_num(np.fmax.reduce(bars, axis=1)) / float(found.valid.max())
        if each > 1:
            what += f"; each bar is the maximum of {each} ranks"
        sides = [f"rank {ranks[0]}", f"rank {ranks[-1]}"]
        largest = DEFAULT_STYLE.amount(float(found.valid.max()), profile.metric.unit)
        picture = _picture(heights, outlying, sides, largest, what, verdict, key)
    return markup.tag(
        "div",
        picture,
        markup.tag("p", verdict),
        markup.tag("p", what, class_="aside"),
        class_="ranks",
    )


def _picture(
    heights: np.ndarray,
    outlying: BoolArray,
    sides: list[str],
    largest: str,
    what: str,
    verdict: str,
    key: str,
) -> markup.Html:
    """Return the picture; heights are fractions of the largest value, [bars]."""
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - 4
    width = (right - _LEFT) / len(heights)
    gap = min(1.0, width / 5)

    def path(is_drawn: BoolArray) -> str:
        """Return the outline of some bars; a bar with a cost is at least one unit high."""
        outline = []
        for k in np.flatnonzero(is_drawn & (heights > 0)).tolist():
            high = max(1.0, float(heights[k]) * (bottom - _TOP))
            left, wide = f"{_LEFT + k * width:.4g}", f"{width - gap:.3g}"
            outline.append(f"M{left} {bottom}v-{high:.3g}h{wide}v{high:.3g}z")
        return "".join(outline)

    # A mark below each outlying bar, because colour alone tells nothing, and the bar may be low.
    centres = _LEFT + (np.flatnonzero(outlying) + 0.5) * width
    marks = "".join(f"M{x:.4g} {bottom + 1}l-3 5h6z" for x in centres.tolist())
    return markup.tag(
        "svg",
        markup.tag("title", what, id=f"{key}-ranks-title"),
        markup.tag("desc", verdict, id=f"{key}-ranks-desc"),
        markup.tag("line", class_="grid", x1=_LEFT, x2=right, y1=_TOP, y2=_TOP),
        markup.tag("line", class_="grid", x1=_LEFT, x2=right, y1=bottom, y2=bottom),
        markup.tag("text", largest, class_="tick end", x=_LEFT - 7, y=_TOP + 8),
        markup.tag("text", "0", class_="tick end", x=_LEFT - 7, y=bottom),
        markup.tag("path", class_="rank", d=path(~outlying)),
        markup.tag("path", class_="rank outlying", d=path(outlying)),
        markup.tag("path", class_="rank outlying", d=marks),
        markup.tag("text", sides[0], class_="tick start", x=_LEFT, y=_HEIGHT - 4),
        markup.tag("text", sides[1], class_="tick end", x=right, y=_HEIGHT - 4),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_labelledby=f"{key}-ranks-title {key}-ranks-desc",
    )


_GRID = 72
"""Number of points of a curve, equal factors apart: enough to look smooth."""
_LONGEST = 400
"""Longest formula, in characters; sums over thousands of call paths are cut."""


def cards_section(
    content: markup.PageContent, rows: IntArray, names: markup.CallPathLinks
) -> markup.Html:
    """Return the cards of call paths."""
    steps, ranking = excess_steps(content.ranking), content.ranking
    cards = [
        _card(content, place, CallPathReport.of(ranking, row), path, steps, names)
        for place, (row, path) in enumerate(
            zip(rows.tolist(), names.paths(rows), strict=True), start=1
        )
    ]
    signs = () if ranking.fitted.is_measured_only else (markup.legend(),)
    if content.no_processes:
        told = f"The values of single ranks are not shown: {cut(content.no_processes)}"
        signs = (*signs, markup.tag("p", told, class_="aside"))
    return markup.joined(*signs, markup.tag("div", *cards, class_="cards"))


def _card(
    content: markup.PageContent,
    place: int,
    report: CallPathReport,
    path: markup.Html,
    steps: list[ExcessStep],
    names: markup.CallPathLinks,
) -> markup.Html:
    ranking, row = content.ranking, int(report.nodes[0])
    cause = content.causes.get(row)
    cause = cause if cause and cause.has_needs else None
    fitted, key = ranking.fitted, names.anchor(row)
    curve = report.curve(_GRID)
    drawn = markup.figure(
        curve, fitted.metric.unit, fitted.parameter, key=key, label=_told(report, curve)
    )
    only_values, of_ranks = fitted.is_measured_only, content.processes.get(row)
    source = origin(report.regions[0])
    callers, callees = report.neighbours(ranking.inputs.at_largest)
    facts = [(word, " · ".join(text.split("   "))) for word, text in report.quality()]
    facts += [("source", source)] if source else []
    facts += [] if ranking.inclusive else report.delay()
    facts += [("called by", callers), ("calls", callees)]
    facts += [("why", conclusion(ranking, cause))] if cause else []
    more = markup.tag(
        "details",
        markup.tag("summary", "Numbers"),
        _numbers(report, curve),
        *([markup.plain_table(requirement_rows(ranking, cause), "Requirements")] if cause else []),
        *_excess(fitted, steps, row),
        *_command(content.making, names.mark(row)),
    )
    return markup.tag(
        "article",
        markup.tag("h3", markup.tag("span", str(place), class_="place"), " ", path),
        *([] if only_values else [markup.tag("p", *_model(report), class_="formula")]),
        _prediction(report),
        *([] if only_values else [drawn]),
        *alternatives(report.others()),
        *([processes_part(of_ranks, key=key)] if of_ranks else []),
        markup.pairs([(word, cut(text)) for word, text in facts]),
        more,
        class_="card",
        id=key,
    )


def _command(making: markup.Provenance | None, mark: str) -> list[markup.Html]:
    """Return the command that prints a call path, if the page was made by a command."""
    if making is None:
        return []
    return [
        markup.tag("p", markup.tag("code", making.invocation.line("show", mark)), class_="command")
    ]


def _model(report: CallPathReport) -> list[markup.Html]:
    fitted = report.fitted
    if report.leader < 0:
        return [markup.joined(report.no_model())]
    formula = formula_text(fitted, report.parts, pretty=True)
    if len(formula) > _LONGEST:
        formula = f"{formula[:_LONGEST].rpartition(' + ')[0]} + …"
    formula += formula_from_text(fitted, report.rows)
    shown = [
        markup.tag("code", line) for line in (*report.whole_formula(), equation(fitted, formula))
    ]
    return [part for one in shown for part in (one, markup.tag("br"))][:-1]


def _prediction(report: CallPathReport) -> markup.Html:
    """Return the value at the target, and the prediction of the model where it was run."""
    ranking, fitted, unit = report.forecast, report.fitted, report.fitted.metric.unit
    row, (value, low, high) = int(report.nodes[0]), report.total
    share, growth = float(report.main.share[0]), report.growth
    parts: list[str] = [f"{percent(share)} of the total"] if np.isfinite(share) else []
    parts += [growth + from_text(fitted, report.leader)] if growth else []
    if np.isfinite(ranking.target):
        band = band_text(low, high, unit, style=DEFAULT_STYLE)
        amount = markup.tag("strong", markup.number(value, tied(quantity(value, unit))))
        at = f"at {at_text(fitted, ranking.target)}{', measured' * (ranking.repetitions > 0)}: "
        is_alone = fitted.is_measured_only and np.isnan(low)
        parts.insert(0, markup.joined(at, amount, "" if is_alone else f" ({tied(band)})"))
    if ranking.is_comparison:
        parts += _lost(ranking, row)
    elif not fitted.is_measured_only:
        trust = int(ranking.trust[row])
        marks = trust_text(marks_text(trust), trust if trust >= 0 else None)
        parts += [marks] if marks else []
    spread = [piece for part in parts for piece in (part, " · ")][:-1]
    model = ""
    if ranking.repetitions and report.leader >= 0:
        model = markup.tag("p", f"model {tied(report.prediction())}", class_="aside")
    return markup.joined(markup.tag("p", *spread, class_="value"), model)


def _lost(ranking: Ranking, row: int) -> list[str]:
    """Return the value at the smaller scale and the excess work of a comparison."""
    fitted = ranking.fitted
    losses = loss_columns(ranking, *ranking.of_rows(np.array([row])))
    cells = {key: coloured(column, 0) for key, column in losses.items()}
    before = quantity(float(ranking.at_base[row]), fitted.metric.unit)
    return [
        f"{before} at {at_text(fitted, ranking.base)}",
        markup.joined("excess ", cells["loss"], " inclusive, ", cells["own_loss"], " exclusive"),
    ]


def _told(report: CallPathReport, curve: Curve) -> str:
    """Return a description of the chart for screen readers; its numbers are below the chart."""
    ranking, fitted, unit = report.forecast, report.fitted, report.fitted.metric.unit
    known = np.flatnonzero(np.isfinite(curve.measured))
    growth = growth_text(ranking, int(report.nodes[0]))
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
    value, low, high = report.total
    band = band_text(low, high, unit, style=DEFAULT_STYLE)
    told = f"{ranking.basis.capitalize()} {quantity(value, unit)} ({band})"
    return f"{said} {told} at {at_text(fitted, ranking.target)}."


def alternatives(rows: Sequence[tuple[str, str, str]]) -> list[markup.Html]:
    """Return the table of `other_models`; at infinity, predictions do not differ."""
    first, *others = rows or [("", "", "")]
    if not others:
        return [markup.tag("p", first[0], class_="aside")] if first[0] else []
    title, *titles = first[:2] if first[2].endswith(" = inf") else first
    body = [
        markup.tag(
            "tr",
            markup.tag("th", markup.tag("code", name), scope="row"),
            *(markup.cell(text, right=True) for _, text in zip(titles, cells, strict=False)),
        )
        for name, *cells in others
    ]
    heads = [markup.head(title), *(markup.head(each, right=True) for each in titles)]
    return [markup.table(heads, body, caption="Other models that fit the data", narrow=True)]


def _numbers(report: CallPathReport, curve: Curve) -> markup.Html:
    """Return the data of the chart as a table, and the imbalance of processes."""
    fitted, unit = report.fitted, report.fitted.metric.unit
    model = np.full(len(fitted.points), np.nan)
    if len(report.parts):
        model = fitted.models.sum_values(report.parts, fitted.points)
    uneven = dict(imbalances(fitted, int(report.nodes[0])))
    lines: list[tuple[str, ...]] = [(fitted.parameter, "measured", "model")]
    for point, measured, value in zip(
        fitted.points.tolist(), curve.measured.tolist(), model.tolist(), strict=True
    ):
        texts = [quantity(number_, unit) for number_ in (measured, value)]
        lines.append((parameter_value(point), *texts))
    if curve.target is not None and curve.target > curve.end_of_data:
        lines.append((parameter_value(curve.target), "", quantity(report.total[0], unit)))
    if uneven:
        what = "imbalance" + " of the exclusive cost" * (len(report.rows) > 1)
        ratios = [f"{uneven[p]:.2f}" if p in uneven else "" for p in fitted.points.tolist()]
        cells = [what, *ratios, *[""] * (len(lines) - 1 - len(ratios))]
        lines = [(*line, text) for line, text in zip(lines, cells, strict=True)]
    if fitted.is_measured_only:
        lines = [(*line[:2], *line[3:]) for line in lines]
        return markup.plain_table(lines, "Measured values")
    return markup.plain_table(lines, "Measured values and model")


def _excess(fitted: Fitted, steps: list[ExcessStep], row: int) -> list[markup.Html]:
    if not steps:
        return []
    lines: list[tuple[str, ...]] = [("excess work", "inclusive", "exclusive")]
    lines += [
        (step.title, percent(step.inclusive[row], 1), percent(step.exclusive[row], 1))
        for step in steps
    ]
    base = "" if fitted.ideal is None else f", {fitted.ideal.meaning}"
    return [markup.plain_table(lines, f"Excess work between scales{base}")]


_INDENT = "\N{EM SPACE}"
_OF_SUBTREES = (
    PopFactor.PARALLEL,
    PopFactor.BALANCE,
    PopFactor.COMMUNICATION,
    PopFactor.THREADS,
    PopFactor.SCALABILITY,
)


def efficiency_section(shown: efficiency_text.EfficiencyView | str) -> markup.Html:
    """Return the factors by scale and by subtree, or the reason why there are none."""
    if isinstance(shown, str):
        return markup.tag("p", shown)
    parts = [
        markup.tag("p", markup.tag("strong", f"{efficiency_text.headline(shown)}.")),
        *(markup.tag("p", line, class_="aside") for line in efficiency_text.context_lines(shown)),
        _factors(shown),
    ]
    if len(shown.subtrees):
        parts += [markup.tag("h3", "Subtrees"), _subtrees(shown)]
    return markup.joined(*parts)


def _factors(shown: efficiency_text.EfficiencyView) -> markup.Html:
    found = shown.efficiency
    heads = [markup.head("factor")]
    for estimate in found.estimates:
        scale = f"{found.line.parameter} = {parameter_value(estimate.scale)}"
        heads.append(markup.head(scale, right=True))
        if estimate.is_predicted:
            heads.append(markup.head("band", right=True))
    rows = []
    for factor in found.factors:
        cells = [
            markup.tag(
                "th", _INDENT * shown.depth(factor) + efficiency_text.label_of(factor), scope="row"
            )
        ]
        for estimate in found.estimates:
            value = shown.value(estimate, factor)
            cells.append(_cell(value, efficiency_text.value_text(shown, estimate, factor)))
            if estimate.is_predicted:
                cells.append(
                    markup.cell(efficiency_text.range_text(shown, estimate, factor), right=True)
                )
        rows.append(markup.tag("tr", *cells))
    return markup.table(heads, rows, caption="Factors of parallel efficiency")


def _cell(value: float, text: str) -> markup.Html:
    return markup.cell(text if np.isnan(value) else markup.number(value, text), right=True)


def _subtrees(shown: efficiency_text.EfficiencyView) -> markup.Html:
    found, last = shown.efficiency, shown.efficiency.last
    lost = efficiency_text.lost_of(last, shown.scheme)
    factors = [factor for factor in _OF_SUBTREES if factor in found.factors]
    heads = [
        markup.head("subtree"),
        markup.head("lost", right=True),
        markup.head("share", right=True),
    ]
    heads += [markup.head(efficiency_text.label_of(factor), right=True) for factor in factors]
    rows = []
    # The page may leave out call paths, so these rows are not those of its cards.
    names = markup.CallPathLinks(found.experiment.tree, np.empty(0, np.intp))
    places = shown.subtrees
    for place, path in zip(places.tolist(), names.paths(found.rows[places]), strict=True):
        cells = [markup.tag("th", path, scope="row")]
        cells += [
            _cell(float(values[place]), efficiency_text.share_text(float(values[place])))
            for values in (lost, last.share)
        ]
        for factor in factors:
            text = efficiency_text.value_text(shown, last, factor, place)
            cells.append(_cell(shown.value(last, factor, place), text))
        rows.append(markup.tag("tr", *cells))
    note = (
        "lost: time of the subtree without computation; share: its run time; both as shares of the "
        "run time of the program"
    )
    return markup.joined(
        markup.table(heads, rows, caption="Subtrees"), markup.tag("p", note, class_="aside")
    )


def isoefficiency_section(found: Isoefficiency) -> markup.Html:
    """Return the problem sizes that keep an efficiency, as a table and a chart."""
    columns, kept = efficiency_text.iso_columns(found)
    heads = [markup.head(column.header, right=column.right) for column in columns]
    cells = [[markup.cell(text, right=column.right) for text in column.cells] for column in columns]
    rows = [
        markup.tag("tr", *row, markup.cell(text)) for *row, text in zip(*cells, kept, strict=True)
    ]
    title = efficiency_text.iso_title(found)
    return markup.joined(
        markup.tag(
            "p", markup.tag("strong", f"{'. '.join(efficiency_text.iso_sentences(found))}.")
        ),
        *(markup.tag("p", line, class_="aside") for line in efficiency_text.iso_context(found)),
        _chart_of_sizes(found),
        markup.table([*heads, markup.head(title)], rows, caption=title),
    )


def _chart_of_sizes(found: Isoefficiency) -> markup.Html:
    points = [point for point in found.points if point.has_value]
    if len(points) < 2:
        return markup.Html("")
    scales, sizes, low, high = (
        np.array([getattr(point, name) for point in points])
        for name in ("scale", "size", "low", "high")
    )
    last = found.fitted.measured_range(found.parameter)[1]
    curve = Curve(scales, np.full(len(points), np.nan), scales, sizes, low, high, last, scales[-1])
    about = f"{efficiency_text.iso_title(found)} over {found.parameter}"
    return markup.figure(curve, "1", found.parameter, key="sizes", label=about)


def expectations_section(check: Check) -> markup.Html:
    """Return every expectation with its status, in the order of the file."""
    heads = [markup.head(text) for text in ("status", "expectation", "result", "line")]
    body = [_row(check, outcome) for outcome in check.outcomes]
    style = "passed" if check.passed else "failed"
    return markup.joined(
        markup.tag("p", markup.tag("strong", last_line(check), class_=style)),
        markup.table(heads, body, caption="Expectations"),
        markup.tag("p", f"of {check.path}", class_="aside"),
    )


def _row(check: Check, outcome: Outcome) -> markup.Html:
    status = str(outcome.status)
    names = [short_name(name) for name in worst_names(outcome)]
    place = [markup.shortened(names)] if names else []
    more = [*place, *details(outcome, check.control_of(outcome))]
    said = markup.joined(
        sentence(outcome), *(markup.tag("div", line, class_="aside") for line in more)
    )
    return markup.tag(
        "tr",
        markup.cell(markup.tag("span", status.upper(), class_=f"status {status}")),
        markup.tag("th", outcome.name, scope="row"),
        markup.cell(said),
        markup.cell(str(outcome.line), right=True),
    )


_MOST = 100
"""Largest number of findings that are listed, because a thousand profiles may have some."""
_POINTS = 200


def quality_section(experiment: Experiment, findings: Sequence[Finding]) -> markup.Html:
    """Return one row per kind of finding with its remedy, and a description of the experiment."""
    coverage = coverage_rows(experiment)
    more = len(coverage) - 1 - _POINTS
    rest = [markup.tag("p", f"… {more} more points", class_="aside")] if more > 0 else []
    return markup.joined(
        *findings_table(findings),
        markup.tag("h3", "Parameters"),
        markup.plain_table(parameter_rows(experiment), "Parameters"),
        markup.tag("h3", "Metrics"),
        markup.plain_table(metric_rows(experiment), "Metrics"),
        markup.tag("h3", "Points"),
        markup.plain_table(coverage[: _POINTS + 1], "Points"),
        *rest,
    )


def findings_table(findings: Sequence[Finding]) -> list[markup.Html]:
    """Return one row per kind of finding, with its remedy."""
    kinds = by_kind(findings)
    if not kinds:
        return [markup.tag("p", "There are no findings.")]
    heads = [
        markup.head("finding"),
        markup.head("count", right=True),
        markup.head("what"),
        markup.head("what to do"),
    ]
    body = [
        markup.tag(
            "tr",
            markup.tag(
                "th", markup.tag("code", finding.code), f" {KINDS[finding.code].what}", scope="row"
            ),
            markup.cell(str(count), right=True),
            markup.cell(cut(f"{finding.subject}: {finding.message}", 600)),
            markup.cell(finding.remedy),
        )
        for finding, count in kinds[:_MOST]
    ]
    more = len(kinds) - len(body)
    rest = (
        [markup.tag("p", f"… {more} more: cpmodel info --diagnostics", class_="aside")]
        if more
        else []
    )
    return [markup.table(heads, body, caption="Findings"), *rest]
