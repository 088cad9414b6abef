"""Data of the page: models, measurements and bands of all call paths, packed for the browser.

The page evaluates the formulas of all models itself. It cannot compute three things, so they are
stored for a grid of targets: bands, the total of the program, and by how much predictions are
lowered because together they exceed the run time. Between the targets of the grid, the page
interpolates them. Where the middle of two targets shows that a band is not smooth, the page shows
no band between them. At measured scales, the page shows measured values.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.answer import Answer, Ranking, answer_at
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.predict import fastest_below
from callpath_modeler.analysis.uncertain import MARKS
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models
from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth
from callpath_modeler.modeling.products import Break, Shape, TermDifference
from callpath_modeler.modeling.terms import Term
from callpath_modeler.printable import printable
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.headline import at_text
from callpath_modeler.report.layout import cut
from callpath_modeler.report.model_formulas import model_range_texts
from callpath_modeler.studies.question import FURTHER

MAIN = 2_000
"""Call paths whose bands and lowered predictions are stored in full precision."""
LARGEST = 200_000
"""Call paths from which on the page has no data: it would be larger than mails allow."""
CODES = 1_000
"""Codes per unit of the logarithm of a band: the bands of other call paths within 0.1 %."""
NOTHING, ENDLESS = 65_535, 65_534
"""Codes of a band that does not exist, and of a lower end of zero."""
TOLERANCE = 0.015
"""Largest error of an interpolated end of a band in the middle of two targets."""
GROWTHS = ("O(1) or falling", "up to log", "slower than linear", "linear", "faster than linear")
"""Classes of growths, slowest first."""
_FARTHEST = 64.0
"""Targets end at this multiple of the largest scale, or at twice the target of the page."""
_FEW = 5_000
"""Number of call paths up to which targets are close together."""
_CAUSES = 500
"""Number of call paths, the costliest first, whose causes the page tells."""
_LONGEST = 300
"""Largest number of characters of a name; names of templates have thousands."""


def growth_class(growth: Growth) -> int:
    """Return the position of a growth in `GROWTHS`."""
    if growth <= CONSTANT_GROWTH:
        return 0
    rate, exponent, log = growth.order
    if rate > 0 or exponent > 1 or (exponent == 1 and log > 0):
        return 4
    if exponent == 1 and log == 0:
        return 3
    return 1 if exponent == 0 else 2


def has_page_data(ranking: Ranking) -> bool:
    """Return whether the page can show other targets: the metric adds up, and models are plain."""
    fitted = ranking.fitted
    is_plain = all(shape_numbers(shape) is not None for shape in fitted.models.shapes)
    return fitted.metric.additive and is_plain and len(fitted.experiment.tree) <= LARGEST


def page_data(ranking: Ranking, show: str) -> str:
    """Return the data of the page as base64 text of one deflated block.

    The block begins with the length of a JSON header in bytes, as 32 bits. The columns follow the
    header in its order. Bytes of equal significance are together, because that halves the size.

    Parameters
    ----------
    ranking : the ranking of the page, of a metric that adds up
    show : the command that prints one call path, with ``@ID`` for its id
    """
    columns = PageColumns()
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    main = _main_rows(ranking)
    named = add_tree(columns, tree, main)
    columns.add("measured", fitted.measured.T, np.float64)
    columns.add("costAtBase", ranking.inputs.all_at_base.exclusive[:, 0], np.float64)
    columns.add("modelled", fitted.modelled, np.uint8)
    add_models(columns, fitted.models)
    for name, codes in zip(("growth", "growthBelow"), ranking.inputs.growth, strict=True):
        columns.add(name, codes.numbers, np.int16)
    growths = _add_growths(columns, ranking)
    targets = targets_of_page(ranking)
    seen = np.empty(0) if ranking.inputs.predicted else fitted.points
    answers = [*(("seen", at) for at in seen.tolist()), *(("grid", at) for at in targets.tolist())]
    scales, ends = [], []
    for kind, at in answers:
        made = answer_at(ranking.inputs.with_basis(predicted=kind == "grid"), at)
        scales.append(_add_answer(columns, made, main, kind))
        ends += [_distances(made)] if kind == "grid" else []
    is_rough = _add_middles(columns, ranking, targets, ends)
    labels, causes = _causes(ranking)
    columns.add("cause", causes, np.int16)
    header = {
        "program": fitted.experiment.name,
        "metric": fitted.metric.name,
        "unit": fitted.metric.unit,
        "parameter": fitted.parameter,
        "held": at_text(fitted, 0.0).partition(", ")[2],
        "points": fitted.points.tolist(),
        "measuredOnly": fitted.is_measured_only,
        "target": _first_target(ranking, targets),
        "inclusive": ranking.inclusive,
        "base": fitted.base,
        "marks": MARKS,
        **named,
        "shapes": [shape_numbers(shape) for shape in fitted.models.shapes],
        "growthTexts": growths,
        "growthClasses": [growth_class(each) for each in _growths(fitted)],
        "growthNames": GROWTHS,
        "causes": labels,
        "causesAt": at_text(fitted, ranking.target),
        "formulas": formulas_of(fitted, main),
        "show": printable(show),
        "seen": [each for each in scales if each["kind"] == "seen"],
        "grid": [each for each in scales if each["kind"] == "grid"],
        "isRough": is_rough,
        "columns": columns.listed,
    }
    return packed(header, columns.blocks)


def packed(header: dict[str, Any], blocks: Sequence[bytes]) -> str:
    """Return a header and blocks of bytes as base64 text, deflated."""
    told = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    made = zlib.compressobj(6)
    parts = [len(told).to_bytes(4, "little"), told, *blocks]
    deflated = b"".join([*map(made.compress, parts), made.flush()])
    return base64.b64encode(deflated).decode()


def _add_growths(columns: PageColumns, ranking: Ranking) -> list[str]:
    """Add the numbers of the texts of growths, and return these texts.

    They are the ranges that `cpmodel rank` prints: of the call path, and of the subtree.
    """
    numbers = {"": -1}
    for name, leaders in (
        ("growthText", ranking.own.leader),
        ("growthTextBelow", fastest_below(ranking.tree, ranking.own).leader),
    ):
        texts = model_range_texts(ranking.fitted, leaders, pretty=True)
        places = [numbers.setdefault(text, len(numbers) - 1) for text in texts]
        columns.add(name, np.array(places), np.int32)
    return [*numbers][1:]


def add_tree(columns: PageColumns, tree: CallTree, main: IntArray) -> dict[str, Any]:
    """Add the call tree and the rows of the main call paths, and return the names for the header.

    Parameters
    ----------
    main : call paths whose numbers are stored in full precision
    """
    columns.add("parent", tree.parent, np.int32)
    columns.add("region", tree.region, np.int32)
    columns.add("note", tree.annotation, np.int32)
    columns.add("main", main, np.int32)
    return {
        "names": [_name(region.name) for region in tree.regions],
        "full": [_full(region.name) for region in tree.regions],
        "notes": [_full(note) for note in tree.annotations],
        "ids": tree.ids(main),
    }


class PageColumns:
    """Columns of numbers for the browser."""

    def __init__(self) -> None:
        self.listed: list[list[Any]] = []
        self.blocks: list[bytes] = []

    def add(self, name: str, values: NDArray[Any], kind: type[np.generic]) -> None:
        """Add a column; numbers are little-endian."""
        flat = np.ascontiguousarray(values, np.dtype(kind).newbyteorder("<")).ravel()
        width = flat.dtype.itemsize
        self.listed.append([name, flat.dtype.kind + str(8 * width), len(flat)])
        self.blocks.append(flat.view(np.uint8).reshape(-1, width).T.tobytes())


def _main_rows(ranking: Ranking) -> IntArray:
    """Return the call paths whose bands are stored in full precision, costliest first."""
    inclusive = ranking.call_paths[True]
    shares = [inclusive.share_at_largest, inclusive.share, ranking.call_paths[False].share]
    cost = np.nan_to_num(np.maximum.reduce([np.nan_to_num(each) for each in shares]))
    rows = np.argsort(-cost, kind="stable")[:MAIN]
    first = ranking.order[: min(_CAUSES, MAIN)]
    return np.asarray(list(dict.fromkeys([*first.tolist(), *rows.tolist()]))[:MAIN], np.intp)


def targets_of_page(ranking: Ranking) -> FloatArray:
    """Return the targets of the grid, ascending: round numbers, and the target of the page."""
    fitted = ranking.fitted
    if fitted.is_measured_only:
        return np.empty(0)
    first, last = float(fitted.points[0]), float(fitted.points[-1])
    return targets_between(first, last, ranking.target, len(fitted.experiment.tree))


def targets_between(first: float, last: float, target: float, count: int) -> FloatArray:
    """Return the smallest scale, round numbers far beyond the largest one, and the target.

    Parameters
    ----------
    first, last : smallest and largest measured scale
    target : target of the page, which may be infinite
    count : number of call paths; many have fewer targets
    """
    few = count <= _FEW
    end = max((_FARTHEST if few else 16.0) * last, 2 * target if np.isfinite(target) else 0.0)
    octaves = 2.0 ** np.arange(np.floor(np.log2(first)), np.ceil(np.log2(end)) + 1)
    steps = np.array([1, 1.25, 1.5, 1.75] if few and len(octaves) <= 40 else [1.0])
    found = np.outer(octaves, steps).ravel()
    asked = [target] if np.isfinite(target) else []
    found = np.unique([first, *found[(found > first) & (found <= end)], *asked])
    return np.asarray(found, np.float64)


def _first_target(ranking: Ranking, targets: FloatArray) -> float:
    """Return the target that is shown first: that of the page, or a usual one for infinity."""
    if np.isfinite(ranking.target):
        return float(ranking.target)
    last = float(ranking.fitted.points[-1])
    further = targets[targets >= FURTHER * last]
    return float(further[0]) if len(further) else last


def add_models(
    columns: PageColumns,
    models: Models,
    side: str = "",
    rows: IntArray | None = None,
    count: int = 0,
) -> None:
    """Add terms and coefficients, and the earlier laws of models with a change point.

    Parameters
    ----------
    models : the models
    side : prefix of the names of columns
    rows : [models] call path of each model; None = one model for each call path, in order
    count : number of call paths
    """
    rows = np.arange(len(models)) if rows is None else rows
    count = count or len(models)
    terms = np.full((count, models.terms.shape[1]), -1, np.int16)
    coefficients = np.zeros((count, models.coefficients.shape[1]))
    terms[rows], coefficients[rows] = models.terms, models.coefficients
    columns.add(f"{side}terms", terms, np.int16)
    columns.add(f"{side}coefficients", coefficients, np.float64)
    (changed,) = np.nonzero(models.since > 0)
    columns.add(f"{side}changed", rows[changed], np.int32)
    columns.add(f"{side}since", models.since[changed], np.float64)
    columns.add(f"{side}before", models.before[changed], np.int16)
    columns.add(f"{side}beforeCoefficients", models.before_coefficients[changed], np.float64)


def _add_answer(columns: PageColumns, made: Answer, main: IntArray, kind: str) -> dict[str, Any]:
    """Add the bands at one target, and return its numbers for the whole program."""
    fitted, target, views = made.fitted, made.target, made.call_paths
    others = np.ones(len(views[0].value), np.bool_)
    others[main] = False
    lowered = np.zeros(len(others))
    if kind == "grid":
        with np.errstate(invalid="ignore", divide="ignore"):
            alone = fitted.models.values(np.array([target]))[:, 0]
            lowered = np.where(alone > 0, 1 - views[0].value / alone, 0.0)
        columns.add("lowered", np.nan_to_num(lowered[main]), np.float64)
        columns.add("loweredOthers", np.nan_to_num(lowered[others]), np.float32)
    for name, view in zip(("", "Below"), views, strict=True):
        columns.add(f"ends{name}", np.stack([view.low[main], view.high[main]]), np.float64)
        codes = band_codes(view.value[others], view.low[others], view.high[others])
        columns.add(f"codes{name}", codes, np.uint16)
        columns.add(f"trust{name}", view.trust, np.int8)
    loss = made.loss
    return {
        "kind": kind,
        "at": target,
        "total": [finite_or_none(end) for end in made.program_total],
        "whole": finite_or_none(made.whole),
        "unknown": made.is_unknown,
        "runTime": None if loss is None else finite_or_none(loss.run_time),
        "ofTarget": None if loss is None else loss.of_target,
        "expected": None if loss is None else _expected(made),
        "isLowered": bool(lowered.any()),
    }


_Ends = tuple[FloatArray, FloatArray, FloatArray]
"""Distances of the ends of bands from values: exclusive, inclusive, of the program; [2, n]."""


def _add_middles(
    columns: PageColumns, ranking: Ranking, targets: FloatArray, ends: Sequence[_Ends]
) -> list[bool]:
    """Add which bands must not be interpolated, and return whether that of the program must not.

    Each pair of neighbours has a column [call paths]: 1 for exclusive, 2 for inclusive bands.
    """
    inputs, found = ranking.inputs.with_basis(predicted=True), list[bool]()
    for before, after, middle in zip(
        ends[:-1], ends[1:], np.sqrt(targets[1:] * targets[:-1]).tolist(), strict=True
    ):
        there = _distances(answer_at(inputs, middle))
        rough = [_differ(there[k], (before[k] + after[k]) / 2) for k in range(2)]
        columns.add("rough", rough[0] + 2 * rough[1], np.uint8)
        found.append(bool(_differ(there[2], (before[2] + after[2]) / 2)[0]))
    return found


def _distances(made: Answer) -> _Ends:
    """Return the distances of the ends of bands from values, on a logarithmic scale."""
    value, low, high = (np.array([end]) for end in made.program_total)
    own, below = made.call_paths
    with np.errstate(divide="ignore", invalid="ignore"):
        return (
            np.log(np.stack([own.low, own.high]) / own.value),
            np.log(np.stack([below.low, below.high]) / below.value),
            np.log(np.stack([low, high]) / value),
        )


def _differ(known: FloatArray, interpolated: FloatArray) -> BoolArray:
    """Return whether an interpolated end is beyond the tolerance, [n]."""
    with np.errstate(invalid="ignore"):
        close = np.abs(known - interpolated) <= TOLERANCE
        close |= (known == interpolated) | (np.isnan(known) & np.isnan(interpolated))
    return np.asarray(~close.all(axis=0))


def _expected(made: Answer) -> float | None:
    """Return the factor from costs at the base to expected costs; None = there is not only one."""
    factor = ideal_of(made.fitted).factor(made.base, made.target)
    if factor is None:
        return None
    base = float(made.costs_at_base.total[0])
    return float(made.expected.total[0]) / base if base > 0 else None


def finite_or_none(value: float) -> float | None:
    """Return a number for JSON, which has neither NaN nor infinity."""
    return float(value) if np.isfinite(value) else None


def band_codes(value: FloatArray, low: FloatArray, high: FloatArray) -> NDArray[np.uint16]:
    """Return the distances of both ends of bands from their values as codes, [2, n]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.stack([np.log(value / low), np.log(high / value)])
    codes = np.clip(np.rint(away * CODES), 0, ENDLESS)
    codes[:, value == 0] = 0.0
    codes = np.where(np.isnan(away) & (value != 0), NOTHING, codes)
    codes[:, np.isnan(low) | np.isnan(value)] = NOTHING
    return codes.astype(np.uint16)


