"""Predictions far out: simulated clusters, known up to 128 processes, measured at 512 and 1,024."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import extrap_models
import numpy as np
from cluster.simulate import FAR, PROFILES, SCALES
from laws import AbsentError
from numpy.typing import NDArray
from results import Table

import callpath_modeler as cpm
from callpath_modeler.analysis.answer import By, Ranking
from callpath_modeler.analysis.uncertain import MARKS, WITHIN
from callpath_modeler.analysis.verification import Verification, verify
from callpath_modeler.arrays import FloatArray

NOTES = f"""\
`make cluster` runs three programs on three simulated clusters. Models know p = {SCALES[0]} to
{SCALES[-1]} with three repetitions. The truth is one run at p = 512 or 1,024. Last: the value at
the largest known scale. Total: the relative error of the total, which is the run time that
`cpmodel rank` states, and for the others the sum of call paths. Paths: call paths with at least
0.5 % of the true time, with their median error. Holds is the share of 95 % bands that contain the
truth. Width is the median ratio of the upper to the lower end.
"""

RANK_NOTES = """\
The runs are those of the table above. The columns count how many of the five (ten) call paths that
lead the truth are among the five (ten) that lead the prediction: by time, and by excess, which is
time beyond that at p = 8. Planted: the places of the planted scalability bugs among the predicted
call paths by growth, `cpmodel rank --by growth`, without call paths below 0.5 % of the predicted
time. In lines of all series: cases in which the worst bug is among the first five. Marked: call
paths with three or four marks of trust. Kept: those whose truth is as close as their marks say.
"""

PLANTED = {
    "stencil": ("main/find_owners", "main/MPI_Finalize"),
    "particles": (
        "main/setup/draw_particles/MPI_Scatter",
        "main/migrate/agree_on_buffers/MPI_Allreduce",
    ),
    "spectral": (
        "main/coarse_solve/MPI_Scatter",
        "main/exchange_spectra/transpose/MPI_Alltoall",
    ),
}
"""Call paths where the planted bugs of a program cost time, the worst first.

