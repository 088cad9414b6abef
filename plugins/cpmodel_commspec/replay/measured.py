"""Measured times of collectives in a replay, and the time that violated guidelines cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from callpath_modeler.printable import printable
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.units import counted, percent
from cpmodel_commspec.replay.loggp import Measured, Replayed, Stretched

if TYPE_CHECKING:
    from cpmodel_guidelines.tuning.call_times import CallTime, CallTimes, Ends

_MOST_LINES = 5
_UPPER = 2
"""Index of the upper end in `Ends`."""


@dataclass(frozen=True, slots=True)
class Saving:
    """The time that a program saves with the faster ways around violated guidelines.

    Attributes
    ----------
    function : the replaced function; "" = all that can be replaced
    guidelines : the violated guidelines
    calls : number of replaced calls
    seconds : of the run time
    """

    function: str
    guidelines: tuple[str, ...]
    calls: int
    seconds: Ends


@dataclass(frozen=True, slots=True)
class MeasuredCalls:
    """What measured times of collectives contribute to a replay.

    Attributes
    ----------
    sources : files and folders of the campaign
    mpiruns, power : of the campaign, see `CallTimes`
    seconds : the run time
    calls, measured : number of calls of collectives, and of those with measured times
    judged : number of calls of which a guideline was judged
    other_roots : number of measured calls with another root than 0
    time, measured_time : seconds from begin to end of these calls, means of all ranks
    modelled : number of calls with modelled times by function, members and reason
    savings : by function, the largest first; first of all functions together if there are several
    without : the run time with modelled times
    """

    sources: tuple[str, ...]
    mpiruns: int
    power: str
    seconds: Ends
    calls: int
    measured: int
    judged: int
    other_roots: int
    time: float
    measured_time: float
    modelled: Mapping[tuple[str, int, str], int]
    savings: tuple[Saving, ...]
    without: float


At = Callable[[str, int, int], "CallTime | str"]
"""`CallTimes.at`."""


def measured_times(at: At, end: int = 1, instead: Sequence[str] = ()) -> Measured:
    """Return the times of a replay: one end of all intervals, and the faster way of functions.

    Benchmarks do not tell which members wait for which. At the upper end, all wait for all.

    Parameters
    ----------
    at : the measured times
    end : index of `Ends`
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
    """Return the replay with measured times, and what they contribute.

    Parameters
    ----------
    times : of the calls
    sources : where they come from
    replayed : replays the program
    without : run time of a replay with modelled times
    """
    at = cache(times.at)

    def run(end: int = 1, instead: Sequence[str] = ()) -> Replayed:
        return replayed(measured_times(at, end, instead))

    base = run()
    known: dict[tuple[str, int, int], CallTime] = {}
    modelled: Counter[tuple[str, int, str]] = Counter()
    for (name, n, size), spent in base.collectives.items():
        if not name:
            found: CallTime | str = "not blocking, or makes or frees a communicator"
        elif size < 0:
            found = "different sizes on its members"
        else:
            found = at(name, n, size)
        if isinstance(found, str):
            modelled[name, n, found] += spent.calls
        else:
            known[name, n, size] = found
    ways = {key: one.instead for key, one in known.items() if one.instead is not None}

    ends = (run(0).seconds, base.seconds, run(2).seconds)

    def saving(functions: Sequence[str]) -> Saving:
        here = [key for key in ways if key[0] in functions]
        low, value, high = (before - run(end, functions).seconds for end, before in enumerate(ends))
        return Saving(
            functions[0] if len(functions) == 1 else "",
            tuple(sorted({ways[key].guideline for key in here})),
            sum(base.collectives[key].calls for key in here),
            (min(low, value, high), value, max(low, value, high)),
        )

    names = sorted({name for name, _, _ in ways})
    savings = sorted(map(saving, [[name] for name in names]), key=lambda one: -one.seconds[1])
    if len(names) > 1:
        savings.insert(0, saving(names))
    every, of_known = base.collectives.values(), [base.collectives[key] for key in known]
    ranks = len(base.ends)
    return base, MeasuredCalls(
        tuple(sources),
        times.mpiruns,
        times.power,
        (min(ends), base.seconds, max(ends)),
        sum(one.calls for one in every),
        sum(one.calls for one in of_known),
        sum(base.collectives[key].calls for key, one in known.items() if one.is_judged),
        sum(one.other_roots for one in of_known),
        sum(one.seconds for one in every) / ranks,
        sum(one.seconds for one in of_known) / ranks,
        modelled,
        tuple(savings),
        without,
    )


