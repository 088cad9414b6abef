"""Values of the processes of a call path, as a picture over their ranks."""

from __future__ import annotations

from math import ceil

import numpy as np

from callpath_modeler.arrays import BoolArray
from callpath_modeler.process_profile import ProcessProfile
from callpath_modeler.report.layout import DEFAULT_STYLE
from callpath_modeler.report.page.markup import Html, tag
from callpath_modeler.report.processes import process_sentences

BARS = 200
"""Largest number of bars; each is the maximum of several ranks if ranks are more."""
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 560, 96, 70, 6, 20


def processes_part(profile: ProcessProfile, *, key: str) -> Html:
    """Return the values of processes: a bar for each rank, and a sentence on outlying ranks.

    Its size does not depend on the number of processes: there are at most `BARS` bars, and the
    sentence names ten ranks or ranges of ranks. It has less than 12 kB.

    Parameters
    ----------
    profile : values of the processes of a call path
    key : prefix of the ids on the page
    """
    what, verdict = process_sentences(profile)
    ranks, found = profile.ranks, profile.distribution()
    values, each = found.values, ceil(len(found.values) / BARS)
    picture = Html("")
    if len(found.valid) > 1 and found.valid.max() > 0:
        padding = -len(values) % each
        bars = np.append(values, np.full(padding, np.nan)).reshape(-1, each)
        flags = np.append(found.outlying, np.zeros(padding, np.bool_)).reshape(-1, each)
        outlying = np.logical_or.reduce(flags, axis=1)
        heights = np.nan_to_num(np.fmax.reduce(bars, axis=1)) / float(found.valid.max())
        if each > 1:
            what += f"; each bar is the maximum of {each} ranks"
        sides = [f"rank {ranks[0]}", f"rank {ranks[-1]}"]
        largest = DEFAULT_STYLE.amount(float(found.valid.max()), profile.metric.unit)
        picture = _picture(heights, outlying, sides, largest, what, verdict, key)
    return tag("div", picture, tag("p", verdict), tag("p", what, class_="aside"), class_="ranks")


def _picture(
    heights: np.ndarray,
    outlying: BoolArray,
    sides: list[str],
    largest: str,
    what: str,
    verdict: str,
    key: str,
) -> Html:
    """Return the picture; heights are fractions of the largest value, [bars]."""
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - 4
    width = (right - _LEFT) / len(heights)
    gap = min(1.0, width / 5)

    def path(is_drawn: BoolArray) -> str:
        """Return the outline of some bars; a bar with a cost is at least one unit high."""
        outline = []
        for k in np.flatnonzero(is_drawn & (heights > 0)).tolist():
            high = max(1.0, float(heights[k]) * (bottom - _TOP))
            left, wide = f"{_LEFT + k * width:.4g}", f"{width - gap:.3g}"
            outline.append(f"M{left} {bottom}v-{high:.3g}h{wide}v{high:.3g}z")
        return "".join(outline)

    # A mark below each outlying bar, because colour alone tells nothing, and the bar may be low.
    centres = _LEFT + (np.flatnonzero(outlying) + 0.5) * width
    marks = "".join(f"M{x:.4g} {bottom + 1}l-3 5h6z" for x in centres.tolist())
    return tag(
        "svg",
        tag("title", what, id=f"{key}-ranks-title"),
        tag("desc", verdict, id=f"{key}-ranks-desc"),
        tag("line", class_="grid", x1=_LEFT, x2=right, y1=_TOP, y2=_TOP),
        tag("line", class_="grid", x1=_LEFT, x2=right, y1=bottom, y2=bottom),
        tag("text", largest, class_="tick end", x=_LEFT - 7, y=_TOP + 8),
        tag("text", "0", class_="tick end", x=_LEFT - 7, y=bottom),
        tag("path", class_="rank", d=path(~outlying)),
        tag("path", class_="rank outlying", d=path(outlying)),
        tag("path", class_="rank outlying", d=marks),
        tag("text", sides[0], class_="tick start", x=_LEFT, y=_HEIGHT - 4),
        tag("text", sides[1], class_="tick end", x=right, y=_HEIGHT - 4),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_labelledby=f"{key}-ranks-title {key}-ranks-desc",
    )
