"""Files of speedscope, which py-spy and other profilers write, and cpmodel itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_tables.single_run import SingleRun, Stack, longest
from cpmodel_tables.text import COPY_IT_AGAIN, json_of, whole_text

CREATOR = "speedscope"

_SIGN = re.compile(r'"\$schema"\s*:\s*"https://www\.speedscope\.app/file-format-schema\.json"')
_TITLES = {
    "nanoseconds": "time [ns]",
    "microseconds": "time [us]",
    "milliseconds": "time [ms]",
    "seconds": "time [s]",
    "bytes": "bytes [B]",
    "none": "samples",
}
_BRACKETS = {"seconds": " [s]", "bytes": " [B]"}
_OURS = "cpmodel"
"""Exporter in files of this program, whose profiles are metrics instead of threads."""
_WRITE_FEWER = "write fewer levels of calls"

Values = dict[Stack, float]


def is_one(text: str) -> bool:
    """Return whether JSON is of speedscope, by its beginning or, in small files, anywhere."""
    return bool(_SIGN.search(text))


def read(path: Path) -> tuple[SingleRun, list[Finding]]:
    """Return the run. Profiles are threads, of which the longest one gives the times.

    Raises
    ------
    InputError
        If a profile is not as the schema says.
    """
    document = json_of(path, whole_text(path, is_json=True))
    held = document if isinstance(document, dict) else {}
    shared, profiles = held.get("shared"), held.get("profiles")
    frames = shared.get("frames") if isinstance(shared, dict) else None
    if not (isinstance(frames, list) and isinstance(profiles, list)):
        raise _damaged(path, "it has no frames or no profiles")
    names = [
        str(frame["name"]) if isinstance(frame, dict) and frame.get("name") else "(unnamed)"
        for frame in frames
    ]
    is_ours = held.get("exporter") == _OURS
    reading = _Reading(path, names)
    threads: dict[str, list[Values]] = {}
    for profile in profiles:
        if not isinstance(profile, dict):
            raise _damaged(path, "a profile is no object")
        title = _TITLES.get(str(profile.get("unit", "none")))
        if title is None:
            raise _damaged(path, f"the unit {str(profile.get('unit'))!r} is not known")
        if is_ours and profile.get("name"):
            title = f"{profile['name']}{_BRACKETS.get(str(profile.get('unit')), '')}"
        threads.setdefault(title, []).append(reading.values(profile))
    run = SingleRun(path)
    for title, each in threads.items():
        for stack, value in longest(each, is_time=title.startswith("time")).items():
            run.add(stack, title, value)
    return run, []


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path}: not a file of speedscope: {why}", hint=COPY_IT_AGAIN)


class _Reading:
    """Values of profiles by stack, with limits for all profiles of a file together."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self._path, self._names = path, names
        self._limits, self._taken = InputLimits.of(path), 0

    def values(self, profile: Mapping[str, object]) -> Values:
        """Return the exclusive values of a profile by stack."""
        is_evented = profile.get("type") == "evented"
        return self._evented(profile) if is_evented else self._sampled(profile)

    def _sampled(self, profile: Mapping[str, object]) -> Values:
        samples, weights = profile.get("samples"), profile.get("weights")
        if not isinstance(samples, list):
            raise _damaged(self._path, "a profile has no samples")
        if not isinstance(weights, list) or len(weights) != len(samples):
            weights = [1.0] * len(samples)
        values: Values = {}
        for sample, weight in zip(samples, weights, strict=True):
            if not isinstance(sample, list):
                raise _damaged(self._path, "a sample is no list")
            self._take(len(sample))
            stack = tuple(map(self._name, sample))
            values[stack] = values.get(stack, 0.0) + self._number(weight)
        values.pop((), None)
        return values

    def _evented(self, profile: Mapping[str, object]) -> Values:
        events = profile.get("events")
        if not isinstance(events, list):
            raise _damaged(self._path, "a profile has no events")
        values: Values = {}
        stack: list[str] = []
        last = 0.0
        for event in events:
            if not isinstance(event, dict):
                raise _damaged(self._path, "an event is no object")
            at = self._number(event.get("at"))
            if stack:
                self._take(len(stack))
                key = tuple(stack)
                values[key] = values.get(key, 0.0) + at - last
            last = at
            name = self._name(event.get("frame"))
            if event.get("type") == "O":
                stack.append(name)
            elif stack and stack[-1] == name:
                stack.pop()
            else:
                raise _damaged(self._path, f"{name!r} ends, but is not the last call")
        return values

    def _take(self, depth: int) -> None:
        self._taken += depth + 1
        self._limits.check(Work.NAMES, self._taken, _WRITE_FEWER)

    def _name(self, index: object) -> str:
        if isinstance(index, int) and 0 <= index < len(self._names):
            return self._names[index]
        raise _damaged(self._path, f"there is no frame {index!r}"[:200])

    def _number(self, value: object) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
            return float(value)
        raise _damaged(self._path, f"{value!r} is no number"[:200])
