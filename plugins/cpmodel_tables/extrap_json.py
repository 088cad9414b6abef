"""Extra-P's JSON in its old and new layouts, and the JSON in its experiments."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from callpath_modeler.errors import InputError
from cpmodel_tables.series import Series
from cpmodel_tables.text import COPY_IT_AGAIN, first_text, holds, json_of

_BEGINS = re.compile(r'\s*\{\s*"')
_PARAMETERS = re.compile(r'"parameters"\s*:\s*\[')
_REST = re.compile(r'"(?:measurements|callpaths|coordinates|metrics)"\s*:\s*[\[{]')
_FIRST = re.compile(r"\s*\{\s*" + _REST.pattern)

Stored = Callable[[int, int], Sequence[float] | None]
"""Function that returns the repetitions in an experiment by two numbers, or None."""


class _Measured(msgspec.Struct):
    point: float | list[float]
    values: float | list[float]


class _New(msgspec.Struct):
    parameters: list[str]
    measurements: dict[str, dict[str, list[_Measured]]]
    callpaths: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Summary(msgspec.Struct):
    coordinate: list[float]
    mean: float
    values: tuple[int, int] | None = None


class _Experiment(msgspec.Struct):
    parameters: list[str]
    measurements: dict[str, dict[str, list[_Summary]]]


class _Named(msgspec.Struct):
    id: int
    name: str


class _Pair(msgspec.Struct):
    parameter_id: int
    parameter_value: float


class _Coordinate(msgspec.Struct):
    id: int
    parameter_value_pairs: list[_Pair]


class _Value(msgspec.Struct):
    coordinate_id: int
    callpath_id: int
    metric_id: int
    value: float


class _Old(msgspec.Struct):
    parameters: list[_Named]
    callpaths: list[_Named]
    metrics: list[_Named]
    coordinates: list[_Coordinate]
    measurements: list[_Value]


_Layout = TypeVar("_Layout")


def is_json(path: Path) -> bool:
    """Return whether a file has one of these layouts, for any order of its keys."""
    text = first_text(path)
    if not _BEGINS.match(text):
        return False
    if _PARAMETERS.search(text):
        return bool(_REST.search(text)) or holds(path, _REST)
    # The parameters may come after all measurements.
    return bool(_FIRST.match(text)) and holds(path, _PARAMETERS)


def read(path: Path, text: str) -> Series:
    """Return the measurements in JSON of the old or new layout.

    Raises
    ------
    InputError
        If the JSON has neither layout.
    """
    try:
        quick = msgspec.json.decode(text, type=_New, strict=False)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        # This decoder rejects NaN, and its error messages are less precise.
        quick = None
    if quick is not None and quick.callpaths is msgspec.UNSET:
        return _new(path, quick)
    document = json_of(path, text)
    if isinstance(document, dict) and "callpaths" in document:
        return _old(path, _converted(path, document, _Old))
    return _new(path, _converted(path, document, _New))


def read_experiment(path: Path, text: str, stored: Stored) -> tuple[Series, int]:
    """Return the measurements in the JSON of an experiment, and how many values are means.

    Raises
    ------
    InputError
        If the JSON does not have the layout.
    """
    experiment = _converted(path, json_of(path, text), _Experiment)
    series = Series(path, list(experiment.parameters))
    means = 0
    for callpath, metrics in experiment.measurements.items():
        for metric, summaries in metrics.items():
            for summary in summaries:
                values = stored(*summary.values) if summary.values is not None else None
                means += values is None
                point = _point(path, series, summary.coordinate)
                series.add(callpath, metric, point, [summary.mean] if values is None else values)
    return series, means


def _new(path: Path, document: _New) -> Series:
    series = Series(path, list(document.parameters))
    for callpath, metrics in document.measurements.items():
        for metric, measurements in metrics.items():
            for measured in measurements:
                point = _point(path, series, _listed(measured.point))
                series.add(callpath, metric, point, _listed(measured.values))
    return series


def _old(path: Path, document: _Old) -> Series:
    """Return the measurements in the old layout, where equal numbers mark repetitions."""
    parameters = sorted(document.parameters, key=lambda named: named.id)
    series = Series(path, [named.name for named in parameters])
    callpaths = {named.id: named.name for named in document.callpaths}
    metrics = {named.id: named.name for named in document.metrics}
    points = {}
    for coordinate in document.coordinates:
        value_of = {
            pair.parameter_id: pair.parameter_value for pair in coordinate.parameter_value_pairs
        }
        values = [value_of[named.id] for named in parameters if named.id in value_of]
        points[coordinate.id] = _point(path, series, values)
    measured: dict[tuple[str, str, tuple[float, ...]], list[float]] = {}
    for value in document.measurements:
        try:
            key = (
                callpaths[value.callpath_id],
                metrics[value.metric_id],
                points[value.coordinate_id],
            )
        except KeyError as missing:
            raise InputError(
                f"{path}: a measurement refers to number {missing}, which has no name",
                hint=COPY_IT_AGAIN,
            ) from None
        measured.setdefault(key, []).append(value.value)
    for (callpath, metric, point), found in measured.items():
        series.add(callpath, metric, point, found)
    return series


def _listed(values: float | list[float]) -> list[float]:
    return values if isinstance(values, list) else [values]


def _point(path: Path, series: Series, values: Sequence[float]) -> tuple[float, ...]:
    if len(values) != len(series.parameters):
        raise InputError(
            f"{path}: a point has {len(values)} numbers for {len(series.parameters)} parameters",
            hint=COPY_IT_AGAIN,
        )
    return tuple(values)


def _converted(path: Path, document: object, layout: type[_Layout]) -> _Layout:
    try:
        return msgspec.convert(document, layout, strict=False)
    except (msgspec.ValidationError, OverflowError) as cause:
        raise InputError(f"{path}: not in Extra-P's layout: {cause}", hint=COPY_IT_AGAIN) from cause
