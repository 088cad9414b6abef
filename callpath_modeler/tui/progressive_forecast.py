"""Predictions at a target as they become ready: first values, then bands, summed up for views."""

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
    """Yield what is to be shown at a target, as soon as it can; in a thread.

    Between the two, the views that nobody looks at are prepared.

    Parameters
    ----------
    is_wanted : asked again and again; when it is not, that is all
    """
    made = _values(state, inputs, target)
    if made is not state.forecast and is_wanted():
        yield state.prepare(state.kind, made)
    for kind in ViewKind:
        if is_wanted() and inputs is state.forecast.inputs:
            state.prepare(kind, made)
    trim_heap()
    complete = made.with_bands(is_wanted) if is_wanted() else None
    del made  # as large as the other
    if complete is not None and is_wanted():
        _ = complete.turning  # it is known from then on
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
    """Predict the first of some metrics that can be; say why those before it cannot.

    Parameters
    ----------
    is_zero : the metric that is shown is zero everywhere, so that another such one is as good
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
    """Tell whether anything but zero was measured."""
    return bool(np.nan_to_num(fitted.measured).any())


def _values(state: State, inputs: ForecastInputs, target: float) -> Forecast:
    shown = state.forecast
    if shown.inputs is inputs and shown.target == target:
        return shown
    return forecast(inputs, target, bands=False)
