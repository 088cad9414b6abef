"""What an expectation is about: call paths, by themselves or with all that they call, or all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from callpath_modeler import modeling
from callpath_modeler.analysis.excess import ideal, per_process, scaling_over
from callpath_modeler.analysis.expectations.expectation import Kind
from callpath_modeler.analysis.predict import Predicted, predict, predict_sum, squared_widths
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models
from callpath_modeler.profile.experiment import inclusive_values

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Predictions with bands, each of the same shape; NaN = no model."""

    value: Values
    low: Values
    high: Values

    def at(self, index: int) -> tuple[float, float, float]:
        """Return value, low and high of one."""
        return float(self.value[index]), float(self.low[index]), float(self.high[index])


@dataclass(frozen=True, eq=False)
class Subjects:
    """The subjects of one expectation in one metric.

    Attributes
    ----------
    fitted : the models
    rows : call paths, [n]; None = the whole program, which is one subject
    inclusive : with all that they call
    """

    fitted: Fitted
    rows: NDArray[np.intp] | None
    inclusive: bool = False

    def __len__(self) -> int:
        return 1 if self.rows is None else len(self.rows)

    def row(self, index: int) -> int | None:
        """Return the call path that one of them is; None = the whole program."""
        return None if self.rows is None else int(self.rows[index])

    def sums(self, exclusive: Values) -> Values:
        """Return what each subject has of a column [call paths], [subjects]."""
        if self.rows is None:
            return np.array([np.nansum(exclusive)])
        if self.inclusive:
            return inclusive_values(self.fitted.experiment.tree, exclusive)[self.rows]
        return exclusive[self.rows]

    def occurring(self) -> Subjects:
        """Return those that occur at the largest scale."""
        if self.rows is None:
            return self
        there = ~np.isnan(self.sums(self.fitted.measured[:, -1]))
        return replace(self, rows=self.rows[there])

    def unmodelled(self) -> Values:
        """Return which share of each, measured at the largest scale, has no model, [subjects]."""
        largest = self.fitted.measured[:, -1]
        whole = np.nan_to_num(self.sums(largest))
        part = np.nan_to_num(self.sums(np.where(self.fitted.modelled, np.nan, largest)))
        return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)

    def band(self, kind: Kind, target: float, confidence: float) -> Band:
        """Predict a number of each at a finite target, [subjects].

        Parameters
        ----------
        kind : which number; in the unit of the metric, or a fraction of the program
        confidence : of the band
        """
        fitted = _confident(self.fitted, confidence)
        if kind is Kind.VALUE and self.rows is not None and not self.inclusive:
            # The others' bands would cost as much as their number.
            part = fitted.models.take(self.rows).predict(np.array([target]))
            there = fitted.modelled[self.rows]
            columns = (part.value, part.low, part.high)
            return Band(*(np.where(there, column[:, 0], np.nan) for column in columns))
        own = predict(fitted, target)
        mine = _of(self, own)
        if kind is Kind.VALUE:
            return mine
        experiment, parameter = fitted.experiment, fitted.parameter
        base = float(fitted.points[0])
        before = np.where(fitted.modelled, fitted.at_smallest(), np.nan)
        # What the base would cost at the target, counted as values at the target are.
        one = per_process(experiment, parameter, np.ones(1), target)[0]
        spent = per_process(experiment, parameter, np.nan_to_num(self.sums(before)), base)
        spent = ideal(scaling_over(experiment, parameter), base, target, spent)
        if kind is Kind.LOSS:
            return Band(*(part * one - spent for part in (mine.value, mine.low, mine.high)))
        rest = _without(_of(replace(self, rows=None), own), mine)
        if kind is Kind.SHARE:
            return varied(lambda parts: parts[0] / (parts[0] + parts[1]), [mine, rest])
        spent = spent / one
        return varied(lambda parts: (parts[0] - spent) / (parts[0] + parts[1]), [mine, rest])

    def curve(self, row: int | None, points: Values, confidence: float) -> Band:
        """Predict one of them, None = the program, at many finite points, [points]."""
        fitted = _confident(self.fitted, confidence)
        if row is None:
            rows = np.arange(len(fitted.experiment.tree))
        else:
            end = int(fitted.experiment.tree.end[row]) if self.inclusive else row + 1
            rows = np.arange(row, end)
        return Band(*predict_sum(fitted, rows, points))

    def models(self) -> Models:
        """Return models of their own values, one per subject.

        Sums over call paths are modelled as sums: beside all call paths, whose noise and habits
        say what to expect. In a sum of models, the smallest of many call paths would say how fast
        it grows.
        """
        if self.rows is not None and not self.inclusive:
            return self.fitted.models.take(self.rows)
        return models_of_sums(self.fitted, self.sums)


