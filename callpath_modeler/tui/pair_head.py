"""Text of two experiments around the table: their names, totals, and notes."""

from __future__ import annotations

from rich.cells import cell_len

from callpath_modeler.analysis.pair_forecast import PairForecast
from callpath_modeler.report.layout import TextStyle, shorten
from callpath_modeler.tui.session import Session
from callpath_modeler.units import counted, setting_text

_NOISE_UNKNOWN = "noise not known: no repetitions, no models"
_LEAST_NAME = 6
"""Least width of the name of an experiment, in cells."""


def pair_title(forecast: PairForecast, shown: str, room: int | None = None) -> str:
    """Return the names of both experiments and the shown values.

    Parameters
    ----------
    forecast : the two experiments
    shown : the shown values
    room : width in terminal cells, for which the longer name is shortened first; None = any
    """
    names = list(forecast.inputs.names)
    whole = f"base {names[0]} · new {names[1]} · {shown}"
    if room is None or cell_len(whole) <= room:
        return whole
    free = room - cell_len(f"base  · new  · {shown}")
    for this, other in ((0, 1), (1, 0)):
        least = max(_LEAST_NAME, free // 2, free - cell_len(names[other]))
        names[this] = shorten([names[this]], least, "…")
    return f"base {names[0]} · new {names[1]} · {shown}"


def pair_answer(forecast: PairForecast, target: float, *, style: TextStyle) -> list[str]:
    """Return the totals of both and their difference, the leading scale first."""
    if forecast.target != target:
        return ["working …"]
    # One experiment needs none of the modules that compare two.
    from callpath_modeler.report.diff import known_by, total_texts

    found, parts = forecast.found[0], list[str]()
    for changes in found.answers:
        amounts, by, band = total_texts(found, changes, style)
        how = known_by(found, changes, style)
        if parts:
            parts.append(f"at {setting_text(changes.at)}: {amounts}, {by} ({how})")
        else:
            parts += [amounts, how, by, *([f"({band})"] if band else [])]
    return parts


def pair_notes(session: Session) -> list[str]:
    """Return the meaning of marks, and what the totals leave out."""
    forecast = session.forecast
    if not isinstance(forecast, PairForecast):
        return []
    found, notes = forecast.found[0], []
    left_out = int(found.left_out.sum()) if found.changes is found.predicted else 0
    if left_out:
        notes.append(f"{counted(left_out, 'call path')} not predicted, in neither total")
    return [*notes, "~ noise may explain it" if found.can_tell else _NOISE_UNKNOWN]
