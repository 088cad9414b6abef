"""A ranking as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.excess import scaling_over
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.analysis.target_costs import deviation
from callpath_modeler.analysis.trust import marks_text
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.printable import shell_words
from callpath_modeler.profile.calltree import CallTree, escape
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.answer import culprit, left_out, sum_notes, turning_notes, verdict
from callpath_modeler.report.change_points import from_texts
from callpath_modeler.report.columns import (
    MODEL_NOTE,
    band_text,
    band_title,
    has_maxima,
    informative,
    ratio_text,
    share_texts,
    value_titles,
)
from callpath_modeler.report.invocation import EXPERIMENT, Invocation
from callpath_modeler.report.layout import TextColumn, table, wrap
from callpath_modeler.report.ranking_table import growth_range_texts
from callpath_modeler.report.verdicts import verdict_cells, verdict_note
from callpath_modeler.units import (
    counted,
    parameter_value,
    percent,
    quantity,
    setting_text,
    signed_percent,
    to_ascii,
)

if TYPE_CHECKING:
    from callpath_modeler.analysis.expectations.check import Check

_GREY = "dim"
_START_UP = frozenset(
    {"mpi_init", "mpi_init_thread", "mpi_finalize", "mpi_session_init", "dlopen", "shmem_init",
     "shmem_init_thread", "shmem_finalize", "start_pes", "gasnet_init", "gasnet_attach",
     "upcxx::init", "cuinit", "hipinit"}
)  # fmt: skip
"""Names, in small letters, of functions that start a program or end it."""

_FIRST_TO_GO = 6
"""Rank of columns that leave a narrow table before all others."""

_WORTH_A_WORD = 0.005
"""From which excess work on it is said of call paths that have no line."""


def ranking_text(
    ranking: Ranking,
    rows: IntArray,
    *,
    width: int | None,
    full_names: bool,
    ascii_only: bool,
    invocation: Invocation = EXPERIMENT,
    check: Check | None = None,
    complete: bool = True,
) -> list[Text]:
    """Return the ranking for people: the answer first, then the table, then what is not in it.

    Parameters
    ----------
    rows : the ranked rows to show
    width : of the terminal; None = nothing is cut
    full_names : functions with return type and arguments
    invocation : asks for one of these call paths
    check : what came of expectations, which then have a column; None = there are none
    complete : False = the answer, the table and what may be done next, without anything else
    """
    names = distinct_names(ranking.fitted.experiment.tree, rows, full=full_names)
    others = remainder(ranking, rows)
    # Widths are those of what is shown: characters are replaced before anything is laid out.
    say = to_ascii if ascii_only else str
    made = [*ranking_cells(ranking, rows, others, ascii_only=ascii_only).values()]
    if check is not None:
        has_total = ranking.fitted.metric.additive
        made.append(verdict_cells(check, rows.tolist(), bool(len(others)), has_total=has_total))
    columns = [replace(c, header=say(c.header), cells=[*map(say, c.cells)]) for c in made]
    paths = [[say(name) for name in path] for path in (*names, *_below(ranking, others))]
    ids = ranking.fitted.experiment.tree.ids()
    marks = [f"@{ids[row]}" for row in rows]
    body = table(columns, paths, width, ellipsis=say("…"), marks=marks)
    answer = [
        verdict(ranking, ascii_only=ascii_only),
        *turning_notes(ranking, ascii_only=ascii_only),
    ]
    footer = _footer(ranking, body[0].plain, ids, invocation, check)
    footer = footer if complete else ["", *footer[-1:]]
    return [
        *(part for line in answer for part in wrap(say(line), width, "bold")),
        *(wrap(say(context(ranking)), width, _GREY) if complete else ()),
        Text(""),
        *body,
        *(part for line in footer for part in wrap(say(line), width, _GREY)),
    ]


def context(ranking: Ranking) -> str:
    """Say in one line what was measured and modelled."""
    fitted, experiment = ranking.fitted, ranking.fitted.experiment
    flavour = "inclusive" if ranking.inclusive else "exclusive"
    return (
        f"{experiment.name} · {fitted.metric.name}, {flavour}, "
        f"{experiment.reduction.words} · {points_text(fitted)} · "
        f"{experiment.scaling} scaling ({experiment.scaling_reason}){left_out(experiment)}"
    )


def points_text(fitted: Fitted) -> str:
    """Say at which points was measured: ``p = 8 … 128 (5 points, 25 runs), n = 50``."""
    ends = dict.fromkeys(parameter_value(fitted.points[end]) for end in (0, -1))
    spread = " … ".join(ends)
    runs = counted(len(fitted.experiment.runs), "run")
    text = f"{fitted.parameter} = {spread} ({counted(len(fitted.points), 'point')}, {runs})"
    return text + (f", measured at {setting_text(fitted.measured_at)}" if fitted.held else "")


def distinct_names(tree: CallTree, rows: IntArray, *, full: bool) -> list[list[str]]:
    """Return the call paths, with short function names unless two would then look the same."""
    whole = [list(tree.names(int(row))) for row in rows]
    if full:
        return whole
    brief = cache(short_name)
    short = [[*map(brief, names)] for names in whole]
    count = Counter(map(tuple, short))
    return [s if count[tuple(s)] == 1 else w for s, w in zip(short, whole, strict=True)]


def remainder(ranking: Ranking, rows: IntArray) -> IntArray:
    """Return the ranked call paths that are not shown; inclusive values overlap: none."""
    if ranking.inclusive:
        return np.array([], np.intp)
    return np.setdiff1d(ranking.order, rows)


def _below(ranking: Ranking, others: IntArray) -> list[list[str]]:
    rest = [[counted(len(others), "other")]] if len(others) else []
    return [*rest, ["total"]] if ranking.fitted.metric.additive else rest


def ranking_cells(
    ranking: Ranking, rows: IntArray, others: IntArray, *, ascii_only: bool
) -> dict[str, TextColumn]:
    """Return the values of rows as text, by what they are.

    Parameters
    ----------
    others : rows that share a line, whose cells come after those of `rows`; the total comes last,
        where there is one

    Returns
    -------
    ``rank``, ``measured`` (at the largest scale, unless that is the target and was measured),
    ``value``, ``band`` (not at infinity), ``model`` (how far it is off, where the target was
    measured), ``maximum`` and ``imbalance`` (over processes, at the largest scale, beside exclusive
    means and sums), ``share``, ``excess``, ``growth``, ``trust``.
    """
    fitted, unit = ranking.fitted, ranking.fitted.metric.unit

    def text(value: float) -> str:
        return quantity(value, unit, ascii_only=ascii_only)

    def band(low: float, high: float) -> str:
        return band_text(low, high, unit, ascii_only=ascii_only)

    def sums(values: FloatArray) -> list[float]:
        total = np.nansum(values[others]) if fitted.metric.additive else np.nan
        return [float(total)] if len(others) else []

    blank = [""] * bool(len(others))
    largest, target = [*ranking.at_largest[rows]], [*ranking.value[rows]]
    largest += [*sums(ranking.at_largest), ranking.total_at_largest]
    target += [*sums(ranking.value), ranking.total[0]]
    said = [*ranking.predicted.value[rows], *sums(ranking.predicted.value), ranking.predicted_total]
    known = [*ranking.modelled[rows], *sums(ranking.modelled), ranking.modelled_total]
    off = deviation(np.array(said), np.array(known))
    of_rows = ranking.excess.inclusive if ranking.inclusive else ranking.excess.exclusive
    excess = [percent(value) for value in of_rows[rows]]
    # All are numbers, or none is, where excess work has no meaning.
    own = ranking.excess.exclusive
    summed = [own[others], own] if len(others) else [own]
    excess += [percent(float(part.sum())) for part in summed]
    growth = [
        text + since
        for text, since in zip(
            growth_range_texts(ranking, rows, pretty=not ascii_only),
            from_texts(fitted, ranking.leader[rows]),
            strict=True,
        )
    ]
    bands = [band(ranking.low[row], ranking.high[row]) for row in rows]
    trust = map(marks_text, ranking.trust[rows].tolist())
    before = [*np.nan_to_num(ranking.share_at_largest[rows]), *sums(ranking.share_at_largest)]
    after = [*ranking.share[rows], *sums(ranking.share)]
    largest_at, target_at = value_titles(ranking)
    maximum, imbalance = (values[rows] for values in ranking.maxima_at_largest)
    of_processes = [*blank, ""]
    columns = {
        "rank": TextColumn("#", [*(str(k) for k in _places(ranking, rows)), *blank, ""]),
        "measured": TextColumn(largest_at, [text(v) for v in largest], droppable=-1),
        "value": TextColumn(target_at, [text(v) for v in target]),
        "band": TextColumn(
            band_title(ranking), [*bands, *blank, band(*ranking.total[1:])], droppable=-2
        ),
        "model": TextColumn("model", [signed_percent(v) for v in off.tolist()], droppable=2),
        "maximum": TextColumn(
            f"max {largest_at}", [*map(text, maximum), *of_processes], droppable=_FIRST_TO_GO
        ),
        "imbalance": TextColumn(
            "imbalance", [*map(ratio_text, imbalance), *of_processes], droppable=_FIRST_TO_GO
        ),
        "share": TextColumn("share", [*share_texts(ranking, before, after), ""], droppable=4),
        "excess": TextColumn("excess", excess, droppable=5),
        "growth": TextColumn("growth", [*growth, *blank, ""], right=False, droppable=1),
        "trust": TextColumn("trust", [*trust, *blank, ""], droppable=3),
    }
    if ranking.inclusive or not has_maxima(fitted, ranking.maxima_at_largest[0]):
        del columns["maximum"], columns["imbalance"]
    if not fitted.metric.additive:
        # No sum means anything: neither the last row, the total, nor shares of it.
        del columns["share"], columns["excess"]
        columns = {name: replace(c, cells=c.cells[:-1]) for name, c in columns.items()}
    return informative(ranking, columns)


def _places(ranking: Ranking, rows: IntArray) -> list[int]:
    place = np.zeros(len(ranking.value), np.intp)
    place[ranking.order] = np.arange(1, len(ranking.order) + 1)
    return [int(k) for k in place[rows]]


def _footer(
    ranking: Ranking, shown: str, ids: Sequence[str], invocation: Invocation, check: Check | None
) -> list[str]:
    """Return what is to be said below the table, given its header and how to ask again."""
    lines = ["", *sum_notes(ranking, ascii_only=False)]
    lines += [*unmodelled_notes(ranking), *absent_notes(ranking)]
    if " excess " in shown:
        lines += excess_notes(ranking)
    if " model " in shown:
        lines.append(MODEL_NOTE)
    if check is not None:
        lines.append(verdict_note(check, invocation))
    if len(ranking.order):
        lines += _start_up_notes(ranking, invocation)
        lines.append(invocation.hint("show", f"@{ids[culprit(ranking)]}"))
    return lines


def _start_up_notes(ranking: Ranking, invocation: Invocation) -> list[str]:
    """Name the leading call path if it starts or ends the program, and the command without it."""
    row = culprit(ranking)
    name = short_name(ranking.fitted.experiment.tree.names(row)[-1])
    if name.lower() not in _START_UP:
        return []
    without = invocation.line("rank", shell_words(["--ignore", f"**/{escape(name)}"]))
    return [f"{name} runs once per program, not in its loops. The ranking without it: {without}"]


def unmodelled_notes(ranking: Ranking) -> list[str]:
    """Say what has no model, and why, if there is anything."""
    fitted, rows = ranking.fitted, ranking.unmodelled
    if not len(rows):
        return []
    count = Counter(name.replace("_", " ") for name in fitted.statuses(rows))
    why = ", ".join(f"{reason}: {n}" for reason, n in count.most_common())
    part = ranking.unmodelled_share
    if ranking.repetitions:
        part = float(np.nansum(ranking.own_share[rows]))
    share = f", {percent(part)} of the total" * fitted.metric.additive
    return [f"not modelled: {counted(len(rows), 'call path')}{share} ({why})"]


def absent_notes(ranking: Ranking) -> list[str]:
    """Say what does not occur in the runs of a target that was measured, if there is anything."""
    fitted = ranking.fitted
    point = fitted.measured[:, fitted.points == ranking.target]
    if not ranking.repetitions or not np.isnan(point).any():
        return []
    absent = np.isnan(point[:, 0]) & ~np.isnan(fitted.measured).all(axis=1)
    where = f"{fitted.parameter} = {parameter_value(ranking.target)}"
    note = f"does not occur at {where}: {counted(int(absent.sum()), 'call path')}"
    # Of what does not add up, there is neither.
    gained = -float(np.nansum(ranking.excess.exclusive[absent]))
    if gained >= _WORTH_A_WORD:
        note += f", excess {percent(-gained)}"
    said = float(np.nansum(ranking.predicted.own[absent]))
    if fitted.metric.additive and said > 0:
        note += f", of which models say {quantity(said, fitted.metric.unit)}"
    return [note]


def excess_notes(ranking: Ranking) -> list[str]:
    """Say what excess work is, if there is any to be told of."""
    fitted = ranking.fitted
    if np.isinf(ranking.target) or np.isnan(ranking.excess.exclusive).all():
        return []
    scaling = scaling_over(fitted.experiment, fitted.parameter)
    ideal = "1/p per process" if scaling is Scaling.STRONG else "constant cost"
    since = f"{fitted.parameter} = {parameter_value(ranking.base)}"
    of_what = f"as share of the {fitted.metric.name} at the target"
    return [f"excess: cost beyond {ideal} since {since}, {of_what}"]
