"""Laws beyond change points in text and machine-readable output."""

from __future__ import annotations

import json

import numpy as np
import pytest

from callpath_modeler.analysis.answer import rank
from callpath_modeler.diagnostics import KINDS
from callpath_modeler.report import table_formats
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle
from callpath_modeler.report.model_formulas import compared_text
from callpath_modeler.report.model_tables import models_table
from callpath_modeler.report.model_text import model_text
from callpath_modeler.report.ranking_table import all_rows, ranking_table
from callpath_modeler.report.ranking_text import ShownRanking
from callpath_modeler.report.table_formats import to_csv, to_json
from synthetic import fitted

P = 2.0 ** np.arange(2, 12)


@pytest.fixture(scope="module")
def fit():
    law = np.where(P <= 128, 2 * P, 200 + 20 * np.sqrt(P))
    return fitted({"main": list(1 + 0 * P), "main/solve": list(law)}, tuple(P))


def test_the_answer_and_the_table_say_from_which_scale_on_a_law_holds(fit):
    ranking = rank(fit, 32768)
    lines = ShownRanking(ranking, ranking.order).text(DEFAULT_STYLE)
    text = "\n".join(line.plain for line in lines)
    assert "solve takes 100 % and is O(p^½) from p = 256 on." in text
    assert "O(p^½) from 256" in text
    assert ranking.value[1] == pytest.approx(200 + 20 * np.sqrt(32768), rel=0.01)


def test_a_call_path_in_full_has_both_laws(fit):
    lines = model_text(
        rank(fit, 32768), 1, style=TextStyle(width=100, ascii_only=True), linear=False
    )
    text = "\n".join(lines)
    assert "time(p) = 200 + 20 * p^(1/2)  from p = 256 on  [s]" in text
    assert "laws      200 + 20 p^½ from p = 256 on; 2 p before" in text
    assert "nothing else fits" not in text
    assert "not compared: exponentials" in text


def test_tables_for_programs_have_the_first_scale_of_the_law_beyond(fit):
    ranking = rank(fit, 32768)
    table = ranking_table(ranking, all_rows(ranking))
    rows = json.loads(to_json(table))["rows"]
    since = {row["callpath"]: row["since"] for row in rows}
    assert since == {"main/solve": 256, "main": None}
    models = models_table(fit)
    assert models.columns["since"] == [None, 256]
    assert "[p >= 256]" in models.columns["model"][1]


def test_blocks_of_a_table_of_models_are_the_table(fit, monkeypatch):
    whole = to_csv(models_table(fit))
    monkeypatch.setattr(table_formats, "BLOCK", 1)
    assert len([*models_table(fit).blocks()]) == 2
    assert to_csv(models_table(fit)) == whole


def test_a_finding_names_the_condition_that_selects_the_scales_beyond(fit):
    found = {each.code: each for each in fit.findings}
    assert "--where 'p>=256'" in found["CPM209"].message
    assert found["CPM209"].count == 1
    assert "CPM202" not in found
    kind = KINDS["CPM209"]
    assert all((kind.what, kind.why, kind.remedy, kind.example))


def test_what_was_compared_depends_on_the_method(fit):
    assert compared_text(fit) == (
        "compared: powers, logarithms, sums of two terms, breaks; not compared: exponentials"
    )
