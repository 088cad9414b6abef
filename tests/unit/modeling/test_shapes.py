from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callpath_modeler.modeling import (
    Break,
    FitStatus,
    Growth,
    Models,
    Shape,
    Term,
    TermDifference,
    fit,
)
from callpath_modeler.modeling.model_columns import column_names
from callpath_modeler.modeling.products import BreakKind, at_last, breaks
from callpath_modeler.modeling.shapes import Shapes, shapes_from_header, shapes_to_header
from callpath_modeler.modeling.stored import from_arrays, to_arrays
from cells import cells

HALF, ONE, TWO = Fraction(1, 2), Fraction(1), Fraction(2)
STEP = Break(BreakKind.STEP, 91)
P_ITSELF = Term(ONE, 0)
LEAP = Break(BreakKind.LEAP, 91, ONE)
DROP = Break(BreakKind.DROP, 91)
BEND = Break(BreakKind.BEND, 64, TWO)
PLATEAU = Break(BreakKind.PLATEAU, 64, TWO)
FLOOR = Break(BreakKind.FLOOR, 64, TWO)
CEILING = Break(BreakKind.CEILING, 20)
LEVELS = Break(BreakKind.LEVELS, 3)
BLOCKS = Break(BreakKind.BLOCKS, 24)
BEYOND, CLIMB = Break(BreakKind.BEYOND, 48), Break(BreakKind.CLIMB, 48)
SORTED = Break(BreakKind.SORTED, 2.0**20)
ALL = (STEP, LEAP, DROP, BEND, BEYOND, CLIMB, PLATEAU, FLOOR, CEILING, LEVELS, BLOCKS, SORTED)
CONSTANT = Growth(Fraction(0), 0)


@cells(
    ("shape", "p", "values"),
    [
        (STEP, [1, 91, 92, 1e9], [0, 0, 1, 1]),
        (LEAP, [1, 91, 92, 1e9], [0, 0, 92, 1e9]),
        (DROP, [1, 91, 92, 1e9], [1, 1, 0, 0]),
        (BEND, [1, 64, 128, 640], [1, 1, 4, 100]),
        (Break(BreakKind.BEND, 16, HALF), [4, 16, 64], [1, 1, 2]),
        (BEYOND, [8, 48, 96, 192, np.inf], [0, 0, 0.5, 0.75, 1]),
        (CLIMB, [8, 48, 96, 192, np.inf], [0, 0, 1, 2, np.inf]),
        (PLATEAU, [16, 64, 65, 1e9], [1 / 16, 1, 1, 1]),
        (FLOOR, [16, 32, 64, 65, 1e9], [16, 4, 1, 1, 1]),
        (CEILING, [20, 40, 1e6], [1 - np.exp(-1), 1 - np.exp(-2), 1]),
        (LEVELS, [1, 2, 3, 4, 9, 27, 28, 3**20], [0, 1, 1, 2, 2, 3, 4, 20]),
        (BLOCKS, [1, 24, 25, 48, 49, 2400], [1, 1, 2, 2, 3, 100]),
        (SORTED, [1, 2, 2**10, 2**19, 2**25], [20, 9.5, 10 / 2**10, 2**-19, 2**-25]),
    ],
)
def test_a_break_has_the_values_its_formula_says(
    shape: Break, p: list[float], values: list[float]
) -> None:
    assert shape(p) == pytest.approx(values, rel=1e-12)


@cells(
    ("shape", "text", "pretty"),
    [
        (STEP, "[p > 91]", "[p > 91]"),
        (Break(BreakKind.STEP, 2.0**6.5), "[p > 90.51]", "[p > 90.51]"),
        (LEAP, "[p > 91] * p", "[p > 91] p"),
        (Break(BreakKind.LEAP, 91, -HALF), "[p > 91] * p^(-1/2)", "[p > 91] p^-½"),
        (DROP, "[p <= 91]", "[p <= 91]"),
        (BEND, "max(1, p/64)^2", "max(1, p/64)²"),
        (Break(BreakKind.BEND, 64, ONE), "max(1, p/64)", "max(1, p/64)"),
        (BEYOND, "max(0, 1 - 48/p)", "max(0, 1 - 48/p)"),
        (CLIMB, "max(0, log2(p/48))", "max(0, log2(p/48))"),
        (Break(BreakKind.BEND, 64, HALF), "max(1, p/64)^(1/2)", "max(1, p/64)^½"),
        (PLATEAU, "min(1, p/64)^2", "min(1, p/64)²"),
        (FLOOR, "max(1, 64/p)^2", "max(1, 64/p)²"),
        (CEILING, "(1 - exp(-p/20))", "(1 - exp(-p/20))"),
        (LEVELS, "ceil(log_3(p))", "ceil(log_3(p))"),
        (BLOCKS, "ceil(p/24)", "ceil(p/24)"),
        (SORTED, "log2(2^20/p)/p", "log2(2^20/p)/p"),
    ],
)
def test_a_break_is_written_as_a_factor(shape: Break, text: str, pretty: str) -> None:
    assert shape.text() == text
    assert shape.text(pretty=True) == pretty
    assert shape.text("n") == re.sub(r"\bp\b", "n", text)


