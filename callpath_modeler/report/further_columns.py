"""Columns that not every ranking has: energy, verdicts, measurements, changes and gains."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.answer import By
from callpath_modeler.arrays import FloatArray
from callpath_modeler.report.ranking_columns import RankedRows, unit
from callpath_modeler.report.table_formats import Cell, Column

if TYPE_CHECKING:
    from callpath_modeler.analysis.expectations.check_result import Check
    from callpath_modeler.analysis.verification import Verification
    from callpath_modeler.analysis.what_if import WhatIf


def verdict_columns(check: Check) -> tuple[Column[RankedRows], ...]:
    """Return the worst status of the expectations that select a call path, and the first of them.

    None = no expectation selects the call path.
    """
    known = check.of_call_paths()

    def words(rows: RankedRows) -> list[Cell]:
        found = (known.get(row) for row in rows.rows.tolist())
        return [None if each is None else str(each[0]) for each in found]

    def names(rows: RankedRows) -> list[Cell]:
        found = (known.get(row) for row in rows.rows.tolist())
        return [None if each is None else each[1].name for each in found]

    return (
        Column("verdict", words, "check", lambda word: (word or "").upper(), right=False),
        Column("expectation", names),
    )


def verification_columns(found: Verification) -> tuple[Column[RankedRows], ...]:
    """Return the measurements at the target, and the bands that hold; None = not known."""

    def holds(rows: RankedRows) -> list[Cell]:
        known = (found.modelled & ~np.isnan(found.value))[rows.rows].tolist()
        inside = found.inside[rows.rows].tolist()
        return [held if is_known else None for held, is_known in zip(inside, known, strict=True)]

    return (
        Column(
            "verified_value", lambda rows: found.value[rows.rows], "measured", unit=unit, place=5
        ),
        Column("holds", holds, "holds", holds_text, right=False, place=6),
    )


def gain_columns() -> tuple[Column[RankedRows], ...]:
    """Return what the run gains without each call path, with the band."""

    def gains(end: str, rows: RankedRows) -> FloatArray:
        return rows.of_ranked(getattr(rows.gains, end))

    return (
        Column(
            "gain",
            partial(gains, "value"),
            "gain",
            unit=unit,
            place=7,
            help="[time of the run](../explanation/requirements.md#what-a-change-gains) that goes "
            "away without the call path, waiting for it included",
        ),
        *(
            Column(f"gain_{end}", partial(gains, end), unit=unit, help="band of the gain")
            for end in ("low", "high")
        ),
    )


def energy_columns() -> tuple[Column[RankedRows], ...]:
    """Return the energy of each call path at the target, with its band."""

    def joules(end: str, rows: RankedRows) -> FloatArray:
        energy = rows.ranking.energy
        known = rows.ranking.value if energy is None else getattr(energy, end)
        return rows.of_ranked(known[rows.rows])

    return (
        Column(
            "energy",
            partial(joules, "value"),
            "energy",
            unit="J",
            place=4,
            help="energy at the target, with the statistic over processes of the values",
            applies=lambda rows: rows.ranking.by is By.ENERGY,
        ),
        *(
            Column(f"energy_{end}", partial(joules, end), unit="J", help="band of the energy")
            for end in ("low", "high")
        ),
    )


def changed_columns(changed: WhatIf) -> tuple[Column[RankedRows], ...]:
    """Return the values after the changes of a user."""
    return (
        Column(
            "changed",
            lambda rows: rows.of_ranked(changed.values[rows.rows]),
            "changed",
            unit=unit,
            place=4,
            help="value at the target after the changes of --what-if, exclusive",
        ),
    )


def further_columns(
    check: Check | None,
    verified: Verification | None,
    changed: WhatIf | None = None,
    *,
    gains: bool = False,
    energy: bool = False,
) -> list[Column[RankedRows]]:
    """Return the columns of energy, expectations, measurements, changes and gains, if there are."""
    return [
        *(energy_columns() if energy else ()),
        *(() if check is None else verdict_columns(check)),
        *(() if verified is None else verification_columns(verified)),
        *(() if changed is None else changed_columns(changed)),
        *(gain_columns() if gains else ()),
    ]


def holds_text(holds: bool | None) -> str:
    """Return whether a band holds as text; "" = not known."""
    return "" if holds is None else "yes" if holds else "NO"
