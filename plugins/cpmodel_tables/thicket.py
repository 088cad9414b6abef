"""Thicket JSON: a graph, values per node and profile, and metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from callpath_modeler.errors import InputError
from callpath_modeler.readers.paths import is_processes, read_title
from cpmodel_tables.grid import Grid, as_numbers
from cpmodel_tables.layout import TableLayout
from cpmodel_tables.text import COPY_IT_AGAIN, json_of, whole_text

_BEGINS = re.compile(r'\s*\{\s*"graph"\s*:\s*\[\s*\{')
_SERVING = frozenset({"node", "nid", "name", "type", "rank", "thread"})
_LONGEST = 200
_MOST_NAMES = 20_000_000
"""Maximum sum of the lengths of all call paths, in names."""
_CREATOR = "Thicket"


def is_json(text: str) -> bool:
    """Return whether JSON was written by Thicket, by its beginning."""
    return bool(_BEGINS.match(text)) and '"children"' in text


def read(path: Path) -> tuple[Grid, TableLayout]:
    """Return the table of values, with call paths from the graph and runs from the metadata.

    Raises
    ------
    InputError
        If parts are missing, or the values belong to single ranks or threads.
    """
    document = json_of(path, whole_text(path))
    held = document if isinstance(document, dict) else {}
    graphs, frame = held.get("graph"), held.get("dataframe")
    if not isinstance(graphs, list) or not isinstance(frame, list) or not frame:
        raise InputError(f"{path}: the graph or the values are missing", hint=COPY_IT_AGAIN)
    rows = [row for row in frame if isinstance(row, dict)]
    for title in ("rank", "thread"):
        if len({str(row.get(title)) for row in rows}) > 1:
            raise InputError(
                f"{path}: the values are per {title}, but one value per call path is needed",
                hint="compute the mean or the maximum in Thicket before you write the file",
            )
    names = _names(path, graphs)
    index = str(held.get("profile_idx_name") or "profile")
    runs = {str(each.get(index)): each for each in _dicts(held.get("metadata"))}
    files = held.get("profile_mapping")
    columns = _measured(rows, held.get("inclusive_metrics"), {*_SERVING, index})
    if not columns:
        raise InputError(f"{path}: the values contain no numbers", hint=COPY_IT_AGAIN)
    values = tuple(columns)
    columns["callpath"] = [_path_of(path, names, row.get("node")) for row in rows]
    told = _told(rows, index, runs, files if isinstance(files, dict) else {})
    columns |= told
    lines = np.arange(1, len(rows) + 1)
    grid = Grid(path, columns, lines, place="row", creator=_CREATOR)
    processes = [title for title in told if is_processes(title)]
    return grid, TableLayout(
        callpath=("callpath",),
        parameters=tuple(processes[:1]),
        values=values,
        repetition=None,
        metric=None,
        unit=None,
        run="file" if "file" in told else None,
        left_out=(),
        metadata=tuple(title for title in told if title not in {"file", *processes[:1]}),
    )


def _dicts(items: object) -> list[Mapping[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _names(path: Path, graphs: Sequence[object]) -> dict[str, list[str]]:
    """Return the call path of each node. A node with several callers belongs to the first one."""
    nodes: dict[str, Mapping[str, Any]] = {}
    for graph in _dicts(list(graphs)):
        nodes |= {str(key): node for key, node in graph.items() if isinstance(node, dict)}
    found: dict[str, list[str]] = {}
    length = 0
    for key in nodes:
        chain: list[str] = []
        at: str | None = key
        seen: set[str] = set()
        while at is not None and at not in found:
            if at in seen or at not in nodes:
                raise InputError(f"{path}: the graph has no root above node {key}",
                                 hint=COPY_IT_AGAIN)  # fmt: skip
            seen.add(at)
            chain.append(at)
            parents = nodes[at].get("parents")
            at = str(parents[0]) if isinstance(parents, list) and parents else None
        above = found[at] if at is not None else []
        for each in reversed(chain):
            length += len(above)
            if length > _MOST_NAMES:
                raise InputError(f"{path}: the call paths are too long", hint=COPY_IT_AGAIN)
            above = [*above, _name(path, each, nodes[each])]
            found[each] = above
    return found


def _name(path: Path, key: str, node: Mapping[str, Any]) -> str:
    data = node.get("data")
    name = data.get("name") if isinstance(data, dict) else None
    if not isinstance(name, str) or not name:
        raise InputError(f"{path}: node {key} of the graph has no name", hint=COPY_IT_AGAIN)
    return name


def _path_of(path: Path, names: Mapping[str, list[str]], node: object) -> list[str]:
    try:
        return names[str(node)]
    except KeyError:
        raise InputError(
            f"{path}: node {str(node)[:20]} has values but is not in the graph", hint=COPY_IT_AGAIN
        ) from None


def _measured(
    rows: Sequence[Mapping[str, Any]], inclusive: object, serving: set[str]
) -> dict[str, Sequence[object]]:
    """Return the columns of numbers."""
    known = {str(title) for title in inclusive} if isinstance(inclusive, list) else set()
    columns: dict[str, Sequence[object]] = {}
    for title in dict.fromkeys(title for row in rows for title in row):
        cells = [row.get(title) for row in rows]
        numbers = as_numbers(cells)
        if title in serving or numbers is None or not np.isfinite(numbers).any():
            continue
        bare = title in known and read_title(title).inclusive is None
        columns[f"{title} (inc)" if bare else title] = cells
    return columns


def _told(
    rows: Sequence[Mapping[str, Any]],
    index: str,
    runs: Mapping[str, Mapping[str, Any]],
    files: Mapping[str, Any],
) -> dict[str, Sequence[object]]:
    """Return the metadata of the run of each row, by title."""
    profiles = [str(row.get(index)) for row in rows]
    distinct = dict.fromkeys(profiles)
    told: dict[str, Sequence[object]] = {}
    for title in dict.fromkeys(title for profile in distinct for title in runs.get(profile, {})):
        of_run = {profile: runs.get(profile, {}).get(title) for profile in distinct}
        plain = all(isinstance(value, str | int | float) for value in of_run.values())
        if title == index or not plain or max(len(str(v)) for v in of_run.values()) > _LONGEST:
            continue
        if is_processes(title):
            told[title] = [of_run[profile] for profile in profiles]
        else:
            texts = {profile: _text(value) for profile, value in of_run.items()}
            told[title] = [texts[profile] for profile in profiles]
    names = {profile: files.get(profile) for profile in distinct}
    if len(distinct) > 1 and all(isinstance(name, str) and name for name in names.values()):
        told["file"] = [names[profile] for profile in profiles]
    told["profile"] = profiles
    return told


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
