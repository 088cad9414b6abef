"""Factors of parallel efficiency, and problem sizes that keep it, as text and as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.efficiency_factors import (
    LEAVES,
    OF_GPUS,
    Efficiency,
    FactorsAtScale,
    Ingredient,
    PopFactor,
    Scheme,
)
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.balance import Part
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.pattern import match, unmatched
from callpath_modeler.profile.schema import PROGRAM
from callpath_modeler.report.layout import EXPERIMENT, Invocation, TextColumn, TextStyle
from callpath_modeler.report.outlined_view import short_names
from callpath_modeler.report.table_formats import Cell, Table, provenance, text_table_of
from callpath_modeler.studies.isoefficiency import IsoBound, Isoefficiency, IsoPoint
from callpath_modeler.studies.question import FURTHER
from callpath_modeler.units import (
    as_option,
    counted,
    factor_text,
    parameter_value,
    percent,
    setting_text,
    significant,
    to_ascii,
)

TOP = 10
"""Default number of subtrees."""
_UNKNOWN = "-"
_FINE = 0.01
"""Share below which texts have another digit."""
_ROUNDING = 1 + 1e-9
"""Factor of a number of workers that may be whole but for rounding."""
_SAME = 0.95
"""Share of the loss of a caller from which on a callee stands for it."""
_LABELS = {
    PopFactor.GLOBAL: "global efficiency",
    PopFactor.PARALLEL: "parallel efficiency",
    PopFactor.PROCESSES: "MPI efficiency",
    PopFactor.BALANCE: "load balance",
    PopFactor.COMMUNICATION: "communication efficiency",
    PopFactor.THREADS: "OpenMP efficiency",
    PopFactor.SERIAL: "serial regions",
    PopFactor.REGIONS: "parallel regions",
    PopFactor.SCALABILITY: "computation scalability",
    PopFactor.INSTRUCTIONS: "instruction scaling",
    PopFactor.IPC: "IPC scaling",
    PopFactor.FREQUENCY: "frequency scaling",
    PopFactor.UTILISATION: "GPU utilisation",
    PopFactor.OVERLAP: "overlap of GPU communication",
}
_ABOVE = {
    PopFactor.PARALLEL: PopFactor.GLOBAL,
    PopFactor.PROCESSES: PopFactor.PARALLEL,
    PopFactor.BALANCE: PopFactor.PROCESSES,
    PopFactor.COMMUNICATION: PopFactor.PROCESSES,
    PopFactor.THREADS: PopFactor.PARALLEL,
    PopFactor.SERIAL: PopFactor.THREADS,
    PopFactor.REGIONS: PopFactor.THREADS,
    PopFactor.SCALABILITY: PopFactor.GLOBAL,
    PopFactor.INSTRUCTIONS: PopFactor.SCALABILITY,
    PopFactor.IPC: PopFactor.SCALABILITY,
    PopFactor.FREQUENCY: PopFactor.SCALABILITY,
}
"""The factor above each factor; one that is not shown is skipped."""
_PARTS = {
    Part.USEFUL: "useful",
    Part.SERIAL: "idle_in_serial_regions",
    Part.REGIONS: "waiting_in_parallel_regions",
    Part.IMBALANCE: "imbalance",
    Part.COMMUNICATION: "communication",
}


@dataclass(frozen=True, eq=False)
class EfficiencyView:
    """What of an answer is shown.

    Attributes
    ----------
    efficiency : the factors
    scheme : multiplicative or additive
    top : number of subtrees
    confidence : confidence of the bands at the target
    select : pattern of the subtrees; None = those that are worth a line
    """

    efficiency: Efficiency
    scheme: Scheme
    top: int
    confidence: float
    select: str | None = None

    @cached_property
    def known(self) -> IntArray:
        """Positions of the subtrees that may be listed, those that lose most first.

        Without a pattern, these are subtrees with computation. Of a chain of callers that lose the
        same, it is the innermost one.

        Raises
        ------
        UsageError
            If the pattern selects no subtree.
        """
        found, last = self.efficiency, self.efficiency.last
        lost, tree = lost_of(last, self.scheme), found.experiment.tree
        listed = ~np.isnan(lost) & (found.rows != ROOT)
        if self.select is not None:
            named = match(tree, self.select)
            if not named.any():
                raise unmatched(tree, self.select)
            listed &= named[found.rows]
            if not listed.any():
                raise UsageError(
                    f"no subtree of {self.select!r} is costly enough for factors of its own",
                    hint="choose a caller",
                )
        else:
            listed &= last.value[self.scheme, PopFactor.PARALLEL] > 0
            listed &= found.rows != tree.roots[0] if len(tree.roots) == 1 else True
            _drop_callers(tree, found.rows, listed, lost, last.share)
        places = np.flatnonzero(listed)
        return places[np.argsort(-lost[places], kind="stable")]

    @property
    def subtrees(self) -> IntArray:
        """Positions of the listed subtrees, those that lose most first."""
        return self.known[: self.top]

    def depth(self, factor: PopFactor) -> int:
        """Return the number of shown factors above a factor."""
        depth, above = 0, _ABOVE.get(factor)
        while above is not None:
            depth += above in self.efficiency.factors
            above = _ABOVE.get(above)
        return depth

    def value(self, estimate: FactorsAtScale, factor: PopFactor, subtree: int = 0) -> float:
        """Return the value of a factor."""
        return float(estimate.value[self.scheme, factor][subtree])

    def band(
        self, estimate: FactorsAtScale, factor: PopFactor, subtree: int = 0
    ) -> tuple[float, float]:
        """Return the range of the repetitions, or the band of the prediction; NaN = none."""
        key = self.scheme, factor
        return float(estimate.low[key][subtree]), float(estimate.high[key][subtree])


def _drop_callers(
    tree: CallTree, rows: IntArray, listed: BoolArray, lost: FloatArray, share: FloatArray
) -> None:
    """Remove subtrees from `listed` that contain a listed one with nearly all of their loss."""
    for place in np.flatnonzero(listed).tolist():
        inside = (rows > rows[place]) & (rows < tree.end[rows[place]]) & listed
        same = (lost >= _SAME * lost[place]) & (share >= _SAME * share[place])
        listed[place] = not (inside & same).any()


def label_of(factor: PopFactor) -> str:
    """Return the name of a factor."""
    return _LABELS[factor]


def share_text(share: float) -> str:
    """Return a factor as a percentage with one decimal, or two if it is very small."""
    return percent(share, 1 if share >= _FINE else 2)


def lost_of(estimate: FactorsAtScale, scheme: Scheme) -> FloatArray:
    """Return the time of subtrees without computation, as a share of the run time."""
    return np.asarray(estimate.share * (1 - estimate.value[scheme, PopFactor.PARALLEL]))


def efficiency_text(
    shown: EfficiencyView, *, style: TextStyle, invocation: Invocation = EXPERIMENT
) -> list[Text]:
    """Return the factors as text: the answer, the factors by scale, and the costliest subtrees.

    Parameters
    ----------
    shown : the factors
    style : width, length of names, and characters of text
    invocation : command lines for the same experiment
    """
    columns, nodes = _factors(shown)
    body = style.tree_table(columns, nodes, title="factor")
    if len(shown.subtrees):
        body += [Text(), *style.table(*_subtrees(shown, style), title="subtree")]
    notes = _footer(shown, shown.subtrees, invocation)
    return style.answer([headline(shown)], context_lines(shown), body, notes)


def efficiency_text_tables(shown: EfficiencyView, style: TextStyle) -> list[Table]:
    """Return the tables of `efficiency_text`: factors by scale, and subtrees if there are any."""
    columns, nodes = _factors(shown)
    tables = [text_table_of(columns, [name for _, name in nodes], "factor")]
    columns, names = _subtrees(shown, style)
    tables += (
        [text_table_of(columns, ["/".join(each) for each in names], "subtree")] if names else []
    )
    return tables


def headline(shown: EfficiencyView) -> str:
    """Return the sentence that answers: how efficient, and which factor is the lowest."""
    found, last = shown.efficiency, shown.efficiency.last
    value = shown.value(last, PopFactor.PARALLEL)
    at = setting_text(found.line.at(last.scale))
    said = f"{found.experiment.name}: parallel efficiency {share_text(value)}"
    if last.is_predicted:
        said += f" ({range_text(shown, last, PopFactor.PARALLEL)}) predicted"
    said += f" at {at}"
    values = {factor: shown.value(last, factor) for factor in LEAVES if factor in found.factors}
    known = {factor: each for factor, each in values.items() if each == each}  # noqa: PLR0124
    if not known:
        return said
    least = min(known, key=lambda factor: known[factor])
    if known[least] >= 1:
        return f"{said}; no factor is below 100 %"
    return f"{said}; the lowest factor is {label_of(least)}, {share_text(known[least])}"


def context_lines(shown: EfficiencyView) -> list[str]:
    """Return what the factors are of, and how computation is compared."""
    found = shown.efficiency
    runs = counted(len(found.experiment.runs), "run")
    threads = (
        f"{found.threads[0]:g} to {found.threads[-1]:g}"
        if len(found.threads) > 1 and found.threads[0] != found.threads[-1]
        else f"{found.threads[-1]:g}"
    )
    lines = [f"{found.metric} of {threads} threads · {runs} · {shown.scheme} scheme"]
    if found.experiment.scaling is Scaling.UNCLEAR:
        lines.append(
            f"scaling unclear ({found.experiment.scaling_reason}), so computation is not compared: "
            "choose --scaling weak or --scaling strong"
        )
    elif found.reference is None:
        lines.append(
            f"{found.line.parameter} does not count workers, so computation is not compared"
        )
    elif len(found.estimates) > 1:
        scale = setting_text({found.line.parameter: float(found.scales[0])})
        what = (
            "the sum over all threads"
            if found.reference.scaling is Scaling.STRONG
            else "the mean per thread"
        )
        reason = found.experiment.scaling_reason
        lines.append(
            f"{found.reference.scaling} scaling ({reason}): computation scalability compares "
            f"{what} with {scale}"
        )
    return lines


def range_text(
    shown: EfficiencyView, estimate: FactorsAtScale, factor: PopFactor, subtree: int = 0
) -> str:
    """Return the band of a prediction as text; ``-`` = the factor is not known."""
    low, high = shown.band(estimate, factor, subtree)
    if np.isnan(low) or np.isnan(high):
        return _UNKNOWN
    return f"{share_text(low)} … {share_text(high)}"


def value_text(
    shown: EfficiencyView, estimate: FactorsAtScale, factor: PopFactor, subtree: int = 0
) -> str:
    """Return the value of a factor as text; ``-`` = it is not known."""
    value = shown.value(estimate, factor, subtree)
    return _UNKNOWN if np.isnan(value) else share_text(value)


def _factors(shown: EfficiencyView) -> tuple[list[TextColumn], list[tuple[int, str]]]:
    """Return one column per scale, and the depth and name of each factor."""
    found = shown.efficiency
    columns = []
    count = len(found.estimates)
    for place, estimate in enumerate(found.estimates):
        head = f"{found.line.parameter}={parameter_value(estimate.scale)}"
        cells = [value_text(shown, estimate, factor) for factor in found.factors]
        # The ends of the series are kept on a narrow terminal.
        rank = 0 if place == count - 1 else 3 + min(place, count - 1 - place)
        columns.append(TextColumn(head, cells, droppable=rank))
        if estimate.is_predicted:
            bands = [
                _UNKNOWN if cell == _UNKNOWN else range_text(shown, estimate, factor)
                for factor, cell in zip(found.factors, cells, strict=True)
            ]
            columns.append(TextColumn("band", bands, right=False, droppable=2))
    nodes = [(shown.depth(factor), label_of(factor)) for factor in found.factors]
    return columns, nodes


def _subtrees(shown: EfficiencyView, style: TextStyle) -> tuple[list[TextColumn], list[list[str]]]:
    """Return the factors of subtrees, and their names."""
    found, last, subtrees = shown.efficiency, shown.efficiency.last, shown.subtrees
    lost = lost_of(last, shown.scheme)
    columns = [
        TextColumn("lost", [share_text(lost[k]) for k in subtrees]),
        TextColumn("share", [share_text(last.share[k]) for k in subtrees], droppable=4),
    ]
    heads = {
        PopFactor.PARALLEL: ("parallel", 0),
        PopFactor.BALANCE: ("balance", 3),
        PopFactor.COMMUNICATION: ("comm.", 3),
        PopFactor.THREADS: ("OpenMP", 3),
        PopFactor.SCALABILITY: ("scalability", 5),
    }
    for factor, (head, rank) in heads.items():
        is_new = factor is PopFactor.SCALABILITY and len(found.estimates) == 1
        if factor in found.factors and not is_new:
            cells = [value_text(shown, last, factor, int(k)) for k in subtrees]
            columns.append(TextColumn(head, cells, droppable=rank))
    if last.is_predicted:
        bands = [range_text(shown, last, PopFactor.PARALLEL, int(k)) for k in subtrees]
        columns.insert(3, TextColumn("band", bands, right=False, droppable=6))
    tree = found.experiment.tree
    rows = found.rows[subtrees].tolist()
    names = [
        list(tree.names(row)) if style.full_names else short_names(tree.names(row)) for row in rows
    ]
    return columns, names


def _footer(shown: EfficiencyView, subtrees: IntArray, invocation: Invocation) -> list[str]:
    found, last = shown.efficiency, shown.efficiency.last
    lines = []
    if last.is_predicted:
        confidence = percent(shown.confidence)
        threads = f"{found.threads_at(last.scale):g}"
        lines.append(
            f"{found.line.parameter}={parameter_value(last.scale)} is predicted for {threads} "
            f"threads; a band holds a measured factor with {confidence}"
        )
    if len(subtrees):
        at = setting_text({found.line.parameter: last.scale})
        lines.append(
            f"lost: time of the subtree without computation, share: its run time; both as shares "
            f"of the run time of the program at {at}"
        )
        rest = len(shown.known) - len(subtrees)
        if rest > 0:
            lines.append(f"{counted(rest, 'more subtree')}: -n chooses their number")
    if not last.is_predicted and len(found.scales) > 1 and found.reference is not None:
        further = parameter_value(FURTHER * float(found.scales[-1]))
        lines.append(invocation.hint("efficiency", f"--target {further}"))
    return lines


def efficiency_table(shown: EfficiencyView, findings: Sequence[Finding] = ()) -> Table:
    """Return a table with one row per subtree, scheme, factor and scale."""
    found = shown.efficiency
    chosen = [0, *shown.subtrees.tolist()]
    rows = [
        (subtree, scheme, factor, estimate)
        for subtree in chosen
        for scheme in Scheme
        for factor in found.factors
        if subtree == 0 or factor not in OF_GPUS
        for estimate in found.estimates
    ]
    names = [found.name(subtree) or PROGRAM for subtree in range(len(found.rows))]
    keys = [(scheme, factor) for _, scheme, factor, _ in rows]
    columns: dict[str, list[Cell]] = {
        "callpath": [names[subtree] for subtree, *_ in rows],
        "whole_program": [subtree == 0 for subtree, *_ in rows],
        "scheme": [str(scheme) for scheme, _ in keys],
        "factor": [str(factor) for _, factor in keys],
        "scale": [estimate.scale for *_, estimate in rows],
        "value": [float(e.value[k][s]) for k, (s, _, _, e) in zip(keys, rows, strict=True)],
        "low": [float(e.low[k][s]) for k, (s, _, _, e) in zip(keys, rows, strict=True)],
        "high": [float(e.high[k][s]) for k, (s, _, _, e) in zip(keys, rows, strict=True)],
        "is_predicted": [estimate.is_predicted for *_, estimate in rows],
        "runs": [estimate.runs for *_, estimate in rows],
        "share": [float(estimate.share[subtree]) for subtree, _, _, estimate in rows],
    }
    return Table(columns, {}, _header(shown, findings))


def _header(shown: EfficiencyView, findings: Sequence[Finding]) -> dict[str, object]:
    found, centres = shown.efficiency, shown.efficiency.centres()
    reference = found.reference
    scales = [
        {
            "scale": float(scale),
            "threads": int(found.threads[k]),
            "runs": found.estimates[k].runs,
            "seconds_per_thread": {
                name: float(centres[0, k, part]) for part, name in _PARTS.items()
            },
            "instructions_per_thread": float(centres[0, k, Ingredient.INSTRUCTIONS]),
            "cycles_per_thread": float(centres[0, k, Ingredient.CYCLES]),
        }
        for k, scale in enumerate(found.scales)
    ]
    return {
        **provenance(found.experiment, findings),
        "metric": found.metric,
        "parameter": found.line.parameter,
        "held": dict(found.line.held),
        "scaling": None if reference is None else str(reference.scaling),
        "scaling_reason": found.experiment.scaling_reason,
        "reference": None if reference is None else float(found.scales[0]),
        "is_hybrid": found.is_hybrid,
        "aggregate": found.aggregate,
        "confidence": shown.confidence,
        "verdict": to_ascii(headline(shown)),
        "scales": scales,
        "hidden_subtrees": len(shown.known) - len(shown.subtrees),
    }


def iso_text(
    found: Isoefficiency, *, style: TextStyle, invocation: Invocation = EXPERIMENT
) -> list[Text]:
    """Return the sizes that keep an efficiency as text, as `efficiency_text` does the factors."""
    columns, names = iso_columns(found)
    body = style.table(columns, [[name] for name in names], title=iso_title(found))
    confidence = percent(found.fitted.models.confidence)
    band = f"a band holds the {found.size} of the law with {confidence}, without measurement noise"
    notes = [band, *_hint(found, invocation)]
    return style.answer(iso_sentences(found), iso_context(found), body, notes)


def iso_text_tables(found: Isoefficiency) -> list[Table]:
    """Return the table of `iso_text`."""
    return [text_table_of(*iso_columns(found), iso_title(found))]


def iso_title(found: Isoefficiency) -> str:
    """Return the title of the column that states which sizes keep the efficiency."""
    return f"{found.size} that keeps {_share(found)}"


def iso_sentences(found: Isoefficiency) -> list[str]:
    """Return the answer: the growth of the sizes, and the largest scale of a stated size."""
    name, size, share = found.fitted.experiment.name, found.size, _share(found)
    last = found.points[-1]
    at = setting_text({found.parameter: last.scale})
    if found.law is not None:
        growth = found.law.growth.text(found.parameter)
        said = f"{size} = {growth} keeps {share} parallel efficiency"
    elif last.has_value:
        said = f"{size} = {significant(last.size)} keeps {share} parallel efficiency at {at}"
    else:
        which = "every" if last.bound is IsoBound.ANY else "no"
        said = f"{which} {size} keeps {share} parallel efficiency at {at}"
    if last.bound is IsoBound.AT_MOST:
        said += f"; a larger {size} loses it"
    if last.bound is IsoBound.NONE:
        there = f" at {at}" * (found.law is not None)
        said += f"; the efficiency{there} is at most {share_text(last.best_efficiency)}"
    sentences = [f"{name}: {said}"]
    if found.at_size is not None:
        sentences.append(_largest_scale(found, found.at_size))
    return sentences


def _share(found: Isoefficiency) -> str:
    return f"{100 * found.efficiency:.6g} %"


def _largest_scale(found: Isoefficiency, point: IsoPoint) -> str:
    """Return the sentence about the largest scale of a size; workers are whole."""
    said = f"{setting_text({found.size: point.size})} keeps {_share(found)}"
    if not point.has_value:
        return f"{said} at every {found.parameter}"
    most, low, high = (np.floor(end * _ROUNDING) for end in (point.scale, point.low, point.high))
    if most <= found.base:
        return f"{said} at no {found.parameter} above {parameter_value(found.base)}"
    band = f"{parameter_value(low)} … {parameter_value(high)}"
    return f"{said} up to {setting_text({found.parameter: most})} ({band})"


def iso_context(found: Isoefficiency) -> list[str]:
    """Return the law of the sizes, the definition of the efficiency, and the runs."""
    fitted, p = found.fitted, found.parameter
    lines = []
    if found.law is not None:
        kept = [point.scale for point in found.points if point.has_value]
        ends = f"{p} = {parameter_value(kept[0])} … {parameter_value(kept[-1])}"
        within = f", within {share_text(found.law.deviation)}" * (found.law.deviation > _FINE / 10)
        lines.append(f"{found.law.formula} for {ends}{within}")
    lines.append(
        f"parallel efficiency: {_definition(found)}, with the predicted run time T and the "
        f"smallest scale, {p}0 = {parameter_value(found.base)}"
    )
    ranges = (
        f"{name} = {parameter_value(low)} … {parameter_value(high)}"
        for name in fitted.parameters
        for low, high in [fitted.measured_range(name)]
    )
    held = f" · {setting_text(found.held)}" if found.held else ""
    runs = counted(len(fitted.experiment.runs), "run")
    lines.append(f"{fitted.metric.name} · {', '.join(ranges)} ({runs}){held}")
    return lines


def _definition(found: Isoefficiency) -> str:
    p, n = found.parameter, found.size
    return f"{p}0 T({p}0, {n}) / ({p} T({p}, {n}))"


def iso_columns(found: Isoefficiency) -> tuple[list[TextColumn], list[str]]:
    """Return one line per scale, and which sizes keep the efficiency there."""
    points, band = found.points, f"{percent(found.fitted.models.confidence)} band"
    columns = [
        TextColumn(found.parameter, [parameter_value(point.scale) for point in points]),
        TextColumn(found.size, [size_text(point) for point in points]),
        TextColumn(band, [_band_of_size(point) for point in points], right=False),
        TextColumn("runs", [_reach(point) for point in points], right=False, droppable=1),
    ]
    return columns, [_kept(point) for point in points]


def size_text(point: IsoPoint) -> str:
    """Return the size of a solution as text; ``-`` = it has none."""
    return significant(point.size) if point.has_value else _UNKNOWN


def _band_of_size(point: IsoPoint) -> str:
    if np.isnan(point.low):
        return _UNKNOWN
    high = significant(point.high) if np.isfinite(point.high) else "inf"
    return f"{significant(point.low)} … {high}"


def _reach(point: IsoPoint) -> str:
    """Return where a solution is relative to the runs."""
    if point.times_largest > 1:
        return f"{factor_text(point.times_largest)} × the largest"
    return "below" if point.is_extrapolated else "within"


def _kept(point: IsoPoint) -> str:
    """Return the sizes that keep the efficiency, as text."""
    if point.bound is IsoBound.NONE:
        return f"none: at most {share_text(point.best_efficiency)}"
    until = "" if np.isnan(point.until) else f", below {significant(point.until)}"
    return f"{point.bound}{' this' * point.has_value}{until}"


def _hint(found: Isoefficiency, invocation: Invocation) -> list[str]:
    if found.at_size is not None:
        return []
    largest = found.fitted.measured_range(found.size)[1]
    at = {found.parameter: found.points[-1].scale, found.size: largest, **found.held}
    words = f"--iso {found.efficiency:g} --at {shell_word(as_option(at))}"
    return [invocation.hint("efficiency", words)]


def iso_table(found: Isoefficiency) -> Table:
    """Return a table with one row per solution: a size for each scale, a scale for the size."""
    points = [*found.points, *([] if found.at_size is None else [found.at_size])]
    fields = IsoPoint.__struct_fields__
    columns: dict[str, list[Cell]] = {
        name: [getattr(point, name) for point in points] for name in fields
    }
    columns["bound"] = [str(point.bound) for point in points]
    fitted, law = found.fitted, found.law
    header = {
        **provenance(fitted.experiment, found.findings),
        "metric": fitted.metric.name,
        "parameter": found.parameter,
        "size_parameter": found.size,
        "held": dict(found.held),
        "parallel_efficiency": found.efficiency,
        "definition": _definition(found),
        "reference": found.base,
        "confidence": fitted.models.confidence,
        "law": None
        if law is None
        else {
            "growth": law.growth.text(found.parameter),
            "formula": law.formula,
            "deviation": law.deviation,
        },
        "verdict": to_ascii(". ".join(iso_sentences(found))),
    }
    return Table(columns, {}, header)
