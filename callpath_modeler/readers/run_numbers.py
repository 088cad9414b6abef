"""Run numbers and identifiers among the numbers that come with runs.

Files are called ``profile1`` to ``profile15``, directories carry the number of a batch job, and
tables have a column of hashes. Such a number differs in every run. It is no parameter, because no
two runs share a value of it: a designed parameter recurs, or follows from the number of processes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.units import counted, parameter_value

_COUNTS = ("p", "threads", "nodes")
"""Parameters that are designed for certain."""
_DENSE = 1.5
"""Whole numbers that fill their range up to this factor number the runs; some may be missing."""
_ALIKE = 1.25
"""Numbers of four digits or more that differ by less than this factor are identifiers."""
_DESIGNED = 1.5
"""Sizes that somebody chose differ at least by this factor at each setting."""
_FEWEST = 3
"""Two runs do not show what a number is."""


def without_run_numbers(
    settled: list[dict[str, float]], origins: dict[str, str], given: Collection[str]
) -> list[Finding]:
    """Take run numbers out of the parameters of all runs.

    A number is one if it has another value in each of three runs or more, the counts of processes,
    threads or nodes vary without it, and one of these holds:

    - Runs of one setting differ in it, so it does not follow from the setting.
    - It counts the runs: whole numbers that fill their range.
    - It looks like identifiers: large whole numbers that lie close together.

    Parameters
    ----------
    settled : per run, the value of every parameter; changed in place
    origins : source of each parameter; changed in place
    given : parameters that the user named, which stay

    Returns
    -------
    One finding per number that was taken out, with the option that brings it back.

    Raises
    ------
    UsageError
        If a number in names may be a size just as well: it differs in every run, and runs of one
        setting differ much in it.
    """
    found: list[Finding] = []
    designed = [name for name in origins if name in _COUNTS]
    settings = [tuple(run[name] for name in designed) for run in settled]
    if len(settled) < _FEWEST or len({*settings}) < 2:
        return found
    for name in [name for name in origins if name not in designed and name not in given]:
        values = [run[name] for run in settled]
        if len({*values}) < len(values):
            continue
        groups: dict[tuple[float, ...], list[float]] = {}
        for setting, value in zip(settings, values, strict=True):
            groups.setdefault(setting, []).append(value)
        is_number = _counts_runs(values) or _are_identifiers(values)
        if not is_number and len(groups) == len(values):
            continue
        if not is_number and _may_be_designed(groups):
            if origins[name] == "profile":
                # Somebody gave the number a column or a field of its own.
                continue
            raise UsageError(
                f"{name} differs in every run, so it may be a parameter or the number of a run",
                hint=f"--param {name}={origins[name]} if it is a parameter, "
                f"--param {name}=none if it is not",
            )
        found.append(_taken_out(settled, origins, name, values))
    return found


def _taken_out(
    settled: list[dict[str, float]], origins: dict[str, str], name: str, values: Sequence[float]
) -> Finding:
    origin = origins.pop(name)
    for run in settled:
        del run[name]
    listed = " ".join(map(parameter_value, sorted(values)[:3]))
    return Finding(
        "CPM141",
        name,
        f"{listed} ... differs in each of {counted(len(values), 'run')}; "
        f"--param {name}={origin} makes it a parameter",
    )


def _counts_runs(values: Sequence[float]) -> bool:
    if any(value != int(value) for value in values):
        return False
    return max(values) - min(values) + 1 <= _DENSE * len(values)


def _are_identifiers(values: Sequence[float]) -> bool:
    least, most = min(values), max(values)
    return all(value == int(value) for value in values) and least >= 1e3 and most <= _ALIKE * least


def _may_be_designed(groups: Mapping[tuple[float, ...], Sequence[float]]) -> bool:
    several = [group for group in groups.values() if len(group) > 1]
    return all(min(group) > 0 and max(group) >= _DESIGNED * min(group) for group in several)
