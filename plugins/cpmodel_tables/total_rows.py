"""Rows of a table with the total of all other call paths, such as ``total`` and ``Summe``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from callpath_modeler.arrays import IntArray
from callpath_modeler.readers.records import Records
from callpath_modeler.readers.titles import Title, read_title
from cpmodel_tables.grouped_rows import refined
from cpmodel_tables.title_words import plain

_TOTALS = frozenset({"total", "sum", "summe", "gesamt", "overall", "all", "whole"})
_ROUNDING = 0.005
"""Largest relative excess of the sum of the other call paths over their total."""


def with_total_as_root(records: Records) -> Records:
    """Return records with the total of all other call paths as their caller.

    A row is a total if its name says so, and if its time is at least the sum of the others in every
    run. The rest is the own time of the total.
    """
    named = [k for k, path in enumerate(records.paths) if len(path) == 1]
    named = [k for k in named if plain(records.paths[k][0]) in _TOTALS]
    if len(named) != 1 or len(records.paths) < 2 or records.are_events:
        return records
    (root,) = named
    (name,) = records.paths[root]
    if any(path[0] == name for k, path in enumerate(records.paths) if k != root):
        return records
    known = {k: read_title(t, records.units.get(t)) for k, t in enumerate(records.titles)}
    known = {k: title for k, title in known.items() if title.additive}
    times = [k for k, title in known.items() if title.unit == "s"] or [*known]
    setting = _settings(records)
    if not times or not _is_total(records, root, setting, times[0], known[times[0]]):
        return records
    found = [k for k, title in known.items() if not title.inclusive]
    found = [k for k in found if _is_total(records, root, setting, k, known[k])]
    paths = [path if k == root else (name, *path) for k, path in enumerate(records.paths)]
    return replace(records, paths=paths, whole=root, of_whole=frozenset(found))


def _settings(records: Records) -> IntArray:
    """Return the number of the setting of each row, [n]."""
    setting = np.zeros(len(records.values), np.intp)
    cases = [records.words[title] for title in records.cases if title in records.words]
    for column in (*records.parameters.values(), *cases):
        setting = refined(setting, [*column])
    return setting if records.repetition is None else refined(setting, [*records.repetition])


def _is_total(records: Records, root: int, setting: IntArray, k: int, title: Title) -> bool:
    """Return whether the values of a call path are totals of the others in a column of values."""
    is_top = np.array([not title.inclusive or len(path) == 1 for path in records.paths])
    mine = (records.title == k) & is_top[records.path] & ~np.isnan(records.values)
    of_root = mine & (records.path == root)
    others = mine & ~of_root
    if not others.any():
        return False
    most = int(setting.max()) + 1
    total = np.bincount(setting[of_root], records.values[of_root], most)
    parts = np.bincount(setting[others], records.values[others], most)
    return bool((total >= (1 - _ROUNDING) * parts).all() and (total > 0).any())
