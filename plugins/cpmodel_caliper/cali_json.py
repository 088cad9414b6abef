"""Caliper's JSON: json-split (a table and the nodes that it refers to) and a list of records."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from callpath_modeler.profile.calltree import ROOT
from cpmodel_caliper.contents import CHANNELS, RANK, Contents, MalformedError, Quantity

_SPLIT = re.compile(r'\s*\{\s*"data"\s*:\s*\[\s*\[')
_RECORDS = re.compile(r'\s*(?:\{\s*"records"\s*:\s*)?\[\s*\{')
_TELLING = re.compile(r'"(?:mpi\.rank|time\.duration(?:\.ns)?|[a-z_]+#[^"]+)"\s*:')
_FEW = 4096
_LABELS = frozenset({RANK, *CHANNELS})
_NESTED = ("path", "region", "function", "annotation", "loop", "mpi.function")
_SECTIONS = frozenset({"data", "columns", "column_metadata", "nodes", "records", "attributes"})


def is_json(text: str) -> bool:
    """Tell from the beginning of a text whether it is JSON as Caliper writes it."""
    if _SPLIT.match(text):
        return True
    return bool(_RECORDS.match(text)) and _TELLING.search(text[:_FEW]) is not None


def read(text: str) -> Contents:
    """Read Caliper's JSON.

    Raises
    ------
    MalformedError
        If it is none; names the line, or the row or record.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise MalformedError(f"line {error.lineno}: no JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:
        raise MalformedError(f"line 1: no JSON of Caliper ({error})") from None
    if isinstance(document, list):
        return _of_records(document, {})
    if not isinstance(document, dict):
        raise MalformedError("line 1: neither a table nor a list of records")
    if "records" in document:
        return _of_records(_list(document, "records"), document)
    return _of_table(document)


def _of_table(document: Mapping[str, object]) -> Contents:
    contents = Contents()
    titles = [str(title) for title in _list(document, "columns")]
    described = _list(document, "column_metadata") if "column_metadata" in document else []
    described += [{}] * (len(titles) - len(described))
    for title, about in zip(titles, described, strict=False):
        contents.quantities[title] = _quantity(about)
    labels, paths = _nodes(contents, _list(document, "nodes"))
    columns = _path_columns(titles, described)
    for number, row in enumerate(_list(document, "data"), 1):
        if not isinstance(row, list) or len(row) != len(titles):
            raise MalformedError(f"row {number} of the data has not one value per column")
        node = ROOT
        said: dict[str, str] = {}
        values: dict[str, float] = {}
        for title, about, cell in zip(titles, described, row, strict=False):
            if cell is None:
                continue
            if _is_value(about):
                _sort(title, cell, said, values, f"row {number}")
                continue
            at = _node_number(cell, len(paths), number)
            if title in columns:
                node = paths[at] if node == ROOT else contents.path_below(node, paths[at])
            elif title in _LABELS:
                said[title] = labels[at]
        _add(contents, node, said, values, f"row {number}")
    _take_globals(contents, document)
    return contents


def _nodes(contents: Contents, nodes: Sequence[object]) -> tuple[list[str], list[int]]:
    """Return label and call path of every node; callers come first."""
    labels: list[str] = []
    paths: list[int] = []
    for number, node in enumerate(nodes):
        if not isinstance(node, dict) or "label" not in node:
            raise MalformedError(f"node {number} has no label")
        parent = node.get("parent")
        above = ROOT if parent is None else paths[_node_number(parent, number, number)]
        labels.append(str(node["label"]))
        # Nodes of other columns (the channel, say) make no call paths, but may be many.
        of_path = node.get("column", "path") not in _LABELS
        paths.append(contents.path(above, labels[-1]) if of_path else ROOT)
    return labels, paths


def _path_columns(titles: Sequence[str], described: Sequence[object]) -> set[str]:
    if "path" in titles:
        return {"path"}
    hierarchic = [
        title
        for title, about in zip(titles, described, strict=False)
        if not _is_value(about) and title not in _LABELS
    ]
    return {title for title in hierarchic if title in _NESTED} or set(hierarchic[:1])


def _node_number(cell: object, count: int, row: int) -> int:
    if isinstance(cell, int) and 0 <= cell < count:
        return cell
    raise MalformedError(f"row {row} refers to node {cell!r}, which is not there")


def _of_records(records: Sequence[object], document: Mapping[str, object]) -> Contents:
    contents = Contents()
    attributes = document.get("attributes")
    for name, about in attributes.items() if isinstance(attributes, dict) else ():
        contents.quantities[name] = _quantity(about)
    for number, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise MalformedError(f"record {number} is no object")
        nested = [key for key in _NESTED if key in record]
        if len(nested) > 1 and "path" not in nested:
            raise MalformedError(
                f"record {number}: the order of {' and '.join(nested)} is not told; "
                "write json-split, or select path"
            )
        node = ROOT
        for name in str(record[nested[0]]).split("/") if nested else ():
            node = contents.path(node, name)
        labels: dict[str, str] = {}
        values: dict[str, float] = {}
        for name, cell in record.items():
            if name not in _NESTED:
                _sort(name, cell, labels, values, f"record {number}")
        _add(contents, node, labels, values, f"record {number}")
    _take_globals(contents, document)
    return contents


def _sort(
    name: str, cell: object, labels: dict[str, str], values: dict[str, float], where: str
) -> None:
    """Put a cell where it belongs: to the labels of its record, or to its values."""
    if name in _LABELS:
        labels[name] = str(cell)
    elif isinstance(cell, int | float) and not isinstance(cell, bool):
        try:
            values[name] = float(cell)
        except OverflowError:
            raise MalformedError(f"{where}: {name} is no number of this world") from None
    elif isinstance(cell, str) and "#" in name:
        try:
            values[name] = float(cell)
        except ValueError:
            return


def _add(
    contents: Contents,
    node: int,
    labels: Mapping[str, str],
    values: Mapping[str, float],
    where: str,
) -> None:
    try:
        record = contents.begin(node, labels)
    except ValueError:
        raise MalformedError(f"{where}: {RANK} is no number") from None
    if record is None:
        return
    for name, value in values.items():
        column = contents.column(name)
        column.records.append(record)
        column.values.append(value)


def _take_globals(contents: Contents, document: Mapping[str, object]) -> None:
    inner = document.get("globals")
    told = {**document, **inner} if isinstance(inner, dict) else document
    for name, value in told.items():
        if name not in _SECTIONS and isinstance(value, str | int | float):
            contents.globals[name] = str(value)


def _list(document: Mapping[str, object], key: str) -> list[object]:
    value = document.get(key)
    if not isinstance(value, list):
        raise MalformedError(f"line 1: no list {key!r}")
    return list(value)


def _is_value(about: object) -> bool:
    return not isinstance(about, dict) or about.get("is_value") is not False


def _quantity(about: object) -> Quantity:
    if not isinstance(about, dict):
        return Quantity()
    unit = about.get("attribute.unit") or about.get("unit") or about.get("time.unit") or ""
    return Quantity(str(unit), str(about.get("attribute.alias") or ""))
