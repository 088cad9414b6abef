"""Accuracy without single rules of the method, to show what each rule is worth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import noises
import numpy as np
import real_series
import several
import sizes
import slices
from cluster.simulate import FAR, PROFILES, SCALES
from joint_laws import OF_PROGRAMS, SUMS_OF_THREE
from laws import AbsentError
from mechanisms import PROGRAMS
from numpy.typing import NDArray
from other_laws import COUNTS, OTHER_PROGRAMS, RARE_PROGRAMS
from programs import Programs
from results import Table

import callpath_modeler as cpm
from callpath_modeler import modeling
from callpath_modeler.analysis.uncertain import MARKS, WITHIN, at_most, limited, marks_of_trust
from callpath_modeler.analysis.verification import verify
from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import (
    empirical_bayes,
    factor_catalogue,
    fitting,
    lines,
)
from callpath_modeler.modeling import (
    fitting as application,
)
from callpath_modeler.modeling import (
    products as breaks,
)
from callpath_modeler.modeling import products_of_factors as products
from callpath_modeler.modeling.mixture import one_parameter, priors
from callpath_modeler.modeling.mixture.residuals import MisfitBaseline
from callpath_modeler.modeling.products import Break, BreakKind
from callpath_modeler.modeling.terms import DEFAULT_SPACE, SearchSpace

NOTES = """\
Lines that hardly differ from the whole method ("nothing") are left out.
Each line is the method without one rule, on one set of series. Next scale: real series, cut after
each scale, as in the table of next scales. Programs: the laws of mechanisms, at 4 and 16 times the
largest scale. Other laws: laws that no hypothesis contains, such as powers between those tried and
gradual changes. Rare laws: laws that one rule exists for, such as n^5, at eight points with 1 %
noise. Sizes: sums of whole powers. Counts: small whole numbers without noise. Constants:
values that do not grow, with 2 to 100 % noise, with one repetition and with five. Noises: noise
that call paths share, or that grows. Far: the simulated clusters. Slices: real programs in two
parameters. Grids: laws in two and in three parameters, with 10 % noise. Grids of programs, and sums
of three terms in three parameters, have 5 %. Error: the median. Width: the median width of the
bands, relative to the truth. False growth: the share of constants whose model grows. Sure and
wrong: the share of predictions with three or four marks of trust that are further off than the
marks state; 16 times the largest scale allows two marks. Cost: the processor time relative to the
whole method.
"""

Rule = Sequence[tuple[Any, str, Any]]
"""Attributes of modules, and their values without the rule."""


def _without_breaks(drop: Callable[[Break], bool]) -> Rule:
    def others(points: FloatArray) -> tuple[Break, ...]:
        return tuple(each for each in breaks.breaks(points) if not drop(each))

    return [(one_parameter, "breaks", others)]


def _without(*kinds: BreakKind) -> Rule:
    return _without_breaks(lambda each: each.kind in kinds)


def _in_space(space: SearchSpace) -> Rule:
    return [(fitting, "DEFAULT_SPACE", space)]


def _nothing(*_: Any, **__: Any) -> None:
    return None


_WHOLE = tuple(each for each in DEFAULT_SPACE.alone if each.denominator == 1)
_COARSE = tuple(each for each in DEFAULT_SPACE.decreasing if each.denominator != 10)

_NO_PAIRS = np.empty((0, 2), dtype=np.intp)

_BETWEEN: Rule = [
    (module, "neighbouring_powers", lambda _: []) for module in (priors, one_parameter)
]
_OTHER_WORK: Rule = [(module, "other_work", lambda _: []) for module in (priors, one_parameter)]
_TENTHS = _in_space(replace(DEFAULT_SPACE, alone=_WHOLE, decreasing=_COARSE))

OF_ONE: Mapping[str, Rule] = {
    "nothing": [],
    "gradual breaks": _without(BreakKind.SWELL, BreakKind.SETTLE),
    "sorted shares": _without(BreakKind.SORTED),
    "leaps": _without(BreakKind.LEAP),
    "powers between two others": _BETWEEN,
    "other work": _OTHER_WORK,
    "tenths, between, other work": [*_BETWEEN, *_OTHER_WORK, *_TENTHS],
    "all of these": [
        *_without(BreakKind.SWELL, BreakKind.SETTLE, BreakKind.SORTED, BreakKind.LEAP),
        *_BETWEEN,
        *_OTHER_WORK,
        *_TENTHS,
    ],
    "breaks that begin at a capacity": _without_breaks(lambda each: each.begins),
    "levels, blocks and ceilings": _without(BreakKind.LEVELS, BreakKind.BLOCKS, BreakKind.CEILING),
    "drops, plateaus and floors": _without(BreakKind.DROP, BreakKind.PLATEAU, BreakKind.FLOOR),
    "laws beyond a change point": [(application, "with_laws_beyond", _nothing)],
    "next steps of staircases": [(application, "with_next_steps", _nothing)],
    "continuation of the last points": [(application, "widen", _nothing)],
    "differences": [(one_parameter, "differences", lambda *_: ())],
    "p^4 to p^7": _in_space(replace(DEFAULT_SPACE, alone=())),
    "secondary fractions": _in_space(replace(DEFAULT_SPACE, secondary=())),
    "sums of whole powers": [(one_parameter, "prior_weight_of_whole", lambda *_: np.nan)],
    "weights with shared work": [(one_parameter, "prior_weight_beside_shared", lambda _: 1.0)],
    "plain terms are more probable": [(priors, "_plainness", lambda *_: 1.0)],
    "learnt priors": [
        (empirical_bayes, "_beliefs", lambda _, __, ___, before, *____: before),
    ],
    "outlier scales": [(empirical_bayes, "_odd_one", _nothing)],
    "noise that grows with scale": [(empirical_bayes, "LOOKS_AT_SCALES", 0)],
    "correlation of errors": [(empirical_bayes, "error_correlation", lambda *_, **__: 0.0)],
    "usual misfits": [(empirical_bayes, "misfit_baseline", lambda *_: MisfitBaseline())],
}
"""Rules of models in one parameter."""


def _never(of_lines: FloatArray, *_: Any) -> NDArray[np.bool_]:
    return np.zeros(len(of_lines), dtype=np.bool_)


def _always(of_lines: FloatArray, *_: Any) -> NDArray[np.bool_]:
    return np.ones(len(of_lines), dtype=np.bool_)


def _no_doubt(models: modeling.Models, *_: Any) -> FloatArray:
    return np.zeros(len(models))


_SURE_OF_LINES: Rule = [(lines, "_doubts", _no_doubt), (lines, "DOUBT", 0.0)]

OF_SEVERAL: Mapping[str, Rule] = {
    "nothing": [],
    "doubts about slices and runs": _SURE_OF_LINES,
    "slices: always runs": [(lines, "_closer", _always), *_SURE_OF_LINES],
    "slices: never runs": [(lines, "_closer", _never), *_SURE_OF_LINES],
    "runs instead of slices": [(lines, "_closer", _never)],
    "sums of products": [(empirical_bayes, "product_space", _nothing)],
    "products that follow from others": [(products, "_companions", lambda _: _NO_PAIRS)],
    "pairs of shared work": [(products, "_shared", lambda _: _NO_PAIRS)],
    "breaks along a parameter": [(factor_catalogue, "identifiable_breaks", lambda *_: [])],
    "all of these": [
        (empirical_bayes, "product_space", _nothing),
        (products, "_companions", lambda _: _NO_PAIRS),
        (products, "_shared", lambda _: _NO_PAIRS),
        (factor_catalogue, "identifiable_breaks", lambda *_: []),
    ],
}
"""Rules of models in several parameters."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predictions of some call paths, [n].

    Attributes
    ----------
    truth : true values
    value, low, high : predictions and bands
    marks : marks of trust
    growing : True if the model grows; only meaningful for constants
    constant : True if the law is a constant
    """

    truth: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    marks: NDArray[np.int8]
    growing: NDArray[np.bool_]
    constant: NDArray[np.bool_]

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        """Return the predictions of all parts."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def figures(self) -> tuple[float, ...]:
        """Return error, share within 20 %, coverage, width, false growth, sure and wrong."""
        slack = 1e-9 * np.abs(self.truth)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.abs(self.value - self.truth) / np.abs(self.truth)
            width = (self.high - self.low) / np.abs(self.truth)
            off = np.maximum(self.value / self.truth, self.truth / self.value)
        error = np.where(self.value == self.truth, 0.0, np.where(np.isnan(error), np.inf, error))
        held = (self.low <= self.truth + slack) & (self.truth - slack <= self.high)
        modelled = np.isfinite(self.value)
        most = np.array(WITHIN)[MARKS - np.maximum(self.marks, 1)]
        wrong = (self.marks >= _SURE) & ~(off <= most * (1 + 1e-9)) & (self.value != self.truth)
        grows = self.growing[self.constant]
        return (
            float(np.median(error)),
            float((error <= _NEAR).mean()),
            float(held[modelled].mean()),
            float(np.median(width[modelled & (self.truth != 0)])),
            float(grows.mean()) if grows.size else 0.0,
            float(wrong.mean()),
        )


