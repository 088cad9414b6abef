"""Predictions of functions on other numbers of processes.

Each function has one model along the number of processes for every message size. Models along the
size are not needed, and would fail where libraries change their algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.analysis.bands import Band, propagate_errors
from callpath_modeler.analysis.deviations import deviation_of_models
from callpath_modeler.analysis.expectations.crossings import crossing
from callpath_modeler.analysis.expectations.verdicts import Crossing
from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import DataError
from callpath_modeler.fitted import Fitted
from callpath_modeler.pipeline import FitOptions, fit
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.metric_values import MetricValues as Column
from callpath_modeler.profile.runs import Parameter, Run
from callpath_modeler.profile.schema import Region
from callpath_modeler.units import as_option
from cpmodel_guidelines.benchmark import Benchmark
from cpmodel_guidelines.checks import GuidelineCheck, places_of
from cpmodel_guidelines.message_sizes import FunctionAtSetting, Sizes, moved


@dataclass(frozen=True, eq=False)
class Predictor:
    """Models of the functions of a benchmark.

    Attributes
    ----------
    fitted : models along the number of processes
    rows : row of the model of each function and setting, with 0 as number of processes
    axis : index of the number of processes in settings
    sizes : message sizes with models
    """

    fitted: Fitted
    rows: Mapping[FunctionAtSetting, int]
    axis: int
    sizes: Sizes

    def bands(self, places: Sequence[FunctionAtSetting]) -> Band:
        """Return the prediction bands of functions at settings, [places]; NaN without a model.

        Between two sizes, a band encloses the bands of both.
        """
        found = np.full((3, len(places)), np.nan)
        inside = [(k, self.sizes.between(self.line(place))) for k, place in enumerate(places)]
        known = [(k, between) for k, between in inside if between is not None]
        if not known:
            return Band(*found)
        here = np.array([k for k, _ in known])
        scales = [places[k].setting[self.axis] for k in here]
        points, at = np.unique(scales, return_inverse=True)
        models, which = np.unique(
            [[self.rows[b.less] for _, b in known], [self.rows[b.more] for _, b in known]],
            return_inverse=True,
        )
        told = self.fitted.models.take(models).predict(points)
        less, more = which.reshape(2, -1)
        weight, at = np.array([between.weight for _, between in known]), at.ravel()
        # Linear in logarithms, but also defined where a model predicts zero.
        found[0, here] = told.value[less, at] ** (1 - weight) * told.value[more, at] ** weight
        found[1, here] = np.minimum(told.low[less, at], told.low[more, at])
        found[2, here] = np.maximum(told.high[less, at], told.high[more, at])
        return Band(*found)

    def line(self, place: FunctionAtSetting) -> FunctionAtSetting:
        """Return a place with 0 as number of processes."""
        return FunctionAtSetting(place.row, moved(place.setting, self.axis, 0.0))

    def sides(self, checks: Sequence[GuidelineCheck]) -> list[Band]:
        """Return the bands of the left side and of each part of the right side, [checks] each."""
        places = list(dict.fromkeys(place for c in checks for place in (c.left, *c.right)))
        order = {place: k for k, place in enumerate(places)}
        band = self.bands(places)
        # A missing part of the right side has a time of zero.
        columns = [np.append(column, 0.0) for column in (band.value, band.low, band.high)]
        left, parts = places_of(checks, order.__getitem__)
        return [Band(*(column[rows] for column in columns)) for rows in (left, *parts)]

    def crossing(self, at: Callable[[float], GuidelineCheck], scales: FloatArray) -> Crossing:
        """Return the number of processes from which a guideline is predicted to be violated.

        Parameters
        ----------
        at : returns the check at a number of processes
        scales : measured numbers of processes, ascending
        """

        def beyond(points: FloatArray) -> Band:
            sides = self.sides([at(float(point)) for point in points])
            return propagate_errors(lambda values: values[0] - np.sum(values[1:], axis=0), sides)

        return crossing(beyond, scales)

    def deviations(self, benchmark: Benchmark) -> tuple[FloatArray, FloatArray]:
        """Return relative variances of deviations from the models, and their degrees of freedom.

        Each has one value per function and setting, [functions, K]; NaN without a model.
        """
        shape = len(benchmark.functions), len(benchmark.settings)
        variance, dof = np.full((2, *shape), np.nan)
        of_models = deviation_of_models(self.fitted, inclusive=False)
        for k, setting in enumerate(benchmark.settings.tolist()):
            for row in range(shape[0]):
                model = self.rows.get(self.line(FunctionAtSetting(row, tuple(setting))))
                if model is not None:
                    variance[row, k], dof[row, k] = (column[model] for column in of_models)
        return variance, dof


def predictor_of(benchmark: Benchmark, options: FitOptions) -> Predictor:
    """Return models of the functions of a benchmark.

    Raises
    ------
    UsageError, DataError
        The errors of `fit`.
    """
    axis = benchmark.axis(benchmark.processes)
    if axis is None:
        raise DataError("no parameter is the number of processes", hint="name it: --parameter NAME")
    lines = np.array([moved(tuple(s), axis, 0.0) for s in benchmark.settings.tolist()])
    others, of_setting = np.unique(lines, axis=0, return_inverse=True)
    points, of_point = np.unique(benchmark.settings[:, axis], return_inverse=True)
    functions, _, repetitions = benchmark.values.shape
    cube = np.full((functions, len(others), len(points), repetitions), np.nan)
    cube[:, of_setting.ravel(), of_point.ravel()] = benchmark.values
    places = [
        FunctionAtSetting(row, tuple(line)) for row in range(functions) for line in others.tolist()
    ]
    values = cube.reshape(len(places), len(points), repetitions)
    there = np.flatnonzero((~np.isnan(values)).sum(axis=(1, 2)))
    rows = {places[k]: number for number, k in enumerate(there.tolist())}
    names = [_name(benchmark, place, axis) for place in rows]
    experiment = _experiment(benchmark, names, points, values[there])
    chosen = replace(options, parameter=None)
    sizes = Sizes.of(rows, benchmark.axis(benchmark.size))
    return Predictor(fit(experiment, benchmark.metric.name, chosen), rows, axis, sizes)


def _name(benchmark: Benchmark, place: FunctionAtSetting, axis: int) -> str:
    """Return a function with the values of the other parameters that vary, as a name."""
    function = benchmark.functions[place.row]
    varying = {each.name for each in benchmark.experiment.parameters} - {benchmark.names[axis]}
    named = zip(benchmark.names, place.setting, strict=True)
    at = as_option({name: value for name, value in named if name in varying})
    return "/".join((*function.group, function.title)) + (f" at {at}" if at else "")


def _experiment(
    benchmark: Benchmark, names: Sequence[str], points: FloatArray, values: FloatArray
) -> Experiment:
    """Return an experiment along the number of processes, with one call path per model.

    Parameters
    ----------
    names : [models] names of the call paths
    points : [P] numbers of processes
    values : [models, P, R] in the unit of the metric
    """
    name, first = str(benchmark.processes), benchmark.experiment.runs[0]
    runs = tuple(
        Run(first.source, first.reader, first.extent, {name: point}, repetition)
        for point in points.tolist()
        for repetition in range(1, 1 + values.shape[2])
    )
    tree = CallTree.from_parents([ROOT] * len(names), range(len(names)), [*map(Region, names)])
    flat = values.reshape(len(values), -1)
    column = Column(benchmark.metric, flat, np.nansum(flat, axis=0))
    varying = (Parameter(name, tuple(points.tolist()), "settings"),) if len(points) > 1 else ()
    return replace(
        benchmark.experiment,
        tree=tree,
        runs=runs,
        parameters=varying,
        constants={},
        columns={benchmark.metric.name: column},
    )


def predictor_if_any(benchmark: Benchmark, options: FitOptions) -> Predictor | None:
    """Return models of the functions of a benchmark; None if the runs allow no model."""
    try:
        return predictor_of(benchmark, options)
    except DataError:
        return None
