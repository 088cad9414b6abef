"""Tables in JSON: lists of objects, and all layouts of pandas."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from callpath_modeler.errors import InputError
from cpmodel_tables.grid import HINT, Grid, of_rows
from cpmodel_tables.layout import is_table
from cpmodel_tables.text import json_of

_ROWS = re.compile(r'\s*(\[\s*)?\{\s*"')
_OBJECTS = re.compile(r"\s*\[\s*(?=\{)")
_SPLIT = re.compile(r'\s*\{\s*"columns"\s*:\s*(?=\[)')
_SCHEMA = re.compile(r'\s*\{\s*"schema"\s*:\s*\{\s*"fields"\s*:\s*(?=\[)')
_BY_TITLE = re.compile(r'\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*(?![\[{])')
_BY_LIST = re.compile(r'\s*\{\s*"((?:[^"\\]|\\.)*)"\s*:\s*\[\s*(?:-?\d|"|null|true|false)')
_NEXT_LIST = re.compile(r'\]\s*,\s*"((?:[^"\\]|\\.)*)"\s*:\s*\[')
_TITLE = re.compile(r'\}\s*,\s*"((?:[^"\\]|\\.)*)"\s*:\s*\{')
_DECODER = json.JSONDecoder()


def is_frame(text: str) -> bool | None:
    """Return whether JSON is a table of measurements, by its first block.

    Returns
    -------
    None if the layout is the one of a table, but the titles in the block do not decide.
    """
    if _ROWS.match(text) and '"callpath"' in text:
        return True
    for pattern in (_OBJECTS, _SPLIT, _SCHEMA):
        begins = pattern.match(text)
        if begins:
            return _is_known(_first(text, begins.end()))
    first = _BY_LIST.match(text)
    if first:
        return is_table([first[1], *_NEXT_LIST.findall(text)])
    first = _BY_TITLE.match(text)
    if not first:
        return False
    titles = [first[1], *_TITLE.findall(text)]
    inner = _first(text, text.index("{", text.index("{") + 1))
    known = is_table(titles) or (isinstance(inner, dict) and is_table([*inner]))
    return True if known else None


def _first(text: str, at: int) -> object:
    try:
        return _DECODER.raw_decode(text, at)[0]
    except (ValueError, RecursionError):
        # The block ends in the middle of the JSON text.
        return None


def _is_known(held: object) -> bool | None:
    if isinstance(held, dict):
        return is_table([str(key) for key in held])
    if not isinstance(held, list):
        return None
    names = [each.get("name") if isinstance(each, dict) else each for each in held]
    return is_table([str(name) for name in names])


def of_json(path: Path, text: str) -> Grid:
    """Return the table in JSON: a list of objects, such a list as ``rows``, or a pandas frame.

    Raises
    ------
    InputError
        If the JSON has another layout.
    """
    document = json_of(path, text)
    units = document.get("units") if isinstance(document, dict) else None
    rows = _rows_of(document)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: not a list of JSON objects", hint=HINT)
    grid = of_rows(path, rows)
    known = units if isinstance(units, dict) else {}
    known = {title: unit for title, unit in known.items() if isinstance(unit, str)}
    return replace(grid, units=known)


def _rows_of(document: object) -> object:
    """Return the rows of a table in any of the layouts; another object if it has none."""
    if not isinstance(document, dict) or "rows" in document:
        return document.get("rows") if isinstance(document, dict) else document
    titles, data = document.get("columns"), document.get("data")
    if isinstance(titles, list) and isinstance(data, list):
        fits = all(isinstance(row, list) and len(row) == len(titles) for row in data)
        named = [*map(str, titles)]
        return [dict(zip(named, row, strict=True)) for row in data] if fits else None
    if "schema" in document:
        return data
    lengths = {len(held) if isinstance(held, list) else -1 for held in document.values()}
    if len(lengths) == 1 and -1 not in lengths:
        cells = zip(*document.values(), strict=True)
        return [dict(zip(map(str, document), row, strict=True)) for row in cells]
    is_crossed = bool(document) and all(isinstance(held, dict) for held in document.values())
    return _crossed(document) if is_crossed else None


def _crossed(document: Mapping[str, dict[str, object]]) -> object:
    """Return the rows of nested objects: by title and row, or by row and title."""
    first = next(iter(document.values()))
    if is_table([*first]) and not is_table([*document]):
        return [*document.values()]
    rows: dict[str, dict[str, object]] = {}
    for title, cells in document.items():
        for key, cell in cells.items():
            rows.setdefault(key, {})[title] = cell
    return [*rows.values()]
