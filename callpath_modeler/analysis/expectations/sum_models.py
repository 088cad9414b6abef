"""Models of sums over call paths: subtrees, the whole program, and functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.measured import sum_over, with_means_of_repetitions
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models
from callpath_modeler.profile.metric_values import inclusive_values

SumKey = int | bytes | None
"""Name of a sum: the row of a subtree, the rows of a function, or None for the whole program."""


@dataclass(eq=False)
class SumModels:
    """Models of sums over call paths.

    A sum has a model of its own. A sum of models would have the growth of its fastest call path,
    however small that is. Noise and priors are learnt from the call paths alone, so the model of a
    sum does not depend on other sums. `GrowthOfSubjects` compares it with its parts. All sums that
    were announced are modelled together, because learning takes as long as the models of ten sums.

    Attributes
    ----------
    fitted : models of the call paths
    """

    fitted: Fitted
    _sums: dict[SumKey, FloatArray] = field(default_factory=dict, repr=False)
    _places: dict[SumKey, int] = field(default_factory=dict, repr=False)
    _models: Models | None = field(default=None, repr=False)

    def announce(self, subjects: Subjects) -> Sequence[SumKey] | None:
        """Announce the sums of subjects, and return their keys; None = they are no sums."""
        if subjects.run_time is not None:
            return None
        if subjects.rows is None:
            if None not in self._sums:
                self._sums[None] = sum_over(self._values)
            return [None]
        if not subjects.inclusive:
            return None
        rows: list[int] = subjects.rows.tolist()
        for row in rows:
            if row not in self._sums:
                self._sums[row] = self._of_subtrees[row]
        return rows

    def of_subjects(self, subjects: Subjects) -> Models:
        """Return a model of each subject: of a call path, of a subtree, or of the program."""
        if subjects.run_time is not None:
            return subjects.run_time.models
        keys = self.announce(subjects)
        if keys is not None:
            return self.of(keys)
        assert subjects.rows is not None, "the program is a sum"
        return self.fitted.models.take(subjects.rows)

    def functions(self, functions: Iterable[IntArray]) -> list[SumKey]:
        """Announce the sums over several call paths each, and return their keys."""
        keys: list[SumKey] = []
        for rows in functions:
            keys.append(rows.tobytes())
            if keys[-1] not in self._sums:
                self._sums[keys[-1]] = sum_over(self._values[rows])
        return keys

    def of(self, keys: Sequence[SumKey]) -> Models:
        """Return the models of announced sums, one row for each key."""
        if any(key not in self._places for key in keys):
            self._models = self._made(np.array([*self._sums.values()]))
            self._places = {key: place for place, key in enumerate(self._sums)}
        assert self._models is not None, "there is a key"
        return self._models.take(np.array([self._places[key] for key in keys], np.intp))

    @cached_property
    def _runs(self) -> tuple[FloatArray, FloatArray]:
        """Measured settings [K, D] and values [call paths, K, R]."""
        fitted = self.fitted
        points, values = fitted.experiment.by_setting(fitted.metric.name, fitted.parameters)
        measured = ~np.isnan(values).all(axis=(0, 2))
        return points[measured], values[:, measured]

    @property
    def _values(self) -> FloatArray:
        return self._runs[1]

    @cached_property
    def _of_subtrees(self) -> FloatArray:
        values = with_means_of_repetitions(self._values)
        return inclusive_values(self.fitted.experiment.tree, values)

    def _made(self, sums: FloatArray) -> Models:
        """Return the models of sums [n, K, R]."""
        fitted, (points, values) = self.fitted, self._runs
        names = fitted.parameters
        models = fitted.models
        scales = points[:, 0] if len(names) == 1 else points
        method: modeling.Method = "classic" if models.method == "classic" else "mixture"
        space, aggregate = models.space, models.aggregate
        found = modeling.fit(
            scales,
            sums,
            method=method,
            space=space,
            aggregate=aggregate,
            confidence=models.confidence,
            priors=modeling.learn(scales, values, method=method, space=space, aggregate=aggregate),
        )
        if len(names) == 1:
            return found
        at = np.array([fitted.held.get(name, 1.0) for name in names])
        line = names.index(fitted.parameter), at, points
        beside = modeling.runs_along(fitted.whole, *line, values).values
        return modeling.slice_with_line_models(found, *line, sums, beside)[0]
