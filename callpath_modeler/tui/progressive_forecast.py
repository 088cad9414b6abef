"""Predictions at a target in steps: first values, then bands, summed for the views."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_inputs import AnswerInputs
from callpath_modeler.analysis.pair_forecast import (
    PairForecast,
    PairInputs,
    ViewForecast,
    pair_forecast,
)
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.tui.heap import trim_heap
from callpath_modeler.tui.state import PreparedForecast, State


def forecast_progressively(
    state: State,
    inputs: AnswerInputs | PairInputs,
    target: float,
    is_wanted: Callable[[], bool],
) -> Iterator[PreparedForecast]:
    """Yield the values at a target, then the values with bands; runs in a thread.

    In between, it prepares the views that are not on the screen. Values of two experiments always
    have their intervals.

    Parameters
    ----------
    state : the state of the browser
    inputs : the models and their measured costs
    target : value of the parameter
    is_wanted : returns False when the result is no longer needed, which ends the work
    """
    made = _values(state, inputs, target)
    if isinstance(made, PairForecast):
        if is_wanted():
            yield state.prepare(state.kind, made)
        _prepare_all(state, made, is_wanted)
        trim_heap()
        return
    if made is not state.forecast and is_wanted():
        yield state.prepare(state.kind, made)
    if inputs is state.forecast.inputs:
        _prepare_all(state, made, is_wanted)
    trim_heap()
    complete = made.with_bands(is_wanted) if is_wanted() else None
    del made  # because it is as large as the new one
    if complete is not None and is_wanted():
        _ = complete.turning  # it is cached from then on
        # A key that shows another view must not wait for the sums of its bands.
        _prepare_all(state, complete, is_wanted)
        yield state.prepare(state.kind, complete)
    trim_heap()


def _prepare_all(state: State, made: ViewForecast, is_wanted: Callable[[], bool]) -> None:
    """Prepare all views for values that are on the screen, or soon will be."""
    for kind in ViewKind:
        if is_wanted():
            state.prepare(kind, made)


def _values(state: State, inputs: AnswerInputs | PairInputs, target: float) -> ViewForecast:
    shown = state.forecast
    if isinstance(inputs, PairInputs):
        return pair_forecast(inputs, target)
    if shown.inputs is inputs and shown.target == target:
        return shown
    made = answer_at(inputs, target, bands=False)
    _ = made.run_time  # it is cached from then on
    return made
