"""Definitions from a complete XML parser: slower, for all versions and orders of elements."""

from __future__ import annotations

from collections.abc import Iterable
from pyexpat import ExpatError, ParserCreate

import numpy as np

from callpath_modeler.errors import MalformedError
from callpath_modeler.printable import shortened
from callpath_modeler.profile.schema import Region
from cpmodel_scorep.definitions import (
    CREATOR,
    GPU_TYPES,
    PLACES,
    CallPaths,
    Definitions,
    Locations,
    MetricDefinition,
    call_lines,
    metric_kind,
    place_name,
)

_METRIC_LEAVES = ("disp_name", "uniq_name", "dtype", "uom", "descr", "val")
_LEAVES = frozenset(
    (*_METRIC_LEAVES, "name", "mangled_name", "paradigm", "role", "type", "class", "rank")
)
GROUPS = ("locationgroup", "process")
LOCATIONS = ("location", "thread")
NODES = ("systemtreenode", *PLACES)
_OWNERS = frozenset(("metric", "region", *GROUPS, *LOCATIONS, *NODES))


_DEEPEST = 1 << 17
"""Maximum nesting of elements. Real programs reach 50,000 nested calls."""


class _Record:
    """An element with its attributes and the text of its leaves."""

    __slots__ = ("above", "attributes", "element", "text")

    def __init__(self, element: str, attributes: dict[str, str], above: int) -> None:
        self.element = element
        self.attributes = attributes
        self.text: dict[str, str] = {}
        self.above = above

    def number(self, *keys: str) -> int:
        """Return the first existing attribute among `keys` as a number."""
        for key in keys:
            if key in self.attributes:
                return integer(self.attributes[key])
        raise MalformedError(f"<{self.element}> without {keys[0]}")


class _Builder:
    """Collector of records and call paths for the parser, without recursion and without a tree."""

    def __init__(self) -> None:
        self.attributes: dict[str, str] = {}
        self.records: list[_Record] = []
        self.cnodes: list[tuple[int, int, int, int]] = []
        self.parameters: dict[int, list[tuple[str, str]]] = {}
        self._open: list[str] = []
        self._owners: list[int] = []
        self._callers: list[int] = []
        self._leaf: list[str] | None = None

    def start(self, element: str, attributes: dict[str, str]) -> None:
        self._leaf = [] if element in _LEAVES else None
        if element == "cnode":
            self._start_cnode(attributes)
        elif element == "parameter" and self._callers:
            pair = (attributes.get("parkey", ""), attributes.get("parvalue", ""))
            self.parameters.setdefault(self._callers[-1], []).append(pair)
        elif element == "attr":
            self._start_attribute(attributes.get("key", ""), attributes.get("value", ""))
        elif element == "cube":
            self.attributes.setdefault("version", attributes.get("version", ""))
        elif element in _OWNERS:
            self.records.append(
                _Record(element, attributes, self._owners[-1] if self._owners else -1)
            )
            self._owners.append(len(self.records) - 1)
        self._open.append(element)
        if len(self._open) > _DEEPEST:
            raise MalformedError("the elements are nested too deeply")

    def _start_attribute(self, key: str, value: str) -> None:
        if self._open == ["cube"]:
            self.attributes[key] = value
        elif key == CREATOR and self._open and self._open[-1] in GROUPS:
            self.records[self._owners[-1]].text.setdefault(key, value.strip())

    def _start_cnode(self, attributes: dict[str, str]) -> None:
        try:
            number, callee = attributes["id"], attributes["calleeId"]
        except KeyError as missing:
            raise MalformedError(f"<cnode> without {missing}") from None
        caller = self._callers[-1] if self._callers else -1
        self._callers.append(len(self.cnodes))
        line = integer(attributes.get("line") or "-1")
        self.cnodes.append((integer(number), integer(callee), caller, line))

    def end(self, element: str) -> None:
        self._open.pop()
        if self._leaf is not None:
            if self._owners:
                self.records[self._owners[-1]].text.setdefault(element, "".join(self._leaf).strip())
            self._leaf = None
        elif element == "cnode":
            self._callers.pop()
        elif element in _OWNERS:
            self._owners.pop()

    def characters(self, text: str) -> None:
        if self._leaf is not None:
            self._leaf.append(text)


