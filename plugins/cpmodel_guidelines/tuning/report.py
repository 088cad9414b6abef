"""Gains and kept promises as text for people, and as tables for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.table_formats import Cell, Table, provenance
from callpath_modeler.units import counted, parameter_value, percent
from cpmodel_guidelines.answer import Verification
from cpmodel_guidelines.checks import Group
from cpmodel_guidelines.tuning.choices import Library, Rules, What
from cpmodel_guidelines.tuning.gains import Gain, Gains, Place, share_of
from cpmodel_guidelines.tuning.open_mpi import Algorithm
from cpmodel_guidelines.tuning.promises import Kept, Outcome, Promise
from cpmodel_guidelines.verification_text import error_rate_text

_GREY = "dim"
_STYLES = {
    Outcome.KEPT: "green",
    Outcome.BROKEN: "bold red",
    Outcome.OPEN: "yellow",
    Outcome.ABSENT: _GREY,
}
_MOST_REASONS = 4


@dataclass(frozen=True, slots=True)
class Tuning:
    """The gains of a campaign, with the rules for each measured library.

    Attributes
    ----------
    found : verdicts on the guidelines
    gains : gains that the verdicts show
    rules : rules of Open MPI and of PGMPITuneLib for each group
    """

    found: Verification
    gains: Gains
    rules: Mapping[tuple[Group, Library], Rules]


def gains_text(of: Tuning, style: TextStyle, top: int) -> list[Text]:
    """Return the headline, the best way at each place in ranges of sizes, and notes.

    Parameters
    ----------
    top : maximum number of ranges
    """
    rows = sorted(_runs(of.gains), key=lambda run: -_largest(run).share)
    lines = style.lines([_headline(of.gains)], "bold")
    if rows:
        shown = [(run, _largest(run)) for run in rows[:top]]
        columns = [
            TextColumn("gain", [percent(gain.share) for _, gain in shown]),
            TextColumn("95 % interval", [_ends(gain.low, gain.high) for _, gain in shown],
                       droppable=3),
            TextColumn("per call", [style.amount(gain.saved, "s") for _, gain in shown]),
            TextColumn("p", [str(gain.place.processes) for _, gain in shown]),
            TextColumn("bytes", [_sizes(run) for run, _ in shown]),
            TextColumn("Open MPI", [_rule_cell(of, gain, Library.OPEN_MPI) for _, gain in shown],
                       right=False, droppable=4),
            TextColumn("PGMPITuneLib",
                       [_rule_cell(of, gain, Library.PGMPITUNELIB) for _, gain in shown],
                       right=False, droppable=5),
        ]  # fmt: skip
        groups = ["/".join(gain.place.group) for _, gain in shown]
        if any(groups):
            columns.append(TextColumn("in", groups, right=False))
        names = [[f"{gain.place.function}: {gain.way}"] for _, gain in shown]
        lines += [Text(""), *style.table(columns, names, title="instead of: do"), Text("")]
    return lines + style.lines(_notes(of, len(rows) - top), _GREY, "  ")


def _headline(gains: Gains) -> str:
    places = sum(len(sizes) for sizes in gains.measured.values())
    best = gains.best
    if not best:
        return f"No way is shown to be faster at any of {counted(places, 'measured place')}."
    first = max(best.values(), key=lambda gain: gain.share)
    verb = "is" if len(best) == 1 else "are"
    return (
        f"{len(best)} of {counted(places, 'measured place')} {verb} faster in another way. The "
        f"largest gain is {percent(first.share)} ({_ends(first.low, first.high)}): "
        f"{first.place.function} as {first.way} at {_at(first.place)}."
    )


def _at(place: Place) -> str:
    return f"p = {place.processes}, {parameter_value(place.size)} bytes"


def _ends(low: float, high: float) -> str:
    return f"{percent(share_of(low))} … {percent(share_of(high))}"


def _runs(gains: Gains) -> Iterator[list[Gain]]:
    """Yield the best gains in runs of neighbouring sizes with the same way."""
    best = gains.best
    for (group, function, processes), sizes in gains.measured.items():
        run: list[Gain] = []
        for size in sizes:
            gain = best.get(Place(group, function, processes, size))
            if run and (gain is None or not _same_way(gain, run[-1])):
                yield run
                run = []
            if gain is not None:
                run.append(gain)
        if run:
            yield run


def _same_way(one: Gain, other: Gain) -> bool:
    """Return whether two gains come from the same guideline, with the same way in words."""
    return (one.guideline, one.way) == (other.guideline, other.way)


def _largest(run: Sequence[Gain]) -> Gain:
    return max(run, key=lambda gain: gain.share)


def _sizes(run: Sequence[Gain]) -> str:
    first, last = (parameter_value(gain.place.size) for gain in (run[0], run[-1]))
    return first if first == last else f"{first} … {last}"


def _rule_cell(of: Tuning, gain: Gain, library: Library) -> str:
    written = of.rules[gain.place.group, library].written.get(gain.place)
    if written is None or written[1] is not gain:
        return "-"
    what = written[0]
    return f"{what.number} {what.name}".strip() if isinstance(what, Algorithm) else "mock-up"


def _notes(of: Tuning, hidden: int) -> Iterator[str]:
    gains = of.gains
    if hidden > 0:
        yield f"{counted(hidden, 'other range')}. Use -n all to list them."
    if gains.every:
        yield "gain: the largest in the range, as a share of the time of a call"
        yield error_rate_text(of.found)
    if gains.small:
        verb = "gains" if gains.small == 1 else "gain"
        yield f"{counted(gains.small, 'violated check')} {verb} less than --min-gain."
    if gains.in_the_mean:
        names = ", ".join(guideline.short for _, guideline in gains.in_the_mean[:_MOST_REASONS])
        more = ", ..." if len(gains.in_the_mean) > _MOST_REASONS else ""
        yield f"Violated in the mean of all sizes only, so no size has a rule: {names}{more}"
    for library, title in ((Library.OPEN_MPI, "Open MPI"), (Library.PGMPITUNELIB, "PGMPITuneLib")):
        yield from _reasons(of, library, title)
    if of.found.power:
        yield of.found.power


def _reasons(of: Tuning, library: Library, title: str) -> Iterator[str]:
    """Yield why gains have no rule, the most frequent reasons first."""
    reasons: Counter[tuple[str, str]] = Counter()
    for (_, each), rules in of.rules.items():
        if each is library:
            reasons.update((u.gain.guideline.short, u.reason) for u in rules.unwritten)
    for (name, reason), number in reasons.most_common(_MOST_REASONS):
        yield f"No rule of {title} at {counted(number, 'place')}: {name}: {reason}."
    if len(reasons) > _MOST_REASONS:
        rest = sum(reasons.values()) - sum(n for _, n in reasons.most_common(_MOST_REASONS))
        yield f"No rule of {title} at {rest} other places; -f csv has the reasons."


def gains_table(of: Tuning, top: int | None = None) -> Table:
    """Return one row for each violated check, with its gain and its rules.

    Parameters
    ----------
    top : maximum number of rows; None = all
    """
    best = of.gains.best
    reasons = {
        (library, each.gain.place): each.reason
        for (_, library), rules in of.rules.items()
        for each in rules.unwritten
    }
    rows = [_row(of, gain, best, reasons) for gain in of.gains.every[:top]]
    columns = {name: [row[k] for row in rows] for k, name in enumerate(_GAINS)}
    return Table(columns, dict.fromkeys(("before", "after", "saved"), "s"), _header(of))


_GAINS = (
    *("library", "function", "p", "size", "way", "is_best", "guideline", "kind", "basis"),
    *("before", "after", "saved", "gain", "low", "high", "rate"),
    *("openmpi_algorithm", "openmpi_note", "pgmpitunelib_mock_up", "pgmpitunelib_note"),
)


def _row(
    of: Tuning,
    gain: Gain,
    best: Mapping[Place, Gain],
    reasons: Mapping[tuple[Library, Place], str],
) -> tuple[Cell, ...]:
    place, ruled = gain.place, []
    for library in (Library.OPEN_MPI, Library.PGMPITUNELIB):
        written = of.rules[place.group, library].written.get(place)
        what = written[0] if written is not None and written[1] is gain else None
        note = "another way has the rule" if written is not None else reasons[library, place]
        ruled += [_number(what), "" if what is not None else note]
    return (
        *("/".join(place.group), place.function, place.processes, place.size),
        *(gain.way, best[place] is gain, gain.guideline.text, str(gain.guideline.kind), gain.basis),
        *(gain.before, gain.after, gain.saved, gain.share),
        *(share_of(gain.low), share_of(gain.high), gain.rate, *ruled),
    )


def _number(what: What | None) -> Cell:
    return what.number if isinstance(what, Algorithm) else what


def _header(of: Tuning) -> dict[str, object]:
    found = of.found
    return {
        **provenance(found.benchmark.experiment, found.findings),
        "tolerance": found.tolerance,
        "confidence": found.confidence,
        "test": str(found.method.test),
        "control": str(found.method.control),
        "error_rate": found.method.rate,
        "power": found.power,
        "below_the_least_gain": of.gains.small,
        "violated_in_the_mean": [
            {"group": "/".join(group), "guideline": guideline.text}
            for group, guideline in of.gains.in_the_mean
        ],
    }


def promises_text(of: Tuning, kept: Kept, style: TextStyle, top: int) -> list[Text]:
    """Return the headline, what became of each promise, and what is slower.

    Parameters
    ----------
    top : maximum number of promises
    """
    count = Counter(each.outcome for each in kept.promises)
    told = ", ".join(f"{count[outcome]} {outcome}" for outcome in Outcome if count[outcome])
    said = f"{counted(len(kept.promises), 'promise')}: {told}."
    said += f" {len(kept.slower) or 'None'} of {counted(kept.compared, 'compared place')} "
    said += f"{'is' if len(kept.slower) < 2 else 'are'} slower with the rules."
    lines = style.lines([said], "bold")
    order = [Outcome.BROKEN, Outcome.OPEN, Outcome.ABSENT, Outcome.KEPT]
    rows = sorted(kept.promises, key=lambda each: order.index(each.outcome))[:top]
    columns = [
        TextColumn("promise", [str(each.outcome) for each in rows], right=False,
                   styles=[_STYLES[each.outcome] for each in rows]),
        TextColumn("promised", [percent(each.promised.share) for each in rows]),
        TextColumn("measured", [_measured(each) for each in rows]),
        TextColumn("95 % interval", [_interval(each) for each in rows], droppable=3),
        TextColumn("p", [str(each.place.processes) for each in rows]),
        TextColumn("bytes", [parameter_value(each.place.size) for each in rows]),
    ]  # fmt: skip
    names = [[f"{each.place.function}: {_title(each.what)}"] for each in rows]
    lines += [Text(""), *style.table(columns, names, title="rule"), Text("")]
    notes = [
        f"Slower with the rules: {place.function} at {_at(place)} by {percent(change.factor - 1)} "
        f"({percent(change.low - 1)} … {percent(change.high - 1)})"
        for place, change in kept.slower[:top]
    ]
    left = ", ".join(guideline.short for _, guideline in kept.violated[:top])
    notes.append(f"Guidelines that are violated with the rules: {left or 'none'}.")
    notes.append(error_rate_text(of.found).replace("violations", "changes"))
    notes += [kept.power] * bool(kept.power)
    return lines + style.lines(notes, _GREY, "  ")


def _measured(of: Promise) -> str:
    return "-" if of.measured is None else percent(share_of(of.measured.factor))


def _interval(of: Promise) -> str:
    return "-" if of.measured is None else _ends(of.measured.low, of.measured.high)


def _title(what: What) -> str:
    return what.title if isinstance(what, Algorithm) else what


def promises_table(of: Tuning, kept: Kept) -> Table:
    """Return one row for each promise, and for each place that is slower with the rules."""
    names = ("library", "function", "p", "size", "rule", "promised", "promised_low",
             "promised_high", "measured", "low", "high", "outcome")  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for each in kept.promises:
        change = each.measured
        shares: tuple[Cell, ...] = (None, None, None)
        if change is not None:
            shares = tuple(map(share_of, (change.factor, change.low, change.high)))
        told = each.promised
        promised = map(share_of, (told.factor, told.low, told.high))
        rows.append((*_where(each.place), _title(each.what), *promised, *shares, str(each.outcome)))
    for place, change in kept.slower:
        # The factor is the time after over the time before.
        shares = tuple(1 - value for value in (change.factor, change.high, change.low))
        rows.append((*_where(place), None, None, None, None, *shares, "slower"))
    columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    violated = [
        {"group": "/".join(group), "guideline": guideline.text}
        for group, guideline in kept.violated
    ]
    header = {**_header(of), "compared": kept.compared, "violated": violated}
    return Table(columns, {}, header | {"power": kept.power})


def _where(place: Place) -> tuple[Cell, ...]:
    return "/".join(place.group), place.function, place.processes, place.size
