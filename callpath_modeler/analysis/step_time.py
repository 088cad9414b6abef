"""Time of one step of a training run at a target, and samples per second.

Readers count the steps of a run and state their number in its metadata. The time of a step is the
run time, times the share of the call path of all steps, divided by this number. So both answers
agree: the steps and the rest of the program add up to the run time.

There are two levels of noise. Models see the mean step of each run, so their bands follow from the
scatter between runs. Steps scatter around the mean of their own run as well, and a run of many
steps knows no more about other runs than a run of few. The variance of one step of a new run is the
sum of both variances, whether steps are correlated or not, because the scatter in a run is taken
around its own mean. So only the band of one step has both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from callpath_modeler.modeling.distributions import student_quantile
from callpath_modeler.profile.schema import SPLITS, STEP, STEP_SCATTER, STEPS
from callpath_modeler.units import is_number

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.analysis.uncertain import Total
    from callpath_modeler.profile.experiment import Experiment

_ENOUGH = 20
"""Degrees of freedom from which on the scatter of steps is known well enough."""
_LONGEST, _MOST = 32, 1e9
"""Longest text and largest value of a number in the metadata of a run."""
_BATCH = frozenset(
    {"b", "bs", "batch", "batchsize", "batch size", "batch_size", "batch-size", "microbatch"}
)
"""Names of parameters that are the batch of each replica of the model."""
_GLOBAL_BATCH = frozenset({"gb", "gbs", "globalbatch", "global batch", "global_batch",
                           "global-batch"})  # fmt: skip
_ACCUMULATION = "accumulation"
"""Number of batches whose gradients a replica adds in each step."""
_ROUNDING = 1e-9
"""Largest relative difference of equal numbers."""


class StepTime(Struct, frozen=True):
    """Time of one step at a target.

    Attributes
    ----------
    row : call path of the steps
    steps : number of steps of each run
    value, low, high : mean step of a run in seconds, with the ends of the band; NaN = not known
    batch : samples of each replica of the model in a step, of all accumulated batches; NaN = not
        known
    processes : number of processes at the target; NaN = not known
    of_replica : number of processes that share one replica
    scatter : relative standard deviation of the steps of one run; NaN = not known
    one_low, one_high : ends of the band of a single step; NaN = not known
    """

    row: int
    steps: int
    value: float
    low: float
    high: float
    batch: float = float("nan")
    processes: float = float("nan")
    of_replica: float = 1.0
    scatter: float = float("nan")
    one_low: float = float("nan")
    one_high: float = float("nan")

    @property
    def samples_per_second(self) -> float:
        """Samples of all replicas in a second; NaN = not known."""
        replicas = self.processes / self.of_replica
        return self.batch * replicas / self.value if self.value > 0 else float("nan")

    @property
    def seconds_per_sample(self) -> float:
        """Time of all processes of a replica for each sample; NaN = not known."""
        return self.value * self.of_replica / self.batch if self.batch > 0 else float("nan")


def step_counts(experiment: Experiment) -> list[int]:
    """Return the different numbers of steps that runs state, ascending; 0 = none is stated."""
    texts = {run.metadata.get(STEPS, "") for run in experiment.runs}
    return sorted({int(text[:9]) if text.isdecimal() else 0 for text in texts})


def step_time(answer: Answer) -> StepTime | None:
    """Return the time of a step at the target of an answer about the run time.

    Returns
    -------
    StepTime or None
        None if the runs have no steps, if they have different numbers of steps, or if the metric is
        no run time.
    """
    experiment = answer.fitted.experiment
    tree = experiment.tree
    is_step = np.array([region.role == STEP for region in tree.regions], np.bool_)[tree.region]
    rows = np.flatnonzero(is_step)
    counts = step_counts(experiment)
    if not len(rows) or len(counts) != 1 or counts[0] == 0:
        return None
    if not answer.fitted.metric.can_be_run_time or np.isinf(answer.target):
        return None
    row, steps = int(rows[0]), counts[0]
    if (rows >= tree.end[row]).any():
        return None
    of_steps = answer.of_sum(np.arange(row, tree.end[row]))
    whole = answer.run_time.total if answer.run_time else answer.total
    share = float(of_steps.value[0]) / float(answer.sum_of_all.value[0])
    value, low, high = (float(end) * min(1.0, share) / steps for end in whole)
    if not value > 0:
        return None
    numbers = {each.name: each.values for each in experiment.numbers if is_number(each.values)}
    at = {name: float(text) for name, text in numbers.items()}
    at |= {**experiment.constants, **answer.fitted.at(answer.target)}
    at = {name.lower(): size for name, size in at.items()}
    processes = at.get("p", float("nan"))
    of_replica, batch = _of_replica(at), float("nan")
    unknown = {each.name.lower() for each in experiment.parameters} - at.keys()
    # These sizes depend on others, and are known in runs only.
    if unknown.isdisjoint(SPLITS) and processes >= of_replica:
        batch = _batch(experiment, at)
    scatter, dof = step_scatter(experiment, answer.fitted.parameter)
    one = band_of_one_step((value, low, high), scatter, dof, answer.fitted.models.confidence)
    return StepTime(
        row, steps, value, low, high, batch, processes, of_replica, scatter, *one
    )  # fmt: skip


def step_scatter(experiment: Experiment, parameter: str) -> tuple[float, int]:
    """Return the scatter of steps in a run, and its degrees of freedom; NaN = not known.

    It is pooled over runs, from the largest scale to smaller ones, until it is known well enough:
    noise may grow with the scale.

    Parameters
    ----------
    parameter : parameter whose largest values are nearest to targets
    """
    counts = [_number(run.metadata.get(STEPS, "")) for run in experiment.runs]
    scatters = [_number(run.metadata.get(STEP_SCATTER, "")) for run in experiment.runs]
    known = [k for k, each in enumerate(scatters) if each >= 0 and counts[k] > 1]
    if not known:
        return float("nan"), 0
    varies = any(each.name == parameter for each in experiment.parameters)
    at = experiment.settings([parameter])[:, 0] if varies else np.zeros(len(scatters))
    squares, dof, steps, last = 0.0, 0, 0, np.nan
    for k in sorted(known, key=lambda k: -at[k]):
        if dof >= _ENOUGH and at[k] != last:
            break
        last = at[k]
        number = int(counts[k])
        squares, steps, dof = squares + number * scatters[k] ** 2, steps + number, dof + number - 1
    return float(np.sqrt(squares / steps)), dof


def band_of_one_step(
    mean: Total, scatter: float, dof: int, confidence: float
) -> tuple[float, float]:
    """Return the ends of the band of a single step, from those of the mean step of a run.

    Squares of widths add up on a logarithmic scale, as the variances of independent errors.

    Parameters
    ----------
    mean : mean step with its band
    scatter, dof : as `step_scatter` returns them
    confidence : probability of the band
    """
    value, low, high = mean
    if not (dof > 0 and scatter >= 0 and 0 < low <= value <= high < np.inf):
        return float("nan"), float("nan")
    width = float(student_quantile(dof, (1 + confidence) / 2)) * np.sqrt(np.log1p(scatter**2))
    down, up = np.hypot(np.log(value / low), width), np.hypot(np.log(high / value), width)
    return float(value * np.exp(-down)), float(value * np.exp(up))


def _of_replica(at: Mapping[str, float]) -> float:
    """Return the number of processes that share a replica."""
    return float(np.prod([max(1.0, at.get(name, 1.0)) for name in SPLITS]))


def _batch(experiment: Experiment, at: Mapping[str, float]) -> float:
    """Return the samples of a replica in each step at the target; NaN = not known.

    They are not known if the parameters of one run state different numbers, or if a global batch
    grows with p in another way than p.
    """
    batches, shares = _batches_of(at)
    of_processes = []
    for run in experiment.runs:
        own = {**at, **{name.lower(): size for name, size in run.parameters.items()}}
        stated, of_each = _batches_of(own)
        if _differ([*stated, *(share * _of_replica(own) for share in of_each)]):
            return float("nan")
        of_processes += of_each
    varying = {each.name.lower() for each in experiment.parameters}
    if not batches and "p" in varying and not varying.isdisjoint(_GLOBAL_BATCH):
        # The models have one parameter, so the global batch at the target follows from the runs.
        shares = [] if _differ(of_processes) else of_processes
    known = [*batches, *(share * _of_replica(at) for share in shares)]
    return known[0] if known else float("nan")


def _batches_of(at: Mapping[str, float]) -> tuple[list[float], list[float]]:
    """Return the stated batches of a replica, and the stated global batches over p."""
    processes, parts = at.get("p", float("nan")), at.get(_ACCUMULATION, 1.0)
    of_replica = [value * parts for name, value in at.items() if name in _BATCH]
    return of_replica, [value / processes for name, value in at.items() if name in _GLOBAL_BATCH]


def _differ(values: Sequence[float]) -> bool:
    """Return whether numbers differ by more than rounding."""
    return bool(values) and bool(np.ptp(values) > _ROUNDING * max(values))


def _number(text: str) -> float:
    """Return a number of the metadata; NaN = it is none, or not plausible."""
    found = float(text) if len(text) < _LONGEST and is_number(text) else float("nan")
    return found if 0 <= found < _MOST else float("nan")
