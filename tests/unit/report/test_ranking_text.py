from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from callpath_modeler.analysis.answer import By, rank
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.report import ranking_table as ranking_table_module
from callpath_modeler.report import ranking_text as ranking_text_module
from callpath_modeler.report.experiment_text import info_table, info_text
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle
from callpath_modeler.report.model_formulas import to_latex
from callpath_modeler.report.model_tables import graph_pieces, models_table, values_table
from callpath_modeler.report.model_text import model_text
from callpath_modeler.report.ranking_columns import AFTER_PAIRS, BEFORE_PAIRS
from callpath_modeler.report.ranking_table import all_rows, ranking_table
from callpath_modeler.report.ranking_text import ShownRanking
from callpath_modeler.report.table_formats import Column, to_csv, to_json, to_markdown
from cells import cells
from synthetic import POINTS, experiment, fitted

P = np.array(POINTS)
NAN = float("nan")
VALUES = {
    "main": list(100 + 0 * P),
    "main/linear": list(0.5 * P),
    "main/linear/a_long_name_of_a_function": list(1e-4 * P**3),
    "main/late": [NAN, NAN, NAN, 4.0, 5.0],
}


@pytest.fixture(scope="module")
def fit():
    return fitted(VALUES)


def shown(ranking, rows=None, width=None, ascii_only=False, full_names=False):
    rows = ranking.order if rows is None else rows
    style = TextStyle(width=width, full_names=full_names, ascii_only=ascii_only)
    lines = ShownRanking(ranking, rows).text(style)
    return [line.plain for line in lines]


def test_the_first_line_answers_the_question(fit):
    first = shown(rank(fit, 64))[0]
    assert first.startswith(
        "app will run 158 s at p = 64 (2 × the largest run; sum of call paths, "
    )
    assert "main takes 63 % and is O(1)" in first


def test_inside_the_data_the_answer_says_so(fit):
    assert shown(rank(fit, 16))[0].startswith("app ran 112 s at p = 16 (measured, 1 run; ")
    assert "(inside the data; 1 run there: 112 s; " in shown(rank(fit, 16, predicted=True))[0]


def test_at_infinity_the_answer_is_a_growth(fit):
    first = shown(rank(fit, np.inf))[0]
    assert first == "As p grows without end, a_long_name_of_a_function grows fastest: O(p³)."
    assert "O(p^3)" in shown(rank(fit, np.inf), ascii_only=True)[0]


def test_where_excess_work_has_no_meaning_no_line_has_any():
    summed = fitted(VALUES, reduction=Reduction.SUM)
    ranking = rank(summed, np.inf)
    text = shown(ranking, ranking.order[:1])
    column = text[3].index("excess")
    assert [line[column : column + 6].strip() for line in text[4:7]] == ["-"] * 3


def test_what_is_not_shown_is_one_row_and_the_total_is_the_last(fit):
    ranking = rank(fit, 64)
    text = shown(ranking, ranking.order[:1])
    rest = next(line for line in text if line.endswith("2 others"))
    assert "58.2 s" in rest
    total = next(line for line in text if line.endswith("total"))
    assert "158 s" in total


def test_without_a_rest_there_is_no_row_for_it(fit):
    assert not any("others" in line for line in shown(rank(fit, 64)))


def test_what_was_not_modelled_is_counted_with_the_reason(fit):
    line = next(line for line in shown(rank(fit, 64)) if line.startswith("not modelled"))
    assert line == "not modelled: 1 call path, 4 % of the total (too few points: 1)"


def test_the_footer_says_what_excess_means(fit):
    assert any("beyond constant cost since p = 2" in line for line in shown(rank(fit, 64)))


def test_where_excess_has_no_meaning_nothing_is_said_of_it(fit):
    assert not any("beyond constant cost" in line for line in shown(rank(fit, 1)))


def test_nothing_to_rank_is_said():
    fit = fitted({"main": [NAN, NAN, NAN, 1, 1], "main/f": [1, 1, 1, NAN, NAN]})
    assert shown(rank(fit, 64))[0] == "At p = 64: nothing could be predicted."


