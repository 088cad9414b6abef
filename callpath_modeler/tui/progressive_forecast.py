"""Predictions at a target in steps: first values, then bands, summed for the views."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from callpath_modeler.analysis.forecast import Forecast, forecast
from callpath_modeler.analysis.forecast_inputs import ForecastInputs
from callpath_modeler.errors import CallpathModelerError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.tui.heap import trim_heap
from callpath_modeler.tui.state import PreparedForecast, State


def forecast_progressively(
    state: State, inputs: ForecastInputs, target: float, is_wanted: Callable[[], bool]
) -> Iterator[PreparedForecast]:
    """Yield the values at a target, then the values with bands; runs in a thread.

    In between, it prepares the views that are not on the screen.

    Parameters
    ----------
    state : the state of the browser
    inputs : the models and their measured costs
    target : value of the parameter
    is_wanted : returns False when the result is no longer needed, which ends the work
    """
    made = _values(state, inputs, target)
    if made is not state.forecast and is_wanted():
        yield state.prepare(state.kind, made)
    for kind in ViewKind:
        if is_wanted() and inputs is state.forecast.inputs:
            state.prepare(kind, made)
    trim_heap()
    complete = made.with_bands(is_wanted) if is_wanted() else None
    del made  # because it is as large as the new one
    if complete is not None and is_wanted():
        _ = complete.turning  # it is cached from then on
        yield state.prepare(state.kind, complete)
    trim_heap()


def of_metrics(
    names: Sequence[str],
    models_of: Callable[[str], Fitted],
    target: float,
    *,
    predicted: bool,
    bands: bool,
    is_zero: bool = False,
) -> tuple[Forecast | None, list[str]]:
    """Return predictions of the first metric that views can show, and why others cannot be shown.

    Parameters
    ----------
    names : names of metrics, in order of preference
    models_of : returns the models of a metric
    target : value of the parameter
    predicted : use predictions even where the target was measured
    bands : compute bands
    is_zero : accept a metric that is zero everywhere, because the present one is as well
    """
    skipped: list[str] = []
    zero: ForecastInputs | None = None
    for name in names:
        try:
            known = ForecastInputs(models_of(name), predicted=predicted)
            if has_values(known.fitted):
                return forecast(known, target, bands=bands), skipped
            skipped.append(f"{name} is zero")
            zero = zero or known
        except CallpathModelerError as error:
            skipped.append(error.message)
    return (forecast(zero, target, bands=bands), []) if zero and is_zero else (None, skipped)


def has_values(fitted: Fitted) -> bool:
    """Return whether any measured value is not zero."""
    return bool(np.nan_to_num(fitted.measured).any())


def _values(state: State, inputs: ForecastInputs, target: float) -> Forecast:
    shown = state.forecast
    if shown.inputs is inputs and shown.target == target:
        return shown
    return forecast(inputs, target, bands=False)
