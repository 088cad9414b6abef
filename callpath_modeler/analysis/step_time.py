"""Time of one step of a training run at a target, and samples per second.

Readers count the steps of a run and state their number in its metadata. The time of a step is the
run time, times the share of the call path of all steps, divided by this number. So both answers
agree: the steps and the rest of the program add up to the run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from callpath_modeler.profile.schema import STEP
from callpath_modeler.units import is_number

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.profile.experiment import Experiment

STEPS = "steps"
"""Key of the metadata with the number of steps of a run."""
_BATCH = frozenset(
    {"b", "bs", "batch", "batchsize", "batch size", "batch_size", "batch-size", "microbatch"}
)
"""Names of parameters that are the batch of each process."""


class StepTime(Struct, frozen=True):
    """Time of one step at a target.

    Attributes
    ----------
    row : call path of the steps
    steps : number of steps of each run
    value, low, high : seconds, with the ends of the band; NaN = not known
    batch : samples of each process in a step; NaN = not known
    processes : number of processes at the target; NaN = not known
    """

    row: int
    steps: int
    value: float
    low: float
    high: float
    batch: float = float("nan")
    processes: float = float("nan")

    @property
    def samples_per_second(self) -> float:
        """Samples of all processes in a second; NaN = not known."""
        return self.batch * self.processes / self.value if self.value > 0 else float("nan")

    @property
    def seconds_per_sample(self) -> float:
        """Time of a process for each sample; NaN = not known."""
        return self.value / self.batch if self.batch > 0 else float("nan")


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
    batch = next((size for name, size in at.items() if name.lower() in _BATCH), float("nan"))
    return StepTime(row, steps, value, low, high, batch, at.get("p", float("nan")))
