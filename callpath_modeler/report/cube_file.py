"""Models as a Cube 4 file: its archive, definitions, call tree, measured and predicted values."""

from __future__ import annotations

import re
import struct
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from xml.sax.saxutils import escape

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models, Shape, Term, TermDifference
from callpath_modeler.printable import printable, xml_text
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import Metric, Region
from callpath_modeler.readers.base import CREATOR_OF_MODELS
from callpath_modeler.units import setting_text

INDEX, RAW_DATA = b"CUBEX.INDEX", b"CUBEX.DATA"
"""First bytes of members with row numbers, and of members with uncompressed rows."""

RECORD = 512
"""Bytes of a record of a tar archive."""

_SPARSE = 1


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an archive.

    Attributes
    ----------
    name : name in the archive
    size : number of bytes
    pieces : the bytes, in order; iterated once
    """

    name: str
    size: int
    pieces: Iterable[bytes]


def archive(members: Iterable[Member]) -> Iterator[bytes]:
    """Yield the bytes of an archive, which are the same for the same members.

    Cube adds a whole record after a member whose size is a multiple of `RECORD`. Programs that
    expect plain tar then see the end of the archive, so such a member must not occur.

    Raises
    ------
    ValueError
        If the size of a member is a multiple of `RECORD`, or differs from that of its pieces.
    """
    for member in members:
        if member.size % RECORD == 0:
            raise ValueError(f"{member.name}: programs disagree on the padding of {member.size} B")
        yield header(member.name, member.size)
        written = 0
        for piece in member.pieces:
            written += len(piece)
            yield piece
        if written != member.size:
            raise ValueError(f"{member.name}: {written} B instead of {member.size} B")
        yield bytes(-member.size % RECORD)
    yield bytes(2 * RECORD)


def header(name: str, size: int) -> bytes:
    """Return the header of a member."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry.tobuf(tarfile.PAX_FORMAT)


def index_member(number: int, rows: IntArray) -> Member:
    """Return the sparse index of metric `number`, which stores the given rows, ascending."""
    head = INDEX + struct.pack("<IHBI", 1, 0, _SPARSE, len(rows))
    content = head + rows.astype("<u4").tobytes()
    return Member(f"{number}.index", len(content), [content])


def data_member(number: int, rows: int, row_bytes: int, blocks: Iterable[bytes]) -> Member:
    """Return the uncompressed values of metric `number`.

    Parameters
    ----------
    rows : number of rows
    row_bytes : bytes of a row: those of one value times the number of locations
    blocks : the values, row by row
    """

    def pieces() -> Iterator[bytes]:
        yield RAW_DATA
        yield from blocks

    return Member(f"{number}.data", len(RAW_DATA) + rows * row_bytes, pieces())


def anchor_member(text: bytes) -> Member:
    """Return the member with the definitions, which is the last one."""
    content = text + b"\n" * (len(text) % RECORD == 0)
    return Member("anchor.xml", len(content), [content])


HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<cube version="{version}">\n'
END = "</cube>\n"


@dataclass(frozen=True, slots=True)
class CubeMetric:
    """A metric of a Cube file.

    Attributes
    ----------
    name : unique name
    unit : unit of measurement as Cube writes it: ``"sec"``, ``"bytes"``, ``"occ"``
    kind : ``"INCLUSIVE"``, ``"EXCLUSIVE"`` or another type of Cube; "" = none
    dtype : type of the stored values, such as ``"DOUBLE"``
    description : one line of text
    is_ghost : True = viewers hide the metric
    """

    name: str
    unit: str
    kind: str = "EXCLUSIVE"
    dtype: str = "DOUBLE"
    description: str = ""
    is_ghost: bool = False


def quoted(text: str) -> str:
    """Return a foreign text for an element or an attribute in double quotes, in one line."""
    return escape(xml_text(printable(text)), {'"': "&quot;"})


def attribute_texts(attributes: Mapping[str, str]) -> Iterator[str]:
    """Yield the attributes of a file."""
    for key, value in attributes.items():
        yield f'<attr key="{quoted(key)}" value="{quoted(value)}"/>\n'


