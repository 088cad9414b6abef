"""Keys that change the values on the screen: target, scales, metric, another experiment."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.analysis.pair_forecast import (
    PairForecast,
    PairInputs,
    ViewForecast,
    values_at,
)
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.report.headline import at_text
from callpath_modeler.report.losses_text import wanted
from callpath_modeler.tui.choices import MetricList, MetricTotal, metric_total
from callpath_modeler.tui.frame import BrowserFrame
from callpath_modeler.tui.services import BrowserServices
from callpath_modeler.tui.session import Session
from callpath_modeler.tui.state import PreparedForecast, State
from callpath_modeler.tui.widgets import IsWanted

_Made = TypeVar("_Made")

_PAIRS_AT_ONCE = 300
"""Number of call paths up to which two experiments are compared before a key is answered."""


class ValueKeys(BrowserFrame):
    """The screen, with the keys that change its values.

    Parameters
    ----------
    session : the session at the start
    given : models, targets, files and commands of the experiment
    """

    def __init__(self, session: Session, given: BrowserServices) -> None:
        super().__init__(session, given)
        self._pair = given.pair
        self._target_of_all = self.target
        self._totals: dict[str, MetricTotal | str] = {}
        self._totals_at: dict[str, float] = {}
        self._single = session
        self._other = ""

    def on_mount(self) -> None:
        """Start the threads, and compute bands that are still missing."""
        self._background.start()
        self.table.focus()
        self.set_class(self._given.style.ascii_only, "-ascii")
        self._attempt(self._bookmarks.read, drawn=False)
        self._mark_lines()
        self._complete(self.session.forecast)
        if self._given.other:
            self._compare(self._given.other)
            self._draw()

    def on_unmount(self) -> None:
        """End the threads."""
        self._background.end()

    def action_target(self, factor: float) -> None:
        """Multiply the target."""
        if not self.session.forecast.has_models:
            self.say(self._wanted)
        elif np.isfinite(self.target):
            self._attempt(lambda: self._retarget(f"{self.target * factor:.17g}"))
        else:
            self.say("the target is infinity: press t to type another")

    def _retarget(self, text: str) -> None:
        self.target = self._given.target_of(text, self.session.forecast.fitted)
        self._message = ""
        self._foresee(self.session.forecast.inputs, self.target)

    @property
    def _wanted(self) -> str:
        """What would allow predictions."""
        shown = self.session.forecast
        if isinstance(shown, PairForecast):
            lacking = [
                name
                for name, side in zip(("base", "new"), shown.inputs.pair.sides, strict=True)
                if side.fitted is None
            ]
            return f"too few scales for models: {', '.join(lacking)}"
        return wanted(shown.fitted, "press b")

    def action_basis(self) -> None:
        """Switch between measured and predicted values at a target that was measured."""
        known, other = self.session.forecast.inputs, self._other_basis
        if not self.session.forecast.has_models:
            self.say(self._wanted)
            return
        if not other:
            at = at_text(known.fitted, self.target)
            self.say(f"{at} was not run, so values are predicted")
            return
        self._predicted = not self._predicted
        self._message = f"values are {other}; p shows {self._other_basis} values"
        self._foresee(known, self.target)

    def _foresee(self, inputs: AnswerInputs, target: float) -> None:
        """Predict at a target, at once or in a thread while the screen stays."""
        inputs = inputs.with_basis(predicted=self._predicted)
        is_small = self._is_small
        if isinstance(inputs, PairInputs):
            is_small = len(inputs.pair.tree) <= _PAIRS_AT_ONCE
        if is_small:
            self._show_forecast(PreparedForecast(values_at(inputs, target)))
            return

        session = self.session

        def show(ready: PreparedForecast) -> None:
            if self.session is session:
                self._show_forecast(ready)

        def work(is_wanted: IsWanted) -> None:
            for ready in forecast_progressively(session, inputs, target, is_wanted):
                self._background.show(show, ready)
                del ready  # bands take long, and the previous predictions need much memory

        self._background.do(work, "target")

    def _show_forecast(self, ready: PreparedForecast) -> None:
        self.session.retarget(ready)
        self._renew(anew=False)

    def _complete(self, made: ViewForecast) -> None:
        """Compute bands that are still missing."""
        if not made.has_bands:
            self._foresee(made.inputs, made.target)

    def _inputs_of(self, metric: str, pair: str) -> AnswerInputs:
        """Return the values of a metric: of one experiment, or of two if these are compared."""
        fitted = self._given.models_of(metric, pair)
        if self._other:
            return self._given.compare(self._other, fitted, self._predicted)
        return AnswerInputs(fitted, predicted=self._predicted and not pair)

    def _load(self, load: Callable[[], _Made], show: Callable[[_Made], None]) -> None:
        """Load values in a thread and show them; an error leaves everything unchanged.

        Values are not shown if the number of experiments on the screen changed meanwhile.
        """
        session = self.session

        def show_if_wanted(made: _Made) -> None:
            if self.session is session:
                show(made)

        def work(_: IsWanted) -> None:
            self._background.show(show_if_wanted, load())

        self._background.do(work, "target")

    def _compare_scales(self, text: str) -> None:
        """Compare pairs of scales, ``8,64 8,128``, without models, or with them at a last number.

        An empty text shows all scales again.
        """
        text = ",".join(part.strip() for part in text.split(","))
        if not text and not self._pair:
            self._message = ""
            return
        name = self.session.forecast.fitted.metric.name
        self._message = "working …"

        def load() -> ViewForecast:
            known = self._inputs_of(name, text)
            ends, typed = known.fitted.points, text.split()[-1:]
            target = float(ends[-1]) if known.fitted.is_measured_only else self._target_of_all
            if typed and "," not in typed[0]:
                target = self._given.target_of(typed[0], known.fitted)
            return values_at(known, target, bands=self._is_small)

        def show(made: ViewForecast) -> None:
            if not self._pair and not self.session.forecast.fitted.is_measured_only:
                self._target_of_all = self.target
            self._pair = text
            self.session.sort = made.usual_sort
            self._show_values(made, "")

        self._load(load, show)

    def _show_values(self, made: ViewForecast, message: str) -> None:
        """Show other values in the session."""
        self.target, self._message = made.target, message
        self.session.retarget(PreparedForecast(made))
        self._mark_lines()
        self._renew()
        self._complete(made)

    # Another experiment

    def _compare(self, other: str) -> None:
        """Show an earlier experiment beside this one; an empty text shows this one alone again."""
        if not other:
            if self._other:
                self._other = ""
                self._show_session(self._single)
            return
        shown, predicted, target = self.session.forecast.fitted, self._predicted, self.target
        self._message = f"{other}: comparing …"

        def load() -> Session:
            made = values_at(self._given.compare(other, shown, predicted), target)
            shown_before = self.session.shortly()
            request = replace(shown_before, keep="", reverse=False, sort=made.usual_sort)
            session = Session(made, request)
            for kind in ViewKind:
                session.prepare(kind, made)
            return session

        def show(session: Session) -> None:
            self._other = other
            self._show_session(session)

        self._load(load, show)

    def _show_session(self, session: Session) -> None:
        self.session = self.table.session = session
        self.target = session.forecast.target
        self._predicted = session.forecast.inputs.predicted
        self._message = ""
        self._mark_lines()
        self._renew()
        self._complete(session.forecast)

    def action_metric(self) -> None:
        """Show a list of the metrics, whose totals come one by one."""
        fitted = self.session.forecast.fitted
        shown = fitted.metric.name
        names = list(fitted.experiment.readable)
        if names in ([], [shown]):
            self.say(f"{shown} is the only metric")
            return
        at = dict(fitted.measured_at)
        if not fitted.has_unknown_scale:
            at[fitted.parameter] = float(fitted.points[-1])
        how = fitted.models.aggregate
        listed = MetricList(names, shown, at, self._given.style)
        if self._totals_at != at:
            self._totals, self._totals_at = {}, at
        for name in names:
            if name in self._totals:
                listed.add(name, self._totals[name])

        def work(is_wanted: IsWanted) -> None:
            for name in names:
                if not is_wanted() or not listed.is_attached:
                    return
                if name not in self._totals:
                    found = metric_total(self._given.runs_of, name, at, how)
                    self._totals[name] = found
                    self._background.show(listed.add, name, found)

        self.push_screen(listed, self._choose_metric)
        self._background.do(work, "answer")

    def _choose_metric(self, name: str | None) -> None:
        self._come_back()
        if not name or name == self.session.forecast.fitted.metric.name:
            return
        self.say(f"{name}: working …")

        def load() -> ViewForecast:
            inputs = self._inputs_of(name, self._pair)
            return values_at(inputs, self.target, bands=self._is_small)

        self._load(load, lambda made: self._show_values(made, name))


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
