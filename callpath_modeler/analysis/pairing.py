"""Two experiments of one program on one call tree, and subtrees of one side only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.predict import ABSENT, Predicted, predict
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import UNKNOWN_SCALE, Fitted
from callpath_modeler.modeling import Centre
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import Costs, Rows
from callpath_modeler.profile.runs import ParameterLine, nearest_line, of_one_program
from callpath_modeler.profile.schema import PROGRAM, Metric
from callpath_modeler.profile.unify import unify
from callpath_modeler.units import as_option, parameter_value, setting_text


@dataclass(frozen=True, slots=True, eq=False)
class AlignedExperiment:
    """One of two experiments, on the call tree of both.

    Attributes
    ----------
    experiment : the runs
    fitted : its models; None = it has too few scales
    rows : [call paths of the experiment] rows in the common tree
    points : [K] measured values of the parameter at the fixed values of the others, ascending
    values : [call paths of both, K, R] exclusive values; NaN = did not occur
    run_times : [1, K, R] run times of the program; None = some run does not record it
    """

    experiment: Experiment
    fitted: Fitted | None
    rows: IntArray
    points: FloatArray
    values: FloatArray
    run_times: FloatArray | None

    def occurs(self, points: FloatArray) -> BoolArray:
        """Return which call paths were measured at any of `points`, [call paths of both]."""
        here = np.isin(self.points, points)
        return np.asarray(~np.isnan(self.values[:, here]).all(axis=(1, 2)))

    def spread(self, column: NDArray[Any], absent: float = np.nan) -> NDArray[Any]:
        """Return columns over the call paths of the experiment as columns over those of both."""
        wide = np.full((len(self.values), *column.shape[1:]), absent, column.dtype)
        wide[self.rows] = column
        return wide

    def predicted(self, scale: float) -> Predicted:
        """Return the predictions of its models at a scale, for the call paths of both."""
        assert self.fitted is not None, "it has models"
        own = predict(self.fitted, scale)
        own = structs.replace(
            own, leader=np.where(own.leader >= 0, self.rows[own.leader], -1), factor=1.0
        )
        columns: dict[str, Any] = {
            name: self.spread(getattr(own, name), absent) for name, absent in ABSENT.items()
        }
        return structs.replace(own, **columns)

    def repetitions(self, target: float) -> int:
        """Return the number of runs of a target; 0 = it was not run."""
        assert self.fitted is not None, "there are targets only with models"
        runs = Measured(self.fitted)
        point = runs.point(target)
        return 0 if point is None else runs.repetitions(point)

    def own_rows(self) -> IntArray:
        """Return the row of each common call path in the experiment; -1 = it has none."""
        return self.spread(np.arange(len(self.rows)), absent=-1)


@dataclass(frozen=True, eq=False)
class ExperimentPair:
    """Two experiments that can be compared.

    Attributes
    ----------
    base, new : before and after
    tree : common call tree
    metric : metric of the comparison
    line : parameter of the comparison, and fixed values of the others
    scales : values of the parameter that both measured, ascending
    centre : centre of repetitions, the same for both
    renumbered : functions with one name that only their order distinguishes
    """

    base: AlignedExperiment
    new: AlignedExperiment
    tree: CallTree
    metric: Metric
    line: ParameterLine
    scales: FloatArray
    centre: Centre
    renumbered: tuple[str, ...] = ()

    @property
    def parameter(self) -> str:
        """Parameter of the comparison."""
        return self.line.parameter

    @property
    def has_unknown_scale(self) -> bool:
        """Whether both have a single scale, which is unknown."""
        known = (*self.base.experiment.constants, *self.new.experiment.constants)
        return self.parameter == UNKNOWN_SCALE and UNKNOWN_SCALE not in known

    @property
    def has_run_times(self) -> bool:
        """Whether both record the run time, so that it is the cost of the whole program."""
        return all(side.run_times is not None for side in self.sides)

    @property
    def sides(self) -> tuple[AlignedExperiment, AlignedExperiment]:
        """Before and after."""
        return self.base, self.new

    @cached_property
    def runs(self) -> tuple[Costs, Costs]:
        """Values of all runs of base and of new, each [call paths, K * R]."""
        base, new = (each.values.reshape(len(each.values), -1) for each in self.sides)
        return Costs.of(self.tree, base), Costs.of(self.tree, new)


def pair_up(
    base: tuple[Experiment, Fitted | None],
    new: tuple[Experiment, Fitted | None],
    metric: str | None,
    line: ParameterLine,
    aggregate: Centre = "mean",
) -> ExperimentPair:
    """Return two experiments on one call tree.

    Two call paths are the same if their callers and names agree. Parts of names that change from
    build to build are ignored, as within one experiment.

    Parameters
    ----------
    metric : name of the metric; None = the first duration
    line : parameter and fixed values, from `common_line`
    aggregate : centre of repetitions, if there are no models

    Raises
    ------
    UsageError
        If there is no such metric.
    DataError
        If the experiments have no metric or no call path in common.
    """
    chosen = _common_metric(base[0], new[0], metric)
    unified = unify([base[0].tree, new[0].tree])
    if any(unified.without_sites):
        more, less = (new, base) if unified.without_sites[0] else (base, new)
        raise DataError(
            f"{more[0].name} has separate call sites, but {less[0].name} has no lines of calls",
            hint="join the calls of each function: --fold call-sites",
        )
    in_base, in_new = unified.rows
    common = np.intersect1d(in_base, in_new).tolist()
    # All that two programs have in common may be the artificial root.
    if all(unified.tree.name(row) == PROGRAM for row in common):
        raise DataError(
            f"{base[0].name} and {new[0].name} have no call path in common",
            hint="compare two experiments of one program",
        )
    sides = []
    for (experiment, fitted), rows in zip((base, new), unified.rows, strict=True):
        there = line.measured_at or (fitted.measured_at if fitted else {})
        points, cube = experiment.at(there).by_point(chosen.name, line.parameter)
        measured = ~np.isnan(cube).all(axis=(0, 2))
        values = np.full((len(unified.tree), int(measured.sum()), cube.shape[2]), np.nan)
        # Siblings of one experiment differ in what is compared here, so no two share a row.
        values[rows] = cube[:, measured]
        program = experiment.at(there).of_program(chosen.name)
        run_times = None
        if program is not None:
            run_times = program.by_point(chosen.name, line.parameter)[1][:, measured]
            if np.isnan(run_times).all(axis=2).any():
                run_times = None
        sides.append(
            AlignedExperiment(experiment, fitted, rows, points[measured], values, run_times)
        )
    before, after = sides
    scales = before.points[np.isin(before.points, after.points)]
    if line.held and not line.measured_at:
        scales = scales[:0]
    modelled = [fitted.models.aggregate for _, fitted in (base, new) if fitted]
    how = modelled[0] if modelled else aggregate
    return ExperimentPair(
        before, after, unified.tree, chosen, line, scales, how, unified.renumbered
    )


def _common_metric(base: Experiment, new: Experiment, wanted: str | None) -> Metric:
    before, after = base.metric(wanted), new.metric(wanted)
    if (before.name, before.unit) != (after.name, after.unit):
        raise DataError(
            f"base has {before.name} [{before.unit}], new has {after.name} [{after.unit}]",
            hint="choose a metric that both have with -m; `cpmodel info` lists them",
        )
    if base.reduction is not new.reduction:
        raise DataError(
            f"base is {base.reduction.words}, new is {new.reduction.words}",
            hint="read both in the same way, e.g. with --locations max",
        )
    return after


def common_line(
    base: Experiment,
    new: Experiment,
    parameter: str | None,
    held: Mapping[str, float] | None = None,
) -> ParameterLine:
    """Return the parameter of the comparison, and fixed values of the others.

    The parameter varies in at least one experiment, unless both were run at one scale. The others
    have the values of `held`, or the largest values that both measured. Measurements are compared
    at the common setting that is nearest to these values; `measured_at` is empty if there is none.

    Raises
    ------
    UsageError
        If `wanted` or a name in `held` is no parameter that varies.
    DataError
        If the experiments vary in different parameters, or if the scale of one is not known, or
        nothing is known about one of them at the fixed values.
    """
    sides = (("base", base), ("new", new))
    varying = {which: _modelled(which, side, parameter) for which, side in sides if side.parameters}
    parameter, others = _roles(varying, parameter)
    held = held or {}
    for name in held:
        if name not in others:
            hint = f"parameters: {', '.join([parameter, *others])}"
            raise UsageError(f"the two do not vary in {name!r}", hint=hint)
    for name in (parameter, *others):
        for which, side in sides:
            _check_known(which, side, name, parameter)
    for which, side in sides:
        for name in others:
            if name not in varying.get(which, ()):
                _check_held(which, side, name, held, parameter)
    settings = [side.settings((parameter, *others)) for _, side in sides]
    both = settings[0][(settings[0][:, None] == settings[1]).all(axis=2).any(axis=1)]
    if len(both):
        return nearest_line((parameter, *others), both, held)
    return ParameterLine(parameter, *_apart(others, settings, held))


def _modelled(which: str, experiment: Experiment, wanted: str | None) -> tuple[str, ...]:
    try:
        return experiment.modelled_parameters(wanted)
    except UsageError as cause:
        raise UsageError(f"{which}: {cause.message}", hint=cause.hint) from None


def _roles(varying: Mapping[str, tuple[str, ...]], wanted: str | None) -> tuple[str, list[str]]:
    """Return the parameter of the comparison, and the parameters with fixed values."""
    if not varying:
        return wanted or "p", []
    every = list(dict.fromkeys(name for names in varying.values() for name in names))
    shared = [name for name in every if all(name in names for names in varying.values())]
    if not shared:
        base, new = (" and ".join(names) for names in varying.values())
        raise DataError(
            f"base varies in {base}, new in {new}",
            hint="choose one with --parameter, and fix the other with --where",
        )
    parameter = wanted or shared[0]
    return parameter, [name for name in every if name != parameter]


def _check_known(which: str, experiment: Experiment, name: str, parameter: str) -> None:
    if name not in experiment.runs[0].parameters:
        # --where is for both, and this one knows nothing of that parameter.
        where = shell_word(f"{name}=...")
        fix = f", or compare a store of the other: cpmodel fit --where {where} -o NAME.cpm"
        fix = "" if name == parameter else fix
        raise DataError(
            f"{which}: nothing says at which {name} its runs were made",
            hint=f"say where it is found with --param {shell_word(f'{name}=SOURCE')}{fix}",
        )


def _check_held(
    which: str, experiment: Experiment, name: str, held: Mapping[str, float], parameter: str
) -> None:
    """Raise an error if one experiment has no information about a parameter at a fixed value."""
    values = experiment.points(name)
    if len(values) > 1:
        raise DataError(
            f"{which}: {name} does not vary independently of {parameter}, in the other it does",
            hint=f"choose runs of one {name}: --where {shell_word(as_option({name: values[-1]}))}",
        )
    if held.get(name, values[0]) != values[0]:
        raise DataError(
            f"{which} was run at {setting_text({name: values[0]})} only: nothing is known of it at "
            f"{setting_text({name: held[name]})}",
            hint=f"compare at {as_option({name: values[0]})}",
        )


def _apart(
    others: Sequence[str], settings: Sequence[FloatArray], held: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, float], tuple[str, ...]]:
    """Return fixed values of parameters for two experiments without a common setting."""
    assumed = tuple(name for name in others if name not in held)
    at = dict(held)
    for name in assumed:
        column = 1 + others.index(name)
        common = np.intersect1d(settings[0][:, column], settings[1][:, column])
        if not len(common):
            raise DataError(
                f"the two were measured at no common {name}",
                hint=f"say where: --at with a value of {name}",
            )
        at[name] = float(common[-1])
    return {name: at[name] for name in others}, {}, assumed


def findings_of_constants(pair: ExperimentPair, subject: str) -> list[Finding]:
    """Return a finding on `subject` for each constant parameter whose value differs."""
    before, after = (side.experiment.constants for side in pair.sides)
    shared = (name for name in before if name in after and name != pair.parameter)
    return [
        Finding(
            "CPM131",
            subject,
            f"{setting_text({name: before[name]})} and {parameter_value(after[name])}",
        )
        for name in shared
        if before[name] != after[name]
    ]


def pair_findings(pair: ExperimentPair) -> list[Finding]:
    """Return findings about differences of parameters, programs and names."""
    found = findings_of_constants(pair, "base and new")
    if not of_one_program(*(side.experiment.tree for side in pair.sides)):
        found.append(Finding("CPM121", "base and new", "share hardly a function"))
    return found + [
        Finding(
            "CPM123", name, "first lines differ between base and new: told apart by their order"
        )
        for name in pair.renumbered
    ]


class Unmatched(Struct, frozen=True, eq=False):
    """Subtrees that occur on one side only: at one of two scales, or in one of two experiments.

    Attributes
    ----------
    rows : roots of these subtrees, in descending order of cost
    is_new : [rows] True = the subtree occurs at the larger scale, or in the new experiment
    cost : [rows] inclusive cost per process there
    share : [rows] fraction of the run time there
    callpaths : [rows] number of call paths in the subtree
    """

    rows: Rows
    is_new: BoolArray
    cost: FloatArray
    share: FloatArray
    callpaths: Rows


def diverging(
    tree: CallTree, costs: tuple[FloatArray, FloatArray], totals: tuple[float, float]
) -> Unmatched:
    """Return the subtrees that occur on one side only.

    Parameters
    ----------
    tree : call tree of both sides
    costs : [call paths] inclusive costs of the base and of the new side; NaN = does not occur
    totals : costs of the whole program on both sides
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
