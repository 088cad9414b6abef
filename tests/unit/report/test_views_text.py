from __future__ import annotations

import json

import numpy as np
import pytest
from rich.cells import cell_len

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.table_formats import to_json
from callpath_modeler.report.views_text import ForecastView
from synthetic import POINTS, fitted

P = np.array(POINTS)
NAN = float("nan")
VALUES = {
    "main": list(10 + 0 * P),
    "main/grows": list(1.0 * P),
    "main/grows/MPI_Wait": list(0.5 * P),
    "main/MPI_Wait": list(3 + 0 * P),
    "main/late": [NAN, NAN, NAN, 4.0, 5.0],
}


@pytest.fixture(scope="module")
def fit():
    return fitted(VALUES)


def text(fit, target=128.0, width=None, ascii_only=False, **wanted):
    shown = ForecastView(answer_at(fit, target), ViewRequest(**wanted))
    lines = shown.text(TextStyle(width=width, ascii_only=ascii_only))
    return [line.plain for line in lines]


def test_the_first_line_is_the_answer_and_leads_to_the_hot_path(fit):
    first = text(fit)[0]
    assert first.startswith("app will run 205 s at p = 128 (4 × the largest run; ")
    assert first.endswith("The hot path leads to main/grows: 94 %, O(p).")
    first = text(fit, kind=ViewKind.BOTTOM_UP)[0]
    assert first.endswith("Most is in grows, called by main: 62 % exclusive, O(p).")


def test_every_prediction_has_a_band_however_narrow_the_terminal(fit):
    for kind in ViewKind:
        for width in (60, 80, 120, None):
            lines = text(fit, width=width, kind=kind)
            assert any("95% band" in line for line in lines)
            assert width is None or max(map(cell_len, lines)) <= width


def test_at_infinity_there_is_no_band(fit):
    lines = text(fit, np.inf)
    assert lines[0].startswith("As p grows without end, the hot path leads to main/grows: 100 %")
    assert not any("band" in line for line in lines[2:])


def test_the_view_ends_in_a_sum_check_and_counts_what_has_no_model(fit):
    for kind in ViewKind:
        lines = text(fit, kind=kind, least=0.5)
        assert any(line.startswith("sum check: the lines add up to the total, 205 s; ")
                   for line in lines)  # fmt: skip
        assert "not modelled: 1 call path, 8 % of the total at the largest scale" in lines


def test_ascii_is_ascii(fit):
    assert "\n".join(text(fit, ascii_only=True, depth=1)).isascii()


def test_machines_get_exclusive_and_inclusive_values_with_bands(fit):
    table = ForecastView(answer_at(fit, 128.0), ViewRequest(kind=ViewKind.BOTTOM_UP)).table()
    at = table.columns["path"].index("MPI_Wait")
    assert table.columns["callpaths"][at] == 2
    assert table.columns["id"][at] is None
    assert table.columns["growth_exclusive"][at] == "O(p)"
    value = table.columns["value_at_target_exclusive"][at]
    assert value == pytest.approx(64 + 3, rel=1e-3)
    assert table.columns["low_exclusive"][at] <= value <= table.columns["high_exclusive"][at]
    assert table.columns["value_at_target_inclusive"][table.columns["path"].index("main")] > value
    assert "MPI_Wait/grows/main" in table.columns["path"]
    document = json.loads(to_json(table))
    assert document["sum_check"]["holds"]
    assert document["hot_path"][0] == "grows"
    late = next(row for row in document["rows"] if row["path"] == "late")
    assert late["value_at_target_exclusive"] is None
    assert late["trust_exclusive"] is None
    assert document["units"]["low_inclusive"] == "s"


def test_infinite_values_are_json(fit):
    document = json.loads(to_json(ForecastView(answer_at(fit, np.inf), ViewRequest()).table()))
    assert document["rows"][0]["value_at_target_inclusive"] == "inf"
    assert document["sum_check"]["total"][1] == "inf"


def test_a_program_that_costs_nothing_is_said_to():
    nothing = fitted({"main": [0.0] * 5, "main/f": [0.0] * 5})
    assert text(nothing)[0] == "At p = 128: time is predicted to be zero."
