"""Laws over the points on one side of a change point: regressions and their evidence.

See docs/explanation/hypotheses.md, 'Laws beyond a change point'.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import PLAIN_LAW, ROUNDING, TINY
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses, HypothesisGroup
from callpath_modeler.modeling.mixture.regressions import (
    OneTermFits,
    bare_evidence,
    constant_evidence,
    offset_evidence,
    positive_evidence,
)
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, floor_of
from callpath_modeler.modeling.terms import Term


def plain_terms(hypotheses: Hypotheses) -> IntArray:
    """Return the codes of the terms in laws of one side, [S]."""
    codes = [
        k for k, each in enumerate(hypotheses.shapes) if isinstance(each, Term) and not each.rate
    ]
    every = np.array(codes, dtype=np.intp)
    probable = (
        hypotheses.log_prior[_numbers(every, len(hypotheses.shapes))[1:]].reshape(3, -1).max(axis=0)
    )
    return np.asarray(every[probable >= probable.max(initial=-np.inf) - PLAIN_LAW])


def prior_of_laws(log_prior: FloatArray, terms: IntArray, shapes: int) -> FloatArray:
    """Return the log prior of laws in the order of `SideRegressions`, [1 + 3 S].

    Parameters
    ----------
    log_prior : log prior of all hypotheses, in the order of `Hypotheses`
    terms : [S] codes as returned by `plain_terms`
    shapes : number of shapes
    """
    found = log_prior[_numbers(terms, shapes)]
    return np.asarray(found - np.logaddexp.reduce(found))


def _numbers(terms: IntArray, shapes: int) -> IntArray:
    """Return the numbers of the laws of one side: constant, positive, offset, no constant."""
    return np.concatenate([[0], *(1 + family * shapes + terms for family in range(3))])


class SideRegressions(Struct, frozen=True):
    """Laws of n rows on one side of a change point, H = 1 + 3 S for each row.

    The laws are a constant, and each term with a positive constant, with a negative one, and
    without one.

    Attributes
    ----------
    residual, evidence, size : [n, H] residual sum of squares, log evidence without the likelihood,
        number of coefficients
    constant, slope : [n, H] coefficients of the shapes as scaled in `Hypotheses.table`
    cc, cf, ff : [n, H] covariance of both for a variance of 1 per point
    """

    residual: FloatArray
    evidence: FloatArray
    size: FloatArray
    constant: FloatArray
    slope: FloatArray
    cc: FloatArray
    cf: FloatArray
    ff: FloatArray

    def take(self, rows: IntArray, laws: IntArray) -> Self:
        """Return some laws; `rows` and `laws` broadcast against each other."""
        return type(self)(
            *(getattr(self, field.name)[rows, laws] for field in structs.fields(self))
        )

    def of_rows(self, rows: IntArray) -> Self:
        """Return all laws of some rows."""
        return type(self)(*(getattr(self, field.name)[rows] for field in structs.fields(self)))

    @classmethod
    def of(
        cls,
        data: ScaledRows,
        weights: FloatArray,
        hypotheses: Hypotheses,
        terms: IntArray,
        where: slice,
    ) -> Self:
        """Return the regressions of rows on every law over the points `where`; `weights` [n, K]."""
        values, w = data.values[:, where], weights[:, where]
        used = (w > 0).sum(axis=1).astype(np.float64)
        table = hypotheses.table[terms, where]
        peak = np.abs(table).max(axis=1)
        table = table / peak[:, None]
        weight = np.maximum(w.sum(axis=1), TINY)
        mean = (w * values).sum(axis=1) / weight
        products = w * (values - mean[:, None])
        total = (products * (values - mean[:, None])).sum(axis=1)
        at, raw = (w @ table.T) / weight[:, None], w @ (table**2).T
        square = np.maximum(raw - weight[:, None] * at**2, ROUNDING * raw + TINY)
        product = products @ table.T
        slope, shape = product / square, at.shape
        whole, level, in_row, least, most, falling = (
            np.broadcast_to(column, shape)
            for column in (
                weight[:, None],
                mean[:, None],
                np.maximum(used - 2, 1.0)[:, None],
                table.min(axis=1),
                table.max(axis=1),
                hypotheses.single_group[terms] == HypothesisGroup.FALLING,
            )
        )
        left = np.maximum(total[:, None] - slope * product, 0.0)
        variance = np.maximum(data.variance[:, None], left / in_row)
        found = OneTermFits(*(column.ravel() for column in (whole, level, at, square, slope)))
        falls = falling.ravel(), variance.ravel()
        # Rows that are zero on this side have no level; their laws get no evidence below.
        with np.errstate(divide="ignore", invalid="ignore"):
            positive, rising = positive_evidence(found, *falls)
            offset, beside = offset_evidence(found, least.ravel(), most.ravel(), *falls)
        rising, beside = rising.reshape(shape), beside.reshape(shape)
        through = square + whole * at**2
        along = np.maximum(slope * square + whole * at * level, 0.0)
        alone = along / through
        alone_left = (total + weight * mean**2)[:, None] - alone * along
        cc, cf, ff = (column.reshape(shape) for column in found.covariance())
        nothing, one = np.zeros(shape), np.ones(shape)

        def joined(constant: FloatArray | float, *families: FloatArray) -> FloatArray:
            first = np.broadcast_to(constant, len(values))[:, None]
            return np.concatenate([first, *families], axis=1)

        size = joined(1.0, 2 * one, 2 * one, one)
        bare = bare_evidence(np.maximum(level, TINY), alone, through)
        evidence = joined(
            constant_evidence(weight, mean), positive.reshape(shape), offset.reshape(shape), bare
        )
        # A law needs one point more than coefficients, except one coefficient on one point.
        evidence[used[:, None] <= size - (size == 1)] = -np.inf
        # If the mean is below the floor, the level has no evidence, unless values are counts.
        small = mean < floor_of(data)[:, 0]
        evidence[small & ((data.rounding == 0) | (mean <= 0))] = -np.inf
        evidence[small, 1:] = -np.inf
        evidence[np.isnan(evidence)] = -np.inf
        return cls(
            np.maximum(joined(total, left, left, alone_left), 0.0),
            evidence,
            size,
            joined(mean, level - rising * at, level - beside * at, nothing),
            joined(0.0, rising / peak, beside / peak, alone / peak),
            joined(1 / weight, cc, cc, nothing),
            joined(0.0, cf / peak, cf / peak, nothing),
            joined(0.0, ff / peak**2, ff / peak**2, 1 / through / peak**2),
        )
