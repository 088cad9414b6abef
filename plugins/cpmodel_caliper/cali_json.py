"""Caliper's JSON: json-split (a table and the nodes of its cells), and a list of records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from callpath_modeler.errors import MalformedError
from callpath_modeler.printable import shortened
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.support.input_limits import json_value
from callpath_modeler.units import decimal_of
from cpmodel_caliper.contents import (
    FUNCTIONS,
    LABELS,
    RANK,
    REGIONS,
    SAMPLES,
    Contents,
    Quantity,
    SourcePlace,
)

_T = TypeVar("_T")
_SPLIT = re.compile(r'\s*\{\s*"(?:data"\s*:\s*\[\s*\[|(?:columns|column_metadata|nodes)"\s*:\s*\[)')
_PARTS = tuple(
    re.compile(pattern)
    for pattern in (r'"data"\s*:\s*\[\s*\[', r'"columns"\s*:\s*\[', r'"nodes"\s*:\s*\[')
)
_RECORDS = re.compile(r'\s*(?:\{\s*"records"\s*:\s*)?\[\s*\{')
_OBJECT = re.compile(r'\s*\{\s*"(?:attributes|globals|records)"\s*:')
_TELLING = re.compile(r'"(?:mpi\.rank|time\.duration(?:\.ns)?|[a-z_]+#[^"]+)"\s*:')
_FEW = 4096
_SHOWN = 40
_SECTIONS = frozenset({"data", "columns", "column_metadata", "nodes", "records", "attributes"})


def is_json(text: str, whole: Callable[[], str]) -> bool:
    """Return whether a text is JSON of Caliper, for any order of its keys.

    Parameters
    ----------
    text : beginning of the text
    whole : function that returns the whole text
    """
    if _SPLIT.match(text):
        return _begins_with_data(text) or all(part.search(whole()) for part in _PARTS)
    if _RECORDS.match(text):
        return _TELLING.search(text[:_FEW]) is not None
    return bool(_OBJECT.match(text)) and _TELLING.search(whole()) is not None


def _begins_with_data(text: str) -> bool:
    found = _PARTS[0].search(text)
    return found is not None and text[: found.start()].strip() == "{"


def read(text: str) -> Contents:
    """Return the contents of Caliper's JSON.

    Raises
    ------
    MalformedError
        If the text has another format; the message names the line, row or record.
    """
    try:
        document = json_value(text)
    except json.JSONDecodeError as error:
        raise MalformedError(f"line {error.lineno}: not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:
        raise MalformedError(f"line 1: not JSON of Caliper ({error})") from None
    if isinstance(document, list):
        return _of_records(document, {})
    if not isinstance(document, dict):
        raise MalformedError("line 1: neither a table nor a list of records")
    if "records" in document:
        return _of_records(_list(document, "records"), document)
    return _of_table(document)


def _of_table(document: Mapping[str, object]) -> Contents:
    contents = Contents()
    titles = [_text(title, "a column") for title in _list(document, "columns")]
    described = _list(document, "column_metadata") if "column_metadata" in document else []
    described += [{}] * (len(titles) - len(described))
    for title, about in zip(titles, described, strict=False):
        contents.quantities[title] = _quantity(about)
    labels, paths = _nodes(contents, _list(document, "nodes"))
    rows = _list(document, "data")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, list) or len(row) != len(titles):
            raise MalformedError(f"row {number} of the data needs one value per column")
    said: dict[str, Sequence[object]] = {}
    measured: list[tuple[str, Sequence[object]]] = []
    # There may be millions of rows, so the work is done by column.
    cells_of = dict(zip(titles, zip(*rows, strict=True), strict=False))
    for title, about in zip(titles, described, strict=False):
        cells = cells_of.get(title, ())
        if not _is_value(about):
            said |= {title: _told(labels, cells, None)} if title in LABELS else {}
        elif title in LABELS:
            said[title] = cells
        else:
            measured.append((title, cells))
    on_path = _path_columns(titles, described, _list(document, "nodes"))
    node = _call_paths(contents, on_path, cells_of, paths, len(rows))
    kept = _begin(contents, node, said)
    for title, cells in measured:
        _add_column(contents, title, cells, kept)
    known = [SourcePlace.of(label) for label in labels] if SAMPLES in cells_of else []
    for record, place in zip(kept, _told(known, cells_of.get(SAMPLES, ()), None), strict=False):
        if record is not None and place is not None:
            contents.place(record, place)
    _take_globals(contents, document)
    return contents


def _call_paths(
    contents: Contents,
    columns: Sequence[Sequence[str]],
    cells: Mapping[str, Sequence[object]],
    paths: Sequence[int],
    rows: int,
) -> list[int]:
    """Return the call path of each row, from the first columns that contain one."""
    found = [ROOT] * rows
    for titles in reversed(columns):
        node = [ROOT] * rows
        for title in titles:
            node = _below(contents, node, _told(paths, cells.get(title, ()), ROOT))
        found = [own if own != ROOT else other for own, other in zip(node, found, strict=True)]
    return found


def _told(of_node: Sequence[_T], cells: Sequence[object], nothing: _T) -> list[_T]:
    """Return the property of the node in each cell, and `nothing` for empty cells."""
    count = len(of_node)
    if {*map(type, cells)} == {int}:
        numbers = cast("Sequence[int]", cells)
        if min(numbers) >= 0 and max(numbers) < count:
            return [of_node[number] for number in numbers]
    return [
        nothing if cell is None else of_node[_node_number(cell, count, row)]
        for row, cell in enumerate(cells, 1)
    ]


def _below(contents: Contents, callers: Sequence[int], nodes: Sequence[int]) -> list[int]:
    """Return the call paths of `nodes` below their callers; `ROOT` means no call path."""
    return [
        node if caller == ROOT else contents.path_below(caller, node)
        for caller, node in zip(callers, nodes, strict=True)
    ]


def _begin(
    contents: Contents, nodes: Sequence[int], said: Mapping[str, Sequence[object]]
) -> Sequence[int | None]:
    """Begin a record for every included row, and return the record numbers."""
    ranks = said.get(RANK, ())
    if said.keys() <= {RANK} and {*map(type, ranks)} <= {int}:
        try:
            return contents.begin_all(nodes, cast("Sequence[int]", ranks))
        except ValueError as error:
            raise MalformedError(f"the data: {error}") from None
    records = []
    for row, node in enumerate(nodes):
        labels = {
            name: _text(cells[row], f"row {row + 1}: {name}")
            for name, cells in said.items()
            if cells[row] is not None
        }
        records.append(_record(contents, node, labels, f"row {row + 1}"))
    return records


def _add_column(
    contents: Contents, title: str, cells: Sequence[object], records: Sequence[int | None]
) -> None:
    """Add the values in a column to the values of the attribute."""
    if isinstance(records, range) and {*map(type, cells)} == {float}:
        contents.column(title).records.extend(records)
        contents.column(title).values.extend(cast("Sequence[float]", cells))
        return
    for row, (cell, record) in enumerate(zip(cells, records, strict=True), 1):
        value = cell if type(cell) is float else _number(title, cell, f"row {row}")
        if value is not None and record is not None:
            contents.column(title).add(record, value)


def _nodes(contents: Contents, nodes: Sequence[object]) -> tuple[list[str], list[int]]:
    """Return the label and the call path of every node; callers come first."""
    labels: list[str] = []
    paths: list[int] = []
    for number, node in enumerate(nodes):
        if not isinstance(node, dict) or "label" not in node:
            raise MalformedError(f"node {number} has no label")
        parent = node.get("parent")
        above = ROOT if parent is None else paths[_node_number(parent, number, number)]
        labels.append(_text(node["label"], f"the label of node {number}"))
        # Nodes of other columns, such as the channel, are not call paths, but may be many.
        of_path = _text(node.get("column", "path"), f"the column of node {number}") not in LABELS
        paths.append(contents.path(above, labels[-1]) if of_path else ROOT)
    return labels, paths


def _path_columns(
    titles: Sequence[str], described: Sequence[object], nodes: Sequence[object]
) -> list[list[str]]:
    """Return the groups of columns with call paths; later groups are for rows without earlier ones.

    Functions on the call stack have precedence over regions, and nested attributes over others,
    because a sample also contains its module and its function alone.
    """
    hierarchic = [
        title
        for title, about in zip(titles, described, strict=False)
        if not _is_value(about) and title not in LABELS
    ]
    regions = ["path"] if "path" in hierarchic else [t for t in hierarchic if t in REGIONS]
    found = [columns for columns in ([FUNCTIONS] * (FUNCTIONS in hierarchic), regions) if columns]
    if found:
        return found
    nested = {node.get("column") for node in nodes if isinstance(node, dict) and "parent" in node}
    ordered = sorted(
        hierarchic,
        key=lambda title: (title not in nested, not title.startswith("source.function")),
    )
    return [ordered[:1]] if ordered else []


def _node_number(cell: object, count: int, row: int) -> int:
    if isinstance(cell, int) and 0 <= cell < count:
        return cell
    raise MalformedError(f"row {row} refers to node {_shown(cell)}, which does not exist")


def _of_records(records: Sequence[object], document: Mapping[str, object]) -> Contents:
    contents = Contents()
    attributes = document.get("attributes")
    for name, about in attributes.items() if isinstance(attributes, dict) else ():
        contents.quantities[name] = _quantity(about)
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise MalformedError(f"record {number} is not an object")
        regions = [key for key in REGIONS if key in record]
        nested = [FUNCTIONS] if FUNCTIONS in record else regions
        if len(nested) > 1 and "path" not in nested:
            raise MalformedError(
                f"record {number}: the order of {' and '.join(nested)} is unknown; "
                "write json-split, or select path"
            )
        node = ROOT
        where = f"record {number}"
        told = _text(record[nested[0]], f"{where}: {nested[0]}").split("/") if nested else ()
        for name in told:
            node = contents.path(node, name)
        labels = {name: _text(record[name], f"{where}: {name}") for name in LABELS & record.keys()}
        begun = _record(contents, node, labels, where)
        for name, cell in record.items():
            value = None if name in LABELS or name in REGIONS else _number(name, cell, where)
            if begun is not None and value is not None:
                contents.column(name).add(begun, value)
    _take_globals(contents, document)
    return contents


def _number(name: str, cell: object, where: str) -> float | None:
    """Return the value of an attribute; None = empty cell."""
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        try:
            return float(cell)
        except OverflowError:
            raise MalformedError(f"{where}: {name} is not a finite number") from None
    if isinstance(cell, str) and "#" in name:
        try:
            return decimal_of(cell)
        except ValueError:
            return None
    return None


def _record(contents: Contents, node: int, labels: Mapping[str, str], where: str) -> int | None:
    try:
        return contents.begin(node, labels)
    except ValueError as error:
        raise MalformedError(f"{where}: {error}") from None


def _take_globals(contents: Contents, document: Mapping[str, object]) -> None:
    inner = document.get("globals")
    told = {**document, **inner} if isinstance(inner, dict) else document
    for name, value in told.items():
        if name not in _SECTIONS and isinstance(value, str | int | float):
            contents.globals[name] = str(value)


def _list(document: Mapping[str, object], key: str) -> list[object]:
    value = document.get(key)
    if not isinstance(value, list):
        raise MalformedError(f"line 1: the list {key!r} is missing")
    return list(value)


def _text(value: object, what: str) -> str:
    """Return a value that must be text or a number, as text."""
    if not isinstance(value, str | int | float):
        raise MalformedError(f"{what} is not text: {_shown(value)}")
    return str(value)


def _shown(value: object) -> str:
    """Return the beginning of a value, because nested values may be very long."""
    shown = repr(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"
    return shortened(shown, _SHOWN)


def _is_value(about: object) -> bool:
    return not isinstance(about, dict) or about.get("is_value") is not False


def _quantity(about: object) -> Quantity:
    if not isinstance(about, dict):
        return Quantity()
    told = [about.get(key) for key in ("attribute.unit", "unit", "time.unit")]
    unit = next((unit for unit in told if isinstance(unit, str) and unit), "")
    alias = about.get("attribute.alias")
    return Quantity(unit, alias if isinstance(alias, str) else "")
