"""Measured times of collectives in a replay, and the time that violated guidelines cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from callpath_modeler.printable import printable
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.units import counted, percent
from cpmodel_commspec.replay.loggp import CallKey, Measured, Replayed, Stretched

if TYPE_CHECKING:
    from cpmodel_guidelines.tuning.call_times import CallTime, CallTimes

_MOST_LINES = 5
_UPPER = 2
"""Index of the upper end in the seconds of a `CallTime`."""


@dataclass(frozen=True, slots=True)
class Modelled:
    """Calls that have their modelled time.

    Attributes
    ----------
    function : its name; "" = calls of functions that are not measured in general
    processes : members of the communicator
    reason : why they have no measured time
    calls : number of calls
    """

    function: str
    processes: int
    reason: str
    calls: int


@dataclass(frozen=True, slots=True)
class Saving:
    """The run time that violated guidelines cost.

    Attributes
    ----------
    function : the function that another way replaces; "" = all such functions together
    guidelines : the violated guidelines
    calls : number of replaced calls
    seconds, low, high : difference of the run times, with its range
    """

    function: str
    guidelines: tuple[str, ...]
    calls: int
    seconds: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeasuredCalls:
    """The part of measured times in a replay, with the names of fields in JSON.

    Attributes
    ----------
    sources : files and folders of the campaign
    mpiruns, power : of the campaign, see `CallTimes`
    low, high : range of the run time
    seconds_without : run time with modelled times
    calls, measured_calls : number of calls of collectives, and of those with measured times
    judged_calls : number of calls of which a guideline was judged
    other_roots : number of measured calls with another root than 0
    seconds, measured_seconds : time of these calls from begin to end, means of all ranks
    modelled : the other calls, the most frequent first
    savings : by function, the largest first; before them of all functions if there are several
    """

    sources: tuple[str, ...]
    mpiruns: int
    power: str
    low: float
    high: float
    seconds_without: float
    calls: int
    measured_calls: int
    judged_calls: int
    other_roots: int
    seconds: float
    measured_seconds: float
    modelled: tuple[Modelled, ...]
    savings: tuple[Saving, ...]


def measured_times(
    at: Callable[[str, int, int], CallTime | str], end: int = 1, instead: Sequence[str] = ()
) -> Measured:
    """Return the times of a replay: one end of all intervals, and the faster way of functions.

    Benchmarks do not tell which members wait for which. At the upper end, all wait for all.

    Parameters
    ----------
    at : the measured times, as of `CallTimes.at`
    end : 0 = lower end, 1 = value, 2 = upper end
    instead : functions that are replaced where another way is faster
    """

    def measured(name: str, n: int, size: int) -> Stretched | None:
        found = at(name, n, size)
        if isinstance(found, str):
            return None
        if name in instead:
            found = found.instead or found
        return Stretched(() if end == _UPPER else found.parts, found.seconds[end])

    return measured


def measured_calls(
    times: CallTimes,
    sources: Sequence[str],
    replayed: Callable[[Measured], Replayed],
    without: float,
) -> tuple[Replayed, MeasuredCalls]:
    """Return the replay with measured times, and their part in it.

    Parameters
    ----------
    times : of the calls
    sources : where they come from
    replayed : replays the program
    without : run time of a replay with modelled times
    """
    at = cache(times.at)
    low, base, high = (replayed(measured_times(at, end)) for end in range(3))
    ends, spent = [one.seconds for one in (low, base, high)], base.collectives
    known: dict[CallKey, CallTime] = {}
    others: Counter[tuple[str, int, str]] = Counter()
    for key, here in spent.items():
        name, n, size = key
        found = at(*key) if name and size >= 0 else "different sizes on its members"
        if not name:
            found = "not blocking, or makes or frees a communicator"
        if isinstance(found, str):
            others[name, n, found] += here.calls
        else:
            known[key] = found
    ways = {key: one.instead for key, one in known.items() if one.instead is not None}

    def saving(functions: Sequence[str]) -> Saving:
        faster = [replayed(measured_times(at, end, functions)).seconds for end in range(3)]
        saved = [before - after for before, after in zip(ends, faster, strict=True)]
        here = [key for key in ways if key[0] in functions]
        return Saving(
            functions[0] if len(functions) == 1 else "",
            tuple(sorted({ways[key].guideline for key in here})),
            sum(spent[key].calls for key in here),
            saved[1],
            min(saved),
            max(saved),
        )

    names = sorted({name for name, _, _ in ways})
    savings = sorted((saving([name]) for name in names), key=lambda one: -one.seconds)
    measured = [spent[key] for key in known]
    return base, MeasuredCalls(
        tuple(map(printable, sources)),
        times.mpiruns,
        times.power,
        min(ends),
        max(ends),
        without,
        sum(one.calls for one in spent.values()),
        sum(one.calls for one in measured),
        sum(spent[key].calls for key, one in known.items() if one.is_judged),
        sum(one.other_roots for one in measured),
        sum(one.seconds for one in spent.values()) / len(base.ends),
        sum(one.seconds for one in measured) / len(base.ends),
        tuple(Modelled(*key, calls) for key, calls in others.most_common()),
        (*([saving(names)] if len(names) > 1 else []), *savings),
    )


def measured_text(
    found: MeasuredCalls, seconds: float, platform: str, style: TextStyle
) -> Iterator[str]:
    """Yield the origin of times, the calls without measured times, and the savings.

    Parameters
    ----------
    seconds : the run time
    platform : where the times of messages come from
    """
    yield (
        f"times of collectives are measured for {found.measured_calls} of "
        f"{counted(found.calls, 'call')}: "
        f"{percent(found.measured_seconds / (found.seconds or 1), 1)} of the time in collectives, "
        f"{percent(found.measured_seconds / (seconds or 1), 1)} of the run time; with modelled "
        f"times, the run takes {style.amount(found.seconds_without, 's')}"
    )
    for one in found.modelled[:_MOST_LINES]:
        calls = f"{counted(one.calls, 'call')} of {one.function or 'collectives'}"
        yield f"modelled: {calls} at p = {one.processes}: {one.reason}"
    if rest := found.modelled[_MOST_LINES:]:
        yield f"modelled: {counted(sum(one.calls for one in rest), 'further call')}"
    if found.other_roots:
        yield (
            f"{counted(found.other_roots, 'measured call')} had another root than rank 0 of its "
            "communicator, and most benchmarks measure that one; other roots can take longer"
        )
    yield (
        f"collectives are from {', '.join(found.sources)} ({counted(found.mpiruns, 'mpirun')}), "
        f"messages from {platform}, computation from the program; cpmodel cannot tell whether all "
        "are of one machine"
    )
    if found.mpiruns == 1:
        yield "the band has no scatter of measured times, because there is only one mpirun"
    if not found.judged_calls:
        why = found.power if found.measured_calls else "no call of the program was measured"
        yield f"no guideline was judged at the sizes this program uses: {why}"
    elif not found.savings:
        yield (
            "violated guidelines cost 0 s: no guideline is violated at the sizes this program "
            f"uses. {found.judged_calls} of {counted(found.calls, 'call')} were judged. "
            f"{found.power}"
        )
    for each in found.savings:
        yield (
            f"violated guidelines cost {style.amount(each.seconds, 's')} "
            f"({style.interval(each.low, each.high, 's')}), "
            f"{percent(each.seconds / (seconds or 1), 1)} of the run time, in "
            f"{counted(each.calls, 'call')} of {each.function or 'all functions'}: "
            f"{', '.join(each.guidelines).replace('<=', '≤')}"
        )
