"""Excess work over an ensemble of runs: which call paths lose what between which scales.

The formulas are those of `analysis.excess`, for many pairs of measured scales at once. Because
excess work is a share of one run time, it adds up, so any view of the call tree can show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.centre import centre_of
from callpath_modeler.analysis.excess import ideal, per_process, scaling_over
from callpath_modeler.choices import check_kind
from callpath_modeler.displayed import LossDisplay
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.modeling import Aggregate, Centre, centre
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.groups import Costs, Rows, Values
from callpath_modeler.profile.line import Line, nearest_line
from callpath_modeler.profile.schema import Metric
from callpath_modeler.readers.program import scaling_anew
from callpath_modeler.targets import settings_of, target_of, targets_of
from callpath_modeler.units import as_option, parameter_value, setting_text

Pair = tuple[float, float]

NOTICEABLE = 0.005
"""Excess work below this size, as share of the run time, is neither loss nor gain."""

_MINOR = 0.1
"""Of two parts of a loss, one below this fraction of the other is not worth a look."""


class Reading(StrEnum):
    """What inclusive against exclusive excess work says of a call path."""

    OWN = "own cost"
    CALLEES = "look at the callees"
    BOTH = "own cost and callees"
    GAIN = "superlinear"
    NONE = "no loss"


@dataclass(frozen=True, eq=False)
class Losses(LossDisplay):
    """Excess work of every call path between pairs of measured scales.

    Attributes
    ----------
    experiment : the runs that are compared
    metric : what was measured
    line : over which parameter, and where others are held
    scaling : which of the two formulas holds
    pairs : the smaller and the larger scale of each
    points : [points] the scales of the pairs, ascending
    centre : how repetitions became one cost
    costs : [call paths, points] cost per process
    run_time : [points] cost per process of the whole program
    slowest : [points] run time of the program, which is that of the slowest process; NaN where runs
        do not tell it
    excess : [call paths, pairs] fractions of the run time at the larger scale of the pair
    """

    experiment: Experiment
    metric: Metric
    line: Line
    scaling: Scaling
    pairs: tuple[Pair, ...]
    points: Values
    centre: Centre
    costs: Costs
    run_time: Values
    slowest: Values
    excess: Costs

    def __repr__(self) -> str:
        scales = f"{len(self.points)} scales of {self.parameter}"
        return f"<Losses {self.experiment.name}: {self.metric.name}, {scales}, {self.scaling}>"

    @property
    def parameter(self) -> str:
        """Over which parameter scales are compared."""
        return self.line.parameter

    def columns(self, pair: int) -> tuple[int, int]:
        """Return where the two scales of a pair are among `points`."""
        base, scale = np.searchsorted(self.points, self.pairs[pair])
        return int(base), int(scale)

    def repetitions(self, pair: int) -> tuple[Costs, Costs]:
        """Return what each run at the smaller scale would cost at the larger, and the runs there.

        [call paths, repetitions], per process; a call path that did not occur costs nothing.
        """
        p, q = self.pairs[pair]
        points, cube = self.experiment.by_point(self.metric.name, self.parameter)
        of_runs = []
        for point in (p, q):
            runs = cube[:, int(np.searchsorted(points, point))]
            runs = np.nan_to_num(runs[:, ~np.isnan(runs).all(axis=0)])
            of_runs.append(per_process(self.experiment, self.parameter, runs, point))
        before, after = of_runs
        tree = self.experiment.tree
        return Costs.of(tree, ideal(self.scaling, p, q, before)), Costs.of(tree, after)

    @property
    def total(self) -> Values:
        """Excess work of the whole program, [pairs]; one minus it is the parallel efficiency."""
        return self.excess.total


@dataclass(frozen=True, slots=True, eq=False)
class Unmatched:
    """Where two call trees diverge: those of two scales, or of two experiments.

    Attributes
    ----------
    rows : topmost call paths that occur in one of the two only, the costliest first
    is_new : [rows] whether that is the larger scale, or the new experiment
    cost : [rows] cost per process there, with all that they call
    share : [rows] fraction of the run time there
    callpaths : [rows] number of call paths, with those below
    """

    rows: Rows
    is_new: NDArray[np.bool_]
    cost: Values
    share: Values
    callpaths: Rows


def choose_pairs(
    points: Values, line: Line, pair: Pair | None = None, base: float | None = None
) -> tuple[Pair, ...]:
    """Return the pairs to compare: `pair`, or all that are larger than `base` against it.

    Parameters
    ----------
    points : the scales measured on a line, ascending
    base : None = the smallest

    Raises
    ------
    UsageError
        If a scale was not measured, or none is larger than the base.
    """
    listed = _listed(points)
    for wanted in pair or (() if base is None else (base,)):
        if wanted not in points:
            at = line.at(wanted)
            raise UsageError(
                f"no run at {setting_text(at)}",
                hint=f"measured: {listed}; "
                f"predictions are `cpmodel rank --at {shell_word(as_option(at))}`",
            )
    if pair is not None:
        if pair[0] == pair[1]:
            raise UsageError("--pair names one scale twice", hint=f"two of {listed}")
        return ((min(pair), max(pair)),)
    first = float(points[0]) if base is None else base
    pairs = tuple((first, float(point)) for point in points if point > first)
    if not pairs:
        raise UsageError(
            f"no scale is larger than the base, {setting_text({line.parameter: first})}",
            hint=f"--base with one of {listed}, but the last",
        )
    return pairs


def losses(
    experiment: Experiment,
    metric: str | None = None,
    parameter: str | None = None,
    *,
    held: Mapping[str, float] | None = None,
    pair: Pair | None = None,
    base: float | None = None,
    aggregate: Aggregate = "auto",
) -> Losses:
    """Return the excess work of every call path between measured scales.

    Parameters
    ----------
    experiment : the measured runs
    metric : None = the run time
    parameter : None = p if it varies
    held : measured values of other parameters; those not named are held at their largest one
    pair, base : two scales, or the one that all larger ones are compared with
    aggregate : how repetitions become one cost; ``"auto"`` as in models of the metric

    Returns
    -------
    Losses
        Excess work [call paths, pairs], as fractions of the run time at the larger scale.

    Raises
    ------
    UsageError
        If there is no such metric, parameter, scale or value, or the metric does not add up.
    DataError
        If there are not two scales to compare, or nothing was spent at one of them.

    References
    ----------
    Coarfa, Mellor-Crummey, Froyd, Dotsenko: Scalability Analysis of SPMD Codes Using Expectations
    (ICS 2007).
    """
    check_kind(experiment, Experiment, "experiment")
    chosen = experiment.metric(metric)
    if not chosen.additive:
        raise UsageError(
            f"no excess work: {chosen.name} does not add up over call paths",
            hint="choose a time or a count with --metric, and not --locations imbalance",
        )
    line = _measured_line(experiment, parameter, settings_of(held or {}, "held"))
    parameter = line.parameter
    how = centre_of(experiment, chosen.name, parameter, aggregate)
    if line.held:
        experiment = scaling_anew(experiment.at(line.held))
    measured, cube = experiment.by_point(chosen.name, parameter)
    has_values = ~np.isnan(cube).all(axis=(0, 2))
    measured, cube = measured[has_values], cube[:, has_values]
    if len(measured) < 2:
        raise DataError(
            f"{chosen.name} was measured at one scale only", hint="measure it at two or more"
        )
    base = None if base is None else target_of(base, what="base")
    pair = None if pair is None else _pair(pair)
    pairs = choose_pairs(measured, line, pair, base)
    points = np.unique(pairs)
    used = np.searchsorted(measured, points)
    cost = np.column_stack(
        [
            per_process(experiment, parameter, column, float(point))
            for column, point in zip(centre(cube[:, used], how).T, points, strict=True)
        ]
    )
    costs = Costs.of(experiment.tree, cost)
    scaling = scaling_over(experiment, parameter)
    relative = _relative(scaling, pairs, points, cost, costs.total, chosen, parameter)
    excess = Costs.of(experiment.tree, relative)
    slowest = _run_times(experiment, chosen, parameter, points, how)
    return Losses(
        experiment, chosen, line, scaling, pairs, points, how, costs, costs.total, slowest, excess
    )


def _run_times(
    experiment: Experiment, metric: Metric, parameter: str, points: Values, how: Centre
) -> Values:
    """Return the run times at points, [points]; NaN where runs do not tell them."""
    program = experiment.of_program(metric.name)
    if program is None:
        return np.full(len(points), np.nan)
    known, cube = program.by_point(metric.name, parameter)
    return np.asarray(centre(cube[:, np.searchsorted(known, points)], how)[0])


def _pair(scales: Pair) -> Pair:
    """Return a pair, if it is one."""
    found = targets_of(scales).tolist()
    if len(found) != 2:
        raise UsageError(f"a pair is of two scales, not {len(found)}", hint="e.g. pair=(8, 128)")
    return found[0], found[1]


def _measured_line(
    experiment: Experiment, parameter: str | None, held: Mapping[str, float]
) -> Line:
    """Return a line on which two scales were measured at least."""
    if not experiment.parameters:
        raise DataError(
            "all runs are at one scale: nothing to compare",
            hint="give profiles of two scales or more, e.g. p = 8 and 128",
        )
    names = experiment.modelled_parameters(parameter)
    chosen = parameter or names[0]
    names = (chosen, *(name for name in names if name != chosen))
    for name in held:
        if name == chosen:
            raise UsageError(
                f"--at {as_option({name: held[name]})}: excess work is between scales of {name}",
                hint="--pair or --base choose scales; --parameter another parameter",
            )
        if name not in names:
            raise UsageError(
                f"no parameter {name!r} varies independently of {chosen}",
                hint=f"parameters: {', '.join(names)}",
            )
    settings = np.unique(experiment.settings(names), axis=0)
    _, of_line, scales = np.unique(settings[:, 1:], axis=0, return_inverse=True, return_counts=True)
    settings = settings[scales[of_line.ravel()] > 1]
    if not len(settings):
        raise DataError(
            f"no two scales of {chosen} were measured where others are the same",
            hint="measure such, or compare --parameter another",
        )
    axes = [names.index(name) for name in held]
    there = settings[(settings[:, axes] == [*held.values()]).all(axis=1)]
    if not len(there):
        listed = (f"{name} = {_listed(settings[:, names.index(name)])}" for name in names[1:])
        raise UsageError(
            f"no two scales of {chosen} were measured at {setting_text(held)}",
            hint=f"there are at {'; '.join(listed)}",
        )
    line = nearest_line(names, there, held)
    return replace(line, held=line.measured_at)


def _listed(values: Values) -> str:
    return ", ".join(map(parameter_value, np.unique(values)))


def _relative(
    scaling: Scaling,
    pairs: Sequence[Pair],
    points: Values,
    cost: Values,
    run_time: Values,
    metric: Metric,
    parameter: str,
) -> Values:
    """Return exclusive excess work, [call paths, pairs]; NaN where a pair has neither cost."""
    columns = []
    for p, q in pairs:
        before, after = (cost[:, int(np.searchsorted(points, point))] for point in (p, q))
        whole = run_time[int(np.searchsorted(points, q))]
        if not whole > 0:
            raise DataError(
                f"{metric.name} is zero at {setting_text({parameter: q})}:"
                " nothing to be a share of",
                hint="choose another metric with -m, or other scales with --pair",
            )
        lost = np.nan_to_num(after) - ideal(scaling, p, q, np.nan_to_num(before))
        columns.append(np.where(np.isnan(before) & np.isnan(after), np.nan, lost / whole))
    return np.column_stack(columns)


def readings(inclusive: Values, exclusive: Values) -> list[Reading]:
    """Say where losses come from; [n] and [n].

    The part of the callees is the inclusive less the exclusive excess work. A part that gains
    takes nothing off the other: callees that got faster do not excuse a slow caller.
    """
    own, below = np.nan_to_num(exclusive), np.nan_to_num(inclusive - exclusive)
    found = []
    for total, mine, theirs in zip(
        np.nan_to_num(inclusive).tolist(), own.tolist(), below.tolist(), strict=True
    ):
        if max(mine, theirs) < NOTICEABLE:
            found.append(Reading.GAIN if total <= -NOTICEABLE else Reading.NONE)
        elif theirs <= _MINOR * mine:
            found.append(Reading.OWN)
        elif mine <= _MINOR * theirs:
            found.append(Reading.CALLEES)
        else:
            found.append(Reading.BOTH)
    return found


def overlap(before: Values, after: Values) -> NDArray[np.bool_] | None:
    """Tell where the repetitions of two scales overlap, so that noise may be the difference.

    Parameters
    ----------
    before, after : [n, repetitions] and [n, other repetitions]

    Returns
    -------
    [n]; None where a scale was run once
    """
    if min(before.shape[1], after.shape[1]) < 2:
        return None
    apart: NDArray[np.bool_] = after.max(axis=1) < before.min(axis=1)
    apart |= after.min(axis=1) > before.max(axis=1)
    return ~apart


def unmatched(losses: Losses, pair: int) -> Unmatched:
    """Return where the call trees of a pair's two scales diverge."""
    base, scale = losses.columns(pair)
    before, after = losses.costs.inclusive[:, base], losses.costs.inclusive[:, scale]
    totals = float(losses.run_time[base]), float(losses.run_time[scale])
    return diverging(losses.experiment.tree, (before, after), totals)


def diverging(
    tree: CallTree, costs: tuple[Values, Values], totals: tuple[float, float]
) -> Unmatched:
    """Return where call trees diverge.

    Parameters
    ----------
    tree : of both
    costs : [call paths] inclusive, of the base and of the new one; NaN = does not occur
    totals : what the whole program costs in either
    """
    before, after = costs
    one_only = np.isnan(before) != np.isnan(after)
    is_topmost = one_only & ~((tree.parent != ROOT) & one_only[tree.parent])
    rows = np.flatnonzero(is_topmost)
    is_new = np.isnan(before[rows])
    cost = np.where(is_new, after[rows], before[rows])
    whole = np.where(is_new, totals[1], totals[0])
    share = np.divide(cost, whole, out=np.zeros_like(cost), where=whole > 0)
    callpaths = tree.inclusive(one_only.astype(float))[rows].astype(np.intp)
    order = np.argsort(-share, kind="stable")
    return Unmatched(rows[order], is_new[order], cost[order], share[order], callpaths[order])
