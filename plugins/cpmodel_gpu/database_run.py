"""One run of Nsight Systems or rocprofv3, from the files of all of its processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePath
from typing import Protocol

from callpath_modeler.diagnostics import Notices
from callpath_modeler.errors import InputError, reading
from callpath_modeler.profile.schema import Metric
from callpath_modeler.readers.base import StepRange
from callpath_modeler.support.input_limits import InputLimits
from callpath_modeler.units import counted
from cpmodel_gpu.paths import Paths
from cpmodel_gpu.profile import GpuProfile, ProcessValues
from cpmodel_gpu.steps import Steps, note_steps, step_metadata
from cpmodel_gpu.timeline import Timeline

_MESSAGES: Mapping[str, tuple[Metric, float]] = {
    "bytes_sent": (Metric("bytes_sent", "B", "Bytes sent in messages and collectives"), 1.0),
    "bytes_received": (
        Metric("bytes_received", "B", "Bytes received in messages and collectives"),
        1.0,
    ),
}


class EventFile(Protocol):
    """A file that was read: its events, their steps, and what it states about its processes."""

    timeline: Timeline
    steps: dict[int, Steps]
    ranks: dict[int, int]
    programs: dict[int, str]
    creator: str
    left_out: int
    wrong: int


class EventProfile(GpuProfile):
    """One run of Nsight Systems or rocprofv3, which may have steps.

    Attributes
    ----------
    select : function that reads the same files with some steps
    """

    select: Callable[[StepRange], EventProfile]

    def with_steps(self, steps: StepRange) -> EventProfile:
        """Return the same profile with the selected steps only."""
        return self.select(steps)


def database_run(
    path: Path,
    files: Mapping[int, Path],
    read: Callable[[Path, Paths, StepRange | None], EventFile],
    steps: StepRange | None = None,
) -> EventProfile:
    """Return the profile of a run.

    Parameters
    ----------
    path : file or directory, for messages
    files : database of each rank; negative ranks are not known
    read : function that reads the selected steps of a file
    steps : the selected steps; None = all events

    Raises
    ------
    InputError
        If a file is damaged, or has no events.
    """
    paths, notices = Paths(), Notices(str(path))
    processes: list[ProcessValues] = []
    of_files: list[int] = []
    found_steps: list[Steps] = []
    program = creator = ""
    size = invalid = crossing = unlaunched = left_out = wrong = 0
    for rank, file in files.items():
        found = read(file, paths, steps)
        found_steps += found.steps.values()
        with reading(file, "copy the file again"):
            size += file.stat().st_size
        values = found.timeline.values()
        for number, process in values.items():
            # The name of a file tells the rank only if the file has one process.
            of_file = rank if len(values) == 1 else -1
            process.rank = found.ranks.get(number, of_file)
            of_files.append(of_file)
            program = program or PurePath(found.programs.get(number, "")).name
        processes += values.values()
        creator = found.creator
        invalid += found.timeline.invalid
        crossing += found.timeline.crossing
        unlaunched += found.timeline.unlaunched
        left_out += found.left_out
        wrong += found.wrong
    if not processes:
        raise InputError(
            f"{path}: no process has a call or a GPU activity",
            hint="record calls of CUDA or HIP and the activities of the GPU",
        )
    known = [process.rank for process in processes if process.rank >= 0]
    if len(set(known)) < len(known):
        # Environments state the rank of a launcher, or the files are of several runs.
        for process, of_file in zip(processes, of_files, strict=True):
            process.rank = of_file
    _note_events(notices, invalid, crossing, unlaunched, left_out, wrong)
    missing = _missing_ranks(files)
    if missing:
        total = max(files) + 1
        message = f"{missing} of {total} ranks have no file"
        notices.note("CPM132", message, missing)
    metadata = {"creator": creator, "program": "" if program == "process" else program}
    if found_steps:
        note_steps(notices, found_steps, steps)
        metadata |= step_metadata(found_steps)
    extra = {
        name: each
        for name, each in _MESSAGES.items()
        if any(name in thread for process in processes for thread in process.threads)
    }
    profile = EventProfile(
        paths,
        processes,
        notices,
        InputLimits.of(path, size),
        extra=extra,
        metadata={key: value for key, value in metadata.items() if value},
    )
    profile.select = partial(database_run, path, files, read)
    return profile


def _missing_ranks(files: Mapping[int, Path]) -> int:
    """Return the number of ranks up to the last one that have no file."""
    return max(0, max(files) + 1 - len(files)) if len(files) > 1 else 0


def _note_events(
    notices: Notices, invalid: int, crossing: int, unlaunched: int, left_out: int, wrong: int
) -> None:
    """Add findings about events that have no place in a call tree."""
    texts = {
        "invalid": (invalid, "without a valid start and end, left out"),
        "crossing": (crossing, "whose interval crosses the one of the caller"),
        "left_out": (left_out, "between any two moments, which is no call, left out"),
        "wrong": (wrong, "with a text in place of a number"),
        "unlaunched": (unlaunched, "of a GPU below (launch not recorded)"),
    }
    for about, (count, text) in texts.items():
        if count:
            notices.note("CPM186", f"{counted(count, 'event')} {text}", count, about=about)
