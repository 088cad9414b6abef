"""Powers between those of the hypotheses, of growing and of falling computation."""

from __future__ import annotations

import numpy as np

from callpath_modeler.modeling import SearchSpace, Term, fit
from callpath_modeler.modeling.fitting import default_space
from callpath_modeler.modeling.mixture.one_parameter import hypotheses
from cells import cells

P = 8 * 2.0 ** np.arange(6)
FAR = np.array([16 * P[-1]])
OTHERS = np.array([P**0, np.sqrt(P), np.log2(P), P, 1 / P, 1 / P + 0.05])


def predicted(power: float, rows: int = 10):
    """Predict rows that follow a power, among as many call paths that follow other laws."""
    law = np.concatenate([np.tile(P**power, (rows, 1)), np.tile(OTHERS, (3, 1))])
    noise = np.random.default_rng(1).standard_normal((*law.shape, 3))
    found = fit(P, law[..., None] * (1 + 0.01 * noise)).predict(FAR)
    return (each[:rows, 0] / FAR**power for each in (found.value, found.low, found.high))


@cells("power", [0.4, 0.9, 1.4, 1.7, -0.3, -0.8, -1.3])
def test_tenths_are_powers_like_others(power: float) -> None:
    value, low, high = predicted(power)
    assert np.abs(np.log(value)).max() < 0.05
    assert ((low <= 1) & (high >= 1)).mean() >= 0.9


@cells("power", [0.43, 0.63, 0.85, 1.27, -0.45, -0.63, -0.77, -0.93, -1.13])
def test_what_is_between_tenths_is_a_sum_of_both(power: float) -> None:
    value, low, high = predicted(power)
    assert np.abs(np.log(np.median(value))) < 0.05
    assert np.median(high / low) < 1.7


def test_what_is_between_asks_for_four_points_and_is_no_constant_nor_beside_another() -> None:
    space = default_space("mixture")
    three, four = (hypotheses(space, P[:count]) for count in (3, 4))
    tenth = Term(next(power for power in space.alone if power < 1), 0)
    assert tenth not in three.shapes
    code = four.shapes.index(tenth)
    with_constant, offset, bare = four.log_prior[1 + code + len(four.shapes) * np.arange(3)]
    assert np.isneginf([with_constant, offset]).all()
    assert np.isfinite(bare)
    beside = [
        four.shapes[b if a == code else a]
        for a, b in zip(four.first, four.second, strict=True)
        if code in (a, b)
    ]
    assert {float(abs(shape.exponent - tenth.exponent)) for shape in beside} == {0.1}


def test_no_pair_is_there_twice() -> None:
    known = hypotheses(SearchSpace.of(["2/5", "1/2", "3/5"]), P)
    pairs = set(zip(known.first.tolist(), known.second.tolist(), strict=True))
    assert len(pairs) == len(known.first)
