"""Subtrees that occur on one side of a comparison only, as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from callpath_modeler.analysis.unmatched import Unmatched
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.report.layout import TextStyle, shorten
from callpath_modeler.report.outlined_view import NAMED, short_names
from callpath_modeler.report.table_formats import json_number
from callpath_modeler.units import counted, percent

_LISTED = 5
"""Number of subtrees of a side that are listed."""


def unmatched_lines(
    parted: Unmatched,
    tree: CallTree,
    unit: str,
    heading: Callable[[bool, str, str], str],
    *,
    style: TextStyle,
) -> list[str]:
    """Return the costliest subtrees of each side, those of the new side first.

    Parameters
    ----------
    parted : the subtrees
    tree : call tree of both sides
    unit : unit of costs
    heading : function that returns the heading of a side, from whether it is the new one, the
        number of call paths, and their share
    style : characters of text
    """
    lines = []
    for is_new in (True, False):
        mine = np.flatnonzero(parted.is_new == is_new)
        if not len(mine):
            continue
        count, share = int(parted.callpaths[mine].sum()), float(parted.share[mine].sum())
        lines.append(heading(is_new, counted(count, "call path"), percent(share)))
        for place in mine[:_LISTED]:
            cost = style.amount(float(parted.cost[place]), unit)
            path = shorten(short_names(tree.names(int(parted.rows[place]))), NAMED)
            lines.append(f"  {cost:>8}  {percent(float(parted.share[place])):>5}  {path}")
        if len(mine) > _LISTED:
            rest = percent(float(parted.share[mine[_LISTED:]].sum()))
            lines.append(f"  ... and {len(mine) - _LISTED} more places, {rest}")
    return lines


def unmatched_json(
    parted: Unmatched, tree: CallTree, sides: tuple[str, str]
) -> list[dict[str, object]]:
    """Return the subtrees as JSON; `sides` names the base and the new side."""
    columns = (parted.rows, parted.is_new, parted.cost, parted.share, parted.callpaths)
    return [
        {
            "callpath": tree.path(row),
            "occurs": sides[is_new],
            "cost": cost,
            "share": json_number(share),
            "callpaths": count,
        }
        for row, is_new, cost, share, count in zip(*(c.tolist() for c in columns), strict=True)
    ]