def test_a_metric_that_does_not_add_up_gets_no_total():
    fit = fitted(
        {"main": list(P), "main/f": [1] * 5}, metric=Metric("min_time", "s", additive=False)
    )
    text = shown(rank(fit, 64))
    assert not any(line.endswith("total") for line in text)
    assert "share" not in text[3]
    assert "main is worst, 64.0 s" in text[0]


@cells("width", [60, 80, 120])
@cells("ascii_only", [False, True])
def test_no_line_is_wider_than_the_terminal(fit, width, ascii_only):
    text = shown(rank(fit, 262144), width=width, ascii_only=ascii_only)
    assert max(map(cell_len, text)) <= width
    assert all(line.isascii() for line in text) is ascii_only


def test_functions_are_short_unless_two_would_look_the_same():
    values = {
        "int main()": [9] * 5,
        "int main()/void f(int)": [1] * 5,
        "int main()/void g(int)": [2] * 5,
    }
    fit = fitted({**values, "int main()/void g(double)": [3] * 5})
    text = "\n".join(shown(rank(fit, 64)))
    assert "main/f\n" in text
    assert "int main()/void g(int)" in text
    assert "int main()/void g(double)" in text
    assert "int main()/void f(int)" in "\n".join(shown(rank(fit, 64), full_names=True))


COLUMNS = (
    "rank callpath id metric growth model value_at_largest value_at_target low high "
    "share_at_target excess_inclusive excess_exclusive status"
)


def test_the_table_for_machines_has_every_call_path_and_column(fit):
    ranking = rank(fit, 64)
    made = ranking_table(ranking, all_rows(ranking))
    assert set(COLUMNS.split()) <= set(made.columns)
    assert made.columns["rank"] == [1, 2, 3, None]
    assert made.columns["status"][-1] == "too_few_points"
    assert made.columns["model"][-1] is None
    assert np.isnan(made.columns["value_at_target"][-1])
    assert "value_at_target[s]" in made.titles()
    assert all(re.fullmatch(r"@[0-9a-f]{7,}", one) for one in made.columns["id"])


@cells("target", [64, np.inf])
@cells("by", list(By))
def test_the_document_says_how_it_was_made(fit, target, by):
    ranking = rank(fit, target, by)
    finding = Finding("CPM102", "run", "odd", 2)
    document = json.loads(to_json(ranking_table(ranking, all_rows(ranking), [finding])))
    assert document["by"] == str(by)
    assert document["target"] == (64 if target == 64 else "inf")
    assert document["findings"] == [
        {"code": "CPM102", "subject": "run", "message": "odd", "count": 2}
    ]
    assert len(document["inputs"]) == 5
    assert document["parameters"][0]["values"] == list(POINTS)
    assert document["unmodelled"]["callpaths"] == 1


def test_a_total_that_does_not_exist_is_null():
    fit = fitted({"main": list(P)}, metric=Metric("min_time", "s", additive=False))
    ranking = rank(fit, 64)
    document = json.loads(to_json(ranking_table(ranking, all_rows(ranking))))
    assert document["total"] == {"at_largest": None, "at_target": None, "low": None, "high": None,
                                 "predicted": None}  # fmt: skip


@cells("ascii_only", [False, True])
@cells("target", [8, 64, np.inf])
def test_one_call_path_in_full(fit, target, ascii_only):
    lines = model_text(
        rank(fit, target), 1, style=TextStyle(width=80, ascii_only=ascii_only), linear=False
    )
    text = "\n".join(lines)
    assert lines[0].startswith("main/linear   @")
    assert "0.5 * p" in text or "0.5 p" in text
    assert "growth O(p)" in text
    assert "called by main" in text
    assert "2: 1.00 s" in text
    for point in POINTS[1:]:
        assert f"2 → {point:g}" in text


def test_excess_between_measured_scales_is_shown_as_calculated(fit):
    lines = model_text(rank(fit, 64), 1, style=TextStyle(width=80), linear=False)
    line = next(line for line in lines if "2 → 32 " in line)
    # f loses 16 - 1 of 100 + 16 + 3.2768 + 5; with its callee 3.2768 - 0.0008 more
    total = 100 + 16 + 3.2768 + 5
    inclusive = (15 + 3.2768 - 0.0008) / total
    assert [float(word) for word in line.split()[3:] if word != "%"] == pytest.approx(
        [100 * inclusive, 100 * 15 / total, 100 * 1.0008 / (16 + 3.2768)], abs=0.051
    )