def metric_texts(metrics: Iterable[CubeMetric]) -> Iterator[str]:
    """Yield the metrics, which are numbered in this order."""
    yield "<metrics>\n"
    for number, metric in enumerate(metrics):
        kind = f' type="{metric.kind}"' if metric.kind else ""
        ghost = ' viztype="GHOST"' if metric.is_ghost else ""
        name = quoted(metric.name)
        yield (
            f'<metric id="{number}"{kind}{ghost}>\n<disp_name>{name}</disp_name>\n'
            f"<uniq_name>{name}</uniq_name>\n<dtype>{metric.dtype}</dtype>\n"
            f"<uom>{quoted(metric.unit)}</uom>\n<url></url>\n"
            f"<descr>{quoted(metric.description)}</descr>\n</metric>\n"
        )
    yield "</metrics>\n"


def region_texts(regions: Iterable[Region]) -> Iterator[str]:
    """Yield the regions, which are numbered in this order."""
    for number, region in enumerate(regions):
        yield (
            f'<region id="{number}" mod="{quoted(region.file)}" begin="{region.line}" end="-1">\n'
            f"<name>{quoted(region.name)}</name>\n"
            f"<mangled_name>{quoted(region.mangled)}</mangled_name>\n"
            f"<paradigm>{quoted(region.paradigm)}</paradigm>\n"
            f"<role>{quoted(region.role)}</role>\n<url></url>\n<descr></descr>\n</region>\n"
        )


def call_path_texts(
    parents: Sequence[int],
    regions: Sequence[int],
    *,
    ids: Sequence[int] | None = None,
    contents: Mapping[int, str] | None = None,
) -> Iterator[str]:
    """Yield the call paths; a deep tree needs no recursion.

    Parameters
    ----------
    parents : [n] row of the caller in preorder, -1 = root
    regions : [n] number of the region
    ids : [n] ids of the call paths; None = their rows
    contents : elements inside of call paths, such as parameters, by row
    """
    open_rows: list[int] = []
    inside = contents or {}
    for row, (caller, region) in enumerate(zip(parents, regions, strict=True)):
        while open_rows and open_rows[-1] != caller:
            open_rows.pop()
            yield "</cnode>\n"
        yield f'<cnode id="{row if ids is None else ids[row]}" calleeId="{region}">\n'
        if row in inside:
            yield inside[row]
        open_rows.append(row)
    yield "</cnode>\n" * len(open_rows)


def parameter_text(key: str, value: str) -> str:
    """Return a parameter of a call path."""
    return f'<parameter partype="string" parkey="{quoted(key)}" parvalue="{quoted(value)}"/>\n'


def system_texts(location: str) -> Iterator[str]:
    """Yield a system of one location, for values that are reduced over processes."""
    yield (
        '<system>\n<systemtreenode Id="0">\n<name>all processes</name>\n<class>machine</class>\n'
        '<systemtreenode Id="1">\n<name>all processes</name>\n<class>node</class>\n'
        f'<locationgroup Id="0">\n<name>{quoted(location)}</name>\n<rank>0</rank>\n'
        f'<type>process</type>\n<location Id="0">\n<name>{quoted(location)}</name>\n'
        "<rank>0</rank>\n<type>thread</type>\n</location>\n</locationgroup>\n"
        "</systemtreenode>\n</systemtreenode>\n<topologies>\n</topologies>\n</system>\n"
    )


def document(*parts: Iterable[str], version: str = "4.4") -> bytes:
    """Return a whole document with the given parts."""
    pieces = [HEAD.format(version=version)]
    for part in parts:
        pieces.extend(part)
    pieces.append(END)
    return "".join(pieces).encode()


DTYPE = "SCALE_FUNC"
ROW_BYTES = 848
"""Bytes of a value, whatever the number of its terms."""

_TERM = np.dtype([("factor", "<f8"), ("power", "<i4"), ("root", "<u4"), ("log", "<i4")])
"""A term: factor x^(power/root) log2(x)^log."""
_MEASUREMENT = np.dtype([("p", "<i4"), ("mean", "<f8"), ("width", "<f8")])
_SLOTS = (ROW_BYTES - 8) // _TERM.itemsize
"""Terms and measurements have the same size, and share the rest of a value."""
_SLOT = np.dtype(f"V{_TERM.itemsize}")
_VALUE = np.dtype([("terms", "<u4"), ("measurements", "<u4"), ("slots", _SLOT, (_SLOTS,))])
_LARGEST = np.iinfo(np.int32).max
_BLOCK = 1024


