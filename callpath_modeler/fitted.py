"""Models of one metric of an experiment, with the names of its call paths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from callpath_modeler import modeling
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray, give_back_pages
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError, check_type
from callpath_modeler.modeling import FitStatus, Models, Prediction, centre
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.metric_formulas import Formula
from callpath_modeler.profile.pattern import find_one
from callpath_modeler.profile.runs import nearest_line, targets_of
from callpath_modeler.profile.schema import Metric
from callpath_modeler.support.front_ends import FigureReprMixin, FrameMixin, HtmlReprMixin


class Ideal(ABC):
    """Expected cost per process of every call path at a scale, from the cost at a base."""

    @property
    @abstractmethod
    def formula(self) -> str:
        """Formula of excess work between p and q."""

    @property
    @abstractmethod
    def meaning(self) -> str:
        """Name of the expectation, in a few words."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Further facts for the reader of a table."""
        return ()

    @property
    def scaling(self) -> Scaling | None:
        """Weak or strong scaling; None = another expectation."""
        return None

    @property
    def is_relative(self) -> bool:
        """True if the expected cost depends on the cost at the base."""
        return True

    @abstractmethod
    def cost(self, base: float, scale: float, cost: FloatArray) -> FloatArray:
        """Return the expected cost at `scale`.

        Parameters
        ----------
        base, scale : the smaller and the larger scale
        cost : exclusive cost per process at the base, [call paths] or [call paths, runs]; there is
            no NaN
        """

    def factor(self, base: float, scale: float) -> float | None:
        """Return the factor from the cost at the base to the expected cost, if all have the same.

        None = call paths have different factors.
        """
        del base, scale
        return None

    def run_time(self, base: float, scale: float, run_time: float, cost: FloatArray) -> float:
        """Return the expected run time at `scale`, per process.

        The rest of the run time without the call paths is expected to scale as they are. Where
        these have different factors, nothing is expected of it.

        Parameters
        ----------
        base, scale : the smaller and the larger scale
        run_time : run time at the base, or the sum of the call paths there
        cost : exclusive cost per process at the base, [call paths]; there is no NaN
        """
        factor = self.factor(base, scale)
        return float(self.cost(base, scale, cost).sum()) if factor is None else run_time * factor

    def runs(self, base: float, scale: float, runs: FloatArray) -> FloatArray | None:
        """Return the expected cost at `scale` of each run, [call paths, runs]; None = not known."""
        return self.cost(base, scale, runs)

    def added(self, scale: float) -> FloatArray | None:
        """Return additive numbers for bands of an expected cost; None = it has no band.

        They are [call paths, columns], as those of `modeling.sums.addable`.
        """
        del scale
        return None

    @property
    def remedy(self) -> str:
        """What to do if no cost is expected; "" = another scale or expectation."""
        return ""

    def gap(self, base: float, scale: float) -> str:
        """Return the reason for no expected cost at `scale`; "" = a cost is expected."""
        del base, scale
        return ""


UNKNOWN_SCALE = "scale"
"""Name of the parameter of runs that do not tell their scale, which then counts as 1."""

_STATUSES = (*(status.name.lower() for status in FitStatus), "gone")
"""Names of the statuses of call paths; the last one has a model, but does not occur any more."""


