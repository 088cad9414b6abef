"""Predictions at a target in steps: first values, then bands, summed for the views."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.answer_inputs import AnswerInputs
from callpath_modeler.analysis.pair_forecast import PairForecast, ViewForecast, values_at
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.tui.state import PreparedForecast, State


def forecast_progressively(
    state: State,
    inputs: AnswerInputs,
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
    shown = state.forecast
    is_shown = shown.inputs is inputs and shown.target == target
    made = shown if is_shown else values_at(inputs, target, bands=False)
    if isinstance(made, Answer):
        _ = made.run_time  # it is cached from then on
    if not is_shown and is_wanted():
        yield state.prepare(state.kind, made)
    if inputs is state.forecast.inputs or isinstance(made, PairForecast):
        _prepare_all(state, made, is_wanted)
    trim_heap()
    complete = made.with_bands(is_wanted) if isinstance(made, Answer) and is_wanted() else None
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


def trim_heap() -> bool:
    """Return freed memory to the system; the result is whether the C library can do that.

    The GNU C library keeps freed arrays of up to 32 MB. With 10^6 call paths every temporary array
    is that small, so it would keep as much memory as is in use. Other C libraries are not touched.
    """
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # Windows does not accept None as a name
        return False
    malloc_trim(0)
    return True
