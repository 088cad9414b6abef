"""Two experiments of one program, before and after a change, brought to one call tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import Values
from callpath_modeler.profile.schema import Metric
from callpath_modeler.profile.unify import unify


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of two experiments, on the call tree of both.

    Attributes
    ----------
    experiment : what was measured
    fitted : its models; None = it has too few scales for any
    rows : [call paths of the experiment], their rows in the tree of both
    points : [K] measured values of the parameter, ascending
    values : [call paths of both, K, R] exclusive; NaN = did not occur
    """

    experiment: Experiment
    fitted: Fitted | None
    rows: NDArray[np.intp]
    points: Values
    values: Values

    def occurs(self, points: Values) -> NDArray[np.bool_]:
        """Tell which call paths were measured at any of `points`, [call paths of both]."""
        here = np.isin(self.points, points)
        return np.asarray(~np.isnan(self.values[:, here]).all(axis=(1, 2)))

    def spread(self, column: NDArray[Any], absent: float = np.nan) -> NDArray[Any]:
        """Bring a column over the experiment's call paths to those of both."""
        wide = np.full(len(self.values), absent, column.dtype)
        wide[self.rows] = column
        return wide

    def own_rows(self) -> NDArray[np.intp]:
        """Return the experiment's row of each call path of both; -1 where it has none."""
        return self.spread(np.arange(len(self.rows)), absent=-1)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two experiments that can be compared.

    Attributes
    ----------
    base, new : before and after
    tree : the call paths of both
    metric, parameter : what is compared, over what
    scales : values of the parameter at which both were measured, ascending
    renumbered : functions of one name that only their order tells apart
    """

    base: Side
    new: Side
    tree: CallTree
    metric: Metric
    parameter: str
    scales: Values
    renumbered: tuple[str, ...] = ()

    @property
    def sides(self) -> tuple[Side, Side]:
        """Before and after."""
        return self.base, self.new


def pair_up(
    base: tuple[Experiment, Fitted | None],
    new: tuple[Experiment, Fitted | None],
    metric: str | None,
    parameter: str,
) -> Pair:
    """Bring two experiments to one call tree.

    Call paths are the same if all their callers are and they agree in what stays the same of their
    names from build to build, as in one experiment.

    Parameters
    ----------
    metric : None = the run time
    parameter : as `common_parameter` returns it

    Raises
    ------
    UsageError
        If there is no such metric.
    DataError
        If the two do not hold the same metric, or have no call path in common.
    """
    chosen = _common_metric(base[0], new[0], metric)
    unified = unify([base[0].tree, new[0].tree])
    in_base, in_new = unified.rows
    if not np.isin(in_base, in_new).any():
        raise DataError(
            f"{base[0].name} and {new[0].name} have no call path in common",
            hint="compare two experiments of one program",
        )
    sides = []
    for (experiment, fitted), rows in zip((base, new), unified.rows, strict=True):
        points, cube = experiment.by_point(chosen.name, parameter)
        measured = ~np.isnan(cube).all(axis=(0, 2))
        values = np.full((len(unified.tree), int(measured.sum()), cube.shape[2]), np.nan)
        # Siblings of one experiment differ in what is compared here, so no two share a row.
        values[rows] = cube[:, measured]
        sides.append(Side(experiment, fitted, rows, points[measured], values))
    scales = sides[0].points[np.isin(sides[0].points, sides[1].points)]
    before, after = sides
    return Pair(before, after, unified.tree, chosen, parameter, scales, unified.renumbered)


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


def common_parameter(base: Experiment, new: Experiment, wanted: str | None) -> str:
    """Return the parameter whose values are the scales of both experiments.

    It varies in one of the two at least, unless both were run at one scale.

    Raises
    ------
    UsageError
        If `wanted` is no parameter that varies.
    DataError
        If the two vary in different parameters, or nothing says at which scale one was run.
    """
    varying = [experiment for experiment in (base, new) if experiment.parameters]
    if varying:
        names = {experiment.modelled_parameter(wanted) for experiment in varying}
    else:
        names = {wanted or "p"}
    if len(names) > 1:
        raise DataError(
            f"base varies in {base.modelled_parameter(wanted)}, new in "
            f"{new.modelled_parameter(wanted)}",
            hint="choose one with --parameter, and fix the other with --where",
        )
    (name,) = names
    for which, experiment in (("base", base), ("new", new)):
        if name not in experiment.runs[0].parameters:
            raise DataError(
                f"{which}: nothing says at which {name} its runs were made",
                hint=f"say where it is found with --param {name}=SOURCE",
            )
    return name


def pair_findings(pair: Pair) -> list[Finding]:
    """Say what may keep the two from being alike: other parameters, functions of one name."""
    before, after = (side.experiment.constants for side in pair.sides)
    shared = (name for name in before if name in after and name != pair.parameter)
    found = [
        Finding("CPM131", "base and new", f"{name} = {before[name]:g} and {after[name]:g}")
        for name in shared
        if before[name] != after[name]
    ]
    return found + [
        Finding(
            "CPM123", name, "first lines differ between base and new: told apart by their order"
        )
        for name in pair.renumbered
    ]
