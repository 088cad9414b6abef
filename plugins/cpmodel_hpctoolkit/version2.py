"""Databases of version 2: contexts in `experiment.xml`, values in metric-db files or in the XML."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array
from callpath_modeler.errors import InputError, reading
from cpmodel_hpctoolkit.binary import COPY_IT_AGAIN, BinaryFile
from cpmodel_hpctoolkit.contexts import Detail, Layout, collapse
from cpmodel_hpctoolkit.experiment import ExperimentXml, SummedMetric, read_experiment
from cpmodel_hpctoolkit.names import Location, LocationSet, Measure
from cpmodel_hpctoolkit.profile import Database, Exclusive
from cpmodel_hpctoolkit.reduce import Column

_FILE = re.compile(r"-(\d+)-(\d+)-([0-9a-f]+)-\d+-\d+\.(metric-db|hpctrace)$")
_SCALE = re.compile(r"([1-9]\d{0,8})/(.+)")
_LEAST_SCALES = 2
_FIRST_STREAM = 500
"""Threads with this number or a larger one are accelerator streams."""
_MAGIC = b"HPCPROF-metricdb__"
_SHAPE = 24
_VALUES = 32
_PRINTED = 1e-5
"""Relative rounding of sums: values in the XML have six digits."""


@contextmanager
def opened(directory: Path, detail: Detail) -> Iterator[Version2]:
    """Open the database in `directory`.

    Raises
    ------
    InputError
        If the database is damaged, or has the short-lived format between versions 2 and 4.
    """
    yield Version2(directory, read_experiment(directory / "experiment.xml"), detail)


@dataclass(frozen=True, slots=True)
class _Layout(Layout):
    """The positions of contexts.

    Attributes
    ----------
    of_statement : [contexts] call path of a statement; -1 for other contexts, which repeat values
        of statements
    """

    of_statement: Int64Array


class Version2(Database):
    """An open database of version 2."""

    def __init__(self, path: Path, experiment: ExperimentXml, detail: Detail) -> None:
        super().__init__(path, detail, experiment.version, experiment.title)
        self._experiment = experiment
        self._files, self.places = _places(path)
        stored = experiment.metrics.values()
        self._metrics = [each for each in stored if (each.stored if self._files else each.columns)]
        self.measures = self._declared()

    def scales(self) -> Mapping[int, Version2]:
        """Return the database of each scale, if it has the runs of several scales, else nothing.

        The metrics of such a database begin with the number of processes: ``256/WALLCLOCK (us)``.
        They are those of a typical process, unless their names say that they are sums.
        """
        found = {metric.name: _SCALE.fullmatch(metric.name) for metric in self._metrics}
        scales = {int(match[1]) for match in found.values() if match}
        if None in found.values() or len(scales) < _LEAST_SCALES:
            return {}
        return {scale: self._of_scale(scale) for scale in sorted(scales)}

    def _of_scale(self, scale: int) -> Version2:
        other = copy(self)
        other._metrics = [  # noqa: SLF001 - a copy of this object
            replace(metric, name=match[2])
            for metric in self._metrics
            if (match := _SCALE.fullmatch(metric.name)) and int(match[1]) == scale
        ]
        other.measures = other._declared()  # noqa: SLF001 - as above
        other.is_mean = not any(metric.is_sum for metric in self._metrics)
        return other

    @cached_property
    def layout(self) -> _Layout:
        """Return the call paths with their contexts."""
        found = collapse(self._experiment.contexts, self.detail)
        of_statement = np.where(self._experiment.statements, found.row, -1)
        return _Layout(found.tree, found.row, of_statement)

    def _declared(self) -> list[Measure]:
        return [
            Measure(metric.name, number, self._occurs(metric), description=metric.description)
            for number, metric in enumerate(self._metrics)
        ]

    def of_location(self, measure: Measure, location: Location) -> Exclusive:
        """Return the values of one location, from its metric-db file."""
        if not self._files:
            return self._of_all(measure)
        metric = self._metrics[measure.number]
        stored = _stored_values(self._files[location.number], metric.stored_columns)
        rows = self._experiment.ids - 1
        if rows.max() >= len(stored):
            raise InputError(
                f"{self._files[location.number]}: {len(stored)} call paths (byte {_SHAPE:#x}) "
                f"for {rows.max() + 1} in experiment.xml",
                hint=COPY_IT_AGAIN,
            )
        self._check_columns(metric)
        values = self._attributed(
            stored[rows, _of_statements(metric.stored)], self.layout.of_statement
        )
        has_total = "I" in metric.stored
        total = float(stored[0, metric.stored["I"]]) if has_total else float(values.sum())
        return Exclusive(Column(values), 0.0, total)

    def _check_columns(self, metric: SummedMetric) -> None:
        for column in metric.stored.values():
            if column >= metric.stored_columns:
                raise InputError(
                    f"{self.path}/experiment.xml: metric {metric.name!r} is in column "
                    f"{column} of {metric.stored_columns}",
                    hint=COPY_IT_AGAIN,
                )

    def of_all(self, measure: Measure) -> Exclusive | None:
        """Return the sums in the XML, unless there are exact values."""
        return None if self._files else self._of_all(measure)

    def stored_total(self, measure: Measure) -> float | None:
        """Return the value of the whole program over all locations; None = not stored."""
        columns = self._metrics[measure.number].columns
        if "I" not in columns:
            return None
        contexts, values = self._summed(columns["I"])
        return float(values[contexts < 0].sum()) if np.any(contexts < 0) else None

    def _of_all(self, measure: Measure) -> Exclusive:
        columns = self._metrics[measure.number].columns
        contexts, values = self._summed(_of_statements(columns))
        known = contexts >= 0
        exclusive = self._attributed(values[known], self.layout.of_statement[contexts[known]])
        if "I" not in columns:
            return Exclusive(Column(exclusive), 0.0, float(exclusive.sum()))
        contexts, values = self._summed(columns["I"])
        total, parts = float(values[contexts < 0].sum()), float(exclusive.sum())
        # The printed total has six digits. If the sum agrees with it, the sum is more precise.
        is_same = abs(parts - total) <= _PRINTED * abs(total)
        return Exclusive(Column(exclusive), 0.0, parts if is_same else total)

    def _occurs(self, metric: SummedMetric) -> bool:
        if "I" not in metric.columns:
            return True
        contexts, values = self._summed(metric.columns["I"])
        return bool(np.any(values[contexts < 0] != 0))

    def _summed(self, column: int) -> tuple[Int64Array, FloatArray]:
        experiment = self._experiment
        chosen = experiment.value_metric == column
        return experiment.value_context[chosen], experiment.value[chosen]

    def _attributed(self, values: FloatArray, rows: Int64Array) -> FloatArray:
        known = rows >= 0
        total = np.bincount(rows[known], values[known], len(self.layout.tree))
        return total.astype(np.float64)


def _of_statements(columns: Mapping[str, int]) -> int:
    """Return the column with the values of statements, which are exclusive in both flavours."""
    return columns.get("E", columns.get("I", -1))


def _places(directory: Path) -> tuple[list[Path], LocationSet]:
    """Return the metric-db files, and the locations according to them or to traces."""
    with reading(directory, COPY_IT_AGAIN):
        found = [(path, _FILE.search(path.name)) for path in sorted(directory.iterdir())]
    stored = [(path, name) for path, name in found if name and name[4] == "metric-db"]
    traced = [(path, name) for path, name in found if name and name[4] == "hpctrace"]
    places = LocationSet.of(
        [
            Location(number, int(name[1]), int(name[2]) >= _FIRST_STREAM, name[3], int(name[2]))
            for number, (_, name) in enumerate(stored or traced)
        ]
    )
    if stored:
        return [path for path, _ in stored], places
    is_single = (places.extent.processes, places.extent.threads) == (1, 1)
    return [], LocationSet(places.threads if is_single else (), (), places.extent)


def _stored_values(path: Path, columns: int) -> FloatArray:
    """Return the values of a metric-db file, [contexts x metrics]."""
    with BinaryFile(path) as file:
        head = file.read(0, _VALUES, "the header")
        if head[: len(_MAGIC)] != _MAGIC:
            file.refuse(0, "this is not the header of a metric-db file")
        order = ">" if head[_SHAPE - 1 : _SHAPE] == b"b" else "<"
        contexts, metrics = struct.unpack_from(f"{order}ii", head, _SHAPE)
        if contexts < 1 or metrics != columns:
            file.refuse(_SHAPE, f"{contexts} call paths and {metrics} metrics, not {columns},")
        size = 8 * contexts * metrics
        values = np.frombuffer(file.read(_VALUES, size, "the table of values"), f"{order}f8")
        return values.reshape(contexts, metrics).astype(np.float64)