def expressible(models: Models) -> IntArray:
    """Return the rows of models that Cube can store.

    Cube knows neither steps, ceilings and other breaks nor exponentials. Models that are zero
    everywhere have no row, because Cube reads a missing row as zero.
    """
    known = np.array([*(_terms(shape) is not None for shape in models.shapes), True])
    coefficients = models.coefficients
    used = (models.terms >= 0) & (coefficients[:, 1:] != 0)
    is_known = (known[models.terms] | ~used).all(axis=1)
    is_zero = (coefficients[:, 0] == 0) & ~used.any(axis=1)
    return np.flatnonzero(is_known & ~is_zero & ~np.isnan(coefficients[:, 0]))


def formula_blocks(
    models: Models, rows: IntArray, points: FloatArray, measured: FloatArray
) -> Iterator[bytes]:
    """Yield the values of some rows, `ROW_BYTES` each.

    A model beyond a change point is the law beyond it. If there is no room for all measurements,
    those at the smallest scales are missing.

    Parameters
    ----------
    models : models along one parameter
    rows : rows of `expressible`
    points : [K] measured values of the parameter; Cube only stores whole numbers
    measured : [all rows, K] centres of the repetitions; NaN = did not occur
    """
    table = _term_table(models)
    whole = np.flatnonzero((points == np.round(points)) & (points <= _LARGEST))
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        values = np.zeros(len(some), _VALUE)
        numbers, codes = models.coefficients[some].copy(), models.terms[some]
        numbers[:, 1:][codes < 0] = 0.0
        found = table[np.insert(codes, 0, -1, axis=1)]
        found["factor"] *= numbers[:, :, None]
        found = found.reshape(len(some), -1)
        there = found["factor"] != 0
        values["terms"] = there.sum(axis=1)
        _put(values, found, there, np.zeros(len(some), np.intp))
        pairs = np.zeros((len(some), len(whole)), _MEASUREMENT)
        pairs["p"], pairs["mean"] = points[whole], measured[some][:, whole]
        there = ~np.isnan(pairs["mean"])
        room = _SLOTS - values["terms"].astype(np.intp)
        there &= there[:, ::-1].cumsum(axis=1)[:, ::-1] <= room[:, None]
        values["measurements"] = there.sum(axis=1)
        _put(values, pairs, there, values["terms"].astype(np.intp))
        yield values.tobytes()


def _put(values: np.ndarray, entries: np.ndarray, there: BoolArray, first: IntArray) -> None:
    """Write the entries of each value that are `there` one after the other, from slot `first`."""
    slot = there.cumsum(axis=1) - 1 + first[:, None]
    row = np.nonzero(there)[0]
    values["slots"][row, slot[there]] = np.ascontiguousarray(entries).view(_SLOT)[there]


def _term_table(models: Models) -> np.ndarray:
    """Return the terms of each shape and of the constant, [shapes + 1, 2] of `_TERM`.

    Unused entries have the factor zero. The constant is last.
    """
    table = np.zeros((len(models.shapes) + 1, 2), _TERM)
    table["root"] = 1
    for number, shape in enumerate(models.shapes):
        for place, entry in enumerate(_terms(shape) or ()):
            table[number, place] = entry
    table[-1, 0]["factor"] = 1.0
    return table


def _terms(shape: Shape) -> list[tuple[float, int, int, int]] | None:
    """Return the terms of a shape; None = Cube cannot store it."""
    if isinstance(shape, TermDifference):
        parts = [(1.0, shape.larger), (-1.0, shape.smaller)]
    elif isinstance(shape, Term):
        parts = [(1.0, shape)]
    else:
        return None
    exponents = [term.exponent for _, term in parts]
    fits = all(max(abs(e.numerator), e.denominator) <= _LARGEST for e in exponents)
    if not fits or any(term.rate or term.log.denominator > 1 for _, term in parts):
        return None
    return [(s, t.exponent.numerator, t.exponent.denominator, int(t.log)) for s, t in parts]


_UNITS = {"s": "sec", "B": "bytes", "1": "occ"}
_BLOCK_OF_VALUES = 1 << 16
_ANNOTATION = re.compile(r"(?:\[([^=\]]*=.*)\])?(?:#\d+)?", re.DOTALL)
"""Parameters of a call, then the number among siblings of one name, which readers give again."""


