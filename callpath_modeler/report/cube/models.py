"""Models of an experiment as a Cube file: the call tree with measured and predicted values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version

import numpy as np

from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import Metric, Region
from callpath_modeler.readers.base import CREATOR_OF_MODELS
from callpath_modeler.report.cube import definitions as xml
from callpath_modeler.report.cube.archive import (
    Member,
    anchor_member,
    archive,
    data_member,
    index_member,
)
from callpath_modeler.report.cube.formulas import (
    DTYPE,
    ROW_BYTES,
    expressible,
    formula_blocks,
)
from callpath_modeler.units import setting_text

_UNITS = {"s": "sec", "B": "bytes", "1": "occ"}
_BLOCK = 1 << 16
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

    metric: xml.CubeMetric
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
    for start in range(0, len(rows), _BLOCK):
        yield values[rows[start : start + _BLOCK]].astype("<f8").tobytes()


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
    lost, excess = ranking.excess.lost, ranking.excess.exclusive
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


def _metric(metric: Metric, name: str, unit: str, about: str) -> xml.CubeMetric:
    # Viewers add values of the type DOUBLE along the call tree, and take the largest of MAXDOUBLE.
    dtype = "DOUBLE" if metric.additive else "MAXDOUBLE"
    return xml.CubeMetric(name, unit, dtype=dtype, description=about.strip())


def _formula_metric(fitted: Fitted) -> xml.CubeMetric:
    held = f" at {setting_text(fitted.held)}" if fitted.held else ""
    about = (
        f"Model of the exclusive value over x = {fitted.parameter}{held}, log = log2. Models with "
        "steps, ceilings or exponentials are missing."
    )
    return xml.CubeMetric(
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


def _definitions(ranking: Ranking, metrics: list[xml.CubeMetric]) -> bytes:
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
    return xml.document(
        xml.attribute_texts(attributes),
        xml.metric_texts(metrics),
        ["<program>\n"],
        xml.region_texts(regions),
        xml.call_path_texts(tree.parent.tolist(), numbers, contents=contents),
        ["</program>\n"],
        xml.system_texts(_reduction(fitted)),
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
    return "".join(xml.parameter_text(key, value) for key, value in pairs)
