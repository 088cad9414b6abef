"""Values of CUBE 3 files, which are text among the definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import InputError
from callpath_modeler.numerals import decimals_of
from cpmodel_scorep.container import COPY_IT_AGAIN
from cpmodel_scorep.definitions import Definitions, MalformedError
from cpmodel_scorep.rows import InMemoryRows

_MATRIX = re.compile(rb"<matrix\s+metricId=[\"'](\d{1,18})[\"']\s*>")
_ROW = re.compile(rb"<row\s+cnodeId=[\"'](\d{1,18})[\"']\s*>([^<]*)</row>")


def split(text: bytes) -> tuple[bytes, bytes]:
    """Return the definitions of a CUBE 3 document, still as XML, and its values.

    Raises
    ------
    MalformedError
        If the values have no end tag.
    """
    begin, end = text.find(b"<severity>"), text.rfind(b"</severity>")
    if begin < 0:
        return text, b""
    if end < begin:
        raise MalformedError("the file is cut off within the values")
    return text[:begin] + text[end + len(b"</severity>") :], text[begin:end]


def values(text: bytes, definitions: Definitions, where: str) -> dict[int, InMemoryRows]:
    """Return the rows of each metric by its id.

    Raises
    ------
    InputError
        If a row has no call path, or does not have one number per thread.
    """
    paths = {number: row for row, number in enumerate(definitions.call_paths.ids.tolist())}
    columns = len(definitions.locations.ids)
    held: dict[int, InMemoryRows] = {}
    for number, body in _matrices(text):
        found: dict[int, FloatArray] = {}
        for path, row in _ROW.findall(body):
            if int(path) not in paths:
                what = f"{where}: there are values for call path {int(path)}, which is not defined"
                raise InputError(what, hint=COPY_IT_AGAIN)
            found[paths[int(path)]] = _numbers(row, columns, where)
        places = sorted(found)
        matrix = np.array([found[place] for place in places]).reshape(-1, columns)
        held.setdefault(number, InMemoryRows(np.array(places, np.int64), matrix))
    return held


def _matrices(text: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while (found := _MATRIX.search(text, at)) is not None:
        at = text.find(b"</matrix>", found.end())
        if at < 0:
            return
        yield int(found[1]), text[found.end() : at]


def _numbers(row: bytes, columns: int, where: str) -> FloatArray:
    try:
        numbers = decimals_of(row.decode("latin-1").split())
    except ValueError as error:
        raise InputError(f"{where}: {error}", hint=COPY_IT_AGAIN) from None
    if len(numbers) != columns:
        raise InputError(
            f"{where}: a row has {len(numbers)} values for {columns} locations",
            hint=COPY_IT_AGAIN,
        )
    return numbers
