"""Rankings as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.excess_work import no_excess
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.network import Unit
from callpath_modeler.analysis.uncertain import Total
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.printable import shell_words
from callpath_modeler.profile.calltree import CallTree, escape
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.columns import (
    MODEL_NOTE,
    share_texts,
    verdict_note,
    verification_sentences,
)
from callpath_modeler.report.further_columns import further_columns, holds_text
from callpath_modeler.report.headline import (
    culprit,
    headline,
    left_out,
    scaling_words,
    sum_notes,
    turning_notes,
)
from callpath_modeler.report.layout import EXPERIMENT, Invocation, TextColumn, TextStyle
from callpath_modeler.report.losses_text import (
    OVERLAP_NOTE,
    comparison_note,
    pair_note,
    pair_text_columns,
    scales_note,
)
from callpath_modeler.report.ranking_columns import (
    AFTER_PAIRS,
    BEFORE_PAIRS,
    RankedRows,
    program_cells,
    with_lines_below,
)
from callpath_modeler.report.scale_cost_text import scale_cost_notes
from callpath_modeler.report.table_formats import (
    BLOCK,
    Column,
    Table,
    applying,
    chosen_cells,
    text_columns,
    text_table,
)
from callpath_modeler.units import (
    counted,
    interval,
    parameter_value,
    percent,
    quantity,
    setting_text,
    signed_percent,
)

if TYPE_CHECKING:
    from callpath_modeler.analysis.expectations.check_result import Check
    from callpath_modeler.analysis.verification import Verification
    from callpath_modeler.analysis.what_if import WhatIf

_START_UP = frozenset(
    {"mpi_init", "mpi_init_thread", "mpi_finalize", "mpi_session_init", "dlopen", "shmem_init",
     "shmem_init_thread", "shmem_finalize", "start_pes", "gasnet_init", "gasnet_attach",
     "upcxx::init", "cuinit", "hipinit"}
)  # fmt: skip
"""Lower-case names of functions that start or end a program."""

CALL_PATH = "call path"
"""Title of the names of call paths."""

_WORTH_A_WORD = 0.005
"""Excess work from which call paths without a line are mentioned."""


@dataclass(frozen=True, eq=False)
class ShownRanking:
    """Call paths of a ranking that text shows.

    Attributes
    ----------
    ranking : the ranking
    rows : ranked rows to show
    check : results of expectations, which become a column; None = no expectations
    verified : measurements at the target, which become a sentence and columns; None = none
    calibrated : sentence about bands that earlier predictions corrected
    changed : the run after changes, which becomes a sentence and a column; None = no changes
    gains : whether a column tells what the run gains without each call path
    """

    ranking: Ranking
    rows: IntArray
    check: Check | None = None
    verified: Verification | None = None
    calibrated: str = ""
    changed: WhatIf | None = None
    gains: bool = False

    def text(
        self, style: TextStyle, invocation: Invocation = EXPERIMENT, *, complete: bool = True
    ) -> list[Text]:
        """Return the answer, the table, and notes.

        Parameters
        ----------
        style : width, length of names, and characters of text
        invocation : command lines for the same experiment
        complete : False = only the answer, the table and the next command
        """
        ranking, rows, tree = self.ranking, self.rows, self.ranking.fitted.experiment.tree
        names = distinct_names(tree, rows, full=style.full_names)
        named = [*rows.tolist(), *([culprit(ranking)] if len(ranking.order) else [])]
        marks = [f"@{short}" for short in tree.ids(named)]
        columns = [*self.cells(rows, style).values()]
        below = [[name] for name in self.names_below]
        body = style.table(columns, [*names, *below], marks=marks[: len(rows)])
        answer = [headline(ranking, style=style), *turning_notes(ranking, style=style)]
        answer += scale_cost_notes(ranking, style=style)
        if self.verified is not None:
            answer += verification_sentences(ranking, self.verified, style=style)
        if self.changed is not None:
            answer.append(changed_sentence(ranking, self.changed, style=style))
        answer += [self.calibrated] * bool(self.calibrated)
        notes = self._notes(body[0].plain, marks[len(rows) :], invocation)
        notes = notes if complete else notes[-1:]
        return style.answer(answer, [context(ranking)] * complete, body, notes, indent="")

    def text_table(self, style: TextStyle) -> Table:
        """Return the table of `text`; of many call paths, the names are whole."""
        rows, below = self.rows, self.names_below
        tree, full = self.ranking.fitted.experiment.tree, style.full_names or len(rows) > BLOCK

        def made(lines: IntArray) -> tuple[list[TextColumn], list[str]]:
            block, last = rows[lines[lines < len(rows)]], lines[lines >= len(rows)] - len(rows)
            columns = self.cells(block, style).values()
            names = ["/".join(names) for names in distinct_names(tree, block, full=full)]
            shown = np.concatenate([np.arange(len(block)), len(block) + last])
            return chosen_cells(columns, shown), [*names, *(below[k] for k in last.tolist())]

        return text_table(np.arange(len(rows) + len(below)), CALL_PATH, made)

    @cached_property
    def others(self) -> IntArray:
        """Ranked call paths that share a line."""
        return remainder(self.ranking, self.rows)

    @property
    def names_below(self) -> list[str]:
        """Names of the lines below those of single call paths."""
        rest = [counted(len(self.others), "other")] if len(self.others) else []
        if not self.ranking.fitted.metric.additive:
            return rest
        return [*rest, *["imbalance"] * self.ranking.has_imbalance, "total"]

    @cached_property
    def columns(self) -> list[Column[RankedRows]]:
        """Columns that text has, from left to right, without those of pairs of scales."""
        further = further_columns(
            *(self.check, self.verified, self.changed),
            gains=self.gains,
            energy=self.ranking.energy is not None,
        )
        columns = (*BEFORE_PAIRS, *AFTER_PAIRS, *further)
        return applying(columns, RankedRows.of(self.ranking, self.rows))

    def cells(self, rows: IntArray, style: TextStyle) -> dict[str, TextColumn]:
        """Return the columns of some rows as text, by name, with cells of the lines below."""
        columns = text_columns(self.columns, RankedRows.of(self.ranking, rows), style=style)
        columns = with_lines_below(columns, self._cells_below(style)) | self._pair_columns(rows)
        looks = {"NO": "bold"}
        if self.check is not None:
            from callpath_modeler.report.test_reports import STYLES

            looks |= {status.upper(): look for status, look in STYLES.items()}
            columns["verdict"] = columns.pop("verdict")  # It comes after pairs of scales.
        for name in {"holds", "verdict"} & columns.keys():
            styles = [looks.get(cell, "") for cell in columns[name].cells]
            columns[name] = replace(columns[name], styles=styles)
        return columns

    def _cells_below(self, style: TextStyle) -> list[Mapping[str, str]]:
        """Return the cells of `names_below`, each by name of the column."""
        ranking, others, unit = self.ranking, self.others, self.ranking.fitted.metric.unit
        verified, lines = self.verified, list[Mapping[str, str]]()
        if len(others):
            rest = ranking.of_sum(others)
            shares = share_texts(ranking, rest.share_at_largest.tolist(), rest.share.tolist())
            amounts = {"measured": rest.at_largest, "base": rest.at_base, "value": rest.value}
            if verified is not None:
                amounts["verified_value"] = np.nansum(verified.value[others], keepdims=True)
            lines.append(
                {
                    **{name: style.amount(float(of[0]), unit) for name, of in amounts.items()},
                    "model": signed_percent(float(rest.deviation[0])),
                    "share": shares[0],
                    **dict.fromkeys(("excess", "own_loss"), percent(float(rest.excess[0]))),
                }
            )
        if not ranking.fitted.metric.additive:
            return lines
        imbalance, total = program_cells(ranking, style=style)
        if ranking.has_imbalance:
            before = ranking.imbalance_at_largest / ranking.program_at_largest
            after = ranking.imbalance / ranking.program_total[0]
            lines.append({**imbalance, "share": share_texts(ranking, [before], [after])[0]})
        if verified is not None:
            total["verified_value"] = style.amount(verified.total, unit)
            total["holds"] = holds_text(verified.holds)
        if self.check is not None and (program := self.check.of_call_paths().get(None)):
            total["verdict"] = program[0].upper()
        return [*lines, total]

    def _pair_columns(self, rows: IntArray) -> dict[str, TextColumn]:
        """Return the excess work between chosen pairs of scales."""
        ranking, others = self.ranking, self.others

        def lines(costs: Costs) -> FloatArray:
            return (costs.inclusive if ranking.inclusive else costs.exclusive)[rows]

        def below(costs: Costs, whole: FloatArray) -> list[FloatArray]:
            rest = [np.nansum(costs.exclusive[others], axis=0)] if len(others) else []
            return [*rest, *[whole - costs.total] * ranking.has_imbalance, whole]

        return pair_text_columns(ranking, lines, below, without_last=ranking.is_comparison)

    def _notes(self, shown: str, culprits: Sequence[str], invocation: Invocation) -> list[str]:
        """Return the notes below the table, given its header, and the id to show."""
        ranking = self.ranking
        lines = [*sum_notes(ranking), *unmodelled_notes(ranking), *absent_notes(ranking)]
        if ranking.fitted.is_measured_only:
            lines += value_notes(ranking)
        elif " excess " in shown:
            lines += excess_notes(ranking)
        lines += pair_note(ranking, inclusive=ranking.inclusive, header=shown)
        if " model " in shown:
            lines.append(MODEL_NOTE)
        if self.check is not None:
            lines.append(verdict_note(self.check, invocation))
        if culprits:
            lines += _start_up_notes(ranking, invocation)
            lines += [invocation.hint("show", mark) for mark in culprits]
        return lines


def context(ranking: Ranking) -> str:
    """Return a one-line description of the measurements and models."""
    fitted, experiment = ranking.fitted, ranking.fitted.experiment
    flavour = "inclusive" if ranking.inclusive else "exclusive"
    return (
        f"{experiment.name} · {fitted.metric.name}, {flavour}, "
        f"{experiment.reduction.words} · {points_text(fitted)}"
        f"{scaling_text(fitted, why=True)}{left_out(experiment)}"
    )


def changed_sentence(ranking: Ranking, changed: WhatIf, *, style: TextStyle) -> str:
    """Return what a run takes after changes, and what it gains."""
    unit = ranking.fitted.metric.unit

    def told(total: Total) -> str:
        value, low, high = total
        ends = interval(low, high, unit, ascii_only=style.ascii_only)
        return f"{quantity(value, unit, ascii_only=style.ascii_only)} ({ends})"

    changes = ", ".join(change.text for change in changed.changes)
    said = [f"With {changes}: {told(changed.after)}; the gain is {told(changed.gain)}."]
    for cost in changed.network:
        value, low, high = cost.each
        name, unit, many = "latency", "s", " a step"
        if cost.unit is Unit.BYTE:
            name, unit, many = "bandwidth", "B/s", ""
            value, low, high = (1 / end if end > 0 else np.inf for end in (value, high, low))
        ends = interval(low, high, unit, ascii_only=style.ascii_only)
        if cost.gain[1] > 0:
            size = quantity(value, unit, ascii_only=style.ascii_only)
            said.append(f"The calls show a {name} of {size}{many} ({ends}).")
        else:
            said.append(f"The profiles do not show the {name}: the calls allow {ends}{many}.")
    if any(not cost.gain[1] > 0 for cost in changed.network):
        said.append(
            "Processes may wait for computation instead of the network. A benchmark of the network "
            "or a trace tells both apart."
        )
    return " ".join(said)


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
    is_other = ranking.is_ranked.copy()
    is_other[rows] = False
    return np.flatnonzero(is_other)


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
