"""Rankings as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.bands import deviation
from callpath_modeler.analysis.causes import NOTHING, Driver
from callpath_modeler.analysis.excess import no_excess
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.analysis.trust import marks_text
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.printable import shell_words
from callpath_modeler.profile.calltree import CallTree, escape
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.change_points import from_texts
from callpath_modeler.report.columns import (
    MODEL_NOTE,
    band_text,
    band_title,
    has_maxima,
    informative,
    max_title,
    ratio_text,
    share_texts,
    value_titles,
)
from callpath_modeler.report.headline import (
    culprit,
    headline,
    left_out,
    off_by,
    scaling_words,
    sum_notes,
    turning_notes,
)
from callpath_modeler.report.invocation import EXPERIMENT, Invocation
from callpath_modeler.report.layout import TextColumn, TextStyle, shorten, table, wrap
from callpath_modeler.report.measured_only import (
    OVERLAP_NOTE,
    comparison_note,
    excess_styles,
    excess_symbol,
    excess_texts,
    scales_note,
)
from callpath_modeler.report.pair_columns import pair_note, pair_text_columns
from callpath_modeler.report.ranking_table import growth_range_texts
from callpath_modeler.report.verdicts import verdict_cells, verdict_note
from callpath_modeler.report.verification import verification_cells, verification_sentences
from callpath_modeler.units import (
    counted,
    parameter_value,
    percent,
    quantity,
    setting_text,
    signed_percent,
)

if TYPE_CHECKING:
    from callpath_modeler.analysis.expectations.check import Check
    from callpath_modeler.analysis.verification import Verification

_GREY = "dim"
_START_UP = frozenset(
    {"mpi_init", "mpi_init_thread", "mpi_finalize", "mpi_session_init", "dlopen", "shmem_init",
     "shmem_init_thread", "shmem_finalize", "start_pes", "gasnet_init", "gasnet_attach",
     "upcxx::init", "cuinit", "hipinit"}
)  # fmt: skip
"""Lower-case names of functions that start or end a program."""

_FIRST_TO_GO = 7
"""Rank of columns that a narrow table drops first."""

_CAUSE = 26
"""Width of a cause, in cells."""

_WORTH_A_WORD = 0.005
"""Excess work from which call paths without a line are mentioned."""


def ranking_text(
    ranking: Ranking,
    rows: IntArray,
    *,
    style: TextStyle,
    invocation: Invocation = EXPERIMENT,
    check: Check | None = None,
    verified: Verification | None = None,
    calibrated: str = "",
    complete: bool = True,
) -> list[Text]:
    """Return a ranking as text: the answer, the table, and notes.

    Parameters
    ----------
    ranking : the ranking
    rows : ranked rows to show
    style : width, length of names, and characters of text
    invocation : command lines for the same experiment
    check : results of expectations, which become a column; None = no expectations
    verified : measurements at the target, which become a sentence and columns; None = none
    calibrated : sentence about bands that earlier predictions corrected
    complete : False = only the answer, the table and the next command
    """
    names = distinct_names(ranking.fitted.experiment.tree, rows, full=style.full_names)
    others = remainder(ranking, rows)
    # Characters are replaced before the layout, because replacing them changes widths.
    say = style.say
    cells = ranking_cells(ranking, rows, others, style=style)
    made = [*cells.values()]
    if verified is not None:
        after = 1 + [*cells].index("band")
        made[after:after] = verification_cells(ranking, verified, rows, others, style=style)
    if check is not None:
        has_total = ranking.fitted.metric.additive
        blank = bool(len(others)) + ranking.has_imbalance
        made.append(verdict_cells(check, rows.tolist(), blank, has_total=has_total))
    columns = [replace(c, header=say(c.header), cells=[*map(say, c.cells)]) for c in made]
    below = [[name] for name in lines_below(ranking, others)]
    paths = [[say(name) for name in path] for path in (*names, *below)]
    named = [*rows.tolist(), *([culprit(ranking)] if len(ranking.order) else [])]
    marks = [f"@{short}" for short in ranking.fitted.experiment.tree.ids(named)]
    body = table(columns, paths, style.width, ellipsis=say("…"), marks=marks[: len(rows)])
    answer = [
        headline(ranking, style=style),
        *turning_notes(ranking, style=style),
    ]
    if verified is not None:
        answer += verification_sentences(ranking, verified, style=style)
    answer += [calibrated] * bool(calibrated)
    footer = _footer(ranking, body[0].plain, marks[len(rows) :], invocation, check)
    footer = footer if complete else ["", *footer[-1:]]
    return [
        *(part for line in answer for part in wrap(say(line), style.width, "bold")),
        *(wrap(say(context(ranking)), style.width, _GREY) if complete else ()),
        Text(""),
        *body,
        *(part for line in footer for part in wrap(say(line), style.width, _GREY)),
    ]


def context(ranking: Ranking) -> str:
    """Return a one-line description of the measurements and models."""
    fitted, experiment = ranking.fitted, ranking.fitted.experiment
    flavour = "inclusive" if ranking.inclusive else "exclusive"
    return (
        f"{experiment.name} · {fitted.metric.name}, {flavour}, "
        f"{experiment.reduction.words} · {points_text(fitted)}"
        f"{scaling_text(fitted, why=True)}{left_out(experiment)}"
    )


def scaling_text(fitted: Fitted, *, why: bool = False) -> str:
    """Return the kind of scaling, as an addition to a description; "" for a single scale.

    Other expected costs follow, because excess work is then relative to them.
    """
    if fitted.is_measured_only and len(fitted.points) == 1:
        return ""
    experiment = fitted.experiment
    text = f" · {scaling_words(experiment, why=why)}"
    return text if fitted.ideal is None else f"{text} · excess work: {fitted.ideal.meaning}"


def points_text(fitted: Fitted) -> str:
    """Return the measured points: ``p = 8 … 128 (5 points, 25 runs), n = 50``."""
    ends = dict.fromkeys(parameter_value(fitted.points[end]) for end in (0, -1))
    spread = " … ".join(ends)
    runs = counted(len(fitted.experiment.runs), "run")
    if fitted.is_measured_only:
        spread = " and ".join(ends)
        here = np.isin(fitted.line.settings([fitted.parameter])[:, 0], fitted.points)
        runs = counted(int(here.sum()), "run")
    if fitted.has_unknown_scale:
        return f"{runs} of unknown scale"
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
    """Return ranked call paths that are not shown; empty for inclusive values, which overlap."""
    if ranking.inclusive:
        return np.array([], np.intp)
    is_other = np.zeros(len(ranking.value), bool)
    is_other[ranking.order] = True
    is_other[rows] = False
    return np.flatnonzero(is_other)


def lines_below(ranking: Ranking, others: IntArray) -> list[str]:
    """Return the names of the lines below those of single call paths."""
    rest = [counted(len(others), "other")] if len(others) else []
    if not ranking.fitted.metric.additive:
        return rest
    return [*rest, *["imbalance"] * ranking.has_imbalance, "total"]


def ranking_cells(
    ranking: Ranking, rows: IntArray, others: IntArray, *, style: TextStyle
) -> dict[str, TextColumn]:
    """Return the columns of a ranking as text, by name.

    Parameters
    ----------
    ranking : the ranking
    rows : rows with their own lines
    others : rows that share a line; its cells come after those of `rows`, then those of the
        imbalance, if there is one, and of the total
    style : width, length of names, and characters of text

    Returns
    -------
    dict
        ``rank``, ``measured`` (at the largest scale, unless that is the target and was measured),
        ``value``, ``band`` (not at infinity), ``model`` (error of the model, where the target was
        measured), ``maximum`` and ``imbalance`` (over processes, at the largest scale, next to
        exclusive means and sums), ``share``, ``excess``, ``growth``, ``why`` (unless nothing
        grows), ``trust``. In a comparison, ``base`` (at the smaller scale), ``loss`` and
        ``own_loss`` (excess work).
    """
    fitted, unit = ranking.fitted, ranking.fitted.metric.unit

    def text(value: float) -> str:
        return style.amount(value, unit)

    def band(low: float, high: float) -> str:
        return band_text(low, high, unit, style=style)

    def sums(values: FloatArray) -> list[float]:
        total = np.nansum(values[others]) if fitted.metric.additive else np.nan
        return [float(total)] if len(others) else []

    has_imbalance = ranking.has_imbalance
    blank = [""] * (bool(len(others)) + has_imbalance)
    largest, target = [*ranking.at_largest[rows]], [*ranking.value[rows]]
    beyond, now = [ranking.imbalance_at_largest], [ranking.imbalance]
    largest += [*sums(ranking.at_largest), *beyond * has_imbalance, ranking.program_at_largest]
    target += [*sums(ranking.value), *now * has_imbalance, ranking.program_total[0]]
    said = [*ranking.predicted.value[rows], *sums(ranking.predicted.value)]
    known = [*ranking.modelled[rows], *sums(ranking.modelled)]
    off = [signed_percent(v) for v in deviation(np.array(said), np.array(known)).tolist()]
    off += [*[""] * has_imbalance, off_by(ranking)]
    of_rows = ranking.excess.inclusive if ranking.inclusive else ranking.excess.exclusive
    excess = [percent(value) for value in of_rows[rows]]
    # Either all are numbers, or none is, because excess work has no meaning.
    own = ranking.excess.exclusive
    excess += [percent(float(own[others].sum()))] if len(others) else []
    excess += [*[""] * has_imbalance, percent(float(own.sum()))]
    growth = [
        text + since
        for text, since in zip(
            growth_range_texts(ranking, rows, pretty=not style.ascii_only),
            from_texts(fitted, ranking.leader[rows]),
            strict=True,
        )
    ]
    bands = [band(ranking.low[row], ranking.high[row]) for row in rows]
    trust = map(marks_text, ranking.trust[rows].tolist())
    why = [*map(cause_text, ranking.why(rows))]
    before = [*np.nan_to_num(ranking.share_at_largest[rows]), *sums(ranking.share_at_largest)]
    after = [*ranking.share[rows], *sums(ranking.share)]
    if has_imbalance:
        before.append(beyond[0] / ranking.program_at_largest)
        after.append(now[0] / ranking.program_total[0])
    largest_at, target_at = value_titles(ranking)
    maximum, imbalance = (values[rows] for values in ranking.maxima_at_largest)
    of_processes = [*blank, ""]
    columns = {
        "rank": TextColumn("#", [*(str(k) for k in _places(ranking, rows)), *blank, ""]),
        "measured": TextColumn(largest_at, [text(v) for v in largest], droppable=-1),
        "value": TextColumn(target_at, [text(v) for v in target]),
        "band": TextColumn(
            band_title(ranking), [*bands, *blank, band(*ranking.program_total[1:])], droppable=-2
        ),
        "model": TextColumn("model", off, droppable=2),
        "maximum": TextColumn(
            max_title(fitted), [*map(text, maximum), *of_processes], droppable=_FIRST_TO_GO
        ),
        "imbalance": TextColumn(
            "imbalance", [*map(ratio_text, imbalance), *of_processes], droppable=_FIRST_TO_GO
        ),
        "share": TextColumn("share", [*share_texts(ranking, before, after), ""], droppable=5),
        "excess": TextColumn("excess", excess, droppable=-1 if fitted.ideal else 6),
        "growth": TextColumn("growth", [*growth, *blank, ""], right=False, droppable=1),
        "why": TextColumn("why", [*why, *blank, ""], right=False, droppable=4),
        "trust": TextColumn("trust", [*trust, *blank, ""], droppable=-3),
    }
    if all(label == NOTHING for label in why):
        del columns["why"]
    if ranking.is_comparison:
        before = [*ranking.at_base[rows], *sums(ranking.at_base)]
        before += [*[ranking.imbalance_at_base] * has_imbalance, ranking.program_at_base]
        base = TextColumn(largest_at, [text(v) for v in before], droppable=-1)
        first, *rest = columns.items()
        columns = {**dict([first]), "base": base, **dict(rest), **losses_of(ranking, rows, others)}
    columns |= _pair_columns(ranking, rows, others)
    if ranking.inclusive or not has_maxima(fitted, ranking.maxima_at_largest[0]):
        del columns["maximum"], columns["imbalance"]
    if not fitted.metric.additive:
        # Values do not add up, so there is neither a total nor a share of it.
        del columns["share"], columns["excess"]
        columns = {name: replace(c, cells=c.cells[:-1]) for name, c in columns.items()}
    return informative(ranking, columns)


def _pair_columns(ranking: Ranking, rows: IntArray, others: IntArray) -> dict[str, TextColumn]:
    """Return the excess work between chosen pairs of scales."""

    def lines(costs: Costs) -> FloatArray:
        return (costs.inclusive if ranking.inclusive else costs.exclusive)[rows]

    def below(costs: Costs) -> list[FloatArray]:
        rest = [np.nansum(costs.exclusive[others], axis=0)] if len(others) else []
        nothing = np.full_like(costs.total, np.nan)
        return [*rest, *[nothing] * ranking.has_imbalance, costs.total]

    return pair_text_columns(ranking, lines, below, without_last=ranking.is_comparison)


def cause_text(label: str) -> str:
    """Return a cause with a short name of the call path that is waited for."""
    waits = f"{Driver.SOURCE.value} "
    if not label.startswith(waits):
        return label
    name = short_name(label.removeprefix(waits))
    return waits + shorten([name], _CAUSE - len(waits))


def losses_of(ranking: Ranking, rows: IntArray, others: IntArray) -> dict[str, TextColumn]:
    """Return inclusive and exclusive excess work of a comparison; others have no inclusive one."""
    own, whole = ranking.excess.exclusive, ranking.excess.inclusive
    own_doubted, doubted = ranking.doubted
    name, total = excess_symbol(ranking.fitted), percent(ranking.total_excess)
    rest = [percent(float(own[others].sum()))] if len(others) else []
    rest += [""] * ranking.has_imbalance
    columns = {}
    for key, title, values, noisy, last in (
        ("loss", name, whole, doubted, [*[""] * len(rest), total]),
        ("own_loss", f"own {name}", own, own_doubted, [*rest, ""]),
    ):
        columns[key] = TextColumn(
            title,
            [*excess_texts(values[rows], noisy[rows]), *last],
            droppable=-1,
            styles=[*excess_styles(values[rows]), *[""] * len(last)],
        )
    return columns


def _places(ranking: Ranking, rows: IntArray) -> list[int]:
    place = np.zeros(len(ranking.value), np.intp)
    place[ranking.order] = np.arange(1, len(ranking.order) + 1)
    return [int(k) for k in place[rows]]


def _footer(
    ranking: Ranking,
    shown: str,
    culprits: Sequence[str],
    invocation: Invocation,
    check: Check | None,
) -> list[str]:
    """Return the notes below the table, given its header, the id to show, and the command lines."""
    lines = ["", *sum_notes(ranking)]
    lines += [*unmodelled_notes(ranking), *absent_notes(ranking)]
    fitted = ranking.fitted
    if fitted.is_measured_only:
        lines += value_notes(ranking)
    elif " excess " in shown:
        lines += excess_notes(ranking)
    lines += pair_note(ranking, inclusive=ranking.inclusive, header=shown)
    if " model " in shown:
        lines.append(MODEL_NOTE)
    if check is not None:
        lines.append(verdict_note(check, invocation))
    if culprits:
        lines += _start_up_notes(ranking, invocation)
        lines += [invocation.hint("show", mark) for mark in culprits]
    return lines


def _start_up_notes(ranking: Ranking, invocation: Invocation) -> list[str]:
    """Return a note if the leading call path starts or ends the program, and a command."""
    row = culprit(ranking)
    name = short_name(ranking.fitted.experiment.tree.names(row)[-1])
    if name.lower() not in _START_UP:
        return []
    without = invocation.line("rank", shell_words(["--ignore", f"**/{escape(name)}"]))
    return [f"{name} runs once per program, not in its loops. The ranking without it: {without}"]


def unmodelled_notes(ranking: Ranking) -> list[str]:
    """Return a note on the call paths without a model and the reasons, if there are any."""
    fitted, rows = ranking.fitted, ranking.unmodelled
    if not len(rows) or fitted.is_measured_only:
        return []
    count = fitted.status_counts(rows).most_common()
    why = ", ".join(f"{reason.replace('_', ' ')}: {n}" for reason, n in count)
    part = ranking.unmodelled_share
    if ranking.repetitions:
        part = float(np.nansum(ranking.own_share[rows]))
    share = f", {percent(part)} of the total" * fitted.metric.additive
    return [f"not modelled: {counted(len(rows), 'call path')}{share} ({why})"]


def absent_notes(ranking: Ranking) -> list[str]:
    """Return a note on call paths that do not occur at a measured target, if there are any."""
    fitted = ranking.fitted
    point = fitted.measured[:, fitted.points == ranking.target]
    if not ranking.repetitions:
        return []
    absent = np.isnan(point[:, 0]) & ~np.isnan(fitted.measured).all(axis=1)
    if not absent.any():
        return []
    where = f"{fitted.parameter} = {parameter_value(ranking.target)}"
    note = f"does not occur at {where}: {counted(int(absent.sum()), 'call path')}"
    # Metrics that do not add up have neither excess work nor a sum of predictions.
    gained = -float(np.nansum(ranking.excess.exclusive[absent]))
    if gained >= _WORTH_A_WORD:
        note += f", excess {percent(-gained)}"
    said = float(np.nansum(ranking.own.value[absent]))
    if fitted.metric.additive and said > 0:
        note += f"; the models predict {quantity(said, fitted.metric.unit)} for them"
    return [note]


def value_notes(ranking: Ranking) -> list[str]:
    """Return the notes without models: the meaning of a comparison, and the missing scales."""
    fitted, notes = ranking.fitted, []
    if ranking.is_comparison:
        notes.append(comparison_note(fitted))
        notes += [OVERLAP_NOTE] if any(each.any() for each in ranking.doubted) else []
    return [*notes, scales_note(fitted)]


def excess_notes(ranking: Ranking) -> list[str]:
    """Return the definition of excess work, if it is defined, or why it is not."""
    fitted = ranking.fitted
    ideal, reason = ideal_of(fitted), no_excess(fitted, ranking.target)
    if reason:
        return [] if ideal.scaling is not None else [f"no excess work: {reason}"]
    if np.isinf(ranking.target) or np.isnan(ranking.excess.exclusive).all():
        return []
    since = f"{fitted.parameter} = {parameter_value(ranking.base)}"
    of_what = f"as share of the {fitted.metric.name} at the target"
    if ideal.scaling is None:
        since = f", since {since}" if ideal.is_relative else ""
        told = f"excess: cost beyond the {ideal.meaning}{since}, {of_what}"
        return ["; ".join([told, *ideal.notes])]
    per_process = "1/p per process" if fitted.parameter == "p" else f"1/{fitted.parameter}"
    base = per_process if ideal.scaling is Scaling.STRONG else "constant cost"
    return [f"excess: cost beyond {base} since {since}, {of_what}"]