@cells(
    ("shape", "growth", "end"),
    [
        (STEP, CONSTANT, 1.0),
        (LEAP, Growth(ONE, 0), np.inf),
        (DROP, CONSTANT, 0.0),
        (BEND, Growth(TWO, 0), np.inf),
        (Break(BreakKind.BEND, 8, HALF), Growth(HALF, 0), np.inf),
        (BEYOND, CONSTANT, 1.0),
        (CLIMB, Growth(Fraction(0), 1), np.inf),
        (PLATEAU, CONSTANT, 1.0),
        (FLOOR, CONSTANT, 1.0),
        (CEILING, CONSTANT, 1.0),
        (LEVELS, Growth(Fraction(0), 1), np.inf),
        (BLOCKS, Growth(ONE, 0), np.inf),
        (SORTED, Growth(-ONE, 0), 0.0),
    ],
)
def test_a_break_grows_as_its_values_do_in_the_end(
    shape: Break, growth: Growth, end: float
) -> None:
    assert shape.growth == growth
    assert shape.decreasing == (growth.exponent < 0)
    assert shape([np.inf]).tolist() == [end]
    far = np.array([2.0**60, 2.0**62])
    law = Term(growth.exponent, growth.log)(far)
    near, further = shape(far) / law
    assert further == pytest.approx(near, rel=0.05)


@settings(max_examples=40)
@given(shape=st.sampled_from(ALL), p=st.lists(st.floats(1e-3, 1e12), min_size=2, max_size=20))
def test_no_break_is_negative_and_few_fall(shape: Break, p: list[float]) -> None:
    values = shape(np.sort(p))
    assert (values >= 0).all()
    rises = np.diff(values) * (
        -1 if shape.kind in {BreakKind.DROP, BreakKind.FLOOR, BreakKind.SORTED} else 1
    )
    assert (rises >= 0).all()


def test_shapes_survive_json() -> None:
    shapes: tuple[Shape, ...] = (
        Term(Fraction(-2, 3), 0),
        *ALL,
        TermDifference(Term(TWO, 0), Term(ONE, 0)),
        Term(Fraction(3, 2), 2),
    )
    again = shapes_from_header(json.loads(json.dumps(shapes_to_header(shapes))))
    assert again == shapes


