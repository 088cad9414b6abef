"""Flame graphs as pictures: costs at a scale, the layout of frames, and one SVG file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.ensemble import Losses
from callpath_modeler.analysis.excess_work import excess_beyond, per_process
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted, Ideal
from callpath_modeler.printable import printable, shortened
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.schema import Metric
from callpath_modeler.report.headline import target_text
from callpath_modeler.report.model_formulas import model_range_texts
from callpath_modeler.report.page.markup import Html, tag
from callpath_modeler.report.page.page_data import GROWTHS, growth_class
from callpath_modeler.report.ranking_text import unmodelled_notes
from callpath_modeler.units import counted, parameter_value, percent, quantity, setting_text

STEPS = 10
"""Steps of a colour scale on either side of its middle."""
NO_MODEL = -1
"""Stands for the colour of call paths without a model."""


class ColorBy(StrEnum):
    """Meaning of the colours of a flame graph.

    Attributes
    ----------
    EXCESS : the part of the cost beyond the expected cost
    SHARE : the change of the share of the total since a smaller scale
    GROWTH : the growth of the exclusive cost of a call path
    NONE : no meaning
    """

    EXCESS = "excess"
    SHARE = "share"
    GROWTH = "growth"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Flame:
    """Contents of a flame graph.

    Attributes
    ----------
    tree : n call paths
    metric : what widths are
    title : of what, and at which scale
    inclusive, exclusive : [n] costs, none below zero
    color_by : what colours show
    colours : [n] steps of the scale, from -`STEPS` to `STEPS`; or numbers of `GROWTHS`, or
        `NO_MODEL`
    meaning : what colours show, in words
    texts : further lines about frames: each [n]
    notes : sentences about costs without a frame
    """

    tree: CallTree
    metric: Metric
    title: str
    inclusive: FloatArray
    exclusive: FloatArray
    color_by: ColorBy
    colours: IntArray
    meaning: str
    texts: tuple[list[str], ...] = ()
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Scales:
    """Exclusive costs per process at two scales, each [call paths]; NaN = not known.

    The run time is that at the larger scale; None = the sum of the costs.
    """

    experiment: Experiment
    parameter: str
    base: float
    scale: float
    before: FloatArray
    after: FloatArray
    ideal: Ideal
    run_time: float | None = None


def plain(experiment: Experiment, metric: Metric, costs: FloatArray) -> Flame:
    """Return the flame graph of one profile, without a meaning of colours."""
    title = f"{experiment.name} · {metric.name}, {experiment.reduction.words}"
    nothing = np.zeros(len(costs), np.intp)
    return _made(experiment, metric, title, costs, ColorBy.NONE, nothing, "")


def of_losses(losses: Losses, color_by: ColorBy) -> Flame:
    """Return the flame graph of the largest measured scale against the base of the losses."""
    (p, q), k = losses.pairs[-1], len(losses.pairs) - 1
    before, after = (losses.costs.exclusive[:, column] for column in losses.columns(k))
    run_time = float(losses.run_time[losses.columns(k)[1]])
    scales = _Scales(
        losses.experiment, losses.parameter, p, q, before, after, losses.ideal, run_time
    )
    at = setting_text(losses.line.at(q))
    title = f"{losses.experiment.name} · {_measure(losses.experiment, losses.metric)} at {at}"
    return _compared(scales, losses.metric, f"{title} (measured)", color_by)


def of_ranking(
    ranking: Ranking, color_by: ColorBy, base: float | None, *, at_largest: bool
) -> Flame:
    """Return the flame graph of a target.

    Parameters
    ----------
    ranking : of exclusive values
    base : a measured scale; None = the smallest
    at_largest : show the largest measured scale in place of the target, for growths
    """
    fitted = ranking.fitted
    costs = fitted.measured[:, -1] if at_largest else ranking.value
    at, known = target_text(ranking), [] if ranking.repetitions else unmodelled_notes(ranking)
    if at_largest:
        at, known = f"{setting_text(fitted.at(float(fitted.points[-1])))} (measured)", []
    title = f"{fitted.experiment.name} · {_measure(fitted.experiment, fitted.metric)} at {at}"
    if color_by is ColorBy.GROWTH:
        return _by_growth(fitted, title, costs, known)
    if color_by is ColorBy.NONE:
        nothing = np.zeros(len(costs), np.intp)
        return _made(
            fitted.experiment, fitted.metric, title, costs, color_by, nothing, "", notes=known
        )
    first = fitted.base if base is None else base
    before = _at_base(fitted, first, ranking.target)
    if not ranking.repetitions:
        before = np.where(fitted.modelled, before, np.nan)
    experiment, parameter = fitted.experiment, fitted.parameter
    before = per_process(experiment, parameter, before, first)
    after = per_process(experiment, parameter, costs, ranking.target)
    scales = _Scales(
        experiment,
        parameter,
        first,
        ranking.target,
        before,
        after,
        ideal_of(fitted),
        ranking.cost_per_process,
    )
    return _compared(scales, fitted.metric, title, color_by, known)


def _at_base(fitted: Fitted, base: float, target: float) -> FloatArray:
    """Return exclusive costs at a measured scale below the target."""
    found = np.flatnonzero(fitted.points == base)
    name = fitted.parameter
    if not len(found) or base >= target:
        listed = ", ".join(parameter_value(at) for at in fitted.points if at < target)
        raise UsageError(
            f"no measured scale below the target is {name} = {parameter_value(base)}",
            hint=f"--base with one of {listed}" if listed else "--color-by none",
        )
    if fitted.held == fitted.measured_at:
        return np.asarray(fitted.measured[:, found[0]])
    return np.asarray(fitted.models.values(np.array([base]))[:, 0])


def _measure(experiment: Experiment, metric: Metric) -> str:
    return ", ".join(part for part in (metric.name, experiment.reduction.words) if part)


def _compared(
    scales: _Scales, metric: Metric, title: str, color_by: ColorBy, notes: list[str] | None = None
) -> Flame:
    """Return a flame graph whose colours compare two scales."""
    if color_by is ColorBy.NONE:
        nothing = np.zeros(len(scales.after), np.intp)
        return _made(scales.experiment, metric, title, scales.after, color_by, nothing, "")
    by = _by_share if color_by is ColorBy.SHARE else _by_excess
    return by(scales, metric, title, notes or [])


def _by_excess(scales: _Scales, metric: Metric, title: str, notes: list[str]) -> Flame:
    tree, ideal = scales.experiment.tree, scales.ideal
    if gap := ideal.gap(scales.base, scales.scale):
        raise UsageError(f"no excess work: {gap}", hint="--base with another scale")
    expected = ideal.cost(scales.base, scales.scale, np.nan_to_num(scales.before))
    # Call paths without a model are excluded, so nothing is expected of them.
    expected = np.where(np.isnan(scales.after) & np.isnan(scales.before), 0.0, expected)
    found = excess_beyond(
        tree, (scales.base, scales.scale), expected, scales.after, scales.run_time
    )
    part = 1 - np.nan_to_num(found.efficiency, nan=1.0)
    pairs = zip(found.inclusive.tolist(), found.exclusive.tolist(), strict=True)
    since = f" since {scales.parameter} = {parameter_value(scales.base)}" * ideal.is_relative
    texts = [
        f"excess work{since}: {percent(whole, 1)} of the total, {percent(own, 1)} exclusive"
        for whole, own in pairs
    ]
    meaning = f"part of the cost that is excess work{since} ({ideal.meaning})"
    vanished = _vanished(scales, notes)
    return _made(
        scales.experiment, metric, title, scales.after, ColorBy.EXCESS, _steps(part), meaning,
        (texts,), vanished,
    )  # fmt: skip


def _by_share(scales: _Scales, metric: Metric, title: str, notes: list[str]) -> Flame:
    tree = scales.experiment.tree
    before, after = (_shares(tree, np.fmax(costs, 0.0)) for costs in (scales.before, scales.after))
    larger = np.maximum(before, after)
    change = np.divide(after - before, larger, out=np.zeros_like(after), where=larger > 0)
    first, last = (parameter_value(at) for at in (scales.base, scales.scale))
    name = scales.parameter
    texts = [
        f"share: {percent(was, 1)} at {name} = {first}, {percent(now, 1)} at {name} = {last}"
        for was, now in zip(before.tolist(), after.tolist(), strict=True)
    ]
    meaning = f"change of the share of the total since {name} = {first}; red has grown"
    return _made(
        scales.experiment, metric, title, scales.after, ColorBy.SHARE, _steps(change), meaning,
        (texts,), _vanished(scales, notes),
    )  # fmt: skip


def _shares(tree: CallTree, costs: FloatArray) -> FloatArray:
    whole = float(np.nansum(costs))
    return tree.inclusive(np.nan_to_num(costs)) / whole if whole > 0 else np.zeros(len(costs))


def _vanished(scales: _Scales, notes: list[str]) -> list[str]:
    """Count the call paths that have a cost at the base only, and so have no width."""
    gone = (np.nan_to_num(scales.before) > 0) & ~(np.nan_to_num(scales.after) > 0)
    if not gone.any():
        return notes
    share = float(np.nansum(scales.before[gone]) / np.nansum(np.fmax(scales.before, 0.0)))
    base, scale = (
        f"{scales.parameter} = {parameter_value(at)}" for at in (scales.base, scales.scale)
    )
    count = counted(int(gone.sum()), "call path")
    return [*notes, f"no width: {count} without own cost at {scale}, {percent(share)} at {base}"]


def _by_growth(fitted: Fitted, title: str, costs: FloatArray, notes: list[str]) -> Flame:
    classes = np.full(len(costs), NO_MODEL)
    texts = ["no model"] * len(costs)
    modelled = np.flatnonzero(fitted.modelled)
    said = model_range_texts(fitted, modelled, pretty=True)
    for row, text in zip(modelled.tolist(), said, strict=True):
        classes[row] = growth_class(fitted.models.growth(row))
        texts[row] = f"exclusive cost grows as {text}"
    meaning = f"growth of exclusive costs with {fitted.parameter}"
    return _made(
        fitted.experiment, fitted.metric, title, costs, ColorBy.GROWTH, classes, meaning,
        (texts,), notes,
    )  # fmt: skip


def _steps(values: FloatArray) -> IntArray:
    return np.rint(np.clip(np.nan_to_num(values), -1, 1) * STEPS).astype(np.intp)


def check_additive(metric: Metric) -> None:
    """Raise `UsageError` where a metric does not add up over call paths."""
    if not metric.additive:
        raise UsageError(
            f"no flame graph: {metric.name} does not add up over call paths",
            hint="-m with one that does",
        )


def _made(
    experiment: Experiment,
    metric: Metric,
    title: str,
    costs: FloatArray,
    color_by: ColorBy,
    colours: IntArray,
    meaning: str,
    texts: tuple[list[str], ...] = (),
    notes: list[str] | None = None,
) -> Flame:
    check_additive(metric)
    found = list(notes or [])
    below = int((costs < 0).sum())
    if below:
        found.append(f"no width: {counted(below, 'call path')} with own values below zero")
    own = np.fmax(np.nan_to_num(costs, posinf=0.0, neginf=0.0), 0.0)
    if not own.any():
        raise UsageError(
            f"no flame graph: {metric.name} is zero everywhere", hint="-m with another metric"
        )
    tree = experiment.tree
    return Flame(
        tree, metric, title, tree.inclusive(own), own, color_by, colours, meaning, texts, found
    )


DEEPEST = 1200
"""Levels that have frames; what is deeper shares one."""
OTHER = -1
"""Stands for the call path of a frame that several share."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A box.

    Attributes
    ----------
    row : its call path, or `OTHER`
    depth : callers above it
    left, width : fractions of the whole
    callpaths : how many it stands for, but for those in frames below it
    """

    row: int
    depth: int
    left: float
    width: float
    callpaths: int = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """The frames of a flame graph.

    Attributes
    ----------
    frames : callers before callees
    least : width from which on a call path has a frame of its own
    without_cost : call paths that cost nothing, with all that they call, and have no frame
    """

    frames: tuple[Frame, ...]
    least: float
    without_cost: int

    @property
    def levels(self) -> int:
        """Number of levels."""
        return 1 + max((frame.depth for frame in self.frames), default=0)

    @property
    def others(self) -> list[Frame]:
        """The frames that several call paths share."""
        return [frame for frame in self.frames if frame.row == OTHER]


def layout(tree: CallTree, inclusive: FloatArray, least: float) -> Layout:
    """Return the frames of a flame graph.

    Parameters
    ----------
    inclusive : [call paths] costs with callees, none below zero
    least : siblings narrower than this fraction of the whole share a frame
    """
    whole = float(inclusive[tree.roots].sum())
    parts, ends = (inclusive / whole).tolist(), tree.end.tolist()
    frames, without = list[Frame](), 0
    todo = [(0, len(tree), 0, 0.0)]
    while todo:
        row, end, depth, left = todo.pop()
        merged, width = 0, 0.0
        while row < end:
            after, part = ends[row], parts[row]
            if part >= least and part > 0 and depth < DEEPEST:
                frames.append(Frame(row, depth, left, part))
                if after > row + 1:
                    todo.append((row + 1, after, depth + 1, left))
                left += part
            elif part > 0:
                merged, width = merged + after - row, width + part
            else:
                without += after - row
            row = after
        if merged:
            frames.append(Frame(OTHER, depth, left, width, merged))
    return Layout(tuple(frames), least, without)


LARGEST = 2_000_000
"""Largest size of a picture in bytes; wider frames are merged until it fits."""
LEAST = 0.001
"""Smallest fraction of the width with which a call path has its own frame."""

_WIDTH, _EDGE = 1200, 10
_ROW = 17
_LETTER, _TITLE_LETTER = 6.65, 8.5
_TOP = 66
"""Above the frames are the title and the meaning of colours."""
_LONGEST = 160
"""Largest number of characters of a name; names of templates have thousands."""
_MIDDLE, _MORE, _LESS = (242, 236, 224), (213, 94, 0), (86, 180, 233)
"""Colours of no change, of loss and of gain; the latter are of Okabe and Ito."""
_OF_GROWTHS = ("#f2ece0", "#f0e442", "#f0b050", "#e08030", "#c24a00")
_UNKNOWN, _PLAIN = "#cccccc", "#efc98b"


def flame_svg(flame: Flame) -> str:
    """Return a flame graph, callers above callees, as SVG below `LARGEST` bytes.

    Names are text and nothing else: neither markup nor code.
    """
    least = LEAST
    while True:
        placed = layout(flame.tree, flame.inclusive, least)
        text = _document(flame, placed)
        # The limit is in bytes: a character of a name takes up to four.
        if least > 1 or len(text.encode()) < LARGEST:
            return text
        least *= 2


def _document(flame: Flame, placed: Layout) -> str:
    title = shortened(printable(flame.title), _LONGEST)
    heading = _cut(title, (_WIDTH - 2 * _EDGE) * _LETTER / _TITLE_LETTER)
    notes = [*_notes(placed), *map(printable, flame.notes)]
    bottom = _TOP + placed.levels * _ROW + 14
    height = bottom + 16 * len(notes) + 6
    parts = [
        tag("title", title),
        tag("style", _file("flame_graph.css"), _colours(flame)),
        _hatch(),
        tag("rect", width=_WIDTH, height=height, fill="#ffffff"),
        tag("text", heading, class_="title", x=_EDGE, y=20),
        *_legend(flame),
        *(_frame(flame, placed, frame) for frame in placed.frames),
        *(
            tag("text", note, class_="aside", x=_EDGE, y=bottom + 16 * k)
            for k, note in enumerate(notes)
        ),
    ]
    drawn = tag(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {height}",
        width=_WIDTH,
        height=height,
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawn}\n'


def _file(name: str) -> Html:
    """Return styles of ours, which are markup that no name is part of."""
    text = files("callpath_modeler.report").joinpath(name).read_text("utf-8")
    return Html(f"/*<![CDATA[*/\n{text}/*]]>*/")


def _hatch() -> Html:
    lines = tag("path", d="M0 6L6 0", stroke="#999999", stroke_width=0.8)
    ground = tag("rect", width=6, height=6, fill="#eeeeee")
    pattern = tag("pattern", ground, lines, id="hatch", width=6, height=6,
                  patternUnits="userSpaceOnUse")  # fmt: skip
    return tag("defs", pattern)


def _colours(flame: Flame) -> Html:
    """Return the styles of the colours that there are."""
    used = sorted({int(step) for step in flame.colours})
    return Html("".join(f".{_class(k)} rect{{fill:{_colour(flame, k)}}}" for k in used))


def _class(step: int) -> str:
    return f"c{step}" if step >= 0 else f"l{-step}"


def _colour(flame: Flame, step: int) -> str:
    if flame.color_by is ColorBy.NONE:
        return _PLAIN
    if flame.color_by is ColorBy.GROWTH:
        return _UNKNOWN if step == NO_MODEL else _OF_GROWTHS[step]
    part, end = abs(step) / STEPS, _MORE if step > 0 else _LESS
    mixed = (round(a + (b - a) * part) for a, b in zip(_MIDDLE, end, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def _legend(flame: Flame) -> Iterator[Html]:
    """Return the legend: the meaning of colours, with a sample of each."""
    if flame.color_by is ColorBy.NONE:
        return
    if flame.color_by is ColorBy.GROWTH:
        steps = [*enumerate(GROWTHS), (NO_MODEL, "no model")]
    else:
        steps = [(k, f"{10 * k:+d} %" if k else "0 %") for k in range(-STEPS, STEPS + 1, 5)]
    yield tag("text", f"colour: {printable(flame.meaning)}", x=_EDGE, y=38)
    x: float = _EDGE
    for step, said in steps:
        yield tag("rect", x=x, y=45, width=14, height=11, fill=_colour(flame, step),
                  stroke="#888888", stroke_width=0.5)  # fmt: skip
        yield tag("text", said, class_="aside", x=x + 18, y=54.5)
        x += 18 + len(said) * _LETTER + 14


def _frame(flame: Flame, placed: Layout, frame: Frame) -> Html:
    inner = _WIDTH - 2 * _EDGE
    x, width = _EDGE + frame.left * inner, frame.width * inner
    y = _TOP + frame.depth * _ROW
    name, *told = _told(flame, placed, frame)
    label = _cut(name, width - 6)
    kind = "o" if frame.row == OTHER else _class(int(flame.colours[frame.row]))
    return tag(
        "g",
        tag("title", "\n".join([name, *map(printable, told)])),
        Html(f'<rect x="{x:.3f}" y="{y}" width="{max(width, 0.001):.3f}" height="{_ROW - 1}"/>'),
        Html("") if not label else tag("text", label, x=round(x + 3, 1), y=y + 12),
        class_=f"f {kind}",
    )


def _cut(text: str, room: float) -> str:
    most = int(room / _LETTER)
    if len(text) <= most:
        return text
    return f"{text[: most - 2]}.." if most >= 3 else ""


def _told(flame: Flame, placed: Layout, frame: Frame) -> list[str]:
    """Return the name of a frame, and lines about it."""
    unit, whole = flame.metric.unit, percent(frame.width, 1)
    if frame.row == OTHER:
        shared = frame.width * float(flame.inclusive[flame.tree.roots].sum())
        return [
            f"other: {counted(frame.callpaths, 'call path')}",
            f"{quantity(shared, unit)}, {whole}",
            f"each narrower than {_percent(placed.least)} of the width, or too deep",
        ]
    row = frame.row
    name = shortened(printable(short_name(flame.tree.name(row))), _LONGEST)
    cost, own = (quantity(float(c[row]), unit) for c in (flame.inclusive, flame.exclusive))
    return [name, f"{cost}, {whole}; {own} exclusive", *(text[row] for text in flame.texts)]


def _percent(part: float) -> str:
    return f"{part * 100:g} %"


def _notes(placed: Layout) -> list[str]:
    """Count the call paths without a frame of their own."""
    others, notes = placed.others, []
    if others:
        count = counted(sum(frame.callpaths for frame in others), "call path")
        where = counted(len(others), "hatched frame")
        why = f"narrower than {_percent(placed.least)} of the width, or below level {DEEPEST}"
        notes.append(f"other: {count} in {where}: {why}")
    if placed.without_cost:
        count = counted(placed.without_cost, "call path")
        notes.append(f"without a frame: {count} without cost at this scale")
    return notes
