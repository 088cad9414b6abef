"""The `.cali` format: one line per node of a context tree, or per record that refers to nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from callpath_modeler.errors import MalformedError
from callpath_modeler.profile.calltree import NO_LINE, ROOT
from callpath_modeler.units import decimal_of, whole_of
from cpmodel_caliper.contents import (
    FRAMES,
    FUNCTIONS,
    LABELS,
    MAGIC,
    REGIONS,
    SAMPLES,
    UNKNOWN_PLACE,
    Contents,
    Quantity,
    RecordColumn,
    SourcePlace,
)

_NAME, _TYPE, _PROPERTIES = 8, 9, 10
_STRING = 3
_NUMERIC = frozenset({1, 2, 5})  # int, uint, double
_TYPES = (0, 1, 2, 3, 4, 5, 6, 7, 11)
_HIDDEN, _NESTED, _GLOBAL = 128, 256, 512
_UNITS = ("attribute.unit", "time.unit")
_FIELD = re.compile(r"(?:[^\\,]|\\.)+", re.DOTALL)
_VALUE = re.compile(r"((?:[^\\=]|\\.)*)(=?)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_OF_CALIPER = ("cali.", "event.", "time.", "offs.", "source.", "module", "mpi.", "cpuinfo.")
"""Prefixes of text attributes that Caliper 1 wrote itself."""
_MOST_DESCRIBED = 1000
_NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of the context tree: an attribute with a value, below other nodes.

    `path` is the call path of its regions, and `calls` the call path of its functions on the call
    stack. `labels` has the other relevant values of its ancestors. `frame` is the source line of
    the innermost function on the call stack, and `unplaced` the number of functions less the number
    of lines. `sample` is the source line of a sample.
    """

    parent: _Node | None
    attribute: int
    data: str
    path: int
    labels: Mapping[str, str]
    calls: int = ROOT
    frame: SourcePlace = UNKNOWN_PLACE
    unplaced: int = 0
    sample: SourcePlace = UNKNOWN_PLACE


