"""Files: for Extra-P, folded stacks, speedscope and Hatchet; limits for `check`; Python modules."""

from __future__ import annotations

import io
import json
import keyword
import math
import struct
import unicodedata
import zipfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from callpath_modeler.analysis.expectations.expectation import SCHEMA
from callpath_modeler.analysis.expectations.growth_check import Baseline, BaselineEntry
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Centre, centre
from callpath_modeler.printable import in_one_line, python_docstring
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import MetricValues, inclusive_values
from callpath_modeler.profile.omissions import REST, WHOLE, is_partial
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.schema import Metric
from callpath_modeler.readers.paths import join_with_arrows, read_title
from callpath_modeler.report.headline import omissions
from callpath_modeler.report.model_formulas import python_formulas
from callpath_modeler.report.table_formats import blocks
from callpath_modeler.support.toml import key_in_toml, text_in_toml
from callpath_modeler.units import (
    base_and_factor,
    counted,
    parameter_value,
    parse_quantity,
    percent,
    quantity,
    setting_text,
)

EXTRAP_VERSION = "4.0.2"
"""Version of the layout of experiments; later versions of Extra-P read it as well."""


_MICROSECONDS = 1e6
_QUICK = 2
"""Compression level: less than half the time of the default, and an eighth more bytes."""


@dataclass(frozen=True, slots=True)
class _Series:
    """The values of one call path and metric: repetitions by point."""

    callpath: str
    metric: str
    values: Mapping[tuple[float, ...], list[tuple[int, float]]]


def for_extrap(experiment: Experiment, output: Path | None = None) -> bytes | Iterator[str]:
    """Return an experiment in a format of Extra-P, chosen by the suffix of `output`.

    ``.txt`` is text, ``.json`` is JSON, ``.extra-p`` is an experiment file, and any other suffix
    is JSON Lines. Text comes in pieces, because it may be larger than the memory.
    """
    ending = output.suffix if output is not None else ""
    if ending == ".extra-p":
        return extrap_experiment(experiment)
    writers = {".txt": extrap_text, ".json": extrap_json}
    return writers.get(ending, extrap_json_lines)(experiment)


def extrap_json_lines(experiment: Experiment) -> Iterator[str]:
    """Return JSON Lines of Extra-P, with repetition and unit, which Extra-P ignores."""
    names = _parameters(experiment)
    units = {
        _title(values.metric): _quoted(values.metric.unit) for values in experiment.columns.values()
    }
    params = {
        point: json.dumps(dict(zip(names, point, strict=True)), ensure_ascii=False)
        for point in _points(experiment)
    }

    def lines(series: _Series) -> Iterator[str]:
        what = f'"callpath": {_quoted(series.callpath)}, "metric": {_quoted(series.metric)}'
        unit = units[series.metric]
        # Within a series, only the numbers of lines differ.
        for point, repetitions in series.values.items():
            head = f'{{"params": {params[point]}, {what}, "value": '
            numbers = json.dumps([value for _, value in repetitions])[1:-1].split(", ")
            for (repetition, _), number in zip(repetitions, numbers, strict=True):
                yield f'{head}{number}, "repetition": {repetition}, "unit": {unit}}}\n'

    return ("".join(lines(series)) for series in _all_series(experiment))


def extrap_text(experiment: Experiment) -> Iterator[str]:
    """Return text of Extra-P.

    Raises
    ------
    UsageError
        If a call path does not occur at every point, because the format cannot express that.
    """
    names, points = _parameters(experiment), _points(experiment)
    partly = _partly_missing(experiment)
    if partly:
        raise UsageError(
            f"Extra-P text needs every point: {counted(partly, 'call path')} missing at some",
            hint="write JSON Lines: -f extra-p -o FILE.jsonl",
        )
    lines = [f"PARAMETER {'_'.join(name.split())}" for name in names]
    lines += [f"POINTS ( {' '.join(map(_number, point))} )" for point in points]

    def pieces() -> Iterator[str]:
        metric = None
        yield "".join(f"{line}\n" for line in lines)
        for series in _all_series(experiment):
            if series.metric != metric:
                metric = series.metric
                yield f"\nMETRIC {metric}\n"
            numbers = (
                " ".join(["DATA", *(repr(value) for _, value in repetitions)])
                for repetitions in series.values.values()
            )
            yield "\n".join([f"\nREGION {series.callpath}", *numbers, ""])

    return pieces()


