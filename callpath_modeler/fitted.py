"""The models of one metric of an experiment: columns of `modeling` with the names of `profile`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from callpath_modeler.diagnostics import Finding
from callpath_modeler.modeling import FitStatus, Models, Prediction
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.pattern import find_one
from callpath_modeler.profile.schema import Metric


@dataclass(frozen=True, eq=False)
class Fitted:
    """One model per call path.

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
    """

    experiment: Experiment
    metric: Metric
    parameter: str
    points: NDArray[np.float64]
    measured: NDArray[np.float64]
    models: Models
    settings: dict[str, str]
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        return (
            f"<Fitted {self.experiment.name}: {self.metric.name}, "
            f"{len(self.experiment.tree)} call paths over {self.parameter}>"
        )

    def __getitem__(self, callpath: str) -> CallPathModel:
        """Return the model of the one call path that a pattern names."""
        return CallPathModel(self, find_one(self.experiment.tree, callpath))

    @property
    def modelled(self) -> NDArray[np.bool_]:
        """Tell which call paths can be predicted, [call paths].

        They have a model, and still occur at the largest scale: of one that does not, the
        smaller scales say nothing about larger ones.
        """
        return ~np.isnan(self.models.coefficients[:, 0]) & ~np.isnan(self.measured[:, -1])

    def status(self, row: int) -> str:
        """Return the name of a call path's outcome, in lower case."""
        if np.isnan(self.measured[row, -1]) and not np.isnan(self.models.coefficients[row, 0]):
            return "gone"
        return FitStatus(int(self.models.status[row])).name.lower()


@dataclass(frozen=True, slots=True, eq=False)
class CallPathModel:
    """The model of one call path: a light view of one row.

    Attributes
    ----------
    fitted : the models it is one of
    row : which
    """

    fitted: Fitted
    row: int

    def __repr__(self) -> str:
        return f"{self.fitted.metric.name}({self.fitted.parameter}) = {self.formula()}"

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

    def predict(self, points: ArrayLike) -> Prediction:
        """Return value, low and high, each [points], SI base units."""
        wanted = np.atleast_1d(np.asarray(points, float))
        of_row = self.fitted.models.take([self.row]).predict(wanted)
        return Prediction(of_row.value[0], of_row.low[0], of_row.high[0])