_SURE, _NEAR = 3, 0.2

_SLIGHT = (0.003, 0.01, 0.005, 0.06, 0.002, 0.002)
"""Differences of figures that are not shown; that of the width is relative."""


def _cells(figures: Sequence[float]) -> tuple[str, ...]:
    error, near, held, width, false, wrong = figures
    percents = (f"{100 * share:.{digits}f}%" for share, digits in ((near, 0), (held, 1)))
    return (
        f"{100 * error:.2f}%",
        *percents,
        f"{width:.2f}",
        f"{100 * false:.1f}%",
        f"{100 * wrong:.2f}%",
    )


def _differs(figures: Sequence[float], whole: Sequence[float]) -> bool:
    """Return whether a line without a rule differs from that of the whole method."""
    slight = [*_SLIGHT[:3], _SLIGHT[3] * whole[3], *_SLIGHT[4:]]
    return any(abs(a - b) > most for a, b, most in zip(figures, whole, slight, strict=True))


_MULTIPLES, _SEEDS = (4.0, 16.0), 10


def _predicted(
    models: modeling.Models, target: FloatArray, truth: FloatArray, times: float, first: FloatArray
) -> Predictions:
    """Return predictions at a target, `times` the largest scale; `first` is the smallest value."""
    found = models.predict(target)
    value, low, high = (each[:, 0] for each in (found.value, found.low, found.high))
    marks = at_most(marks_of_trust(value, low, high), value, limited(models, value, times))
    constant = np.isclose(truth, first, rtol=1e-12)
    growing = np.zeros(len(value), dtype=np.bool_)
    if models.points.ndim == 1:
        for row in np.flatnonzero(constant):
            growth = models.growth(int(row))
            growing[row] = growth.exponent > 0 or (growth.exponent == 0 and growth.log > 0)
    return Predictions(truth, value, low, high, marks, growing, constant)


