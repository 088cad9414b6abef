"""Predicted run times as text for people and as a table for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from rich.text import Text

from callpath_modeler.printable import printable
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.table_formats import Cell, Table
from callpath_modeler.units import counted, percent, signed_percent
from cpmodel_commspec.operations import Shape
from cpmodel_commspec.replay.measured import MeasuredCalls, measured_text
from cpmodel_commspec.replay.platform import Platform
from cpmodel_commspec.replay.run_time import LineTime, RunTime, mean_computation
from cpmodel_commspec.replay.smpi import SmpiRun
from cpmodel_commspec.specification import Specification
from cpmodel_commspec.text import functions_text


@dataclass(frozen=True, slots=True)
class Prediction:
    """The run time of a program on one platform, or on two.

    Attributes
    ----------
    told : the program
    platforms, times : of each platform
    changes : what was changed in the program, in the words of the command line
    of_trace : run time of a replay whose computation is exactly that of the trace, on the first
        platform; None without a trace
    by_name : whether receives from any source take the message of the source that the program names
    measured : what measured times of collectives contribute; None = all are modelled
    """

    told: Specification
    platforms: tuple[Platform, ...]
    times: tuple[RunTime, ...]
    changes: tuple[str, ...] = ()
    of_trace: float | None = None
    by_name: bool = False
    measured: MeasuredCalls | None = None

    def ends(self, time: RunTime) -> tuple[float, float]:
        """Return the ends of the band of a run time, equal ones if there is none."""
        known = self.measured
        low, high = (known.low, known.high) if known else (time.seconds, time.seconds)
        return low * max(0.0, 1 - self.told.band), high * (1 + self.told.band)


@dataclass(frozen=True, slots=True)
class Simulated:
    """The run time of a program on SimGrid SMPI, on one platform or on two.

    Attributes
    ----------
    told : the program
    platforms : files, as the user gave them
    selector : MPI library whose collective algorithms were used
    runs : on each platform
    changes : what was changed in the program, in the words of the command line
    """

    told: Specification
    platforms: tuple[str, ...]
    selector: str
    runs: tuple[SmpiRun, ...]
    changes: tuple[str, ...] = ()

    @property
    def seconds(self) -> tuple[float, ...]:
        """The run time on each platform."""
        return tuple(run.seconds for run in self.runs)


def _names(platforms: Sequence[Platform]) -> list[str]:
    """Return the names of platforms, with a number where they are the same."""
    names = [one.name for one in platforms]
    if len(set(names)) < len(names):
        return [f"{name} ({k})" for k, name in enumerate(names, start=1)]
    return names


def prediction_text(found: Prediction, style: TextStyle) -> list[Text]:
    """Return the run times, their parts, and the lines of the program."""
    told, names = found.told, _names(found.platforms)
    lines = [_heading(told, found.changes)]
    for name, time in zip(names, found.times, strict=True):
        low, high = found.ends(time)
        band = f" ({style.interval(low, high, 's')})" if low < high else ""
        lines.append(f"{name}: {style.amount(time.seconds, 's')}{band}{_parts(time)}")
    lines += _beside(found, style)
    if found.measured is not None:
        lines += measured_text(found.measured, found.times[0].seconds, names[0], style)
    text = style.lines(lines)
    shown = found.times[0].lines
    if shown:
        columns = _columns(found, names, style)
        labels = [[call_text(one.shape)] for one in shown]
        text += [Text(), *style.table(columns, labels, title="call")]
    return text


def _heading(told: Specification, changes: Sequence[str]) -> str:
    program = told.program.rpartition("/")[2] or "communication"
    changed = f", with {', '.join(changes)}" if changes else ""
    operations, ranks = counted(told.operations, "operation"), counted(told.processes, "rank")
    return f"{program}: {operations} of {ranks}{changed}"


def _parts(time: RunTime) -> str:
    """Return the parts of a run time as percentages."""
    if not time.seconds:
        return ""
    parts = (
        (time.computing, "computation"),
        (time.transfer, "messages"),
        (time.waiting, "waiting"),
        (time.idle, "after the end of a rank"),
    )
    return ": " + ", ".join(f"{percent(x / time.seconds, 1)} {name}" for x, name in parts)


def _beside(found: Prediction, style: TextStyle) -> list[str]:
    """Return the comparisons with the trace and with the other platform."""
    seconds = [time.seconds for time in found.times]
    lines = _compared(found.told, seconds, found.changes, style)
    if found.by_name:
        lines.append(
            "receives from any source take the messages of the trace, because the program depends "
            "on their order"
        )
    if found.of_trace:
        change = signed_percent(seconds[0] / found.of_trace - 1)
        lines.append(
            f"with the computation of the trace, round by round: "
            f"{style.amount(found.of_trace, 's')}; the program differs from it by {change}"
        )
    return lines


def _compared(
    told: Specification, seconds: Sequence[float], changes: Sequence[str], style: TextStyle
) -> list[str]:
    """Return the comparison of two platforms, and the run time of the trace."""
    lines = []
    if len(seconds) > 1 and seconds[0]:
        change = signed_percent(seconds[1] / seconds[0] - 1)
        lines.append(f"the second platform takes {change}")
    if told.seconds and not changes:
        # Of a run with more ranks than processors, this is nearly all.
        called = percent(max(0.0, 1 - mean_computation(told) / told.seconds), 1)
        lines.append(
            f"the run of the trace took {style.amount(told.seconds, 's')}, {called} of it in MPI "
            "calls"
        )
    return lines


def simulated_text(found: Simulated, style: TextStyle) -> list[Text]:
    """Return the run times, and what the program printed: the times of its lines."""
    lines = [_heading(found.told, found.changes)]
    for name, seconds in zip(found.platforms, found.seconds, strict=True):
        lines.append(
            f"{printable(name)}: {style.amount(seconds, 's')}, simulated by SMPI with the "
            f"collectives of {found.selector}"
        )
    lines += _compared(found.told, found.seconds, found.changes, style)
    text = style.lines(lines)
    for name, run in zip(found.platforms, found.runs, strict=True):
        if run.said:
            heading = [f"{printable(name)}:"] if len(found.runs) > 1 else []
            text += [Text(), *map(Text, [*heading, *run.said])]
    return text


def simulated_table(found: Simulated) -> Table:
    """Return one row per platform."""
    count = len(found.seconds)
    columns: dict[str, list[Cell]] = {
        "platform": [printable(name) for name in found.platforms],
        "selector": [found.selector] * count,
        "seconds": list(found.seconds),
    }
    return Table(columns, {"seconds": "s"}, _header(found.told, found.changes))


def _header(told: Specification, changes: Sequence[str]) -> dict[str, object]:
    return {
        "program": told.program,
        "processes": told.processes,
        "operations": told.operations,
        "changes": list(changes),
        "seconds_of_trace": told.seconds or None,
    }


def _columns(found: Prediction, names: Sequence[str], style: TextStyle) -> list[TextColumn]:
    first = found.times[0]

    def amounts(values: Sequence[float]) -> list[str]:
        return [style.amount(value, "s") for value in values]

    def shares(time: RunTime) -> list[str]:
        return [percent(share(one, time), 1) for one in time.lines]

    columns = [TextColumn("line", [str(one.line) for one in first.lines])]
    if len(found.times) == 1:
        return [
            *columns,
            TextColumn("share", shares(first)),
            TextColumn("compute", amounts([one.computing for one in first.lines])),
            TextColumn("in calls", amounts([one.calling for one in first.lines])),
            TextColumn("waiting", amounts([one.waiting for one in first.lines])),
            TextColumn("slowest", amounts([one.slowest for one in first.lines]), droppable=2),
            TextColumn("rank", [str(one.slowest_rank) for one in first.lines], droppable=2),
        ]
    for name, time in zip(names, found.times, strict=True):
        columns += [
            TextColumn("share", shares(time), droppable=2),
            TextColumn(style.say(name), amounts([one.calling for one in time.lines])),
        ]
    changes = [
        signed_percent(b.calling / a.calling - 1) if a.calling else "-"
        for a, b in zip(first.lines, found.times[1].lines, strict=True)
    ]
    return [*columns, TextColumn("change", [style.say(text) for text in changes])]


def share(one: LineTime, time: RunTime) -> float:
    """Return the share of a line in the run time: its computation and its calls."""
    return (one.computing + one.calling) / time.seconds if time.seconds else 0.0


def call_text(shape: Shape) -> str:
    """Return the call of a line and the functions that make it."""
    return f"{_call(shape)} in {functions_text(shape)}" if shape.functions else _call(shape)


def _call(shape: Shape) -> str:
    return printable(shape.call or shape.name or str(shape.kind))


def prediction_table(found: Prediction) -> Table:
    """Return one row per platform and line."""
    names = _names(found.platforms)
    rows: list[Mapping[str, Cell]] = [
        {
            "platform": name,
            "line": one.line,
            "call": _call(one.shape),
            "callpath": printable("/".join(one.shape.site)),
            "ranks": one.ranks,
            "operations": one.operations,
            "computation": one.computing,
            "in_calls": one.calling,
            "waiting": one.waiting,
            "slowest": one.slowest,
            "slowest_rank": one.slowest_rank,
            "share": share(one, time),
        }
        for name, time in zip(names, found.times, strict=True)
        for one in time.lines
    ]
    seconds = ("computation", "in_calls", "waiting", "slowest")
    header = {
        **_header(found.told, found.changes),
        "seconds_with_computation_of_trace": found.of_trace,
        "sources_of_trace": found.by_name,
        "relative_band": found.told.band,
        "collectives": None if found.measured is None else asdict(found.measured),
        "platforms": [
            {
                "name": name,
                "latency": one.latency,
                "overhead": one.overhead,
                "gap": one.gap,
                "gap_per_byte": one.gap_per_byte,
                "eager": one.eager,
                "algorithms": dict(one.algorithms),
                "source": one.source,
                "seconds": time.seconds,
                "computation": time.computing,
                "messages": time.transfer,
                "waiting": time.waiting,
                "idle": time.idle,
            }
            for name, one, time in zip(names, found.platforms, found.times, strict=True)
        ],
    }
    return Table.of_rows(rows, dict.fromkeys(seconds, "s"), header)