def measured_text(found: MeasuredCalls, platform: str, style: TextStyle) -> Iterator[str]:
    """Yield the origin of times, the calls without measured times, and the savings."""
    run = found.seconds[1]
    yield (
        f"times of collectives are measured for {found.measured} of {counted(found.calls, 'call')}:"
        f" {percent(found.measured_time / (found.time or 1), 1)} of the time in collectives, "
        f"{percent(found.measured_time / (run or 1), 1)} of the run time; with modelled times, the "
        f"run takes {style.amount(found.without, 's')}"
    )
    rows = sorted(found.modelled.items(), key=lambda row: -row[1])
    for (name, n, reason), calls in rows[:_MOST_LINES]:
        yield f"modelled: {counted(calls, 'call')} of {name or 'collectives'} at p = {n}: {reason}"
    if rest := rows[_MOST_LINES:]:
        yield f"modelled: {counted(sum(calls for _, calls in rest), 'further call')}"
    if found.other_roots:
        yield (
            f"{counted(found.other_roots, 'measured call')} had another root than rank 0 of its "
            "communicator, and most benchmarks measure that one; other roots can take longer"
        )
    names = ", ".join(map(printable, found.sources))
    yield (
        f"collectives are from {names} ({counted(found.mpiruns, 'mpirun')}), messages from "
        f"{platform}, computation from the program; cpmodel cannot tell whether all are of one "
        "machine"
    )
    if found.mpiruns == 1:
        yield "the band has no scatter of measured times, because there is only one mpirun"
    yield from _savings_text(found, style)


def _savings_text(found: MeasuredCalls, style: TextStyle) -> Iterator[str]:
    if not found.judged:
        why = found.power if found.measured else "no call of the program was measured"
        yield f"no guideline was judged at the sizes this program uses: {why}"
    elif not found.savings:
        yield (
            "violated guidelines cost 0 s: no guideline is violated at the sizes this program "
            f"uses. {found.judged} of {counted(found.calls, 'call')} were judged. {found.power}"
        )
    for one in found.savings:
        low, value, high = one.seconds
        ways = ", ".join(text.replace("<=", "≤") for text in one.guidelines)
        share = percent(value / (found.seconds[1] or 1), 1)
        yield (
            f"violated guidelines cost {style.amount(value, 's')} "
            f"({style.interval(low, high, 's')}), {share} of the run time, in "
            f"{counted(one.calls, 'call')} of {one.function or 'all functions'}: {ways}"
        )


def measured_header(found: MeasuredCalls | None) -> dict[str, object] | None:
    """Return the same for programs; None without measured times."""
    if found is None:
        return None
    low, _, high = found.seconds
    return {
        "sources": [printable(name) for name in found.sources],
        "mpiruns": found.mpiruns,
        "seconds_without": found.without,
        "low": low,
        "high": high,
        "calls": found.calls,
        "measured_calls": found.measured,
        "judged_calls": found.judged,
        "other_roots": found.other_roots,
        "seconds": found.time,
        "measured_seconds": found.measured_time,
        "modelled": [
            {"function": name, "processes": n, "reason": reason, "calls": calls}
            for (name, n, reason), calls in found.modelled.items()
        ],
        "savings": [
            {
                "function": one.function,
                "guidelines": list(one.guidelines),
                "calls": one.calls,
                "seconds": one.seconds[1],
                "low": one.seconds[0],
                "high": one.seconds[2],
            }
            for one in found.savings
        ],
    }