@cache
def _series(shared: Path) -> list[tuple[FloatArray, FloatArray]]:
    """Return points and values of all real series, cut after each scale."""
    every = [part for _, _, parts in real_series.measured(shared) for part in parts]
    return [
        (points[:count], values[:, :count])
        for points, values in every
        for count in range(4, len(points) + 1)
    ]


def _next_scales(shared: Path) -> Iterator[Predictions]:
    for points, values in _series(shared):
        held = real_series.predicted(points, values, peer=False)
        if held is not None:
            none = np.zeros(len(held.truth), dtype=np.bool_)
            yield Predictions(held.truth, held.ours, held.low, held.high, held.marks, none, none)


def _of_programs(programs: Programs, multiple: float) -> Iterator[Predictions]:
    target = np.array([multiple * programs.points[-1]])
    for seed in range(_SEEDS):
        places = np.append(target, programs.points[0])
        y, exact = programs.drawn(programs.names, places, np.random.default_rng(seed))
        models = modeling.fit(programs.points, y)
        yield _predicted(models, target, exact[:, 0], multiple, exact[:, 1])


def _counts(multiple: float) -> Iterator[Predictions]:
    for programs in COUNTS:
        yield from _of_programs(programs, multiple)


def _noises(shared: Path) -> Iterator[Predictions]:
    for points, target, y, truth in noises.applications(shared):
        models, never = modeling.fit(points, y), np.full(len(truth), np.nan)
        yield _predicted(models, target, truth, 16, never)


_NOISES = (0.02, 0.1, 0.3, 1.0)
_CONSTANTS = 70


def _constants() -> Iterator[Predictions]:
    points, truth = 8 * 2.0 ** np.arange(6), np.full(_CONSTANTS, 5.0)
    for noise in _NOISES:
        for repetitions in (1, 5):
            rng = np.random.default_rng([int(100 * noise), repetitions])
            y = 5 * rng.lognormal(0, noise, (_CONSTANTS, len(points), repetitions))
            yield _predicted(modeling.fit(points, y), 16 * points[-1:], truth, 16, truth)


def _slices(shared: Path) -> Iterator[Predictions]:
    for _, kept in slices.kept_back(shared, peer=False):
        value, none = kept.said["ours"], np.zeros(len(kept.truth), dtype=np.bool_)
        marks = marks_of_trust(value, kept.low, kept.high)
        yield Predictions(kept.truth, value, kept.low, kept.high, marks, none, none)


_GRID_NOISE, _SMALL_NOISE, _GRID_SEEDS = 0.1, 0.05, 2