The root of the stencil receives all output, and the others wait for it in MPI_Finalize.
"""

_MARKED = 3
_WORTH = 0.005
_FIRST = 5, 10


@dataclass(frozen=True, slots=True)
class Told:
    """Predictions and truth of one series at one target.

    Attributes
    ----------
    series : name of the series
    target : number of processes
    ranking, verification : our predictions, and the truth beside them
    extrap, last, base : [call paths] Extra-P's predictions, and values at the largest and smallest
        known scale; NaN = none
    by_growth : rows of call paths, the fastest growing first
    """

    series: str
    target: int
    ranking: Ranking
    verification: Verification
    extrap: FloatArray
    last: FloatArray
    base: FloatArray
    by_growth: list[int]

    @property
    def chosen(self) -> NDArray[np.bool_]:
        """True for call paths that count, [call paths]."""
        return self.verification.counts

    @property
    def predictors(self) -> tuple[FloatArray, ...]:
        """Predictions of cpmodel, Extra-P and the last values, each [call paths]."""
        return self.ranking.predicted.value, self.extrap, self.last

    @property
    def total_errors(self) -> tuple[float, ...]:
        """Relative errors of the totals of the predictors."""
        sums = [float(np.nansum(each)) for each in (self.extrap, self.last)]
        totals = self.verification.predicted[0], *sums
        return tuple(abs(total / self.verification.total - 1) for total in totals)

    def errors(self) -> list[FloatArray]:
        """Return relative errors of the predictors at the call paths that count."""
        truth = self.verification.value[self.chosen]
        found = (np.abs(each[self.chosen] / truth - 1) for each in self.predictors)
        return [np.where(np.isnan(error), np.inf, error) for error in found]

    def hits(self, count: int, *, excess: bool) -> list[int]:
        """Return how many of the true leaders lead the predictions of each predictor."""
        base = np.nan_to_num(self.base) if excess else 0.0
        leaders = _leaders(self.verification.value - base, count)
        return [len(leaders & _leaders(each - base, count)) for each in self.predictors]

    def places(self) -> list[int | None]:
        """Return the places of the planted bugs by growth, from 1; None = not among them."""
        tree, value = self.ranking.fitted.experiment.tree, self.ranking.predicted.value
        worth = _WORTH * float(np.nansum(value))
        order = [tree.path(row) for row in self.by_growth if value[row] >= worth]
        planted = PLANTED[self.series.partition(".")[0]]
        found = [[k for k, path in enumerate(order, 1) if path.endswith(p)] for p in planted]
        return [min(each, default=None) for each in found]


def _leaders(values: FloatArray, count: int) -> set[int]:
    order = np.argsort(-np.nan_to_num(values), kind="stable")
    return {int(row) for row in order[:count]}


def table(_: Path) -> Table:
    """Measure errors and bands.

    Raises
    ------
    AbsentError
        If no series has a far run.
    """
    told = _everything()
    head = (
        *("series", "p", "time", "total: ours", "Extra-P", "last", "holds"),
        *("paths", "error: ours", "Extra-P", "last", "holds", "width"),
    )
    lines = [_line(each.series, [each]) for each in told]
    lines += [
        _line("all", some) for far in FAR if (some := [each for each in told if each.target == far])
    ]
    return Table(head, lines, range(1, len(head)))


def ranks(_: Path) -> Table:
    """Measure leaders and marks of trust.

    Raises
    ------
    AbsentError
        If no series has a far run.
    """
    told = _everything()
    kinds = [(count, excess) for excess in (False, True) for count in _FIRST]
    names = [f"{count} by {'excess' if excess else 'time'}" for count, excess in kinds]
    head = ("series", "p", *names, "planted, by growth", "marked", "kept")
    lines = [_places(each.series, [each], kinds) for each in told]
    lines += [
        _places("all", some, kinds)
        for far in FAR
        if (some := [each for each in told if each.target == far])
    ]
    return Table(head, lines, range(1, len(head)))


def _line(name: str, told: Sequence[Told]) -> tuple[str, ...]:
    errors = [np.concatenate(parts) for parts in zip(*(t.errors() for t in told), strict=True)]
    totals = np.median([each.total_errors for each in told], axis=0)
    inside = np.concatenate([t.verification.inside[t.verification.judged] for t in told])
    widths = np.concatenate(
        [t.ranking.high[t.verification.judged] / t.ranking.low[t.verification.judged] for t in told]
    )
    holds = [each.verification.holds for each in told]
    one = len(told) == 1
    return (
        name,
        str(told[0].target),
        f"{told[0].verification.total * 1e3:.1f} ms" if one else "",
        *(f"{error:.0%}" for error in totals),
        ("yes" if holds[0] else "NO") if one else f"{sum(holds)} of {len(holds)}",
        str(len(errors[0])),
        *(f"{np.median(error):.1%}" for error in errors),
        f"{inside.mean():.0%}",
        f"{np.median(widths):.2f}",
    )


def _places(name: str, told: Sequence[Told], kinds: Sequence[tuple[int, bool]]) -> tuple[str, ...]:
    cells = []
    for count, excess in kinds:
        hits = np.sum([each.hits(count, excess=excess) for each in told], axis=0)
        cells.append(" / ".join(str(hit / len(told)).removesuffix(".0")[:4] for hit in hits))
    places = [each.places() for each in told]
    if len(told) == 1:
        planted = ", ".join("-" if place is None else str(place) for place in places[0])
    else:
        first = sum(found[0] is not None and found[0] <= _FIRST[0] for found in places)
        planted = f"{first} of {len(told)}"
    marked, kept = np.sum([_marked(each) for each in told], axis=0).tolist()
    return (name, str(told[0].target), *cells, planted, str(marked), str(kept))


def _marked(told: Told) -> tuple[int, int]:
    """Return the number of marked call paths, and of those whose truth is as close as stated."""
    marked = told.verification.judged & (told.ranking.trust >= _MARKED)
    within = np.array(WITHIN)[MARKS - told.ranking.trust[marked]]
    truth, said = told.verification.value[marked], told.ranking.value[marked]
    return int(marked.sum()), int((np.maximum(truth / said, said / truth) <= within).sum())


@cache
def _everything() -> list[Told]:
    told = [each for folder in sorted(PROFILES.glob("*.*")) for each in _predictions(folder)]
    if not told:
        raise AbsentError(f"{PROFILES} has no far runs: make cluster")
    return sorted(told, key=lambda each: (each.target, each.series))


def _predictions(folder: Path) -> Iterator[Told]:
    there = [far for far in FAR if [*folder.glob(f"*.p{far}.r*/profile.cubex")]]
    if not there:
        return
    known = cpm.load([folder], cpm.LoadOptions(where=f"p<={SCALES[-1]}"))
    fitted = cpm.fit(known)
    points, values = known.by_point(fitted.metric.name, "p")
    modelled = np.flatnonzero(fitted.modelled)
    theirs = np.full((len(values), len(there)), np.nan)
    theirs[modelled] = extrap_models.predict(points, values[modelled], np.array(there, float))[0]
    for column, far in enumerate(there):
        ranking = cpm.rank(fitted, far)
        truth = cpm.load([folder], cpm.LoadOptions(where=f"p={far}"))
        yield Told(
            series=folder.name,
            target=far,
            ranking=ranking,
            verification=verify(ranking, truth),
            extrap=theirs[:, column],
            last=ranking.at_largest,
            base=fitted.measured[:, 0],
            by_growth=cpm.rank(fitted, far, By.GROWTH).order.tolist(),
        )
