"""Bottlenecks of GPU programs and training runs at the largest measured scale.

There are four kinds: kernels that are shorter than their launches, communication that no
computation hides, data loading, and processes that compute longer than the others. Numbers are the
measured ones of a ranking, so they equal its columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.run_time import ImbalanceSources
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.modeling import centre
from callpath_modeler.profile.call_class import CallClass
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.schema import (
    GPU_BUSY,
    GPU_COMMUNICATION,
    GPU_IDLE,
    GPU_OVERLAPPED,
    STEP,
)
from callpath_modeler.units import percent, quantity, setting_text

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer

_WORTH_A_WORD = 0.05
"""Share of the run time from which on a bottleneck is reported."""
_IDLE = 0.2
"""Share of idle time of GPUs from which on launches may limit kernels."""
_LATE = 1.1
"""Imbalance from which on a process is a straggler."""
_MOST = 3
"""Largest number of findings of one kind."""
_LOADING = re.compile(
    r"\b(?:data|batch)[ _]?load(?:er|ing)?\b|DataLoader(?:Iter)?\b"
    r"|\A#*+ ?(?:data|load[ _](?:batch|data)|(?:next|get|fetch)[ _](?:batch|data)) ?#*+\Z",
    re.IGNORECASE,
)
"""Names of functions and annotated phases that load data."""
_STREAMS = "time on GPU streams"


def bottlenecks(answer: Answer) -> tuple[Finding, ...]:
    """Return the bottlenecks of a GPU program or training run; nothing for other programs.

    Parameters
    ----------
    answer : an answer about the run time
    """
    if not answer.fitted.metric.can_be_run_time:
        return ()
    known = _Measured(answer)
    if not (known.has(_STREAMS) or known.is_step.any()) or not known.whole > 0:
        return ()
    found = (*known.launches(), *known.communication(), *known.loading(), *known.stragglers())
    return tuple(Finding(code, "bottleneck", f"{text}; {known.at}") for code, text in found)


class _Measured:
    """Measured values at the largest scale.

    Attributes
    ----------
    whole : run time, or the sum of all call paths
    time : exclusive time of each call path
    is_step : whether a region is that of steps, [regions]
    at : the largest scale as text
    """

    def __init__(self, answer: Answer) -> None:
        self._answer, self._fitted = answer, answer.fitted
        self._tree = answer.tree
        fitted = self._fitted
        self.whole = float(answer.program_at_largest)
        self.time = np.nan_to_num(np.asarray(fitted.measured[:, -1], np.float64))
        self.at = setting_text(fitted.at(float(fitted.points[-1])))
        regions = self._tree.regions
        self.is_step = np.array([region.role == STEP for region in regions], np.bool_)
        self._classes = [region.call_class for region in regions]

    def has(self, metric: str) -> bool:
        """Return whether a metric was read."""
        return metric in self._fitted.experiment.columns

    def launches(self) -> Iterator[tuple[str, str]]:
        """Yield calls that take longer to launch kernels than the kernels take."""
        if not self.has(_STREAMS):
            return
        busy, idle = (float(self._of(name).sum()) for name in (GPU_BUSY, GPU_IDLE))
        share = idle / (busy + idle) if busy + idle > 0 else np.nan
        if share < _IDLE:
            return
        tree, kernels = self._tree, self._of(_STREAMS)
        kernels = np.where(self._are(CallClass.GPU_COMPUTATION), kernels, 0.0)
        upto = np.concatenate([[0.0], np.cumsum(kernels)])
        rows = np.flatnonzero(self._are(CallClass.GPU_LAUNCH))
        spent = upto[tree.end[rows]] - upto[rows]
        bound = rows[(self.time[rows] > spent) & (spent > 0)]
        total, of_kernels = (
            float(self.time[bound].sum()),
            float((upto[tree.end[bound]] - upto[bound]).sum()),
        )
        if total < _WORTH_A_WORD * self.whole:
            return
        worst = int(bound[np.argmax(self.time[bound])])
        below = np.arange(worst, tree.end[worst])
        kernel = int(below[np.argmax(kernels[below])])
        text = (
            f"launches take {self._part(total)}, and their kernels {quantity(of_kernels, 's')} of "
            f"the GPU; most for {self._name(kernel)} below {tree.path(worst)}"
        )
        if share > 0:
            text += f"; the GPU is idle for {percent(share)} of its time"
        yield "CPM190", text

    def communication(self) -> Iterator[tuple[str, str]]:
        """Yield the communication that no computation hides, on GPUs and on the host."""
        if self.has(GPU_COMMUNICATION):
            spent = float(self._of(GPU_COMMUNICATION).sum())
            exposed = spent - float(self._of(GPU_OVERLAPPED).sum())
            if exposed > _WORTH_A_WORD * self.whole:
                alone = percent(exposed / spent)
                text = f"communication of GPUs takes {self._part(spent)}, and {alone} of it "
                yield "CPM191", f"{text}overlaps no computation"
        collective = np.array([kind.is_collective for kind in self._classes], np.bool_)
        rows = np.flatnonzero(collective[self._tree.region] & (self.time > 0))
        total = float(self.time[rows].sum())
        if total > _WORTH_A_WORD * self.whole:
            worst = int(rows[np.argmax(self.time[rows])])
            text = f"the host spends {self._part(total)} in collective operations; most in "
            most = self._part(float(self.time[worst]))
            yield "CPM191", f"{text}{self._tree.path(worst)}, {most}"

    def loading(self) -> Iterator[tuple[str, str]]:
        """Yield the functions and phases that load data, with their callees."""
        tree = self._tree
        loads = np.array([bool(_LOADING.search(r.name[:300])) for r in tree.regions], np.bool_)
        upto = np.concatenate([[0.0], np.cumsum(self.time)])
        found, last = [], 0
        for row in np.flatnonzero(loads[tree.region]).tolist():
            # A function inside another one that loads data is a part of it.
            if row >= last:
                last = int(tree.end[row])
                found.append((float(upto[last] - upto[row]), row))
        total = sum(spent for spent, _ in found)
        if total > _WORTH_A_WORD * self.whole:
            _, worst = max(found)
            yield "CPM192", f"data loading takes {self._part(total)}; most in {tree.path(worst)}"

    def stragglers(self) -> Iterator[tuple[str, str]]:
        """Yield the computation in which single processes are slower than the mean."""
        sources = ImbalanceSources.of(self._fitted)
        if sources is None:
            return
        late = (sources.above > _WORTH_A_WORD * self.whole) & (sources.ratio > _LATE)
        rows = np.flatnonzero(late)
        for row in rows[np.argsort(-sources.above[rows], kind="stable")][:_MOST].tolist():
            text = f"the slowest process computes {sources.ratio[row]:.2f} times the mean in "
            more = self._part(float(sources.above[row]))
            yield "CPM193", f"{text}{self._tree.path(row)}, which is {more} more"

    def _of(self, metric: str) -> FloatArray:
        """Return the values of a metric, [call paths]; zeros = not measured."""
        if not self.has(metric):
            return np.zeros(len(self._tree))
        runs = self._fitted.runs_of(metric)
        return np.nan_to_num(centre(runs, self._fitted.models.aggregate)[:, -1])

    def _are(self, kind: CallClass) -> BoolArray:
        """Return which call paths have a class, [call paths]."""
        return np.array([each is kind for each in self._classes], np.bool_)[self._tree.region]

    def _part(self, spent: float) -> str:
        """Return a time with its share of the run time: ``12 ms (34 % of the run time)``."""
        return f"{quantity(spent, 's')} ({percent(spent / self.whole)} of the run time)"

    def _name(self, row: int) -> str:
        return short_name(self._tree.names(row)[-1])
