"""The file `experiment.xml` of a version 2 database: names, metrics, contexts and sums."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from pyexpat import ExpatError, ParserCreate, XMLParserType

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, Int64Array
from callpath_modeler.errors import InputError, reading
from callpath_modeler.printable import shortened
from callpath_modeler.profile.schema import Region
from callpath_modeler.units import decimal_of, whole_of
from cpmodel_hpctoolkit.binary import COPY_IT_AGAIN
from cpmodel_hpctoolkit.contexts import Contexts
from cpmodel_hpctoolkit.names import UNKNOWN_PROCEDURE, function_region, loop_region

_FRAME, _INLINED, _CALL_SITE, _LOOP, _STATEMENT = range(5)
_KINDS = {"PF": _FRAME, "Pr": _INLINED, "C": _CALL_SITE, "L": _LOOP, "S": _STATEMENT}
_TABLES = {"LoadModule": "modules", "File": "files", "Procedure": "procedures"}
_NAME = re.compile(r"(.+?)(?::(Sum|Mean|Min|Max|StdDev|CoefVar|CfVar))?(?: \(([IE])\))?")
_FLAVOURS = {"inclusive": "I", "exclusive": "E"}
_BLOCK = 1 << 16
_LARGEST = 1 << 40

UPGRADE = "run hpcprof of HPCToolkit 2022.10 or later on the measurements"


@dataclass(slots=True)
class SummedMetric:
    """A metric and the position of its sums over all threads.

    Attributes
    ----------
    name : as in the database, without flavour, e.g. ``"CPUTIME (usec)"``
    columns : number of the values in the XML, by flavour ``"I"`` (inclusive) or ``"E"`` (exclusive)
    stored : column in metric-db files, by flavour
    stored_columns : number of columns in metric-db files
    description : one line for users
    is_sum : the database says that the values are sums over all threads
    """

    name: str
    columns: dict[str, int] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    stored_columns: int = 0
    description: str = ""
    is_sum: bool = False


@dataclass(frozen=True, slots=True)
class ExperimentXml:
    """Contents of an `experiment.xml`.

    Attributes
    ----------
    title : name of the executable
    version : version of the format
    metrics : metrics by name
    ids : [contexts], number of each context, from 1; the whole program is not a context
    contexts : callers before callees
    statements : [contexts], True for statements, which have all exclusive cost
    value_context, value_metric, value : [values], sums over all threads as printed; the context of
        the whole program is -1
    """

    title: str
    version: str
    metrics: dict[str, SummedMetric]
    ids: Int64Array
    contexts: Contexts
    statements: BoolArray
    value_context: Int64Array
    value_metric: Int64Array
    value: FloatArray


class _MalformedError(Exception):
    """Error in the contents of the XML."""


class _Builder:
    """Collector of definitions, contexts and values for the parser."""

    def __init__(self) -> None:
        self.version = self.title = ""
        self.is_flat = self.in_data = False
        self.metrics: dict[str, SummedMetric] = {}
        self.tables: dict[str, dict[str, str]] = {"modules": {}, "files": {}, "procedures": {}}
        self.contexts: list[tuple[int, int, int, int, str, str, str, int]] = []
        self.values: list[tuple[int, int, float]] = []
        self._open: list[int] = []

    def start(self, element: str, given: dict[str, str]) -> None:
        """Process the beginning of an element."""
        if self.in_data:
            self._measured(element, given)
        elif element in _TABLES:
            self.tables[_TABLES[element]][given.get("i", "")] = given.get("n", "")
        elif element == "Metric":
            self._metric(given)
        elif element == "MetricDB":
            self._stored_metric(given)
        else:
            self._section(element, given)

    def _section(self, element: str, given: dict[str, str]) -> None:
        if element == "HPCToolkitExperiment":
            self.version = given.get("version", "")
            if not self.version.startswith("2."):
                raise _MalformedError(
                    f"version {self.version[:20]!r} of the format is not supported"
                )
        elif element == "Header":
            self.title = given.get("n", "")
        elif element == "SecCallPathProfileData":
            self.in_data = True
        elif element == "SecFlatProfile":
            self.is_flat = True

    def _measured(self, element: str, given: dict[str, str]) -> None:
        if element == "M":
            above = self._open[-1] if self._open else -1
            self.values.append((above, _integer(given, "n"), _number(given, "v")))
        elif element in _KINDS:
            self._scope(_KINDS[element], given)

    def end(self, element: str) -> None:
        """Process the end of an element."""
        if self.in_data and element in _KINDS:
            self._open.pop()
        elif element == "SecCallPathProfileData":
            self.in_data = False

    def _scope(self, kind: int, given: dict[str, str]) -> None:
        above = self._open[-1] if self._open else -1
        number, line = _integer(given, "i"), _integer(given, "l", 0)
        # A scope without a file is in the file of the enclosing scope.
        source = given.get("f", "") or (self.contexts[above][6] if above >= 0 else "")
        self._open.append(len(self.contexts))
        self.contexts.append(
            (number, above, len(self._open) - 1, kind, given.get("n", ""), given.get("lm", ""),
             source, line)
        )  # fmt: skip

    def _metric(self, given: dict[str, str]) -> None:
        name, statistic, flavour = _named(given)
        if name and statistic in {None, "Sum"}:
            metric = self.metrics.setdefault(name, SummedMetric(name))
            metric.columns.setdefault(flavour, _integer(given, "i"))
            metric.is_sum |= statistic == "Sum"
            metric.description = metric.description or given.get("md", "")

    def _stored_metric(self, given: dict[str, str]) -> None:
        name, _, flavour = _named(given)
        if name:
            metric = self.metrics.setdefault(name, SummedMetric(name))
            metric.stored.setdefault(flavour, _integer(given, "db-id"))
            metric.stored_columns = _integer(given, "db-num-metrics")


def _named(given: dict[str, str]) -> tuple[str, str | None, str]:
    """Return the name, the statistic and the flavour of a metric; "" = no name.

    The flavour is an attribute, or at the end of the name. A metric without flavour has values of
    statements, which are exclusive.
    """
    found = _NAME.fullmatch(given.get("n", ""))
    if found is None:
        return "", None, "E"
    return found[1], found[2], _FLAVOURS.get(given.get("t", "")) or found[3] or "E"


def read_experiment(path: Path) -> ExperimentXml:
    """Return the contents of an `experiment.xml` of version 2.

    Raises
    ------
    InputError
        If the file is not such a file, has another version, or is not well-formed.
    """
    builder = _Builder()
    parser = ParserCreate()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.EntityDeclHandler = _refuse_entity
    try:
        with reading(path, COPY_IT_AGAIN), path.open("rb") as stream:
            parser.ParseFile(stream)
    except (ExpatError, _MalformedError) as error:
        where = f"{path}: {error} (byte {_offset(parser)})"
        is_other = bool(builder.version) and not builder.version.startswith("2.")
        raise InputError(where, hint=UPGRADE if is_other else COPY_IT_AGAIN) from None
    if not builder.contexts:
        what = "a flat profile without call paths" if builder.is_flat else "there are no call paths"
        raise InputError(f"{path}: {what} (byte {_offset(parser)})", hint=UPGRADE)
    return _experiment(builder)


def _offset(parser: XMLParserType) -> int:
    return max(0, parser.CurrentByteIndex)


def _refuse_entity(*_: object) -> None:
    # Entities could expand a small file without limit, and no writer declares any.
    raise _MalformedError("declarations of entities are not allowed")


def _integer(given: dict[str, str], key: str, default: int | None = None) -> int:
    text = given.get(key, "")
    if not text and default is not None:
        return default
    try:
        number = whole_of(text)
    except ValueError:
        raise _MalformedError(f"{key}={shortened(text)!r} is not a number") from None
    if not 0 <= number < _LARGEST:
        raise _MalformedError(f"{key}={shortened(text)!r} is out of range")
    return number


def _number(given: dict[str, str], key: str) -> float:
    try:
        return decimal_of(given.get(key, ""))
    except ValueError:
        raise _MalformedError(f"{key}={shortened(given.get(key, ''))!r} is not a number") from None


def _experiment(builder: _Builder) -> ExperimentXml:
    ids, parents, depths, kinds, _, _, sources, lines = zip(*builder.contexts, strict=True)
    kind = np.array(kinds)
    has_line = (kind == _CALL_SITE) | (kind == _STATEMENT)
    known = {source: k for k, source in enumerate(dict.fromkeys(sources))}
    files = builder.tables["files"]
    regions, region = _regions(builder)
    values = np.array([value for _, _, value in builder.values])
    places = np.array([value[:2] for value in builder.values], np.int64).reshape(-1, 2)
    return ExperimentXml(
        builder.title,
        builder.version,
        builder.metrics,
        np.array(ids, np.int64),
        Contexts(
            np.array(parents, np.int64),
            np.array(depths, np.int64),
            (kind == _FRAME) | (kind == _INLINED),
            kind == _LOOP,
            region,
            regions,
            np.where(has_line, np.array(lines, np.int64), 0),
            np.array([known[source] for source in sources], np.int64),
            tuple(files.get(source, "") for source in known),
        ),
        kind == _STATEMENT,
        places[:, 0],
        places[:, 1],
        values,
    )


def _regions(builder: _Builder) -> tuple[tuple[Region, ...], Int64Array]:
    """Return the regions, and the region of each context."""
    tables = builder.tables
    places: dict[tuple[object, ...], int] = {}
    known: dict[Region, int] = {}
    numbers = []
    for _, above, _, kind, name, module, source, line in builder.contexts:
        if kind in {_FRAME, _INLINED}:
            key: tuple[object, ...] = (name, module, source, line)
        elif kind == _LOOP or above < 0:
            key = (source, line)
        else:
            numbers.append(0)
            continue
        if key not in places:
            file = tables["files"].get(source, "")
            if len(key) == 2:
                region = loop_region(file, line)
            else:
                called = tables["procedures"].get(name, name) or UNKNOWN_PROCEDURE
                region = function_region(called, tables["modules"].get(module, ""), file, line)
            places[key] = known.setdefault(region, len(known))
        numbers.append(places[key])
    return tuple(known), np.array(numbers, np.int64)
