"""The models of one metric of an experiment: columns of `modeling` with the names of `profile`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from callpath_modeler.argument_checks import check_type
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.modeling import (
    FitStatus,
    Models,
    Prediction,
    centre,
    slice_with_line_models,
)
from callpath_modeler.notebook_repr import FigureReprMixin, HtmlReprMixin
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.parameter_line import nearest_line
from callpath_modeler.profile.pattern import find_one
from callpath_modeler.profile.schema import Metric
from callpath_modeler.targets import targets_of


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Models in several parameters, which those along one are slices of.

    Attributes
    ----------
    parameters : names, the main one first
    models : one per call path, over points [K, D] in the order of the names
    """

    parameters: tuple[str, ...]
    models: Models

    def formula(self, row: int, *, pretty: bool = False) -> str:
        """Return the model of a call path as a formula in all parameters."""
        return self.models.formula(row, self.parameters, pretty=pretty)

    def measured_range(self, parameter: str) -> tuple[float, float]:
        """Return the smallest and the largest measured value of a parameter."""
        values = self.models.points[:, self.parameters.index(parameter)]
        return float(values.min()), float(values.max())


@dataclass(frozen=True, eq=False)
class Fitted(HtmlReprMixin):
    """One model per call path along one parameter; others are held at values.

    Attributes
    ----------
    experiment : what was measured
    metric : which metric was modelled, in its exclusive values
    parameter : the parameter of the models
    points : [K] its measured values, ascending
    measured : [call paths, K] centre over repetitions; NaN = did not occur
    models : one per call path
    settings : how they were fitted, for people and for the record
    findings : what a user should know about the models
    surface : the models in several parameters that these are slices of, if they are
    held : values of the other parameters of the surface
    measured_at : the values nearest to them that were measured: `points` and `measured` are there
    assumed : the others held that no one said where to hold
    of_line : [call paths] whose models are of the runs at `measured_at` alone, because the surface
        does not explain them as well; empty without a surface
    run_time : the model of the run time, which is that of the slowest process: a series of its own,
        over an experiment whose only call path is the program; None = runs do not tell it
    """

    experiment: Experiment
    metric: Metric
    parameter: str
    points: NDArray[np.float64]
    measured: NDArray[np.float64]
    models: Models
    settings: dict[str, str]
    findings: tuple[Finding, ...]
    surface: Surface | None = None
    held: Mapping[str, float] = field(default_factory=dict)
    measured_at: Mapping[str, float] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    of_line: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    run_time: Fitted | None = None

    def __repr__(self) -> str:
        return (
            f"<Fitted {self.experiment.name}: {self.metric.name}, "
            f"{len(self.experiment.tree)} call paths over {self.parameter}>"
        )

    def __getitem__(self, callpath: str) -> CallPathModel:
        """Return the model of the one call path that a pattern names."""
        check_type(callpath, str, "call path")
        return CallPathModel(self, find_one(self.experiment.tree, callpath))

    @property
    def modelled(self) -> NDArray[np.bool_]:
        """Tell which call paths can be predicted, [call paths].

        They have a model, and still occur at the largest scale: of one that does not, the
        smaller scales say nothing about larger ones.
        """
        return ~np.isnan(self.models.coefficients[:, 0]) & ~np.isnan(self.measured[:, -1])

    def holding(self, held: Mapping[str, float], parameter: str | None = None) -> Fitted:
        """Return the models along `parameter` with others held at values.

        Those not named stay where they are, or at their largest measured value.
        """
        if self.surface is None or (not held and parameter in (None, self.parameter)):
            return self
        chosen = parameter or self.parameter
        found = sliced(
            self.experiment,
            self.metric,
            self.surface,
            self.settings,
            self.findings,
            chosen,
            {**self.said, **held},
        )
        run_time = self.run_time.holding(held, parameter) if self.run_time else None
        return replace(found, run_time=run_time)

    @property
    def parameters(self) -> tuple[str, ...]:
        """All parameters of the models, whichever they are along."""
        return self.surface.parameters if self.surface else (self.parameter,)

    @property
    def whole(self) -> Models:
        """The models in all `parameters`."""
        return self.surface.models if self.surface else self.models

    def at(self, scale: float) -> dict[str, float]:
        """Return the values of all parameters at a scale."""
        return {self.parameter: scale, **self.held}

    def measured_range(self, parameter: str) -> tuple[float, float]:
        """Return the smallest and the largest value that a parameter has in any run."""
        if self.surface is not None:
            return self.surface.measured_range(parameter)
        return float(self.points[0]), float(self.points[-1])

    def times_largest(self, scale: float) -> float:
        """Return how many times the largest run a scale is, in the parameter where it is most."""
        return max(at / self.measured_range(name)[1] for name, at in self.at(scale).items())

    def never_combined(self, scale: float) -> dict[str, float]:
        """Return the values of all parameters at a scale if no run reaches them at once, else {}.

        Beyond its largest value in any run, a parameter counts as having that value.
        """
        if self.surface is None:
            return {}
        reached = {
            name: min(at, self.measured_range(name)[1]) for name, at in self.at(scale).items()
        }
        wanted = [reached[name] for name in self.surface.parameters]
        combined = (self.surface.models.points >= wanted).all(axis=1).any()
        return {} if combined else reached

    @property
    def said(self) -> dict[str, float]:
        """Values of other parameters that someone said."""
        return {name: at for name, at in self.held.items() if name not in self.assumed}

    @property
    def line(self) -> Experiment:
        """The runs along the parameter: all, or those where the others are as `measured_at`."""
        return self.experiment.at(self.measured_at)

    def at_smallest(self) -> NDArray[np.float64]:
        """Return what call paths cost at the smallest scale, [call paths].

        Measured, unless the other parameters are held where nothing was.
        """
        if self.held == self.measured_at:
            return self.measured[:, 0]
        return self.models.values(self.points[:1])[:, 0]

    def statuses(self, rows: ArrayLike) -> list[str]:
        """Return the names of call paths' outcomes, in lower case."""
        asked = np.asarray(rows, np.intp)
        modelled = ~np.isnan(self.models.coefficients[asked, 0])
        gone = np.isnan(self.measured[asked, -1]) & modelled
        names = np.array([status.name.lower() for status in FitStatus])
        said: list[str] = np.where(gone, "gone", names[self.models.status[asked]]).tolist()
        return said

    def status(self, row: int) -> str:
        """Return the name of one call path's outcome, in lower case."""
        return self.statuses([row])[0]