@dataclass(frozen=True, slots=True)
class CubeModels:
    """A Cube file of models.

    Attributes
    ----------
    pieces : the bytes of the file, in order; iterated once
    without_formula : number of models that Cube cannot store as formulas
    """

    pieces: Iterator[bytes]
    without_formula: int


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """A metric with one exclusive value per call path; NaN = no row."""

    metric: CubeMetric
    values: FloatArray


def cube_of_models(ranking: Ranking) -> CubeModels:
    """Return a Cube file with measured and predicted values of every call path.

    The metrics are exclusive, and named after the metric NAME of the models:

    - ``NAME``: at the largest measured scale
    - ``NAME_at_target``, ``NAME_at_target_low``, ``NAME_at_target_high``: at the target, with the
      band of the exclusive value
    - ``NAME_lost``: cost at the target beyond that of perfect scaling, if it is defined
    - ``NAME_excess``: the same in percent of the run time at the target
    - ``NAME_model``: the formula, of Cube's type SCALE_FUNC

    Values have SI base units, and one location, because they are reduced over processes. A call
    path without a value has no row, which viewers show as zero. The bytes are the same for the
    same ranking.

    Parameters
    ----------
    ranking : a ranking of exclusive values at a finite target
    """
    fitted = ranking.fitted
    columns = list(_columns(ranking))
    rows = expressible(fitted.models)
    rows = rows[fitted.modelled[rows]]
    formula = _formula_metric(fitted)
    metrics = [*(column.metric for column in columns), formula]
    text = _definitions(ranking, metrics)

    def members() -> Iterator[Member]:
        for number, column in enumerate(columns):
            stored = np.flatnonzero(~np.isnan(column.values))
            yield data_member(number, len(stored), 8, _blocks(column.values, stored))
            yield index_member(number, stored)
        number = len(columns)
        blocks = formula_blocks(fitted.models, rows, fitted.points, fitted.measured)
        yield data_member(number, len(rows), ROW_BYTES, blocks)
        yield index_member(number, rows)
        yield anchor_member(text)

    lost = np.count_nonzero(fitted.modelled & ~_is_zero(fitted)) - len(rows)
    return CubeModels(archive(members()), int(lost))


def _is_zero(fitted: Fitted) -> BoolArray:
    return np.asarray(~np.nan_to_num(fitted.models.coefficients).any(axis=1))


def _blocks(values: FloatArray, rows: IntArray) -> Iterator[bytes]:
    for start in range(0, len(rows), _BLOCK_OF_VALUES):
        yield values[rows[start : start + _BLOCK_OF_VALUES]].astype("<f8").tobytes()


def _columns(ranking: Ranking) -> Iterator[_Column]:
    """Yield the metrics with numbers; the excess only if it is defined."""
    fitted, metric = ranking.fitted, ranking.fitted.metric
    unit, name = _UNITS.get(metric.unit, metric.unit), metric.name
    at = setting_text(fitted.at(ranking.target))
    largest = setting_text({fitted.parameter: float(fitted.points[-1]), **fitted.measured_at})
    percent = f"{100 * fitted.models.confidence:g} %"
    band = "confidence interval" if ranking.repetitions else f"{percent} prediction band"
    adding = (
        "Viewers add the ends of callees. The band of a sum is narrower." if metric.additive else ""
    )
    texts = {
        "": (ranking.at_largest, f"Measured at {largest}, {_reduction(fitted)}."),
        "_at_target": (ranking.value, f"{ranking.basis.capitalize()} at {at}.{_total(ranking)}"),
        "_at_target_low": (ranking.low, f"Lower end of the {band} at {at}. {adding}"),
        "_at_target_high": (ranking.high, f"Upper end of the {band} at {at}. {adding}"),
    }
    for suffix, (values, about) in texts.items():
        yield _Column(_metric(metric, name + suffix, unit, about), values)
    found = ranking.excess
    lost, excess = found.lost, found.exclusive
    if np.isnan(lost).all():
        return
    expected = ideal_of(fitted)
    ideal = f"perfect {expected.meaning}" if expected.scaling else f"the {expected.meaning}"
    less = "superlinear" if expected.scaling else "less than expected"
    since = f"from {setting_text({fitted.parameter: ranking.base})} to {at}"
    about = f"Cost beyond that of {ideal} {since}; below zero = {less}."
    yield _Column(_metric(metric, f"{name}_lost", unit, about), lost)
    about = f"Excess work: cost beyond that of {ideal} {since}, in percent of the run time there."
    yield _Column(_metric(metric, f"{name}_excess", "%", about), 100 * excess)