def _of_designs(designs: Sequence[several.Design], noise: float) -> Iterator[Predictions]:
    for design in designs:
        few = replace(design, seeds=design.seeds[:_GRID_SEEDS])
        drawn = [several.draw_laws(few, make, noise) for make in few.kinds.values()]
        values, truth = (
            np.concatenate([getattr(each, name) for each in drawn]) for name in ("values", "truth")
        )
        surface = modeling.fit(few.points, values)
        models, _ = modeling.slice_with_line_models(surface, 0, few.target[0], few.points, values)
        yield _predicted(models, few.target[:, 0], truth, 16, np.full(len(truth), np.nan))


@cache
def _clusters() -> list[tuple[cpm.Experiment, cpm.Experiment, int]]:
    """Return what models know, the far run and its scale, for each simulated program."""
    found = []
    for folder in sorted(PROFILES.glob("*.*")):
        for scale in FAR:
            if [*folder.glob(f"*.p{scale}.r*/profile.cubex")]:
                known = f"p<={SCALES[-1]}"
                runs = [cpm.load([folder], cpm.LoadOptions(where=w)) for w in (known, f"p={scale}")]
                found.append((runs[0], runs[1], scale))
    if not found:
        raise AbsentError(f"{PROFILES} has no far runs: make cluster")
    return found


def _far() -> Iterator[Predictions]:
    for known, truth, scale in _clusters():
        ranking = cpm.rank(cpm.fit(known), scale)
        measured = verify(ranking, truth)
        its = measured.counts
        band = ranking.predicted
        none = np.zeros(int(its.sum()), dtype=np.bool_)
        yield Predictions(
            measured.value[its],
            band.value[its],
            band.low[its],
            band.high[its],
            ranking.trust[its],
            none,
            none,
        )


Suite = tuple[Mapping[str, Rule], Callable[[], Iterator[Predictions]]]
"""Rules, and a function that measures without the rule that is off."""


def _suites(shared: Path) -> Mapping[str, Suite]:
    found: dict[str, Suite] = {"next scale": (OF_ONE, partial(_next_scales, shared))}
    for multiple in _MULTIPLES:
        name = f"{multiple:g} x"
        found |= {
            f"programs, {name}": (OF_ONE, partial(_of_programs, PROGRAMS, multiple)),
            f"other laws, {name}": (OF_ONE, partial(_of_programs, OTHER_PROGRAMS, multiple)),
            f"rare laws, {name}": (OF_ONE, partial(_of_programs, RARE_PROGRAMS, multiple)),
            f"sizes, {name}": (OF_ONE, partial(_of_programs, sizes.PROGRAMS, multiple)),
            f"counts, {name}": (OF_ONE, partial(_counts, multiple)),
        }
    return found | {
        "constants, 16 x": (OF_ONE, _constants),
        "noises, 16 x": (OF_ONE, partial(_noises, shared)),
        "far": (OF_ONE, _far),
        "slices": (OF_SEVERAL, partial(_slices, shared)),
        "grids": (OF_SEVERAL, partial(_of_designs, several.DESIGNS, _GRID_NOISE)),
        "grids of programs": (OF_SEVERAL, partial(_of_designs, [OF_PROGRAMS], _SMALL_NOISE)),
        "sums of three": (OF_SEVERAL, partial(_of_designs, [SUMS_OF_THREE], _SMALL_NOISE)),
    }


HEAD = (
    *("series", "without", "error", "within 20 %", "held", "width"),
    *("false growth", "sure and wrong", "cost"),
)


def table(shared: Path) -> Table:
    """Measure all suites without each rule.

    Raises
    ------
    AbsentError
        If the measurements are absent.
    """
    return Table(HEAD, list(lines(shared)), range(2, len(HEAD)))


def lines(shared: Path) -> Iterator[tuple[str, ...]]:
    """Yield the lines of the table; suites whose files are absent have none.

    Raises
    ------
    AbsentError
        If the real series are absent.
    """
    _series(shared)
    for suite, (rules, measure) in _suites(shared).items():
        whole: tuple[float, ...] = ()
        cost = 0.0
        for name, rule in rules.items():
            try:
                with _off(rule):
                    start = time.process_time()
                    figures = Predictions.joined(list(measure())).figures()
                    spent = time.process_time() - start
            except AbsentError:
                break
            whole, cost = whole or figures, cost or spent
            if figures is whole or _differs(figures, whole):
                yield suite, name, *_cells(figures), f"{spent / cost:.1f}"


@contextmanager
def _off(rule: Rule) -> Iterator[None]:
    """Fit without a rule."""
    # Hypotheses are kept from fit to fit, and these were made with other rules.
    fresh = lru_cache(vars(one_parameter)["_hypotheses"].__wrapped__)
    with ExitStack() as stack:
        for module, name, value in [*rule, (one_parameter, "_hypotheses", fresh)]:
            stack.enter_context(patch.object(module, name, value))
        yield
