"""SVG of a flame graph: one file that zooms, and that is a static picture without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

from callpath_modeler.printable import printable, shortened
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.flame.content import GROWTHS, NO_MODEL, STEPS, ColorBy, Flame
from callpath_modeler.report.flame.frames import DEEPEST, OTHER, Frame, Layout, layout
from callpath_modeler.report.page.markup import Html, tag
from callpath_modeler.units import counted, percent, quantity

LARGEST = 2_000_000
"""Largest size of a picture in bytes; wider frames are merged until it fits."""
LEAST = 0.001
"""Smallest fraction of the width with which a call path has its own frame."""

_WIDTH, _EDGE = 1200, 10
_ROW = 17
_LETTER, _TITLE_LETTER = 6.65, 8.5
_TOP = 78
"""Above the frames are the title, the details of a frame, and the meaning of colours."""
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
    heading = _cut(title, (_WIDTH - 240) * _LETTER / _TITLE_LETTER)
    notes = [*_notes(placed), *map(printable, flame.notes)]
    bottom = _TOP + placed.levels * _ROW + 14
    height = bottom + 16 * len(notes) + 6
    parts = [
        tag("title", title),
        tag("style", _file("flame.css"), _colours(flame)),
        _hatch(),
        tag("rect", width=_WIDTH, height=height, fill="#ffffff"),
        tag("text", heading, class_="title", x=_EDGE, y=20),
        tag("text", "search", id="search", class_="button", x=_WIDTH - 210, y=20),
        tag("text", "reset zoom", id="reset", class_="button", x=_WIDTH - 150, y=20),
        tag("text", "", id="matched", class_="aside", x=_WIDTH - 210, y=38),
        *_legend(flame),
        tag("text", "", id="details", class_="aside", x=_EDGE, y=70),
        *(_frame(flame, placed, frame) for frame in placed.frames),
        *(
            tag("text", note, class_="aside", x=_EDGE, y=bottom + 16 * k)
            for k, note in enumerate(notes)
        ),
        tag("script", _file("flame.js"), type="text/javascript"),
    ]
    drawn = tag(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {height}",
        width=_WIDTH,
        height=height,
        tabindex="0",
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawn}\n'


def _file(name: str) -> Html:
    """Return a script or style of ours, which is markup that no name is part of."""
    text = files("callpath_modeler.report.flame").joinpath(name).read_text("utf-8")
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