def _partly_missing(experiment: Experiment) -> int:
    """Return the number of call paths that occur at some points only."""
    partly = np.zeros(len(experiment.tree), bool)
    for column in experiment.columns.values():
        known = np.array(
            [
                ~np.isnan(column.exclusive[:, [run for run, _ in runs]]).all(axis=1)
                for runs in _runs_of_points(experiment).values()
            ]
        )
        partly |= known.any(axis=0) & ~known.all(axis=0)
    return int(partly.sum())


def extrap_json(experiment: Experiment) -> Iterator[str]:
    """Return Extra-P's JSON, in the new layout."""
    document = {"parameters": _parameters(experiment), "measurements": {}}
    head, foot = json.dumps(document, ensure_ascii=False, indent=1).rsplit("{}", 1)

    def pieces() -> Iterator[str]:
        before = f"{head}{{\n"
        for callpath, of_path in groupby(
            _all_series(experiment, by_path=True), lambda series: series.callpath
        ):
            metrics = {
                series.metric: [
                    {"point": list(point), "values": [value for _, value in repetitions]}
                    for point, repetitions in series.values.items()
                ]
                for series in of_path
            }
            text = json.dumps({callpath: metrics}, ensure_ascii=False, indent=1)
            yield f"{before} " + text[2:-2].replace("\n", "\n ")
            before = ",\n"
        yield f"\n }}{foot}\n" if before == ",\n" else f"{head}{{}}{foot}\n"

    return pieces()


def extrap_experiment(experiment: Experiment) -> bytes:
    """Return an Extra-P experiment: a ZIP archive, without models."""
    document = {
        "Extra-P": EXTRAP_VERSION,
        "scaling": str(experiment.scaling),
        "parameters": _parameters(experiment),
        "modelers": [],
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=_QUICK) as archive:
        index, arrays = _arrays(
            [value for _, value in repetitions]
            for series in _all_series(experiment, by_path=True)
            for repetitions in series.values.values()
        )
        for name, data in (("indx", index), ("vals", arrays)):
            archive.writestr(f"values/0.{name}", data, zipfile.ZIP_STORED)
        del index, arrays, data
        with archive.open("experiment.json", "w", force_zip64=True) as file:
            head = json.dumps(document, ensure_ascii=False)[:-1]
            for piece in (f'{head}, "measurements": {{', *_summaries(experiment), "}}"):
                file.write(piece.encode())
    return content.getvalue()


