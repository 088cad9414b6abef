"""Steps of a training run: their names, windows, and the ones that are selected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, Int64Array
from callpath_modeler.diagnostics import Notices
from callpath_modeler.readers.base import StepRange
from callpath_modeler.units import factor_text, percent
from cpmodel_kineto.columns import Calls

_COUNTED = re.compile(
    r"(?P<stem>(?:.{0,200}[^A-Za-z])?(?:[A-Za-z]*step|iter(?:ation)?|epoch|batch))"
    r"[\s#:_=-]{0,3}(?P<number>\d{1,9})",
    re.IGNORECASE | re.DOTALL,
)
"""Range of a step with its number, such as ``ProfilerStep#12`` and ``iteration 3``."""


_SLOW = 1.5
"""Ratio to the median of the later steps from which on a first step is slow."""
_FEWEST = 3
"""Fewest later steps of a comparison."""


@lru_cache(maxsize=4096)
def numbered(name: str) -> tuple[str, int] | None:
    """Return name and number of a step; None = the name has no number of a step.

    >>> numbered("ProfilerStep#12"), numbered("train: iteration 3"), numbered("layer 3")
    (('ProfilerStep', 12), ('train: iteration', 3), None)
    """
    found = _COUNTED.fullmatch(name)
    return None if found is None else (found["stem"], int(found["number"]))


class Steps(Struct, frozen=True, eq=False):
    """The steps of one process, in order of time.

    Attributes
    ----------
    name : name of all steps without numbers; "" = there are no steps
    thread : number of the thread that runs the steps
    number : int64 [k] number of each step
    start, end : int64 [k] window of each step in ns; windows do not overlap
    """

    name: str
    thread: int
    number: Int64Array
    start: Int64Array
    end: Int64Array

    def __len__(self) -> int:
        return len(self.number)

    def within(self, time: Int64Array) -> BoolArray:
        """Return which times, [n], are in the window of a step."""
        if not len(self):
            return np.zeros(len(time), np.bool_)
        place = np.searchsorted(self.start, time, side="right") - 1
        inside: BoolArray = (place >= 0) & (time < self.end[place])
        return inside

    def take(self, chosen: BoolArray) -> Steps:
        """Return some of the steps, [k] = True."""
        kept = (column[chosen] for column in (self.number, self.start, self.end))
        return Steps(self.name, self.thread, *kept)


def steps_of(ranges: Calls, names: Sequence[str]) -> Steps:
    """Return the steps of a process from its annotated ranges.

    Of several kinds of numbered ranges, those of the profiler of PyTorch have priority, then the
    kind with the longest time.
    """
    kinds: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
    for name, thread, start, duration in zip(
        ranges.name.tolist(), ranges.thread.tolist(), ranges.start.tolist(),
        ranges.duration.tolist(), strict=True,
    ):  # fmt: skip
        step = numbered(names[name])
        if step is not None:
            kinds.setdefault((step[0], thread), []).append((start, start + duration, step[1]))
    if not kinds:
        nothing = np.empty(0, np.int64)
        return Steps("", -1, nothing, nothing, nothing)

    def priority(key: tuple[str, int]) -> tuple[bool, int]:
        return key[0] == "ProfilerStep", sum(end - start for start, end, _ in kinds[key])

    name, thread = max(kinds, key=priority)
    windows = np.array(sorted(kinds[name, thread]), np.int64)
    # A step of another loop inside a step does not count.
    outer = np.append(True, windows[1:, 0] >= np.maximum.accumulate(windows[:-1, 1]))
    start, end, number = windows[outer].T
    return Steps(name, thread, number, start, end)


def note_steps(notices: Notices, steps: Sequence[Steps], selected: StepRange | None) -> None:
    """Add findings about first steps that take longer than the others, and about selected steps.

    Parameters
    ----------
    notices : findings about the run
    steps : the steps of each process
    selected : the steps that the user selected; None = all
    """
    lengths = {len(each) for each in steps}
    if selected is not None:
        notices.note("CPM189", f"steps {selected}, {max(lengths)} in this run", max(lengths))
    if len(lengths) > 1 or not lengths or max(lengths) <= _FEWEST:
        return
    spent = np.max([each.end - each.start for each in steps], axis=0).astype(np.float64)
    slow = 0
    while len(spent) - slow > _FEWEST and spent[slow] > _SLOW * np.median(spent[slow + 1 :]):
        slow += 1
    if slow:
        number, others = steps[0].number, spent[slow:]
        ratio = factor_text(float(spent[0] / np.median(others)))
        names = ", ".join(map(str, number[:slow].tolist()))
        scatter = percent(float(np.std(others) / np.mean(others)))
        message = (
            f"{steps[0].name} {names} takes {ratio} times the median of the {len(others)} later "
            f"steps, which scatter by {scatter}; --steps {number[slow]}- leaves it out"
        )
        notices.note("CPM188", message, slow)