def test_a_call_path_without_a_model_shows_why_and_what_was_measured(fit):
    lines = model_text(rank(fit, 64), 3, style=TextStyle(width=80), linear=False)
    assert lines[1].startswith("no model: ")
    assert "32: 5.00 s" in lines[-1]


def test_models_and_values_become_tables(fit):
    models = models_table(fit)
    assert len(models) == 4
    assert models.columns["status"][3] == "too_few_points"
    values = values_table(fit.experiment, fit.metric)
    assert len(values) == 4 * 5 - 3  # what did not occur has no row
    assert values.titles()[-1] == "value[s]"


def test_graphs_carry_models_and_predictions(fit):
    text = "".join(graph_pieces(rank(fit, 64), "graphml"))
    assert "too_few_points" in text
    assert 'digraph "app"' in "".join(graph_pieces(rank(fit, 64), "dot"))


def test_what_was_read_is_told_with_parameters_metrics_and_coverage():
    text = "\n".join(info_text(experiment(VALUES)))
    assert "5 runs of 5 points" in text
    assert re.search(r"p +2 4 8 16 32 +run name", text)
    assert re.search(r"^2 +1 +3$", text, flags=re.MULTILINE)  # three of four call paths at p = 2
    assert text.endswith("no findings")
    made = info_table(experiment(VALUES))
    assert made.columns["callpaths"] == [3, 3, 3, 4, 4]


def test_a_column_that_is_declared_once_is_in_every_format(fit, monkeypatch):
    declared = Column(
        key="double",
        help="twice the value",
        cells=lambda rows: 2 * rows.main.value,
        unit=lambda _: "s",
        title="twice",
        place=4,
    )
    monkeypatch.setattr(ranking_table_module, "AFTER_PAIRS", (*AFTER_PAIRS, declared))
    monkeypatch.setattr(ranking_text_module, "AFTER_PAIRS", (*AFTER_PAIRS, declared))
    ranking = rank(fit, 64)
    made = ranking_table(ranking)
    first = made.columns["value_at_target"][0]
    assert made.columns["double"][0] == 2 * first
    assert made.to_frame()["double[s]"][0] == 2 * first
    assert '"double": "s"' in to_json(made)
    assert repr(2 * first) in to_csv(made)
    amount = DEFAULT_STYLE.amount(2 * first, "s")
    text = [line.plain for line in ShownRanking(ranking, ranking.order).text(DEFAULT_STYLE)]
    assert any(" twice " in line for line in text)
    assert any(amount in line for line in text)
    people = ShownRanking(ranking, ranking.order).text_table(DEFAULT_STYLE)
    for written in (to_markdown(people), to_latex(people)):
        assert "twice" in written
        assert amount in written


def test_markdown_and_latex_have_the_table_of_the_terminal(fit):
    ranking = rank(fit, 64)
    lines = ShownRanking(ranking, ranking.order[:2]).text(DEFAULT_STYLE)
    body = [line.plain.split() for line in lines][3:]
    table = to_markdown(
        ShownRanking(ranking, ranking.order[:2]).text_table(DEFAULT_STYLE)
    ).splitlines()
    assert len(table) == 6  # titles, rule, two call paths, others, total
    for shown, row in zip(body, [table[0], *table[2:]], strict=False):
        assert row.replace("|", " ").replace("\\", "").split() == shown


def test_every_column_of_a_ranking_is_on_the_page_about_output():
    page = (Path(__file__).parents[3] / "docs/reference/output.md").read_text(encoding="utf-8")
    section = page.partition("## Ranking")[2].partition("## ")[0]
    written = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            names, unit, meaning = map(str.strip, line.split("|")[1:4])
            written |= dict.fromkeys(re.findall("`([a-z0-9_]+)`", names), (unit, meaning))
    for column in (*BEFORE_PAIRS, *AFTER_PAIRS):
        if column.key:
            unit, meaning = written[column.key]
            assert (column.unit is not None) == (unit == "metric's"), column.key
            assert column.help in meaning, column.key
