"""Columns of two experiments for the nodes of a view: both values, difference, ratio, growth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from callpath_modeler.analysis.changes import Changes
from callpath_modeler.analysis.excess import NOTICEABLE
from callpath_modeler.analysis.pair_forecast import NodeDifferences, PairForecast
from callpath_modeler.arrays import FloatArray
from callpath_modeler.report.diff import growth_cells
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.measured_only import GAIN, LOSS
from callpath_modeler.units import as_option, significant


def difference_cells(
    forecast: PairForecast,
    own: NodeDifferences,
    whole: NodeDifferences,
    rows: Sequence[int | None],
    *,
    inclusive: bool,
    style: TextStyle,
) -> dict[str, TextColumn]:
    """Return the values of lines as text, by name of the column.

    Parameters
    ----------
    forecast : the two experiments
    own, whole : exclusive and inclusive values of the lines
    rows : call path of each line; None = several
    inclusive : whether inclusive values lead
    style : width, length of names, and characters of text

    Returns
    -------
    dict
        ``base``, ``new``, ``difference``, ``ratio``, ``interval``; ``own_difference`` if inclusive
        values lead; ``growth`` with models of both; ``at_common`` with both values at the largest
        common scale, if another scale leads.
    """
    main = whole if inclusive else own
    unit, found = forecast.inputs.pair.metric.unit, forecast.found[1 if inclusive else 0]
    titles = [scale_title(forecast, changes) for changes in forecast.answers]

    def texts(values: FloatArray) -> list[str]:
        return [style.amount(value, unit) for value in values.tolist()]

    columns = {
        "base": TextColumn(f"base {titles[0]}".rstrip(), texts(main.base)),
        "new": TextColumn(f"new {titles[0]}".rstrip(), texts(main.new)),
        "difference": _differences("difference", main, unit, style),
        "ratio": TextColumn("ratio", ratio_texts(main)),
    }
    if inclusive:
        columns["own_difference"] = _differences("own diff.", own, unit, style)
    if not np.isnan(main.low).all():
        pairs = zip(main.low.tolist(), main.high.tolist(), strict=True)
        columns["interval"] = TextColumn(
            f"{found.confidence:.0%} interval", [ratio_interval(*ends) for ends in pairs]
        )
    if found.growth is not None:
        known = np.array([row for row in rows if row is not None], np.intp)
        written = iter(growth_cells(found, known, style))
        cells = ["" if row is None else next(written) for row in rows]
        columns["growth"] = TextColumn("growth", cells, right=False)
    if len(titles) > 1:
        pairs = zip(texts(main.other_base), texts(main.other_new), strict=True)
        columns["at_common"] = TextColumn(titles[1], [" → ".join(pair) for pair in pairs])
    return columns


def scale_title(forecast: PairForecast, changes: Changes) -> str:
    """Return the scale of differences as a title: ``p=64``; "" = it is not known."""
    pair = forecast.inputs.pair
    if pair.has_unknown_scale:
        return ""
    return as_option({pair.parameter: changes.scale})


def _differences(title: str, values: NodeDifferences, unit: str, style: TextStyle) -> TextColumn:
    """Return the column of differences; losses and gains have colours."""
    pairs = zip(values.change.tolist(), values.is_doubted.tolist(), strict=True)
    cells = [
        "~" * doubted + difference_text_of(change, unit, style=style) for change, doubted in pairs
    ]
    return TextColumn(title, cells, styles=difference_styles(values))


def difference_text_of(change: float, unit: str, *, style: TextStyle) -> str:
    """Return a difference with its sign: ``+1.20 s``; ``-`` = not known."""
    return ("+" if change > 0 else "") + style.amount(change, unit)


def difference_styles(values: NodeDifferences) -> list[str]:
    """Return the colour of each difference.

    With known noise, differences beyond noise have colours. Otherwise, differences of a noticeable
    part of the total have.
    """
    marks = np.where(
        np.isnan(values.p),
        np.sign(np.nan_to_num(values.share)) * (np.abs(values.share) >= NOTICEABLE),
        values.mark,
    )
    return [{1: LOSS, -1: GAIN}.get(mark, "") for mark in marks.astype(int).tolist()]


def ratio_texts(values: NodeDifferences) -> list[str]:
    """Return new over base as text; ``new`` and ``gone`` = occurs in one experiment only."""
    columns = (values.ratio, values.in_base, values.in_new)
    return [
        _number(ratio) if in_base == in_new else "gone" if in_base else "new"
        for ratio, in_base, in_new in zip(*(c.tolist() for c in columns), strict=True)
    ]


def ratio_interval(low: float, high: float) -> str:
    """Return an interval of ratios as text; "" without one."""
    return "" if np.isnan(low) else f"{_number(low)} … {_number(high)}"


def _number(ratio: float) -> str:
    return significant(ratio) if np.isfinite(ratio) else "-"
