"""Style of plots: colours, sizes, foreign text, and files that are the same each time.

The colours come from Okabe and Ito: Color Universal Design (2008). Colour-blind readers can
distinguish them. Shapes and lightness differ as well, so plots can be read in grey.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callpath_modeler.errors import UsageError
from callpath_modeler.printable import printable
from callpath_modeler.report.curve import spaced
from callpath_modeler.report.layout import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("pdf", "svg", "png")
"""Formats of plots, which are the endings of their files."""

BLACK, GREY = "#000000", "#767676"
BLUE, SKY, VERMILLION = "#0072B2", "#bfe0f4", "#D55E00"

WIDTH = 3.5
"""Inches: one column of a paper."""
SMALL, TEXT = 6.0, 7.0
"""Points of numbers and notes, and of names."""
_DIGIT = 0.64
"""Width of a digit as a part of its size."""
_MOST_LETTERS = 3
"""So many of the narrowest letters are as wide as their size."""
_GAP = 4.0
"""Points that labels are apart at least."""
_DOTS_PER_INCH = 300
_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": TEXT,
    "axes.linewidth": 0.5,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.labelsize": TEXT,
    "axes.titlesize": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "legend.fontsize": SMALL,
    "legend.frameon": True,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.8,
    "lines.linewidth": 1.2,
    "hatch.linewidth": 0.5,
    "text.usetex": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "callpath_modeler",
}
_METADATA: Any = {
    "pdf": {"CreationDate": None, "Creator": "cpmodel"},
    "svg": {"Date": None, "Creator": "cpmodel"},
    "png": {"Software": "cpmodel"},
}


def require_matplotlib() -> None:
    """Raise `UsageError` where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise UsageError("plots need matplotlib", hint="pip install 'callpath-modeler[plot]'")


def format_of_plot(path: Path) -> str:
    """Return the format that the ending of a file asks for.

    Raises
    ------
    UsageError
        If there is no such format.
    """
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        endings = ", ".join(f".{each}" for each in FORMATS)
        raise UsageError(f"{path}: no plot has this ending", hint=f"end it in one of {endings}")
    return form


@contextmanager
def settings() -> Iterator[None]:
    """Draw in our style, whatever the user's own settings of matplotlib are."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def saved(figure: Figure, form: str) -> bytes:
    """Return a figure as the bytes of a file; the same figure gives the same bytes."""
    stream = io.BytesIO()
    with settings():
        figure.savefig(stream, format=form, dpi=_DOTS_PER_INCH, metadata=_METADATA[form])
    return stream.getvalue()


def new_figure(height: float) -> Figure:
    """Return a figure of `height` inches, as wide as a column, that no window shows."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained")


def label(text: str) -> str:
    r"""Return foreign text such that matplotlib draws it as it is.

    No dollar begins mathematics. Signs that cannot be printed, and those that the font lacks, are
    written as Python does. All names and units that a plot shows pass this function.

    >>> print(label("cost $x$\x1b"))
    cost \$x\$\x1b
    """
    signs = _signs()
    known = (sign if ord(sign) in signs else ascii(sign)[1:-1] for sign in printable(text))
    return "".join(known).replace("$", r"\$")


def _signs() -> Collection[int]:
    """Return the signs of the font that comes with matplotlib."""
    from matplotlib import get_data_path
    from matplotlib.font_manager import get_font

    font = get_font(str(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")))
    signs: Collection[int] = font.get_charmap()
    return signs


def brief(names: Sequence[str], inches: float, size: float = TEXT) -> str:
    """Return a call path as a label that has room in a width, shortened as in tables."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", size=size)
    most = int(inches * 72 / size * _MOST_LETTERS)
    for room in range(most, 1, -1):
        text = label(shorten(names, room))
        width, _, _ = text_to_path.get_text_width_height_descent(
            text.replace(r"\$", "$"), font, ismath=False
        )
        if width <= inches * 72:
            return text
    return ""


def set_ticks(
    axes: Axes, axis: str, places: Sequence[float], texts: Sequence[str], length: float
) -> None:
    """Put ticks at places; labels that would touch an earlier one are left out, ticks are not.

    Parameters
    ----------
    axis : ``"x"`` or ``"y"``
    places : those first whose labels must not give way
    length : inches of the axis
    """
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    one = axes.xaxis if axis == "x" else axes.yaxis
    low, high = axes.get_xlim() if axis == "x" else axes.get_ylim()
    transform = one.get_transform()
    start, end = transform.transform([low, high])
    spans = []
    for place, text in zip(transform.transform(list(places)), texts, strict=True):
        middle = (place - start) / (end - start) * length * 72
        half = (len(text) * _DIGIT if axis == "x" else 1) * SMALL / 2
        spans.append((middle - half, middle + half))
    rooms = spaced(spans, _GAP if axis == "x" else 0)
    shown = [label(text) if has_room else "" for text, has_room in zip(texts, rooms, strict=True)]
    one.set_major_locator(FixedLocator(list(places)))
    one.set_major_formatter(FixedFormatter(shown))
    one.set_minor_locator(NullLocator())
