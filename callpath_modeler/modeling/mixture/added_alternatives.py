"""Alternatives that are added to models after the fit, each with a stated probability.

See docs/explanation/noise-and-bands.md, 'Prediction and band'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.mixture.outcome import Columns


def add_alternatives(
    columns: Columns, rows: IntArray, terms: IntArray, numbers: FloatArray, share: float
) -> None:
    """Replace the least probable alternatives of some rows by further laws.

    Parameters
    ----------
    columns : columns of the models of all rows; `weight` and the columns of alternatives change
    rows : [n] numbers of the rows
    terms : [n, M, T] codes of the shapes of M laws; -1 = none
    numbers : [n, M, 1 + T] their coefficients, in the unit of the metric
    share : probability of each law; the others share the rest in proportion
    """
    count, last = terms.shape[1], slice(-terms.shape[1], None)
    weight = np.column_stack([columns["weight"][rows], columns["alternative_weight"][rows]])
    weight[:, last] = 0.0
    weight *= ((1 - count * share) / weight.sum(axis=1))[:, None]
    weight[:, last] = share
    columns["weight"][rows] = weight[:, 0]
    codes, its = columns["alternative_terms"][rows], columns["alternative_coefficients"][rows]
    root = columns["root"][rows]
    codes[:, last], its[:, last], root[:, last] = -1, 0.0, 0.0
    codes[:, last, : terms.shape[2]] = terms
    its[:, last, : numbers.shape[2]] = numbers
    order = np.argsort(-weight[:, 1:], axis=1, kind="stable")
    every = np.arange(len(rows))[:, None]
    columns["alternative_weight"][rows] = weight[:, 1:][every, order]
    columns["alternative_terms"][rows] = codes[every, order]
    columns["alternative_coefficients"][rows] = its[every, order]
    root[:, 1:] = root[:, 1:][every, order]
    columns["root"][rows] = root