@cells(
    "entry",
    [
        {"kind": "hop", "at": 3, "exponent": "0"},
        {"kind": "step", "exponent": "0"},
        {"kind": "step", "at": None, "exponent": "0"},
        {"kind": "bend", "at": 3, "exponent": "x"},
        {"kind": "bend", "at": 3, "exponent": "1/0"},
        {"larger": {"exponent": "1", "log": 0, "rate": "0"}},
        {"log": 1},
        {"exponent": "1/0", "log": 1},
        {},
        7,
    ],
)
def test_what_describes_no_shape_is_refused(entry: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        shapes_from_header([entry])  # type: ignore[list-item]


def test_breaks_lie_where_measurements_could_show_them() -> None:
    points = np.array([4.0, 16, 64, 256])
    found = breaks(points)
    steps = [shape.at for shape in found if shape.kind is BreakKind.STEP]
    assert steps == pytest.approx([8, 32, 128])
    bends = [shape for shape in found if shape.kind is BreakKind.BEND]
    assert {shape.at for shape in bends if not shape.begins} == {16, 64}
    assert {shape.exponent for shape in bends} == {HALF, ONE, TWO}


def test_what_begins_at_a_capacity_may_begin_between_points() -> None:
    found = [shape for shape in breaks(np.array([4.0, 16, 64, 256])) if shape.begins]
    found.sort(key=lambda shape: shape.at)
    wanted = 4 * 2 ** np.arange(0.5, 6, 0.5)
    for kind in (BreakKind.ONSET, BreakKind.BEYOND, BreakKind.CLIMB, BreakKind.BEND):
        assert [shape.at for shape in found if shape.kind is kind] == pytest.approx(wanted)
    at_capacity = [float(shape(np.array([shape.at]))[0]) for shape in found]
    assert at_capacity == [1.0 if shape.kind is BreakKind.BEND else 0.0 for shape in found]


def test_below_four_points_and_below_one_process_there_are_fewer_breaks() -> None:
    assert breaks(np.array([4.0, 16, 64])) == ()
    kinds = {shape.kind for shape in breaks(np.array([0.25, 0.5, 1, 2, 4]))}
    assert kinds == set(BreakKind) - {BreakKind.LEVELS, BreakKind.BLOCKS, BreakKind.SORTED}


def test_of_very_many_points_some_are_tried_for_breaks() -> None:
    points = np.arange(1.0, 2**15)
    found = breaks(points)
    assert len(found) < 2**12
    places = [shape.at for shape in found if shape.kind is BreakKind.BEND]
    assert places[-1] > 0.99 * points[-1]
    for kind in (BreakKind.STEP, BreakKind.LEAP):
        assert points[-2] < max(shape.at for shape in found if shape.kind is kind) < points[-1]


@pytest.mark.parametrize("kind", [BreakKind.PLATEAU, BreakKind.FLOOR])
def test_plateaus_and_floors_are_looked_for_from_any_inner_point_on(kind: BreakKind) -> None:
    found = [s for s in breaks(np.array([1.0, 4, 16, 64, 256])) if s.kind is kind and s.at < 256]
    assert {(s.at, s.exponent) for s in found} == {(q, e) for q in (4, 16, 64) for e in (HALF, ONE)}


@pytest.mark.parametrize("count", [4, 5])
def test_of_four_points_all_of_a_law_takes_longer_at_the_last_or_nowhere(count: int) -> None:
    found = {s.at for s in breaks(4.0 ** np.arange(count)) if s.kind is BreakKind.LEAP}
    assert len(found) == (1 if count == 4 else count - 1)


POINTS = 2.0 ** np.arange(3, 11)
LAWS = {
    "5 + 5.5 * [p > 90.51]": lambda p: 5 + 5.5 * (p > 90),
    "5.5 * max(1, p/64)^2": lambda p: 5.5 * np.maximum(1, p / 64) ** 2,
    "1 + 2.5 * max(0, p/32 - 1)": lambda p: 1 + 2.5 * np.maximum(0, p / 32 - 1),
    "3.25 + 1.5 * ceil(p/24)": lambda p: 3.25 + 1.5 * np.ceil(p / 24),
    "2.5 * ceil(log_16(p))": lambda p: 2.5 * np.ceil(np.log2(p) / 4),
    "5 + 2.5 * [p <= 90.51]": lambda p: 5 + 2.5 * (p < 90),
    "2.5 * [p <= 181]": lambda p: 2.5 * (p < 180),
    "1.25 + 8 * min(1, p/64)": lambda p: 1.25 + 8 * np.minimum(1, p / 64),
    "2.5 * max(1, 64/p)": lambda p: 2.5 * np.maximum(1, 64 / p),
}


@pytest.fixture(scope="module")
def broken() -> Models:
    laws = [law(POINTS) for law in LAWS.values()]
    return fit(POINTS, np.stack([*laws, 5 + 0.5 * POINTS, 8 / POINTS])[..., None].repeat(2, 2))


def test_breaks_without_noise_come_out_as_they_went_in(broken: Models) -> None:
    assert [broken.formula(row) for row in range(9)] == list(LAWS)
    assert (broken.status[:9] == FitStatus.OUTSIDE).all()
    assert broken.doubtful().tolist() == [True] * 9 + [False] * 2
    assert broken.formula(0, "n", pretty=True) == "5 + 5.5 [n > 90.51]"


def test_growth_ranks_of_breaks_stand_among_those_of_terms(broken: Models) -> None:
    growths = ["O(1)", "O(p^2)", "O(p)", "O(p)", "O(log p)", *["O(1)"] * 4, "O(p)", "O(p^-1)"]
    assert [str(broken.growth(row)) for row in range(11)] == growths
    ranks = broken.growth_rank()
    assert ranks[2] == ranks[3] == ranks[9]
    assert ranks[0] == ranks[5] == ranks[6] == ranks[7] == ranks[8]
    assert ranks[10] < ranks[0] < ranks[4] < ranks[2] < ranks[1]


def test_what_a_step_adds_and_a_drop_leaves_is_the_leading_constant(broken: Models) -> None:
    leading = broken.leading_coefficient()
    assert leading == pytest.approx([10.5, 5.5, 2.5, 1.5, 2.5, 5, 0, 9.25, 2.5, 0.5, 8])


def test_breaks_are_predicted_to_infinity(broken: Models) -> None:
    band = broken.predict([1.0, 4096.0, np.inf])
    inf = np.inf
    assert band.value[:, 2] == pytest.approx([10.5, inf, inf, inf, inf, 5, 0, 9.25, 2.5, inf, 0])
    assert not np.isnan(band.low).any()
    assert not np.isnan(band.high).any()
    expected = [law(np.array([4096.0]))[0] for law in LAWS.values()]
    assert band.value[:9, 1] == pytest.approx(expected)
    assert band.value[4, 0] == 0  # no level below two processes


def test_models_with_breaks_survive_a_store(broken: Models) -> None:
    arrays, header = to_arrays(broken)
    again = from_arrays(arrays, json.loads(json.dumps(header)))
    assert again.shapes == broken.shapes
    assert (again.method, again.aggregate) == (broken.method, broken.aggregate)
    for name in column_names():
        assert np.array_equal(getattr(again, name), getattr(broken, name), equal_nan=True)
    targets = np.array([1.0, 91, 1e5])
    assert np.array_equal(again.predict(targets).high, broken.predict(targets).high)


def test_a_store_with_a_centre_that_nobody_knows_is_refused(broken: Models) -> None:
    arrays, header = to_arrays(broken)
    with pytest.raises(ValueError, match="centre"):
        from_arrays(arrays, {**header, "aggregate": "mode"})


def test_shapes_are_in_order_of_growth_and_differ_at_the_points(broken: Models) -> None:
    growths = [shape.growth for shape in broken.shapes]
    assert growths == sorted(growths)
    # At the points, leaps are steps; beyond, they differ, like a floor after the last point.
    last, late = POINTS[-1], at_last(POINTS)
    shapes = [s for s in broken.shapes if not (isinstance(s, Break) and s.in_pairs_only(last))]
    assert set(late) < set(shapes)
    shapes = [s for s in shapes if s not in late[1:]]
    table = np.stack([shape(POINTS) for shape in shapes])
    assert (np.ptp(table, axis=1) > 0).all()
    form = (table - table.min(axis=1)[:, None]) / np.ptp(table, axis=1)[:, None]
    kinds = np.array([isinstance(shape, Break) for shape in shapes])
    for code in np.flatnonzero(kinds):
        others = np.delete(form, code, axis=0)
        assert (np.abs(others - form[code]).max(axis=1) > 1e-7).all()


def test_steps_of_a_binary_tree_are_seen_between_powers_of_two() -> None:
    cubes = np.arange(2.0, 8) ** 3
    models = fit(cubes, np.ceil(np.log2(cubes))[None, :, None])
    assert models.formula(0) == "1 * ceil(log_2(p))"
    assert models.predict([1000.0]).value[0] == pytest.approx([10])


def test_what_takes_longer_at_the_last_point_does_so_by_a_constant_or_in_proportion() -> None:
    points = 2.0 ** np.arange(3, 9)
    laws = np.stack([points, 1000 / points, 100 * np.log2(points)])
    laws[:, -1] *= 2.5
    models = fit(points, laws[..., None])
    seen = [
        {models.formula(row), *(a.formula for a in models.alternatives(row))} for row in range(3)
    ]
    assert {"1 * p + 384 * [p > 181]", "1 * p + 1.5 * [p > 181] * p"} <= seen[0]
    assert {"1000 * p^-1 + 5.859 * [p > 181]", "1000 * p^-1 + 1500 * [p > 181] * p^-1"} <= seen[1]
    assert "100 * log2(p) + 1200 * [p > 181]" in seen[2]
    assert (models.status == FitStatus.OUTSIDE).all()
    band = models.predict([4096.0])
    assert (band.low[:, 0] < [4500, 1, 2410]).all()
    assert (band.high[:, 0] > [10200, 6, 2390]).all()


@pytest.mark.parametrize(
    ("power", "growth"), [(P_ITSELF, "O(p)"), (Term(-ONE, 0), "O(p^-1)")], ids=str
)
def test_the_coefficient_of_a_leap_is_that_of_all_from_there_on(power: Term, growth: str) -> None:
    shapes = Shapes((power, Break(BreakKind.LEAP, 91, power.exponent)))
    models = fit(POINTS, POINTS[None, :, None])
    leaping = replace(
        models,
        shapes=shapes,
        terms=np.array([[0, 1]], np.int16),
        coefficients=np.array([[0.0, 2.0, 0.5]]),
    )
    assert str(leaping.growth(0)) == growth
    assert leaping.leading_coefficient().tolist() == [2.5]
    far = np.array([1e9])
    assert leaping.values(far)[0] == pytest.approx(2.5 * power(far))


def test_a_jump_at_last_is_the_same_in_every_unit_and_order() -> None:
    points = 2.0 ** np.arange(3, 9)
    scatter = 1 + 0.1 * (np.random.default_rng(9).random((40, 6, 5)) - 0.5)
    rows = np.repeat(np.stack([points, 1000 / points, np.sqrt(points)]), 40, axis=0).reshape(-1, 6)
    rows[:, -1] *= 2.5
    values = rows[..., None] * np.tile(scatter, (3, 1, 1))
    order = np.array([4, 0, 5, 2, 1, 3])
    first = fit(points, values)
    again = fit(points[order], values[:, order, ::-1] * 7e9)
    far = np.array([4096.0])
    assert again.values(far) == pytest.approx(7e9 * first.values(far), rel=1e-6)
    assert not first.shapes.leaps[first.terms].any(), "steps are as good, and more probable"