def _metric(metric: Metric, name: str, unit: str, about: str) -> CubeMetric:
    # Viewers add values of the type DOUBLE along the call tree, and take the largest of MAXDOUBLE.
    dtype = "DOUBLE" if metric.additive else "MAXDOUBLE"
    return CubeMetric(name, unit, dtype=dtype, description=about.strip())


def _formula_metric(fitted: Fitted) -> CubeMetric:
    held = f" at {setting_text(fitted.held)}" if fitted.held else ""
    about = (
        f"Model of the exclusive value over x = {fitted.parameter}{held}, log = log2. Models with "
        "steps, ceilings or exponentials are missing."
    )
    return CubeMetric(
        f"{fitted.metric.name}_model",
        _UNITS.get(fitted.metric.unit, fitted.metric.unit),
        dtype=DTYPE,
        description=about,
    )


def _total(ranking: Ranking) -> str:
    value, low, high = ranking.total
    if np.isnan(value):
        return ""
    unit = ranking.fitted.metric.unit
    band = "" if np.isnan(low) else f", between {low:.4g} and {high:.4g}"
    return f" All call paths: {value:.4g} {unit}{band}."


def _reduction(fitted: Fitted) -> str:
    return fitted.experiment.reduction.words


def _definitions(ranking: Ranking, metrics: list[CubeMetric]) -> bytes:
    """Return the text of the definitions."""
    fitted = ranking.fitted
    tree = fitted.experiment.tree
    numbers, regions, contents = _regions(tree)
    attributes = {
        "Cube Version": "4.8",
        "Cube anchor.xml syntax version": "4.4",
        "Creator": f"{CREATOR_OF_MODELS} {version('callpath-modeler')}",
        "CUBE_CT_AGGR": "SUM",
        "CLUSTERING": "OFF",
        "ScaleFuncPresent": "1",
        "Experiment": fitted.experiment.name,
        "Target": setting_text(fitted.at(ranking.target)),
        "Scaling": str(fitted.experiment.scaling),
        **({} if fitted.ideal is None else {"Expected cost": fitted.ideal.meaning}),
    }
    return document(
        attribute_texts(attributes),
        metric_texts(metrics),
        ["<program>\n"],
        region_texts(regions),
        call_path_texts(tree.parent.tolist(), numbers, contents=contents),
        ["</program>\n"],
        system_texts(_reduction(fitted)),
    )


def _regions(tree: CallTree) -> tuple[list[int], list[Region], dict[int, str]]:
    """Return the number of each call path's region, the regions, and parameters of call paths.

    An annotation that is not a list of parameters becomes part of the name of another region.
    """
    regions = list(tree.regions)
    numbers, contents = tree.region.tolist(), {}
    texts: dict[int, str | None] = {0: ""}
    renamed: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(tree.annotation).tolist():
        note = int(tree.annotation[row])
        if note not in texts:
            texts[note] = _parameters(tree.annotations[note])
        text = texts[note]
        if text:
            contents[row] = text
        elif text is None:
            key = numbers[row], note
            if key not in renamed:
                old = regions[key[0]]
                name = old.name + tree.annotations[note]
                renamed[key] = len(regions)
                regions.append(replace(old, name=name))
            numbers[row] = renamed[key]
    return numbers, regions, contents


def _parameters(annotation: str) -> str | None:
    """Return the parameters of a call as elements; None = it has another form."""
    found = _ANNOTATION.fullmatch(annotation)
    if found is None:
        return None
    pairs: list[list[str]] = []
    for piece in (found[1] or "").split(",") if found[1] else ():
        key, sign, value = piece.partition("=")
        if sign:
            pairs.append([key, value])
        else:
            pairs[-1][1] += f",{piece}"
    return "".join(parameter_text(key, value) for key, value in pairs)