@dataclass(frozen=True, slots=True)
class _Attribute:
    name: str
    properties: int
    is_numeric: bool
    is_old_text: bool = False

    @property
    def is_nested(self) -> bool:
        """Return whether the values are regions. Caliper 1 does not always state it."""
        if self.properties & (_NESTED | _HIDDEN | _GLOBAL):
            return bool(self.properties & _NESTED)
        is_annotation = self.is_old_text and not self.name.startswith(_OF_CALIPER)
        return is_annotation or self.name in REGIONS

    @property
    def is_measured(self) -> bool:
        """Return whether the values are measurements."""
        return self.is_numeric and not self.properties & (_HIDDEN | _GLOBAL)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Use of the values in records with the same list of attributes.

    Attributes
    ----------
    attributes : attribute of each value
    labels : position and name of the values that identify the rank, the thread or the channel
    columns : position of the measured values, and their columns
    """

    attributes: tuple[_Attribute, ...]
    labels: tuple[tuple[int, str], ...]
    columns: tuple[tuple[int, RecordColumn], ...]


def read(lines: Iterable[str]) -> Contents:
    """Return the contents of a `.cali` file, given its lines.

    Raises
    ------
    MalformedError
        If the file is not in this format; the message has the line number.
    """
    reader = _Reader()
    number = 0
    try:
        for number, line in enumerate(lines, 1):  # noqa: B007 - named in errors
            reader.take(line)
    except MalformedError as error:
        raise MalformedError(f"line {number}: {error}") from None
    except ValueError as error:
        raise MalformedError(f"line {number}: not a Caliper record ({error})") from None
    return reader.contents


class _Reader:
    def __init__(self) -> None:
        self.contents = Contents()
        self.contents.is_cut = True
        self._nodes: dict[int, _Node] = {}
        self._attributes: dict[int, _Attribute] = {
            _NAME: _Attribute("cali.attribute.name", 0, is_numeric=False),
            9: _Attribute("cali.attribute.type", 0, is_numeric=False),
            _PROPERTIES: _Attribute("cali.attribute.prop", 0, is_numeric=False),
        }
        # Every file uses these nodes, but no file contains them.
        for number in _TYPES:
            self._nodes[number] = _Node(None, 9, "", ROOT, _NO_LABELS)
        for number, kind in ((_NAME, 3), (9, 7), (_PROPERTIES, 1)):
            name = self._attributes[number].name
            self._nodes[number] = _Node(self._nodes[kind], _NAME, name, ROOT, _NO_LABELS)
        self._type_of = {id(self._nodes[number]): number for number in _TYPES}
        # Thousands of records have the same nodes and the same list of attributes.
        self._told: set[int] = set()
        self._places: dict[str, tuple[int, Mapping[str, str], SourcePlace]] = {}
        self._plans: dict[str, _Plan] = {}
        # Caliper 1 also wrote the first nodes.
        self._is_old = False

    def take(self, line: str) -> None:
        if not line.endswith("\n"):
            raise MalformedError("the line is cut off")
        if "\0" in line:
            # A full disk or a damaged copy leaves such a line. Its kind of record is unknown.
            raise MalformedError("not a Caliper record")
        line = line.rstrip("\r\n")
        if not line:
            return
        if not line.startswith(MAGIC):
            raise MalformedError("not a Caliper record")
        fields = _fields(line)
        kind = fields["__rec"]
        if kind == "ctx":
            self._record(fields)
        elif kind == "node":
            self._node(fields)
        elif kind == "globals":
            self._globals(fields)

    def _node(self, fields: Mapping[str, str]) -> None:
        number, attribute = _one(fields, "id"), _one(fields, "attr")
        known = self._attribute(attribute)
        parent = self._known(_one(fields, "parent")) if "parent" in fields else None
        path = ROOT if parent is None else parent.path
        calls = ROOT if parent is None else parent.calls
        labels = _NO_LABELS if parent is None else parent.labels
        frame = UNKNOWN_PLACE if parent is None else parent.frame
        unplaced = 0 if parent is None else parent.unplaced
        sample = UNKNOWN_PLACE if parent is None else parent.sample
        value = _values(fields.get("data", ""))[0]
        if known.is_nested:
            path = self.contents.path(path, value)
        elif known.name == FUNCTIONS:
            # The address of the caller is that of the call. Caliper writes the functions from the
            # outermost one, each with its line behind it; otherwise the line is not the caller's.
            calls = self.contents.path(calls, value, NO_LINE if unplaced else frame.line)
            frame, unplaced = UNKNOWN_PLACE, unplaced + 1
        elif known.name == FRAMES:
            frame, unplaced = SourcePlace.of(value), unplaced - 1
            if not unplaced and calls != ROOT and frame.file:
                self.contents.files.setdefault(self.contents.names[calls], frame.file)
        elif known.name == SAMPLES:
            sample = SourcePlace.of(value)
        if known.name in LABELS:
            labels = {**labels, known.name: value}
        node = _Node(
            parent, attribute, value, path, labels, calls, frame, unplaced=unplaced, sample=sample
        )
        if number in _TYPES and attribute == _TYPE:
            self._is_old = True
            self._type_of[id(node)] = number
        if number in self._nodes:
            # A second stream of records begins, with its own node numbers.
            self._places.clear()
            self._plans.clear()
        self._nodes[number] = node
        if attribute == _NAME:
            self._define(number, node)

    def _define(self, number: int, node: _Node) -> None:
        """Define an attribute by the node with its name; the nodes above describe it."""
        described: dict[str, str] = {}
        top = node
        for steps, above in enumerate(_up(node.parent)):
            if steps == _MOST_DESCRIBED:
                raise MalformedError("the description of an attribute has no end")
            top = above
            described.setdefault(self._attribute(above.attribute).name, above.data)
        properties = int(described.get("cali.attribute.prop") or 0)
        is_numeric = self._type_of.get(id(top)) in _NUMERIC
        is_text = self._type_of.get(id(top)) == _STRING
        self._attributes[number] = _Attribute(
            node.data, properties, is_numeric, is_old_text=self._is_old and is_text
        )
        unit = next((described[key] for key in _UNITS if key in described), "")
        self.contents.quantities[node.data] = Quantity(unit, described.get("attribute.alias", ""))

    def _record(self, fields: Mapping[str, str]) -> None:
        node, labels, place = self._place(fields.get("ref", ""))
        plan, texts = self._planned(fields)
        if plan.labels:
            labels = {**labels, **{name: texts[k] for k, name in plan.labels}}
        record = self.contents.begin(node, labels)
        if record is None:
            return
        self.contents.place(record, place)
        for k, column in plan.columns:
            column.records.append(record)
            column.values.append(decimal_of(texts[k]))

    def _place(self, refs: str) -> tuple[int, Mapping[str, str], SourcePlace]:
        """Return the call path of a list of references, the labels of its nodes, and its line."""
        found = self._places.get(refs)
        if found is None:
            path, calls, labels = ROOT, ROOT, _NO_LABELS
            frame = sample = UNKNOWN_PLACE
            for ref in _values(refs) if refs else ():
                node = self._known(int(ref))
                if node.path != ROOT:
                    below = self.contents.path_below
                    path = node.path if path == ROOT else below(path, node.path)
                calls = node.calls if node.calls != ROOT else calls
                frame = node.frame if node.frame.file and not node.unplaced else frame
                sample = node.sample if node.sample.file else sample
                labels = {**labels, **node.labels} if node.labels else labels
            place = sample if sample.file else frame
            found = self._places[refs] = path if calls == ROOT else calls, labels, place
        return found

    def _planned(self, fields: Mapping[str, str]) -> tuple[_Plan, list[str]]:
        """Return the plan for the immediate values of a record, and the values."""
        listed = fields.get("attr", "")
        plan = self._plans.get(listed)
        if plan is None:
            attributes = tuple(self._attribute(int(k)) for k in _values(listed) if listed)
            plan = self._plans[listed] = _Plan(
                attributes,
                tuple((k, a.name) for k, a in enumerate(attributes) if a.name in LABELS),
                tuple(
                    (k, self.contents.column(a.name))
                    for k, a in enumerate(attributes)
                    if a.is_measured and a.name not in LABELS
                ),
            )
        texts = _values(fields["data"]) if "data" in fields else []
        if len(texts) != len(plan.attributes):
            raise MalformedError(f"{len(plan.attributes)} attributes, but {len(texts)} values")
        return plan, texts

    def _globals(self, fields: Mapping[str, str]) -> None:
        self.contents.is_cut = False
        refs = fields.get("ref", "")
        for ref in _values(refs) if refs else ():
            for node in _up(self._known(int(ref))):
                if id(node) in self._told:
                    break
                self._told.add(id(node))
                name = self._attribute(node.attribute).name
                self.contents.globals.setdefault(name, node.data)
        plan, texts = self._planned(fields)
        for attribute, text in zip(plan.attributes, texts, strict=True):
            self.contents.globals[attribute.name] = text

    def _attribute(self, number: int) -> _Attribute:
        try:
            return self._attributes[number]
        except KeyError:
            raise MalformedError(f"attribute {number} is not defined") from None

    def _known(self, number: int) -> _Node:
        try:
            return self._nodes[number]
        except KeyError:
            raise MalformedError(f"node {number} is not defined") from None


def _up(node: _Node | None) -> Iterator[_Node]:
    """Yield a node and all nodes above it."""
    while node is not None:
        yield node
        node = node.parent


def _one(fields: Mapping[str, str], key: str) -> int:
    if key not in fields:
        raise MalformedError(f"the record has no {key!r}")
    return whole_of(fields[key])


def _fields(line: str) -> dict[str, str]:
    r"""Return the fields of a record: ``key=values,...``; ``\`` escapes a separator."""
    fields = _FIELD.findall(line) if "\\" in line else line.split(",")
    return {key: values for key, _, values in (field.partition("=") for field in fields)}


def _values(text: str) -> list[str]:
    r"""Return the values of a field: ``value=value=...``; ``\`` escapes a separator."""
    if "\\" not in text:
        return text.split("=")
    values = []
    for value, sign in _VALUE.findall(text):
        values.append(_ESCAPE.sub(_unescaped, value))
        if not sign:
            break
    return values


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]
