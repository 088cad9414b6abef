"""Refinement of the instrumentation, as lines of text and as a table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.refinement import (
    COMPILER,
    Coarse,
    CoarsePath,
    Kept,
    Refinement,
    SmallFunction,
)
from callpath_modeler.diagnostics import Finding
from callpath_modeler.printable import in_one_line, shell_word
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.headline import at_text, beyond
from callpath_modeler.report.layout import EXPERIMENT, Invocation, TextColumn, TextStyle
from callpath_modeler.report.ranking_text import context, distinct_names
from callpath_modeler.report.table_formats import Cell, Table, provenance
from callpath_modeler.units import counted, factor_text, parameter_value, percent, quantity

_GREY = "dim"
_KEPT = {
    Kept.COSTLY: "up to {} of the time",
    Kept.MAY_BE_COSTLY: "band up to {} of the time",
    Kept.UNKNOWN: "no model",
    Kept.CALLS_LIBRARIES: "calls libraries",
    Kept.GROWTH: "grows fastest",
    Kept.EXPECTATION: "alone in an expectation",
    Kept.NAME: "name of others too",
}


def refinement_text(
    found: Refinement,
    top: int,
    *,
    style: TextStyle,
    invocation: Invocation = EXPERIMENT,
    written: str | None = None,
) -> list[Text]:
    """Return a refinement as text: coarse call paths, filtered and kept functions, overhead.

    Parameters
    ----------
    found : the refinement
    top : largest number of rows of each table
    style : width, length of names, and characters of text
    invocation : command lines for the same experiment
    written : name of the filter file; None = it was not written
    """
    lines = [*style.lines([context(found.ranking)], _GREY), Text("")]
    lines += style.lines([_coarse_heading(found)], "bold")
    if found.coarse:
        lines += _coarse_table(found, found.coarse[:top], style)
        lines += _others(len(found.coarse) - top, style)
    lines.append(Text(""))
    excluded = found.excluded
    kept = [each for each in found.small if each.kept is not None]
    lines += style.lines([_filter_heading(found)], "bold")
    if excluded:
        lines += _function_table(excluded[:top], style)
        lines += _others(len(excluded) - top, style)
    if kept:
        heading = "Small and frequent functions that the filter keeps:"
        lines += [Text(""), *style.lines([heading], "bold")]
        lines += _function_table(kept[:top], style)
        lines += _others(len(kept) - top, style)
    lines += [Text(""), *_overhead(found, style), Text("")]
    return lines + style.lines(_notes(found, invocation, written), _GREY)


def _others(count: int, style: TextStyle) -> list[Text]:
    return [Text(style.say(f"… and {count} more (-n all)"), style=_GREY)] if count > 0 else []


def _coarse_heading(found: Refinement) -> str:
    ranking = found.ranking
    at = f"{at_text(ranking.fitted, ranking.target)} ({beyond(ranking.fitted, ranking.target)})"
    if not found.coarse:
        return f"No call path is too coarse for a prediction at {at}."
    share = percent(sum(path.share for path in found.coarse))
    count = counted(len(found.coarse), "call path")
    return f"Instrument more finely: {count} with {share} of the time at {at}."


def _coarse_table(found: Refinement, coarse: Sequence[CoarsePath], style: TextStyle) -> list[Text]:
    tree = found.ranking.fitted.experiment.tree
    columns = [
        TextColumn("share", [percent(path.share) for path in coarse]),
        TextColumn("why", [coarse_reason(path) for path in coarse], right=False),
    ]
    rows = np.array([path.row for path in coarse], np.intp)
    return style.table(columns, distinct_names(tree, rows, full=style.full_names))


def coarse_reason(path: CoarsePath) -> str:
    """Return the reasons why a call path is too coarse: ``wide band × 3.2, no callees``."""
    words = [
        f"{reason} × {factor_text(path.factor)}" if reason is Coarse.WIDE else str(reason)
        for reason in path.reasons
    ]
    return ", ".join([*words, "no callees" if path.calls_nothing else "mostly its own time"])


def _filter_heading(found: Refinement) -> str:
    excluded = found.excluded
    regions = found.ranking.fitted.experiment.tree.regions
    if not any(region.paradigm == COMPILER for region in regions):
        return "No function was instrumented by a compiler, so there is nothing to filter."
    if not found.small:
        return "No function is small and frequent, so a filter would save nothing."
    if not excluded:
        return "No function can be filtered."
    visits = percent((found.visits - found.visits_after) / found.visits)
    share = percent(sum(each.share for each in excluded))
    count = counted(len(excluded), "function")
    return f"Filter: {count} with {visits} of the visits and {share} of the time."


def _function_table(functions: Sequence[SmallFunction], style: TextStyle) -> list[Text]:
    ascii_only = style.ascii_only
    columns = [
        TextColumn("visits", [quantity(each.visits, "1") for each in functions]),
        TextColumn(
            "time/visit",
            [quantity(each.per_visit, "s", ascii_only=ascii_only) for each in functions],
            droppable=1,
        ),
        TextColumn("share", [percent(each.share) for each in functions], droppable=3),
        TextColumn("at target", [percent(each.share_at_target) for each in functions], droppable=2),
    ]
    reasons = [kept_reason(each) for each in functions]
    if any(reasons):
        columns.append(TextColumn("kept for", reasons, right=False))
    names = [
        each.region.name if style.full_names else short_name(each.region.name) for each in functions
    ]
    count = Counter(names)
    shown = [
        name if count[name] == 1 else each.region.name
        for name, each in zip(names, functions, strict=True)
    ]
    return style.table(columns, [[name] for name in shown], title="function")


def kept_reason(function: SmallFunction) -> str:
    """Return the reason to keep a function; "" if the filter excludes it."""
    if function.kept is None:
        return ""
    most = max(function.largest_share, function.share_at_target)
    most = function.share_at_most if function.kept is Kept.MAY_BE_COSTLY else most
    return _KEPT[function.kept].format(percent(most, 1))


def _overhead(found: Refinement, style: TextStyle) -> list[Text]:
    """Return the table of the estimated overhead per process, before and after."""
    fitted = found.ranking.fitted
    at = f"{fitted.parameter} = {parameter_value(float(fitted.points[-1]))}"
    cost = style.interval(found.cost.low, found.cost.high, "s")
    heading = f"Estimated overhead per process at {at}, if a visit costs {cost} (--visit-cost):"
    before = (found.visits, found.most_visits)
    after = (found.visits_after, found.most_visits_after)
    visits = [quantity(each[0], "1") for each in (before, after)]
    mean = [_cost_text(found, each[0], style) for each in (before, after)]
    most = [_cost_text(found, each[1], style) for each in (before, after)]
    columns = [
        TextColumn("visits", visits),
        TextColumn("mean of processes", mean),
        TextColumn("largest, at most", most, droppable=1),
    ]
    body = style.table(columns, [["before"], ["after"]], title="")
    return [*style.lines([heading], "bold"), *body]


def _cost_text(found: Refinement, visits: float, style: TextStyle) -> str:
    if math.isnan(visits):
        return "-"
    least, most = visits * found.cost.low, visits * found.cost.high
    seconds = style.interval(least, most, "s")
    if not found.run_time > 0:
        return style.say(seconds)
    low, high = percent(least / found.run_time), percent(most / found.run_time)
    shares = high if low == high else f"{low.removesuffix(' %')} … {high}"
    return style.say(f"{seconds} ({shares})")


def _notes(found: Refinement, invocation: Invocation, written: str | None) -> list[str]:
    notes = [
        "The cost of a visit is an assumption. Measure it on your machine with an empty function.",
    ]
    if found.coarse:
        notes.append(
            "To instrument more finely, mark loops and kernels with user regions, or compile "
            "inlined functions with instrumentation."
        )
    if found.excluded:
        share = percent(sum(each.share for each in found.excluded))
        notes.append(
            f"A filter folds the time of its functions ({share}) into their callers, so exclusive "
            "times of callers rise. Measure all scales with the same filter."
        )
    if written is not None:
        word = shell_word(written)
        notes.append(
            f"Compile with `scorep --instrument-filter={word}`. SCOREP_FILTERING_FILE={word} "
            "filters without compiling, but each visit still costs a little."
        )
    elif found.excluded:
        notes.append(invocation.hint("refine", "-o scorep.filter"))
    return notes


def refinement_table(found: Refinement, findings: Sequence[Finding]) -> Table:
    """Return a table with one row per coarse call path and per small and frequent function."""
    fitted = found.ranking.fitted
    tree = fitted.experiment.tree
    ids = tree.ids()
    rows: list[dict[str, Cell]] = [
        {
            "action": "instrument",
            "name": tree.path(path.row),
            "id": f"@{ids[path.row]}",
            "linker_name": tree.regions[tree.region[path.row]].mangled,
            "reason": coarse_reason(path),
            "visits": None,
            "visits_at_most": None,
            "time_per_visit": None,
            "share_at_largest": float(found.ranking.share_at_largest[path.row]),
            "share_at_target": path.share,
            "share_at_target_high": None,
        }
        for path in found.coarse
    ]
    rows += [
        {
            "action": "filter" if each.kept is None else "keep",
            "name": each.region.name,
            "id": None,
            "linker_name": each.region.mangled,
            "reason": kept_reason(each) or None,
            "visits": each.visits,
            "visits_at_most": each.most_visits,
            "time_per_visit": each.per_visit,
            "share_at_largest": each.share,
            "share_at_target": each.share_at_target,
            "share_at_target_high": each.share_at_most,
        }
        for each in found.small
    ]
    columns = {name: [row[name] for row in rows] for name in _COLUMNS}
    unit = fitted.metric.unit
    header = {
        **provenance(fitted.experiment, findings),
        "parameter": fitted.parameter,
        "target": found.ranking.target,
        "visit_cost": [found.cost.low, found.cost.high],
        "run_time": found.run_time,
        "visits": {"before": found.visits, "after": found.visits_after},
        "visits_at_most": {
            "before": found.most_visits,
            "after": found.most_visits_after,
        },
    }
    return Table(columns, {"time_per_visit": unit}, header)


_COLUMNS = (
    *("action", "name", "id", "linker_name", "reason", "visits", "visits_at_most"),
    *("time_per_visit", "share_at_largest", "share_at_target", "share_at_target_high"),
)

KEYWORDS = frozenset({
    "SCOREP_FILE_NAMES_BEGIN", "SCOREP_FILE_NAMES_END", "SCOREP_REGION_NAMES_BEGIN",
    "SCOREP_REGION_NAMES_END", "EXCLUDE", "INCLUDE", "MANGLED", "DEMANGLED",
})  # fmt: skip
"""Words of the grammar; any other word in a block is a pattern."""

_ESCAPED = frozenset("*?[]#\\ \t")
"""Characters of patterns of the shell, of comments, and blanks, which end a pattern."""


def filter_text(found: Refinement) -> str:
    """Return the filter file, in the grammar of Score-P.

    Linker names come in a list of their own, because one name in the source may stand for several
    functions. A filter without functions is valid, and excludes nothing.
    """
    excluded = found.excluded
    fitted = found.ranking.fitted
    visits = found.visits - found.visits_after
    share = percent(visits / found.visits) if found.visits else percent(0.0)
    lines = [
        f"# cpmodel refine: {in_one_line(fitted.experiment.name)}",
        f"# {counted(len(excluded), 'function')} with {share} of the visits",
        "SCOREP_REGION_NAMES_BEGIN",
        *_rules("EXCLUDE", (each for each in excluded if not each.region.mangled)),
        *_rules("EXCLUDE MANGLED", (each for each in excluded if each.region.mangled)),
        "SCOREP_REGION_NAMES_END",
    ]
    return "".join(f"{line}\n" for line in lines)


def _rules(words: str, functions: Iterable[SmallFunction]) -> list[str]:
    listed = sorted(functions, key=lambda each: each.filter_name)
    patterns = [f"    {pattern(each.filter_name)}{_comment(each)}" for each in listed]
    return [f"  {words}", *patterns] if patterns else []


def _comment(function: SmallFunction) -> str:
    """Return the name in the source, if the pattern is a linker name."""
    name = function.region.name
    return f" # {in_one_line(name)}" if name != function.filter_name else ""


def pattern(name: str) -> str:
    r"""Return the pattern that matches only `name`, which has only characters that can be printed.

    >>> pattern("operator*"), pattern("int f(int)"), pattern("EXCLUDE")
    ('operator\\*', 'int\\ f(int)', '\\EXCLUDE')
    """
    escaped = "".join(f"\\{sign}" if sign in _ESCAPED else sign for sign in name)
    # A backslash before a letter has no effect but to tell the name from a word of the grammar.
    return f"\\{escaped}" if escaped in KEYWORDS else escaped