def parse(text: bytes) -> Definitions:
    """Return the definitions in an XML document in UTF-8.

    Raises
    ------
    MalformedError
        If the text is not well-formed XML, or not an anchor.
    """
    builder = run(text)
    rows = np.array(builder.cnodes, np.int64).reshape(-1, 4)
    ids, regions, callers = (rows[:, k].copy() for k in range(3))
    parameters = {row: tuple(pairs) for row, pairs in builder.parameters.items()}
    return Definitions(
        builder.attributes,
        metrics(builder.records),
        _regions(builder.records),
        CallPaths(ids, regions, callers, parameters, call_lines(rows[:, 3])),
        _locations(builder.records),
    )


def run(text: bytes) -> _Builder:
    """Return the records of `text`."""
    builder = _Builder()
    parser = ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(text, True)
    except ExpatError as error:
        raise MalformedError(str(error)) from None
    return builder


def _refuse_doctype(*_: object) -> None:
    # Entities could expand a small file without limit, and no writer declares any.
    raise MalformedError("a document type declaration is not allowed")


def integer(text: str) -> int:
    """Return `text` as an integer that fits into 63 bits."""
    try:
        number = int(text)
    except ValueError:
        raise MalformedError(f"{shortened(text)!r} is not a number") from None
    if not -(2**62) < number < 2**62:
        raise MalformedError(f"{shortened(text)!r} is out of range")
    return number


def metrics(records: Iterable[_Record]) -> tuple[MetricDefinition, ...]:
    """Return the metrics among `records`, in document order."""
    found: list[MetricDefinition] = []
    void: set[int] = set()
    for place, record in enumerate(records):
        if record.element != "metric":
            continue
        if record.text.get("val", "").upper() == "VOID" or record.above in void:
            void.add(place)
        number = record.number("id")
        name = record.text.get("uniq_name") or record.text.get("disp_name") or f"metric {number}"
        found.append(
            MetricDefinition(
                number,
                name,
                record.text.get("uom", ""),
                record.text.get("descr", ""),
                record.text.get("dtype", ""),
                metric_kind(record.attributes.get("type")),
                ghost=record.attributes.get("viztype", "").upper() == "GHOST",
                void=place in void,
            )
        )
    return tuple(found)


def _regions(records: Iterable[_Record]) -> dict[int, Region]:
    regions: dict[int, Region] = {}
    for record in records:
        if record.element == "region":
            text, given = record.text, record.attributes
            regions[record.number("id")] = Region(
                text.get("name", ""),
                text.get("mangled_name", ""),
                given.get("mod", ""),
                integer(given.get("begin") or "-1"),
                text.get("paradigm", ""),
                text.get("role", ""),
            )
    return regions


def _locations(records: list[_Record]) -> Locations:
    groups: dict[int, int] = {}
    group_types: list[str] = []
    group_names: list[str] = []
    creators: dict[int, str] = {}
    rows: list[tuple[int, int]] = []
    types: list[str] = []
    names: set[str] = set()
    nodes = 0
    machines: set[str] = set()
    for place, record in enumerate(records):
        if record.element in GROUPS:
            group = groups[place] = len(group_types)
            group_types.append(record.text.get("type", "process"))
            group_names.append(record.text.get("name", ""))
            if CREATOR in record.text:
                creators[group] = record.text[CREATOR]
        elif record.element in LOCATIONS:
            if record.above not in groups:
                raise MalformedError("a location belongs to no process")
            rows.append((record.number("Id", "id"), groups[record.above]))
            types.append(record.text.get("type", "thread"))
            names.add(record.text.get("name", ""))
        elif record.element in NODES:
            kind = (record.text.get("class") or record.element).lower()
            nodes += kind == "node"
            if kind in PLACES and record.text.get("name"):
                machines.add(place_name(record.text["name"], kind))
    columns = np.array(rows, np.int64).reshape(-1, 2)
    return Locations(
        columns[:, 0].copy(),
        columns[:, 1].copy(),
        np.array([kind == "thread" for kind in types], np.bool_),
        np.array([kind in GPU_TYPES for kind in types], np.bool_),
        frozenset(names),
        np.array([kind == "process" for kind in group_types], np.bool_),
        np.array([kind == "accelerator" for kind in group_types], np.bool_),
        tuple(group_names) if creators else (),
        creators,
        nodes,
        frozenset(machines),
    )