def sliced(
    experiment: Experiment,
    metric: Metric,
    surface: Surface,
    settings: dict[str, str],
    findings: tuple[Finding, ...],
    parameter: str | None = None,
    held: Mapping[str, float] | None = None,
) -> Fitted:
    """Return models along one parameter of a surface.

    Where the others are held at values that were measured, call paths that deviate from the surface
    by more than from a model of the runs there have that one: laws in one parameter are simpler.
    Else models of the runs nearest to them are among what could also be.

    Parameters
    ----------
    parameter : which; None = the main one
    held : values of the others; those not named are held at their largest measured value
    """
    chosen = parameter or surface.parameters[0]
    names = [chosen, *(name for name in surface.parameters if name != chosen)]
    axes = [surface.parameters.index(name) for name in names]
    line = nearest_line(names, surface.models.points[:, axes], held or {})
    at = [line.held.get(name, 1.0) for name in surface.parameters]
    runs, values = experiment.by_setting(metric.name, surface.parameters)
    measured = ~np.isnan(values).all(axis=(0, 2))
    runs, values = runs[measured], values[:, measured]
    models, of_runs = slice_with_line_models(surface.models, axes[0], at, runs, values)
    near = [line.measured_at[name] for name in names[1:]]
    own = (runs[:, axes[1:]] == near).all(axis=1)
    return Fitted(
        experiment,
        metric,
        chosen,
        runs[own, axes[0]],
        centre(values[:, own], models.aggregate),
        models,
        settings,
        findings,
        surface,
        line.held,
        line.measured_at,
        line.assumed,
        of_runs,
    )


@dataclass(frozen=True, slots=True, eq=False)
class CallPathModel(FigureReprMixin):
    """The model of one call path: a light view of one row.

    Attributes
    ----------
    fitted : the models it is one of
    row : which
    """

    fitted: Fitted
    row: int

    def __repr__(self) -> str:
        held = "".join(f", {name}={value:g}" for name, value in self.fitted.held.items())
        return f"{self.fitted.metric.name}({self.fitted.parameter}{held}) = {self.formula()}"

    @property
    def callpath(self) -> str:
        """The call path as text."""
        return self.fitted.experiment.tree.path(self.row)

    @property
    def status(self) -> str:
        """The outcome of the fit, in lower case."""
        return self.fitted.status(self.row)

    @property
    def growth(self) -> str:
        """The leading term without coefficient, as text."""
        return self.fitted.models.growth(self.row).text(self.fitted.parameter)

    def formula(self, *, pretty: bool = False) -> str:
        """Return the model as a formula in the parameter."""
        return self.fitted.models.formula(self.row, self.fitted.parameter, pretty=pretty)

    def predict(self, points: ArrayLike | None = None, **named: ArrayLike) -> Prediction:
        """Return value, low and high, each [points], SI base units.

        Parameters
        ----------
        points : targets along the parameter of the models, others held as they are
        named : or targets by parameter, as ``p=[1024, 4096], n=1e6``; lengths broadcast

        Raises
        ------
        UsageError
            If a target is not positive, a name is no parameter of the models, or there is none.
        """
        fitted = self.fitted
        table = self._asked(points, named)
        along_it = table.pop(fitted.parameter)
        found = np.empty((3, len(along_it)))
        settings = np.stack([*table.values(), np.zeros(len(along_it))], axis=1)[:, : len(table)]
        for setting in np.unique(settings, axis=0) if table else settings[:1]:
            here = (settings == setting).all(axis=1)
            models = fitted.holding(dict(zip(table, setting.tolist(), strict=True))).models
            of_row = models.take([self.row]).predict(along_it[here])
            found[:, here] = of_row.value[0], of_row.low[0], of_row.high[0]
        return Prediction(*found)

    def _asked(
        self, points: ArrayLike | None, named: Mapping[str, ArrayLike]
    ) -> dict[str, NDArray[np.float64]]:
        """Return the targets of each parameter, all of one length."""
        known, parameter = self.fitted.parameters, self.fitted.parameter
        hint = f"give targets, or values of {', '.join(known)} by name"
        if points is not None and named:
            raise UsageError("targets are given twice", hint=hint)
        asked = named if points is None else {parameter: points}
        for name in asked:
            if name not in known:
                raise UsageError(f"the models have no parameter {name!r}", hint=hint)
        if parameter not in asked:
            raise UsageError(f"no target of {parameter}", hint=hint)
        targets = [targets_of(values) for values in asked.values()]
        try:
            return dict(zip(asked, np.broadcast_arrays(*targets), strict=True))
        except ValueError:
            hint = "one value, or as many as the others have"
            raise UsageError("targets of parameters differ in number", hint=hint) from None
