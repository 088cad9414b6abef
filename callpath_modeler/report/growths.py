"""Growths and models of ranked values as text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.arrays import IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth


def growth_text(ranking: Ranking, row: int, *, pretty: bool = False) -> str:
    """Return the fastest growth among the parts of a ranked value; "" without a model."""
    return growth_texts(ranking, np.array([row]), pretty=pretty)[0]


def growth_texts(ranking: Ranking, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the growth of each ranked value, as `growth_text` does."""
    fitted, leader = ranking.fitted, ranking.leader[rows]
    texts = fitted.models.growth_texts(leader, fitted.parameter, pretty=pretty)
    return [text if row >= 0 else "" for text, row in zip(texts, leader.tolist(), strict=True)]


def growth_range_text(ranking: Ranking, row: int, *, pretty: bool = False) -> str:
    """Return the growth of a ranked value; a range if the data leave it open."""
    return growth_range_texts(ranking, np.array([row]), pretty=pretty)[0]


def growth_range_texts(ranking: Ranking, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the growth of each ranked value, as `growth_range_text` does."""
    return model_range_texts(ranking.fitted, ranking.leader[rows], pretty=pretty)


def model_range_texts(fitted: Fitted, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the growth of the models of call paths; a range if the data leave it open.

    A range is short: ``O(p^½ … p)`` has no logarithms, ``O(1 … log p)`` has the same powers. Rows
    of -1 stand for no model and give "".
    """
    name, between = fitted.parameter, " … " if pretty else " ... "
    texts = []
    for ends in growth_ends(fitted, rows):
        if ends is None:
            texts.append("")
            continue
        far = ends[0].exponent != ends[1].exponent
        low, high = (replace(end, log=0) if far else end for end in ends)
        first, last = low.text(name, pretty=pretty), high.text(name, pretty=pretty)
        range_ = f"{first[:-1]}{between}{last.removeprefix('O(')}"
        texts.append(first if low == high else range_)
    return texts


def growth_ends(fitted: Fitted, rows: IntArray) -> list[tuple[Growth, ...] | None]:
    """Return the slowest and the fastest possible growth of call paths; None for rows of -1."""
    growths = fitted.models.shapes.growths
    return [
        tuple(growths[rank] for rank in end) if row >= 0 else None
        for end, row in zip(fitted.models.growth_ends(rows).tolist(), rows.tolist(), strict=True)
    ]


def formula_text(ranking: Ranking, row: int, *, pretty: bool = False) -> str:
    """Return the model of a ranked value: of the call path, or the sum over its subtree, or ""."""
    return formula_texts(ranking, np.array([row]), pretty=pretty)[0]


def formula_texts(ranking: Ranking, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the models of ranked values, each as `formula_text` does."""
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    models, name, leader = fitted.models, fitted.parameter, ranking.leader[rows].tolist()
    if ranking.inclusive:
        subtrees = (np.arange(row, tree.end[row]) for row in rows)
        texts = [models.sum_formula(subtree, name, pretty=pretty) for subtree in subtrees]
    else:
        texts = models.formulas(rows, name, pretty=pretty)
    return [text if row >= 0 else "" for text, row in zip(texts, leader, strict=True)]
