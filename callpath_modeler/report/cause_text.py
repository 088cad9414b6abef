"""The cause of the growth of a call path, as text and as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.cause import IMBALANCE, NOTHING, UNEXPLAINED, Cause, Explained, Share
from callpath_modeler.analysis.laws_of_time import Driver, Kind
from callpath_modeler.analysis.run_time import ImbalanceSources
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle, aligned
from callpath_modeler.report.model_formulas import growth_text
from callpath_modeler.report.ranking_table import measured_json
from callpath_modeler.report.table_formats import Cell, Table, provenance
from callpath_modeler.units import factor_text, parameter_value, percent

_NAMED = 2
"""Largest number of call paths that are named."""
_LIKELY = 0.5
"""Probability from which on one hypothesis is more probable than all others together."""
_WORTH_A_WORD = 0.05
"""Probability from which on an algorithm is listed."""


def cause_lines(ranking: Ranking, cause: Cause, *, style: TextStyle) -> list[str]:
    """Return a table of time and requirements, and the sentence about the cause."""
    head, *rows = requirement_rows(ranking, cause, style=style)
    lines = aligned([head, *((f"  {name}", *cells) for name, *cells in rows)], numbers=True)
    return [*lines, conclusion(ranking, cause), ""]


def requirement_rows(
    ranking: Ranking, cause: Cause, *, style: TextStyle = DEFAULT_STYLE
) -> list[tuple[str, ...]]:
    """Return the header and the rows of the table, the time first."""
    needs, place = cause.causes.needs, cause.place
    fitted, base = ranking.fitted, cause.base
    beyond = needs.points[-2] < ranking.target < np.inf
    ends = [base, -2, *([-1] if beyond else [])]
    pretty = not style.ascii_only
    time = np.append(needs.time[place], needs.at_target[place])
    growth = growth_text(ranking, cause.row, pretty=pretty)
    lines = [(fitted.metric, time, growth)]
    for need in needs.found:
        values = need.amounts.values[place]
        if values.any():
            lines.append((need.metric, values, need.growth_text(place, pretty=pretty)))
    titles = [f"{fitted.parameter}={parameter_value(float(needs.points[end]))}" for end in ends]
    rows = [("requirements", *titles[:2], "change", "growth", *titles[2:])]
    for metric, values, growth in lines:
        texts = [style.amount(float(values[end]), metric.unit) for end in ends]
        low, high = float(values[base]), float(values[-2])
        change = f"× {factor_text(high / low)}" if low > 0 else "-"
        rows.append((metric.name, *texts[:2], change, growth, *texts[2:]))
    return rows


def conclusion(ranking: Ranking, cause: Cause) -> str:
    """Return the cause as a sentence with the shares at the target."""
    label = cause.label
    if label == IMBALANCE:
        return f"{_imbalance_text(ranking, cause)}{_slowest(cause)}"
    if label == NOTHING and cause.grows:
        return "The profiles count no calls, bytes or operations here, so the cause is unknown."
    if label == NOTHING:
        return "The time does not grow."
    counter = wrapped_text(cause)
    if counter:
        return f"{counter}. So the cause is unknown."
    return _explained_text(ranking, cause, cause.explained())


def wrapped_text(cause: Cause) -> str:
    """Return which counter is wrapped, and from which scale on; empty = none."""
    if cause.wrapped is None:
        return ""
    (metric, point), parameter = cause.wrapped, cause.causes.fitted.parameter
    where = f"{parameter} = {parameter_value(point)}"
    return f"{metric.name} falls from {where} on, as a counter of 32 bits that starts again at 0"


def _explained_text(ranking: Ranking, cause: Cause, explained: Explained) -> str:
    """Return the cause of a time that grows, with the shares at the target."""
    label, waits_for = cause.label, f"{Driver.SOURCE.value} "
    where = f"at {ranking.fitted.parameter} = {parameter_value(float(cause.target))}"
    required = f"requirements explain {_banded(explained.required)} of the time {where}"
    if cause.is_required:
        return f"{_REQUIRED[label]}: {required}."
    if label.startswith(waits_for):
        name = short_name(label.removeprefix(waits_for))
        return (
            f"It waits for {name}, which takes longer on some processes: {required}, "
            f"and this delay {_banded(explained.delayed)}."
        )
    if not cause.is_clear or (label == UNEXPLAINED and cause.call_class.waits):
        chances = f"{percent(cause.probability(Kind.REQUIRED))} probability"
        one = (
            "the operation over more processes"
            if cause.call_class.is_collective
            else "requirements"
        )
        return f"The data cannot tell which: {one} ({chances}), or {_other(cause)}."
    return f"Requirements do not grow as the time does, so it is {_other(cause)}: {required}."


_REQUIRED = {
    Driver.WORK.value: "More work",
    Driver.MESSAGES.value: "More messages",
    Driver.SIZE.value: "Longer messages",
    Driver.LOG.value: "The collective operation has log p steps",
    Driver.LINEAR.value: "The collective operation has p steps",
    "collective": "The collective operation has more processes",
}


def _other(cause: Cause) -> str:
    if cause.call_class.waits:
        return "waiting or slower messages"
    return "more work in each call, or contention"


def _imbalance_text(ranking: Ranking, cause: Cause) -> str:
    found = cause.imbalance()
    p, known = ranking.fitted.parameter, np.flatnonzero(np.isfinite(found.ratio))
    first, last = (parameter_value(float(ranking.fitted.points[k])) for k in known[[0, -1]])
    before, after = (f"{found.ratio[k]:.3g}" for k in known[[0, -1]])
    return (
        f"The slowest process takes {after} × the mean at {p} = {last}, and {before} × at {first}. "
        "The largest time grows, the mean hardly does"
    )


def _slowest(cause: Cause) -> str:
    """Return how few processes have the time, if they are few."""
    count = cause.imbalance().processes
    count = count[np.isfinite(count)]
    if not len(count) or count[-1] > 0.25 * cause.causes.needs.processes[-2]:
        return "."
    few = "one process" if count[-1] < 1.5 else f"at most {count[-1]:.0f} processes"
    return f": it is as if {few} did all of it."


def _banded(share: Share) -> str:
    low, value, high = (percent(each) for each in (share.low, share.value, share.high))
    return value if low == high else f"{value} ({low} … {high})"


def why_text(ranking: Ranking, cause: Cause, *, style: TextStyle) -> list[str]:
    """Return everything that is known about the cause of the growth of a call path."""
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    lines = [
        f"{tree.path(cause.row)}   @{tree.id_of(cause.row)}   {cause.call_class}",
        f"why: {cause.label}",
        *wrap_lines(conclusion(ranking, cause), style),
        "",
    ]
    head, *rows = requirement_rows(ranking, cause, style=style)
    lines += aligned([head, *((f"  {name}", *cells) for name, *cells in rows)], numbers=True)
    hypothesis, terms = cause.terms()
    lines += ["", *wrap_lines(_hypothesis_text(cause, hypothesis.law), style)]
    largest = f"{fitted.parameter}={parameter_value(float(cause.causes.needs.points[-2]))}"
    cells = [("  term", "seconds per unit", "error", largest)]
    for term in terms:
        error = percent(term.error / term.coefficient) if term.coefficient > 0 else "-"
        cells.append(
            (
                f"  {term.text or 'once'}",
                f"{term.coefficient:.3g}",
                error,
                style.amount(term.at_largest, fitted.metric.unit),
            )
        )
    lines += aligned(cells, numbers=True)
    kinds = ", ".join(f"{kind} {percent(cause.probability(kind))}" for kind in Kind)
    lines += ["", *wrap_lines(f"{_agreement_text(cause)}; probability: {kinds}", style)]
    lines += ["", *_share_lines(ranking, cause, cause.explained(), style=style)]
    lines += _family_lines(cause, style)
    lines += _imbalance_lines(ranking, cause)
    found = imbalance_facts(ImbalanceSources.of(fitted), cause.row, style=style)
    lines += [""] * bool(found)
    lines += [line for name, text in found for line in wrap_lines(f"{name}: {text}", style)]
    return lines


def _agreement_text(cause: Cause) -> str:
    if not cause.has_needs:
        return "no requirement is counted"
    return f"requirements and time {'agree' if cause.agrees else 'do not agree'}"


def _hypothesis_text(cause: Cause, law: str) -> str:
    """Return the hypothesis whose terms follow, as no more than the most probable one."""
    best, count = percent(cause.best_probability), cause.number_of_hypotheses
    text = f"most probable of {count} hypotheses: {law} ({best})"
    if cause.best_probability >= _LIKELY:
        return text
    return f"{text}. None is likely, so these terms are one possibility:"


def wrap_lines(text: str, style: TextStyle) -> list[str]:
    """Return a sentence as lines that fit the width."""
    return [line.plain for line in style.lines([text])]


def _share_lines(
    ranking: Ranking, cause: Cause, explained: Explained, *, style: TextStyle
) -> list[str]:
    fitted = ranking.fitted
    unit = fitted.metric.unit
    band = f"{percent(fitted.models.confidence)} band"
    cells = [(f"{fitted.parameter}={parameter_value(float(cause.target))}", "value", band)]
    cells.append(("  time", style.amount(explained.time, unit), ""))
    shares = {
        "requirements": explained.required,
        "delay by computation": explained.delayed,
        "unexplained": explained.rest,
    }
    for name, share in shares.items():
        cells.append(
            (f"  {name}", percent(share.value), f"{percent(share.low)} … {percent(share.high)}")
        )
    return aligned(cells, numbers=True)


def _family_lines(cause: Cause, style: TextStyle) -> list[str]:
    families = cause.families()
    if not families:
        return []
    if cause.family is not None:
        head = f"algorithm: {cause.family.name}"
    elif cause.is_probably_required:
        head = "algorithm: cannot tell which"
    else:
        # The probabilities are those among algorithms, and waiting may be more likely than all.
        head = "algorithm, if requirements are the cause"
    cells = [(head, "probability", "time of a call", "source")]
    for family, probability in families:
        if probability >= _WORTH_A_WORD:
            cells.append((f"  {family.name}", percent(probability), family.formula, family.source))
    return ["", *(style.say(line) for line in aligned(cells))]


def _imbalance_lines(ranking: Ranking, cause: Cause) -> list[str]:
    found = cause.imbalance()
    if not np.isfinite(found.ratio).any():
        return []
    fitted = ranking.fitted
    each = "   ".join(
        f"{parameter_value(float(point))}: {'-' if np.isnan(ratio) else f'{ratio:.2f}'}"
        for point, ratio in zip(fitted.points, found.ratio, strict=True)
    )
    return ["", f"imbalance {fitted.parameter} = {each}   (largest / mean of the processes)"]


def cause_json(ranking: Ranking, cause: Cause) -> dict[str, object]:
    """Return the cause of a call path for JSON."""
    tree = ranking.fitted.experiment.tree
    hypothesis, terms = cause.terms()
    explained, imbalance = cause.explained(), cause.imbalance()
    source = int(cause.causes.source[cause.place])
    return {
        "why": cause.label,
        "verdict": conclusion(ranking, cause),
        "agrees": cause.agrees,
        "probability": {str(kind): cause.probability(kind) for kind in Kind},
        "law": hypothesis.law,
        "law_probability": cause.best_probability,
        "terms": [
            {
                "term": term.text,
                "coefficient": term.coefficient,
                "error": term.error,
                "at_largest": term.at_largest,
            }
            for term in terms
        ],
        "time": explained.time,
        "explained": structs.asdict(explained.required),
        "delayed": structs.asdict(explained.delayed),
        "unexplained": structs.asdict(explained.rest),
        "algorithm": cause.family.name if cause.family else None,
        "algorithms": [
            {
                "name": family.name,
                "probability": probability,
                "time": family.formula,
                "source": family.source,
            }
            for family, probability in cause.families()
        ],
        "imbalance": imbalance.ratio.tolist(),
        "waits_for": tree.path(source) if source >= 0 else None,
    }


def why_table(ranking: Ranking, cause: Cause, findings: Sequence[Finding] = ()) -> Table:
    """Return the cause as a table with one row per requirement; the rest is its header."""
    needs, place = cause.causes.needs, cause.place
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    found = [need for need in needs.found if need.amounts.values[place].any()]
    time = np.append(needs.time[place], needs.at_target[place])
    values = [time, *(need.amounts.values[place] for need in found)]
    metrics = [fitted.metric, *(need.metric for need in found)]
    growth = [growth_text(ranking, cause.row), *(need.growth_text(place) for need in found)]
    columns: dict[str, list[Cell]] = {
        "metric": [metric.name for metric in metrics],
        "unit": [metric.unit for metric in metrics],
        "growth": [*growth],
        "at_smallest": [float(each[cause.base]) for each in values],
        "at_largest": [float(each[-2]) for each in values],
        "at_target": [float(each[-1]) for each in values],
    }
    header = {
        **provenance(fitted.experiment, findings),
        "callpath": tree.path(cause.row),
        "id": f"@{tree.id_of(cause.row)}",
        "class": str(cause.call_class),
        "metric": fitted.metric.name,
        **measured_json(fitted),
        "target": float(cause.target),
        **cause_json(ranking, cause),
    }
    return Table(columns, {}, header)


def imbalance_facts(
    sources: ImbalanceSources | None, row: int, *, style: TextStyle = DEFAULT_STYLE
) -> list[tuple[str, str]]:
    """Return the computation whose imbalance may cause a call path to wait, if it is known."""
    found = None if sources is None else sources.near(row)
    if sources is None or found is None:
        return []
    tree, unit = sources.tree, sources.metric.unit

    def name(one: int) -> str:
        return short_name(tree.name(one))

    def time(value: float) -> str:
        return style.amount(value, unit)

    first = zip(found.rows[:_NAMED].tolist(), found.above, found.ratio, strict=False)
    most = ", ".join(f"{name(one)} by {time(above)} (× {ratio:.3g})" for one, above, ratio in first)
    where = f"{sources.parameter} = {parameter_value(sources.largest)}"
    times = found.total / found.wait
    part = f"{percent(times)} of" if times < 1 else f"{factor_text(times)} ×"
    text = (
        f"{where}: below {name(found.caller)}, the slowest process computes at most "
        f"{time(found.total)} longer than the mean, {part} the time here; {most}"
    )
    return [("delay", text)]