def _summaries(experiment: Experiment) -> Iterator[str]:
    """Yield the statistics of each call path, with the numbers of the arrays of its values."""
    number, before = 0, ""
    for callpath, of_path in groupby(
        _all_series(experiment, by_path=True), lambda series: series.callpath
    ):
        texts = []
        for series in of_path:
            summaries = []
            for point, repetitions in series.values.items():
                summaries.append(_summary(point, [value for _, value in repetitions], number))
                number += 1
            texts.append(f"{_quoted(series.metric)}: {json.dumps(summaries)}")
        yield f"{before}{_quoted(callpath)}: {{{', '.join(texts)}}}"
        before = ", "


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _summary(point: tuple[float, ...], values: list[float], number: int) -> dict[str, object]:
    # There are millions of short arrays; numpy would take twenty times as long.
    count, ordered = len(values), sorted(values)
    mean = sum(values) / count
    differences = [value - mean for value in values]
    return {
        "coordinate": list(point),
        "median": (ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
        "mean": mean,
        "minimum": ordered[0],
        "maximum": ordered[-1],
        "std": math.sqrt(sum(each * each for each in differences) / count),
        "repetitions": count,
        "values": [0, number],
    }


def _arrays(stored: Iterable[list[float]]) -> tuple[bytes, bytes]:
    """Return arrays as bytes, and the offset of each."""
    content = io.BytesIO()
    content.write(b"Extra-P VALUES\0\0")
    heads: dict[int, bytes] = {}
    starts = array("Q")
    for values in stored:
        if len(values) not in heads:
            heads[len(values)] = _array_head(len(values))
        starts.append(content.tell())
        content.write(heads[len(values)])
        content.write(struct.pack(f"<{len(values)}d", *values))
    offsets = np.frombuffer(starts, np.uint64).astype("<u8").tobytes()
    index = b"Extra-P INDEX\0\0\0" + struct.pack("<Q", len(starts)) + offsets
    return index, content.getvalue()


def _array_head(length: int) -> bytes:
    """Return the header of a numpy array in a file."""
    content = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(np.zeros(length, "<f8"))
    np.lib.format.write_array_header_1_0(content, header)
    return content.getvalue()


def _all_series(experiment: Experiment, *, by_path: bool = False) -> Iterator[_Series]:
    """Yield the values of each metric and call path with values, in order of points.

    Parameters
    ----------
    by_path : True = each call path with all metrics; False = each metric with all call paths
    """
    columns, size = [*experiment.columns.values()], len(experiment.tree)
    if by_path:
        for rows in blocks(size):
            of_metrics = [_series_of(experiment, column, rows) for column in columns]
            for of_path in zip(*of_metrics, strict=True):
                yield from (series for series in of_path if series is not None)
        return
    for column in columns:
        for rows in blocks(size):
            of_metric = _series_of(experiment, column, rows)
            yield from (series for series in of_metric if series is not None)


def _series_of(
    experiment: Experiment, column: MetricValues, rows: IntArray
) -> Iterator[_Series | None]:
    """Yield the values of a metric for each of some call paths; None = it has none."""
    at, title = _runs_of_points(experiment), _title(column.metric)
    for row, measured in zip(rows.tolist(), column.exclusive[rows].tolist(), strict=True):
        values = {
            point: known
            for point, runs in at.items()
            if (known := [(n, measured[k]) for k, n in runs if measured[k] == measured[k]])
        }
        path = join_with_arrows(experiment.tree.names(row)) if values else ""
        yield _Series(path, title, values) if values else None


def _runs_of_points(experiment: Experiment) -> dict[tuple[float, ...], list[tuple[int, int]]]:
    """Return the number and the repetition of each run, by point."""
    at: dict[tuple[float, ...], list[tuple[int, int]]] = {}
    for number, (run, point) in enumerate(zip(experiment.runs, _settings(experiment), strict=True)):
        at.setdefault(point, []).append((number, run.repetition))
    return at


def _parameters(experiment: Experiment) -> list[str]:
    names = [parameter.name for parameter in experiment.parameters]
    if not names:
        raise UsageError(
            "no parameter varies: nothing for Extra-P", hint="give runs of more scales"
        )
    return names


def _points(experiment: Experiment) -> list[tuple[float, ...]]:
    return list(dict.fromkeys(_settings(experiment)))


def _settings(experiment: Experiment) -> list[tuple[float, ...]]:
    """Return the point of each run."""
    names = _parameters(experiment)
    return [tuple(run.parameters[name] for name in names) for run in experiment.runs]


def _title(metric: Metric) -> str:
    """Return a name for a metric, with its unit."""
    read = read_title(metric.name)
    if (read.name, read.unit, read.factor) == (metric.name, metric.unit, 1.0):
        return metric.name
    return f"{metric.name} [{metric.unit}]"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def at_largest(experiment: Experiment, metric: str, aggregate: Centre = "mean") -> FloatArray:
    """Return the cost of call paths in the largest runs, [call paths]; NaN = did not occur.

    Parameters
    ----------
    experiment : the runs
    metric : name of the metric
    aggregate : statistic over repetitions

    Raises
    ------
    DataError
        If several parameters vary.
    """
    values = experiment.values(metric)
    if experiment.parameters:
        name = experiment.modelled_parameter()
        largest = experiment.points(name)[-1]
        values = values[:, [run.parameters[name] == largest for run in experiment.runs]]
    return centre(values[:, None], aggregate)[:, 0]


def folded(tree: CallTree, exclusive: FloatArray, unit: str = "1") -> str:
    """Return folded stacks: one line per call path, with a whole number.

    Times are in microseconds. Numbers are rounded such that their sum is the rounded total.

    Parameters
    ----------
    tree : the call paths
    exclusive : [call paths] values
    unit : base unit of the values
    """
    is_cost = (exclusive > 0) & np.isfinite(exclusive)
    values = np.where(is_cost, exclusive, 0.0) * (_MICROSECONDS if unit == "s" else 1.0)
    lines = []
    for row, count in enumerate(_whole(values)):
        if count:
            names = (name.replace(";", ":") for name in tree.names(row))
            lines.append(f"{';'.join(names)} {count}\n")
    return "".join(lines)


def _whole(values: FloatArray) -> list[int]:
    """Return whole numbers whose sum is the rounded sum; the largest fractions are rounded up."""
    down = np.floor(values)
    fractions = values - down
    missing = round(float(fractions.sum()))
    whole = [int(value) for value in down.tolist()]
    for row in np.argsort(-fractions, kind="stable")[:missing].tolist():
        whole[row] += 1
    return whole


def speedscope(tree: CallTree, columns: Mapping[Metric, FloatArray], name: str) -> str:
    """Return JSON of speedscope: one profile per additive metric, as a sequence of calls.

    The length of a call is its inclusive cost. Its exclusive part comes first, then its callees.
    Negative and missing values have length 0.

    Parameters
    ----------
    tree : the call paths
    columns : exclusive values, [call paths]
    name : name of the file's profiles
    """
    regions, frame = np.unique(tree.region, return_inverse=True)
    frames = [
        {"name": each.name, **({"file": each.file} if each.file else {}),
         **({"line": each.line} if each.line > 0 else {})}
        for each in (tree.regions[region] for region in regions.tolist())
    ]  # fmt: skip
    frame_of, ends = frame.tolist(), tree.end.tolist()
    profiles = [
        _speedscope_profile(metric, np.fmax(exclusive, 0.0).tolist(), frame_of, ends)
        for metric, exclusive in columns.items()
        if metric.additive
    ]
    if not profiles:
        raise UsageError("no metric adds up over call paths", hint="-m with one that does")
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "exporter": "cpmodel",
        "shared": {"frames": frames},
        "profiles": profiles,
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def _speedscope_profile(
    metric: Metric, own: Sequence[float], frame_of: Sequence[int], ends: Sequence[int]
) -> dict[str, object]:
    events, open_rows, now = list[dict[str, object]](), list[int](), 0.0
    for row, (value, frame) in enumerate(zip(own, frame_of, strict=True)):
        while open_rows and ends[open_rows[-1]] <= row:
            events.append({"type": "C", "frame": frame_of[open_rows.pop()], "at": now})
        events.append({"type": "O", "frame": frame, "at": now})
        open_rows.append(row)
        now += value
    events += [{"type": "C", "frame": frame_of[row], "at": now} for row in reversed(open_rows)]
    unit = {"s": "seconds", "B": "bytes"}.get(metric.unit, "none")
    return {"type": "evented", "name": metric.name, "unit": unit, "startValue": 0,
            "endValue": now, "events": events}  # fmt: skip


def hatchet_literal(tree: CallTree, columns: Mapping[Metric, FloatArray]) -> str:
    """Return the JSON of a list of nodes for Hatchet's ``from_literal``.

    Parameters
    ----------
    tree : the call paths
    columns : exclusive values, [call paths]; inclusive values are added as ``NAME (inc)``
    """
    values: dict[str, list[float]] = {}
    for metric, exclusive in columns.items():
        values[metric.name] = exclusive.tolist()
        if metric.additive:
            values[f"{metric.name} (inc)"] = inclusive_values(tree, exclusive).tolist()
    parts = ["["]
    open_rows: list[int] = []
    # json.dumps of the whole would recurse too deeply for deep call trees.
    for row in range(len(tree)):
        while open_rows and tree.end[open_rows[-1]] <= row:
            parts.append("]}")
            open_rows.pop()
        first = row == 0 or tree.parent[row] == row - 1
        frame = {"name": tree.name(row), "type": "function"}
        metrics = {
            title: column[row] for title, column in values.items() if column[row] == column[row]
        }
        node = json.dumps({"name": tree.name(row), "frame": frame, "metrics": metrics})
        parts.append(("" if first else ",") + f'\n{node[:-1]}, "children": [')
        open_rows.append(row)
    parts += ["]}"] * len(open_rows)
    return "".join(parts) + "]\n"


_OURS = {"MODELS", "callpath", "float", "np", "predict", "sum"}
_TAKEN = frozenset({*_OURS, "__debug__", *keyword.kwlist})

_MODULE = '''"""Models of {metric} [{unit}] of {experiment}, by call path.

Measured at {measured}; {values}.
{omitted}Written by `cpmodel export -f python`.
For bands, and for predictions that add up to the run time, see `cpmodel rank`.
"""

import numpy as np

METRIC = {metric_!r}
UNIT = {unit_!r}
PARAMETERS = {parameters!r}

MODELS = {{
{models}
}}


def predict(callpath, {arguments}):
    """Return the model of a call path at numbers or arrays of numbers, never below zero."""
    {arguments}{comma} = np.broadcast_arrays({floats})
    with np.errstate(over="ignore"):
        return np.maximum(MODELS[callpath]({arguments}) + np.zeros({first}.shape), 0.0)
'''

_TOTAL = '''

def total({arguments}):
    """Return the sum of all models."""
    return sum(predict(callpath, {arguments}) for callpath in MODELS)
'''


def python_source(fitted: Fitted) -> str:
    """Return the source of a module with a function per call path that has a model.

    It needs only numpy. Call paths that look the same are followed by their ids.
    """
    metric, arguments = fitted.metric, identifiers(fitted.parameters)
    listed = ", ".join(arguments)
    rows = np.flatnonzero(fitted.modelled)
    formulas = python_formulas(fitted.whole.formulas(rows, arguments, exact=True))
    keys = _keys(fitted, rows.tolist())
    models = "\n".join(
        f"    {key!r}: lambda {listed}: {formula},  # {in_one_line(note)}"
        for key, formula, note in zip(keys, formulas, _notes(fitted, rows), strict=True)
    )
    return (
        _MODULE.format(
            metric=python_docstring(metric.name),
            unit=python_docstring(metric.unit),
            metric_=metric.name,
            unit_=metric.unit,
            experiment=python_docstring(fitted.experiment.name),
            measured=python_docstring(_measured(fitted)),
            values=f"exclusive, {fitted.experiment.reduction.words}",
            omitted="".join(
                f"The models cover only part of the program ({python_docstring(each)}).\n"
                for each in omissions(fitted.experiment)
            ),
            parameters=tuple(arguments),
            models=models,
            arguments=listed,
            comma="," * (len(arguments) == 1),
            floats=", ".join(f"np.asarray({name}, float)" for name in arguments),
            first=arguments[0],
        )
        + _TOTAL.format(arguments=listed) * metric.additive
    )


def identifiers(names: Sequence[str]) -> list[str]:
    """Return a valid and distinct Python identifier for each of `names`."""
    found: list[str] = []
    for given in names:
        # Python normalises identifiers, so that different letters may become the same.
        name = unicodedata.normalize("NFKC", given)
        word = "".join(letter if f"_{letter}".isidentifier() else "_" for letter in name)
        word = word if word[:1].isidentifier() else f"_{word}"
        while word in _TAKEN or word in found:
            word += "_"
        found.append(word)
    return found


def _notes(fitted: Fitted, rows: IntArray) -> list[str]:
    """Return growths and statuses; for models that some runs have closer models than, only that."""
    growths = fitted.models.growth_texts(rows, fitted.parameter)
    said = zip(growths, fitted.statuses(rows), strict=True)
    notes = [f"{growth}, {status}" for growth, status in said]
    if not fitted.of_line.size:
        return notes
    at = setting_text(fitted.held)
    closer = f"a separate model of the runs at {at} fits them better: see cpmodel rank"
    is_of_line = fitted.of_line[rows].tolist()
    return [closer if other else note for note, other in zip(notes, is_of_line, strict=True)]


def _keys(fitted: Fitted, rows: Sequence[int]) -> list[str]:
    tree = fitted.experiment.tree
    paths, ids = tree.paths(rows), tree.ids()
    count = Counter(paths)
    return [
        path if count[path] == 1 else f"{path} @{ids[row]}"
        for path, row in zip(paths, rows, strict=True)
    ]


def _measured(fitted: Fitted) -> str:
    values = {parameter.name: parameter.values for parameter in fitted.experiment.parameters}
    return ", ".join(
        f"{name} = {' '.join(parameter_value(value) for value in values[name])}"
        for name in fitted.parameters
    )


_COLUMN = 44
"""Column in which comments start."""


def to_toml(baseline: Baseline) -> str:
    """Return an expectation file, the costliest call path first."""
    lines = [*_head(baseline)]
    for name, entry in zip(_names(baseline), baseline.entries, strict=True):
        lines += ["", "[[expect]]", f"name = {text_in_toml(name)}", *_expected(baseline, entry)]
    return "\n".join([*lines, *_others(baseline)]) + "\n"


def _head(baseline: Baseline) -> Iterator[str]:
    fitted, experiment = baseline.fitted, baseline.fitted.experiment
    first, last = (parameter_value(float(fitted.points[k])) for k in (0, -1))
    sure = f"{100 * fitted.models.confidence:g} %"
    name, runs = in_one_line(experiment.name, "?"), counted(len(experiment.runs), "run")
    yield f"# Limits for {name}, derived from {runs}"
    at = f", {setting_text(fitted.measured_at)}" if fitted.held else ""
    yield f"# at {fitted.parameter} = {first} to {last}{at}; written by `cpmodel baseline`."
    yield f"# growth: the fastest growth that these runs allow with {sure} confidence;"
    how = ("prediction", "measurement", "repetitions")[min(baseline.repetitions, 2)]
    yield f"# value: the upper limit of the band of its {how}, plus {percent(baseline.margin)},"
    yield "# or an exact count."
    for each in omissions(experiment):
        yield f"# {in_one_line(each, '?')}; use the same options with `cpmodel check`"
    yield f"schema = {SCHEMA}"
    values = fitted.at(baseline.target).items()
    target = ", ".join(f"{key_in_toml(name)} = {parameter_value(value)}" for name, value in values)
    yield f"target = {{ {target} }}"
    yield ""
    yield "[defaults]"
    yield f"metric = {text_in_toml(fitted.metric.name)}"
    yield f"confidence = {fitted.models.confidence:g}"
    yield _commented('unsure = "pass"', "only a change that is shown to be worse fails")


def _expected(baseline: Baseline, entry: BaselineEntry) -> Iterator[str]:
    fitted = baseline.fitted
    parameter, unit = fitted.parameter, fitted.metric.unit
    if entry.row is not None:
        path = fitted.experiment.tree.path(entry.row) if entry.pattern.startswith("@") else ""
        share = "" if math.isnan(entry.share) else f"{percent(entry.share)} of the cost"
        comment = ", ".join(part for part in (path, share) if part)
        yield _commented(f"callpath = {text_in_toml(entry.pattern)}", comment)
    if entry.growth is None:
        yield "# no limit on growth: this call path has no model"
    elif entry.limit is None:
        yield "# no limit on growth: no law explains the measurements"
    else:
        today = f"today {entry.growth.text(parameter)}, {percent(entry.probability)} sure"
        yield _commented(f"growth = {text_in_toml(f'<= {entry.limit.text(parameter)}')}", today)
    bound = _bound(entry.bound, unit, exact=entry.bound == entry.value)
    now = f"today {quantity(entry.value, unit, ascii_only=True)}"
    if bound is None:
        yield f"# {now}: no bound, because its unit cannot be written"
    else:
        yield _commented(f"value = {text_in_toml(f'<= {bound}')}", now)


def _others(baseline: Baseline) -> Iterator[str]:
    bound = _bound(baseline.others, baseline.fitted.metric.unit) if baseline.others else None
    if bound is not None:
        yield from ("", "[[expect]]", 'name = "every other call path"')
        yield _commented("others = true", f"{counted(baseline.left, 'call path')} today")
        yield _commented("at_least = 0", "this includes new ones")
        yield f"value = {text_in_toml(f'<= {bound}')}"


def _bound(bound: float, unit: str, *, exact: bool = False) -> str | None:
    """Return a bound with its unit, rounded up to three digits, or in full if it is exact."""
    if exact:
        text = f"{bound:.12g} {unit if unit != '1' else ''}".strip()
    else:
        step = 10.0 ** (math.floor(math.log10(bound)) - 2)
        text = quantity(math.ceil(bound / step) * step, unit, ascii_only=True)
    try:
        understood = base_and_factor(parse_quantity(text)[1])[0] == unit
    except ValueError:
        understood = False
    return text if understood else None


def _names(baseline: Baseline) -> list[str]:
    """Return a name for each entry: the short function name, with an id if it is not unique."""
    tree = baseline.fitted.experiment.tree
    rows = [entry.row for entry in baseline.entries]
    # The whole program, if it is among them, comes first.
    is_part = is_partial(baseline.fitted.experiment.omissions)
    whole = [REST if is_part else WHOLE for row in rows if row is None]
    names = whole + tree.paths([row for row in rows if row is not None], short_name)
    count, ids = Counter(names), tree.ids()
    return [
        name if count[name] == 1 or row is None else f"{name} @{ids[row]}"
        for name, row in zip(names, rows, strict=True)
    ]


def _commented(text: str, comment: str) -> str:
    return f"{text:{_COLUMN}} # {in_one_line(comment, '?')}" if comment else text
