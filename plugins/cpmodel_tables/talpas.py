"""TaLPas files, an input format of Extra-P: lines of JSON with semicolons instead of commas."""

from __future__ import annotations

import re
from pathlib import Path

from callpath_modeler.errors import InputError
from cpmodel_tables.grid import Grid, of_rows
from cpmodel_tables.text import json_of, whole_text

_SEMICOLON = re.compile(r';(?=\s{0,8}"(?:parameters|metric|callpath|value)"\s{0,8}:)')
_BEGINS = re.compile(r'\s*\{\s*"[a-z]+"\s*:[^\n]*;\s*"[a-z]+"\s*:')


def is_talpas(text: str) -> bool:
    """Return whether a text is in this format, by its first line."""
    return bool(_BEGINS.match(text)) and '"parameters"' in text.lstrip().partition("\n")[0]


def read(path: Path) -> Grid:
    """Return the table in a file.

    Raises
    ------
    InputError
        If a line is not a measurement.
    """
    rows = []
    for number, line in enumerate(whole_text(path, is_json=True).split("\n"), start=1):
        if not line.strip():
            continue
        row = json_of(path, _SEMICOLON.sub(",", line), number)
        if not isinstance(row, dict):
            raise InputError(
                f"{path}: line {number}: not a measurement",
                hint='e.g. {"parameters":{"p":4};"metric":"time";"callpath":"main";"value":2.5}',
            )
        rows.append(row)
    return of_rows(path, rows)
