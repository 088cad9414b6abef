"""Steps of a run, such as those of training: names, windows, scatter, and which are selected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, Int64Array
from callpath_modeler.diagnostics import Notices
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import STEP, STEP_SCATTER, STEPS, Region
from callpath_modeler.readers.base import StepRange
from callpath_modeler.units import factor_text, percent

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


class NumberedRange(Struct, frozen=True):
    """A range that may be a step.

    Attributes
    ----------
    name, number : as `numbered` returns them
    process, thread : numbers of its process and of its thread
    start, end : its window, in ns
    """

    name: str
    number: int
    process: int
    thread: int
    start: int
    end: int


def numbered_ranges(
    process: Int64Array, thread: Int64Array, start: Int64Array, end: Int64Array,
    names: Iterable[str],
) -> Iterator[NumberedRange]:  # fmt: skip
    """Yield the ranges, [n] each, that have the number of a step in their names."""
    columns = (column.tolist() for column in (process, thread, start, end))
    for name, own, of_thread, first, last in zip(names, *columns, strict=True):
        step = numbered(name) if first <= last else None
        if step is not None:
            yield NumberedRange(*step, own, of_thread, first, last)


def range_region(name: str, paradigm: str = "user") -> Region:
    """Return the region of a range that the program marks: of all steps if it is a step."""
    step = numbered(name)
    return Region(name, paradigm=paradigm) if step is None else step_region(step[0])


def step_region(name: str) -> Region:
    """Return the region of all steps of a name."""
    return Region(name, paradigm="user", role=STEP)


def steps_of(ranges: Iterable[NumberedRange]) -> Steps:
    """Return the steps of a process from its annotated ranges.

    Of several kinds of numbered ranges, those of the profiler of PyTorch have priority, then the
    kind with the longest time.
    """
    kinds: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
    for each in ranges:
        windows = kinds.setdefault((each.name, each.thread), [])
        windows.append((each.start, each.end, each.number))
    if not kinds:
        nothing = np.empty(0, np.int64)
        return Steps("", -1, nothing, nothing, nothing)

    def priority(key: tuple[str, int]) -> tuple[bool, int]:
        return key[0] == "ProfilerStep", sum(end - start for start, end, _ in kinds[key])

    name, thread = max(kinds, key=priority)
    start, end, number = np.array(_one_after_another(kinds[name, thread]), np.int64).T
    return Steps(name, thread, number, start, end)


def _one_after_another(windows: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return start, end and number of the steps that are not inside of others, by time.

    A step of another loop inside a step does not count. Rounded times may overlap: then a step ends
    where the next one begins.
    """
    found: list[tuple[int, int, int]] = []
    for start, end, number in sorted(windows, key=lambda each: (each[0], -each[1])):
        if found and start < found[-1][1]:
            first, last, of_last = found[-1]
            if end <= last or 2 * (last - start) > end - start:
                continue
            found[-1] = first, start, of_last
        found.append((start, end, number))
    return found


def steps_of_file(
    path: Path, ranges: Iterable[NumberedRange], selected: StepRange | None
) -> dict[int, Steps]:
    """Return the steps of each process of a file that has some, of those that are selected.

    Raises
    ------
    InputError
        If steps are selected, and the file has none of them.
    """
    of_process: dict[int, list[NumberedRange]] = {}
    for each in ranges:
        of_process.setdefault(each.process, []).append(each)
    steps = {process: steps_of(own) for process, own in of_process.items()}
    if selected is None:
        return steps
    chosen = {
        process: found
        for process, own in steps.items()
        if len(found := own.take(selected.selects(own.number)))
    }
    if not chosen:
        raise no_selected_step(path, list(steps.values()))
    return chosen


def no_selected_step(path: Path, steps: Sequence[Steps]) -> InputError:
    """Return the error about a file without a step that is selected."""
    numbers = [number for each in steps for number in each.number.tolist()]
    hint = "omit --steps; the trace has no steps"
    if numbers:
        hint = f"the trace has steps {min(numbers)} to {max(numbers)}"
    return InputError(f"{path}: has no selected step", hint=hint)


def slowest(steps: Sequence[Steps]) -> FloatArray:
    """Return the time of each step on the process that takes longest, [k] in ns."""
    spent: FloatArray = np.max([each.end - each.start for each in steps], axis=0).astype(float)
    return spent


def step_metadata(steps: Sequence[Steps]) -> dict[str, str]:
    """Return what a run states of its steps; nothing if processes have different numbers of them.

    The scatter is the standard deviation of the steps of the run around their own mean, relative to
    it. Steps of a run may be correlated, and what they have in common differs between runs. So the
    scatter between runs is no part of it, and it is no part of that of runs.
    """
    if len({len(each) for each in steps}) != 1 or not steps[0].name:
        return {}
    found, spent = {STEPS: str(len(steps[0]))}, slowest(steps)
    if len(spent) > 1 and spent.mean() > 0:
        found[STEP_SCATTER] = f"{float(np.std(spent) / np.mean(spent)):.6g}"
    return found


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
    spent = slowest(steps)
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