class Surface(Struct, frozen=True, eq=False):
    """Models in several parameters; models along one parameter are slices of them.

    Attributes
    ----------
    parameters : names, the main parameter first
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
class Fitted(HtmlReprMixin, FrameMixin):
    """Models of one metric along one parameter: one model for each call path.

    With several parameters, the models are a slice: the other parameters have fixed values.

    Attributes
    ----------
    experiment : the measured runs
    metric : the metric; models predict its exclusive values
    parameter : the parameter of the models
    points : [K] measured values of the parameter, ascending
    measured : [call paths, K] centre of the repetitions, SI base units; NaN = did not occur
    models : the models, one per call path
    settings : options of the fit, as text
    findings : data quality findings about the models
    surface : models in all parameters; None = there is one parameter
    held : fixed values of the other parameters
    measured_at : the measured values nearest to `held`; `points` and `measured` belong to them
    assumed : names of the other parameters whose value the user did not choose
    of_line : [call paths] True = the model describes only the runs at `measured_at`, because the
        surface fits them less well; empty without a surface
    run_time : model of the run time, which is the inclusive time of the program on the slowest
        process; None = the run time is not known for all runs
    is_measured_only : there are no models, because there are too few scales, or because two scales
        are compared; `points` has one or two of them
    pairs : pairs of measured scales whose excess work is shown as well
    ideal : expected costs that the user chose; None = perfect scaling. A slice has none
    base_point : number of the point from which excess work is counted
    parts : models of the operands of the formula of a metric that does not add up, in the order of
        `Formula.parts`; they predict the sums of a node
    band_factor : factor of the widths of predicted costs, on a logarithmic scale, by earlier
        predictions; a slice has 1
    is_narrow : True = bands do not consider that waiting has causes that a profile does not show
    """

    experiment: Experiment
    metric: Metric
    parameter: str
    points: FloatArray
    measured: FloatArray
    models: Models
    settings: dict[str, str]
    findings: tuple[Finding, ...]
    surface: Surface | None = None
    held: Mapping[str, float] = field(default_factory=dict)
    measured_at: Mapping[str, float] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    of_line: BoolArray = field(default_factory=lambda: np.empty(0, np.bool_))
    run_time: Fitted | None = None
    is_measured_only: bool = False
    pairs: tuple[tuple[float, float], ...] = ()
    ideal: Ideal | None = None
    base_point: int = 0
    parts: tuple[Fitted, ...] = ()
    band_factor: float = 1.0
    is_narrow: bool = False

    def __repr__(self) -> str:
        return (
            f"<Fitted {self.experiment.name}: {self.metric.name}, "
            f"{len(self.experiment.tree)} call paths over {self.parameter}>"
        )

    def __len__(self) -> int:
        """Return the number of call paths."""
        return len(self.experiment.tree)

    def __iter__(self) -> Iterator[CallPathModel]:
        """Yield the models of all call paths, in the order of the experiment."""
        return (CallPathModel(self, row) for row in range(len(self)))

    def __getitem__(self, callpath: str) -> CallPathModel:
        """Return the model of the call path that a pattern selects.

        Raises
        ------
        UsageError
            If the pattern selects no call path, or several.
        """
        check_type(callpath, str, "call path")
        return CallPathModel(self, find_one(self.experiment.tree, callpath))

    @cached_property
    def waits(self) -> BoolArray:
        """Return which call paths may wait for other processes, [call paths]."""
        tree = self.experiment.tree
        return np.array([region.call_class.waits for region in tree.regions], bool)[tree.region]

    @cached_property
    def widened(self) -> BoolArray:
        """Return which call paths have the wider bands of what waits, [call paths]."""
        along_one = self.surface is None and self.models.axes == 1
        is_usual = self.metric.is_time and self.models.method != "classic" and along_one
        return self.waits if is_usual and not self.is_narrow else np.zeros_like(self.waits)

    @cached_property
    def modelled(self) -> BoolArray:
        """Return which call paths have predictions, [call paths].

        A call path needs a model and a value at the largest scale. Smaller scales alone do not show
        whether it occurs at larger ones.
        """
        return ~np.isnan(self.models.coefficients[:, 0]) & ~np.isnan(self.measured[:, -1])

    def holding(self, held: Mapping[str, float], parameter: str | None = None) -> Fitted:
        """Return the models along a parameter, with fixed values of the others.

        Parameters
        ----------
        held : values of parameters by name. A parameter that is not named keeps its value, or has
            its largest measured value.
        parameter : parameter of the models; None = the present one

        Returns
        -------
        Fitted
            The slice. Models in one parameter are returned unchanged.
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
        parts = tuple(part.holding(held, parameter) for part in self.parts)
        return replace(found, run_time=run_time, parts=parts)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters of the models."""
        return self.surface.parameters if self.surface else (self.parameter, *self.held)

    @property
    def has_unknown_scale(self) -> bool:
        """Return whether the runs are at one scale that they do not tell."""
        known = self.experiment.constants
        one_scale = self.is_measured_only and not self.experiment.parameters
        return one_scale and self.parameter == UNKNOWN_SCALE and UNKNOWN_SCALE not in known

    def compares(self, target: float) -> bool:
        """Return whether values at a target are compared with those of a smaller scale.

        This is so without models, for a metric that adds up over call paths.
        """
        return self.is_measured_only and self.metric.additive and target > float(self.points[0])

    @property
    def whole(self) -> Models:
        """The models in all `parameters`."""
        return self.surface.models if self.surface else self.models

    def at(self, scale: float) -> dict[str, float]:
        """Return the values of all parameters at a scale, by name."""
        return {self.parameter: scale, **self.held}

    def measured_range(self, parameter: str) -> tuple[float, float]:
        """Return the smallest and the largest measured value of a parameter."""
        if self.surface is not None:
            return self.surface.measured_range(parameter)
        if parameter in self.held:
            values = self.experiment.points(parameter)
            return float(values[0]), float(values[-1])
        return float(self.points[0]), float(self.points[-1])

    def times_largest(self, scale: float) -> float:
        """Return the extrapolation factor of a scale: the largest one over all parameters."""
        return max(at / self.measured_range(name)[1] for name, at in self.at(scale).items())

    def never_combined(self, scale: float) -> dict[str, float]:
        """Return the values of all parameters at a scale if no run reaches all of them, else {}.

        Values beyond the largest measured one are replaced by the largest measured one.
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
        """Values of other parameters that the user chose, by name."""
        return {name: at for name, at in self.held.items() if name not in self.assumed}

    @property
    def line(self) -> Experiment:
        """The runs along the parameter: all runs, or those at `measured_at`."""
        return self.experiment.at(self.measured_at)

    @cached_property
    def runs(self) -> FloatArray:
        """Values of every run, [call paths, K, R]; NaN = did not occur, or no such run."""
        return self.runs_of(self.metric.name)

    @cached_property
    def formula(self) -> Formula | None:
        """The formula of the metric over sums; None = the metric adds up, or has no sums."""
        return self.experiment.formula(self.metric.name)

    def runs_of(self, metric: str) -> FloatArray:
        """Return the values of a metric in every run, as `runs`."""
        points, values = self.line.by_point(metric, self.parameter)
        known = np.isin(points, self.points)
        return values if known.all() else values[:, known]

    def repetitions_of(self, values: FloatArray) -> FloatArray:
        """Return the repetitions [n, K, R] of values [n, runs of `line`]; NaN = no such run."""
        of_run = self.line.settings([self.parameter])[:, 0]
        runs = [np.flatnonzero(of_run == point) for point in self.points]
        cube = np.full((len(values), len(runs), max(map(len, runs))), np.nan)
        for k, here in enumerate(runs):
            cube[:, k, : len(here)] = values[:, here]
        return cube

    def means_of(self, values: FloatArray) -> FloatArray:
        """Return means of the repetitions [n, K] of values [n, runs of `line`]; NaN = not known."""
        return centre(self.repetitions_of(values))

    @property
    def base(self) -> float:
        """The measured scale from which excess work is counted."""
        return float(self.points[self.base_point])

    def at_smallest(self) -> FloatArray:
        """Return the cost of each call path at the smallest scale, [call paths], SI base units.

        The cost is measured. It is predicted if `held` has a value that was not measured.
        """
        return self.at_point(0)

    def at_base(self) -> FloatArray:
        """Return the cost of each call path at `base`, as `at_smallest` does."""
        return self.at_point(self.base_point)

    def at_point(self, point: int) -> FloatArray:
        """Return the cost of each call path at a measured point, as `at_smallest` does."""
        if self.held == self.measured_at:
            return self.measured[:, point]
        return self.models.values(self.points[point : point + 1])[:, 0]

    def give_back(self) -> None:
        """Give the memory of a store back to the system, after a pass over its columns."""
        values = self.experiment.columns[self.metric.name]
        give_back_pages([self.measured, values.exclusive, values.imbalance])
        self.models.give_back()

    def statuses(self, rows: ArrayLike) -> list[str]:
        """Return the statuses of some call paths, in lower case."""
        asked = np.asarray(rows, np.intp)
        return [_STATUSES[number] for number in self._status_numbers(asked).tolist()]

    def status_counts(self, rows: ArrayLike | None = None) -> Counter[str]:
        """Return how many of some call paths have each status; None = of all."""
        asked = slice(None) if rows is None else np.asarray(rows, np.intp)
        # Statuses have the order of their first call path, as if they were counted one by one.
        numbers, first, count = np.unique(
            self._status_numbers(asked), return_index=True, return_counts=True
        )
        order = np.argsort(first)
        pairs = zip(numbers[order].tolist(), count[order].tolist(), strict=True)
        return Counter({_STATUSES[number]: many for number, many in pairs})

    def _status_numbers(self, asked: IntArray | slice) -> NDArray[np.integer]:
        """Return the places of statuses in `_STATUSES`."""
        modelled = ~np.isnan(self.models.coefficients[asked, 0])
        gone = np.isnan(self.measured[asked, -1]) & modelled
        return np.where(gone, len(FitStatus), self.models.status[asked])

    def status(self, row: int) -> str:
        """Return the status of one call path, in lower case."""
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

    At measured values of the other parameters, a call path may have a model of the runs there
    instead of the slice, if the slice deviates from these runs by more than that model. Otherwise,
    models of the nearest runs are among the alternatives.

    Parameters
    ----------
    parameter : parameter of the models; None = the main one
    held : values of the other parameters; by default their largest measured values
    """
    chosen = parameter or surface.parameters[0]
    names = [chosen, *(name for name in surface.parameters if name != chosen)]
    axes = [surface.parameters.index(name) for name in names]
    line = nearest_line(names, surface.models.points[:, axes], held or {})
    at = [line.held.get(name, 1.0) for name in surface.parameters]
    runs, values = experiment.by_setting(metric.name, surface.parameters)
    measured = ~np.isnan(values).all(axis=(0, 2))
    runs, values = runs[measured], values[:, measured]
    models, of_runs = modeling.slice_with_line_models(surface.models, axes[0], at, runs, values)
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
    """The model of one call path: a view of one row of `Fitted`.

    Attributes
    ----------
    fitted : the models of all call paths
    row : number of the call path
    """

    fitted: Fitted
    row: int

    def __repr__(self) -> str:
        held = "".join(f", {name}={value:g}" for name, value in self.fitted.held.items())
        return f"{self.fitted.metric.name}({self.fitted.parameter}{held}) = {self.formula()}"

    @property
    def callpath(self) -> str:
        """Names on the call path, as one text."""
        return self.fitted.experiment.tree.path(self.row)

    @property
    def status(self) -> str:
        """Status of the model, in lower case: ``"ok"``, ``"constant"``, ``"outside"``, ..."""
        return self.fitted.status(self.row)

    @property
    def growth(self) -> str:
        """Leading term without its coefficient, as text, such as ``"p log2(p)"``."""
        return self.fitted.models.growth(self.row).text(self.fitted.parameter)

    def formula(self, *, pretty: bool = False) -> str:
        """Return the model as a formula in the parameter, in SI base units.

        Parameters
        ----------
        pretty : use Unicode exponents instead of ``^``
        """
        return self.fitted.models.formula(self.row, self.fitted.parameter, pretty=pretty)

    def predict(
        self, points: ArrayLike | Mapping[str, ArrayLike] | None = None, **named: ArrayLike
    ) -> Prediction:
        """Return the predicted value with its prediction band at some targets.

        It is the prediction of this model alone. Rankings lower predictions that together exceed
        the run time.

        Parameters
        ----------
        points : targets [points] along the parameter of the models, or targets by parameter
        named : targets by parameter instead, such as ``p=[1024, 4096], n=1e6``; lengths broadcast

        Returns
        -------
        Prediction
            `value`, `low` and `high`, each [points], SI base units.

        Raises
        ------
        UsageError
            If there is no target, a target is not positive, or the models have no such parameter.
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
        self,
        points: ArrayLike | Mapping[str, ArrayLike] | None,
        named: Mapping[str, ArrayLike],
    ) -> dict[str, FloatArray]:
        """Return the targets of each parameter, broadcast to one length."""
        known, parameter = self.fitted.parameters, self.fitted.parameter
        hint = f"give targets, or values of {', '.join(known)} by name"
        if points is not None and named:
            raise UsageError("targets are given twice", hint=hint)
        asked = named if points is None else {parameter: points}
        if isinstance(points, Mapping):
            asked = points
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
