"""Number of processes of a run that does not state it."""

from __future__ import annotations

import numpy as np

from cpmodel_caliper.contents import Contents

_ROUNDING = 1e-6
"""Rounding of printed values: Caliper writes six decimal places."""
_WHOLE = 0.01


def processes_of_averages(contents: Contents, attribute: str) -> int:
    """Return the number of processes by the ratio of sums and averages of one quantity.

    Without MPI, every record has the same sum, average, minimum and maximum. With MPI, a region
    that all processes execute has the number of processes as its ratio.

    Parameters
    ----------
    attribute : sum over processes, e.g. ``sum#inclusive#sum#time.duration``

    Returns
    -------
    int
        0 if the file has no averages, or if they contradict each other.
    """
    rest = attribute.removeprefix("sum#")
    sums, averages = (_by_record(contents, f"{first}#{rest}") for first in ("sum", "avg"))
    both = sorted(sums.keys() & averages.keys())
    total = np.array([sums[record] for record in both])
    average = np.array([averages[record] for record in both])
    # Values with few digits do not determine the ratio.
    telling = average > _ROUNDING / _WHOLE
    if not telling.any():
        return 0
    quotient = total[telling] / average[telling]
    whole = np.rint(quotient)
    if (np.abs(quotient - whole) > _WHOLE * whole).any() or (whole < 1).any():
        return 0
    processes = int(whole.max())
    if processes == 1 and not _is_alone(contents, rest, sums):
        return 0
    return processes


def _is_alone(contents: Contents, rest: str, sums: dict[int, float]) -> bool:
    """Return whether minima and maxima are consistent with a single process."""
    for first in ("min", "max"):
        found = _by_record(contents, f"{first}#{rest}")
        for record in sums.keys() & found.keys():
            if abs(found[record] - sums[record]) > _ROUNDING + _WHOLE * abs(sums[record]):
                return False
    return True


def _by_record(contents: Contents, attribute: str) -> dict[int, float]:
    column = contents.columns.get(attribute)
    if column is None:
        return {}
    pairs = zip(column.records, column.values, strict=True)
    return {record: value for record, value in pairs if np.isfinite(value)}