def shape_numbers(shape: Shape) -> list[Any] | None:
    """Return a shape as a list for the browser; None = it has several parameters."""
    if isinstance(shape, Term):
        return ["term", *_order(shape.growth)]
    if isinstance(shape, TermDifference):
        return ["difference", *_order(shape.larger.growth), *_order(shape.smaller.growth)]
    if isinstance(shape, Break):
        order = _order(shape.growth)
        return [str(shape.kind), float(shape.at), float(shape.exponent), *order]
    return None


def _order(growth: Growth) -> list[float]:
    return [float(number) for number in growth.order]


def _growths(fitted: Fitted) -> tuple[Growth, ...]:
    return fitted.models.shapes.growths


def formulas_of(fitted: Fitted, main: IntArray) -> list[str]:
    """Return the formulas of some call paths; "" = no model."""
    return [
        text if is_there else ""
        for text, is_there in zip(
            fitted.models.formulas(main, fitted.parameter, pretty=True),
            fitted.modelled[main].tolist(),
            strict=True,
        )
    ]


def _causes(ranking: Ranking) -> tuple[list[str], NDArray[np.int16]]:
    """Return labels of causes, and the number of the label of each call path; -1 = not known."""
    found = np.full(len(ranking.fitted.experiment.tree), -1, np.int16)
    if ranking.fitted.is_measured_only or ranking.inclusive:
        return [], found
    rows = ranking.order[:_CAUSES]
    texts = ranking.why(rows)
    labels = list(dict.fromkeys(texts))
    found[rows] = [labels.index(text) for text in texts]
    return [_full(label) for label in labels], found


def _name(name: str) -> str:
    return cut(printable(short_name(name)), 90)


def _full(name: str) -> str:
    return cut(printable(name), _LONGEST)