def models_of_sums(fitted: Fitted, sums: Callable[[Values], Values]) -> Models:
    """Model sums over call paths, beside all call paths.

    Parameters
    ----------
    sums : returns the sums [n] of a column [call paths] of exclusive values

    Returns
    -------
    Models
        Of n rows.
    """
    names = (fitted.parameter,) if fitted.has_line else fitted.parameters
    runs = fitted.line if fitted.has_line else fitted.experiment
    points, values = runs.by_setting(fitted.metric.name, names)
    measured = ~np.isnan(values).all(axis=(0, 2))
    points, values = points[measured], values[:, measured]
    flat = values.reshape(len(values), -1)
    of_columns = np.array([sums(column) for column in flat.T]).T
    # The program has no value where nothing was measured.
    of_columns[:, np.isnan(flat).all(axis=0)] = np.nan
    both = np.concatenate([flat, of_columns]).reshape(-1, *values.shape[1:])
    of_all = modeling.fit(
        points[:, 0] if len(names) == 1 else points,
        both,
        method="classic" if fitted.models.method == "classic" else "mixture",
        space=fitted.models.space,
        aggregate=fitted.models.aggregate,
        confidence=fitted.models.confidence,
    )
    found = of_all.take(np.arange(len(values), len(both)))
    if len(names) == 1:
        return found
    at = [fitted.held.get(name, 1.0) for name in names]
    return modeling.along(found, names.index(fitted.parameter), at)


def _of(subjects: Subjects, own: Predicted) -> Band:
    """Return what subjects have of the predictions of all call paths."""
    value = subjects.sums(own.value)
    if subjects.rows is not None and not subjects.inclusive:
        return Band(value, own.low[subjects.rows], own.high[subjects.rows])
    widths = squared_widths(own.value, own.low, own.high)
    below, above = (subjects.sums(square) for square in widths)
    return Band(value, np.maximum(value - np.sqrt(below), 0.0), value + np.sqrt(above))


def varied(of: Callable[[Sequence[Values]], Values], parts: Sequence[Band]) -> Band:
    """Return a function of several predictions, with a band.

    One part at a time goes to the ends of its band; the squares of how far that moves the result
    add up, as those of independent errors do.

    Parameters
    ----------
    of : the function, of one array per part
    parts : arrays that broadcast against each other
    """
    centre = [part.value for part in parts]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.asarray(of(centre), float)
        below, above = np.zeros_like(value), np.zeros_like(value)
        for k, part in enumerate(parts):
            moved = [
                of([*centre[:k], end, *centre[k + 1 :]]) - value for end in (part.low, part.high)
            ]
            below += np.minimum(np.minimum(*moved), 0.0) ** 2
            above += np.maximum(np.maximum(*moved), 0.0) ** 2
    return Band(value, value - np.sqrt(below), value + np.sqrt(above))


def _without(whole: Band, part: Band) -> Band:
    """Return what is left of a sum without a part of it; squares of widths subtract."""
    value = np.maximum(whole.value - part.value, 0.0)
    below = (whole.value - whole.low) ** 2 - (part.value - part.low) ** 2
    above = (whole.high - whole.value) ** 2 - (part.high - part.value) ** 2
    low = np.maximum(value - np.sqrt(np.maximum(below, 0.0)), 0.0)
    return Band(value, low, value + np.sqrt(np.maximum(above, 0.0)))


def _confident(fitted: Fitted, confidence: float) -> Fitted:
    """Return the same models with bands of another confidence."""
    return replace(fitted, models=replace(fitted.models, confidence=confidence))
