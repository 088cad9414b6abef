"""Tables for LaTeX."""

from __future__ import annotations

import pytest

from callpath_modeler.report.model_formulas import to_latex
from callpath_modeler.report.table_formats import Table

TABLE = Table(
    {
        "callpath": ["int main()/f_1", "void a(int)/x\\/y", "void a(char)/x\\/y"],
        "rank": [1, 2, None],
        "value": [0.1 + 0.2, float("nan"), float("-inf")],
        "growth": ["O(p^(2/3))", None, "O(1) or O(p)"],
        "model": ["2.0 * p^(2/3)", None, "1.0 * my size^2"],
        "good": [True, False, None],
    },
    {"value": "s"},
)


def lines():
    return to_latex(TABLE).splitlines()


def test_numbers_stand_to_the_right_and_words_to_the_left():
    assert lines()[1] == r"\begin{tabular}{lrrllr}"
    assert lines()[3] == r"callpath & rank & value [s] & growth & model & good \\"


def test_formulas_are_mathematics_and_names_are_short():
    assert lines()[5] == r"main/f\_1 & 1 & $0.3$ & $O(p^{2/3})$ & $2\,p^{2/3}$ & true \\"


def test_no_value_is_an_empty_cell_and_names_that_would_look_the_same_are_whole():
    assert lines()[6] == r"void a(int)/x\textbackslash{}/y & 2 &  &  &  & false \\"


def test_what_is_no_formula_is_text():
    assert lines()[7].endswith(
        r" & $-\infty$ & O(1) or O(p) & 1.0 * my size\textasciicircum{}2 &  \\"
    )


def test_a_row_that_begins_with_a_bracket_is_not_what_ends_the_one_before():
    text = to_latex(Table({"callpath": ["main", "[unknown]", "*p"]}))
    assert text.splitlines()[5:8] == ["main \\\\", "{}[unknown] \\\\", "{}*p \\\\"]


def cells(column, *texts):
    """Return the LaTeX of the cells of a column."""
    return [
        line.removesuffix(r" \\") for line in to_latex(Table({column: texts})).splitlines()[5:-2]
    ]


def test_growths_in_parameters_of_any_name_can_be_typeset():
    assert cells("growth", "O(n_all_ranks^2 / log n_all_ranks)", "O(2^-np)", "O(2^(3/2 p))") == [
        r"$O(\mathit{n\_all\_ranks}^{2} / \log \mathit{n\_all\_ranks})$",
        r"$O(2^{-\mathit{np}})$",
        r"$O(2^{3/2 p})$",
    ]
    assert cells("growth", "O(my size^2)", "O(x%)", "O(größe)") == [
        r"O(my size\textasciicircum{}2)", r"O(x\%)", "O(größe)",
    ]  # fmt: skip
    assert cells("model", "2.0 * größe") == ["2.0 * größe"]


def test_names_are_typeset_letter_by_letter_and_what_cannot_be_seen_is_left_out():
    assert cells("callpath", "operator--", "``f''", "?`", " [x]", "a\x00\x1b\u200bb") == [
        "operator-{}-", "`{}`f'{}'", "?{}`", "{} [x]", "a b",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("O(1 ... log p)", r"$O(1 \ldots \log p)$"),
        ("O(p^(1/2)) from 64", "$O(p^{1/2})$ from 64"),
        ("O(1) → O(p log p)", r"$O(1)$ $\to$ $O(p \log p)$"),
        ("O(not a growth)", "O(not a growth)"),
    ],
)
def test_growths_of_a_terminal_are_mathematics(cell, written):
    table = Table(
        {"0": [cell], "call path": ["O(p)"]},
        heads={"0": ("growth", False), "call path": ("call path", False)},
    )
    assert rf"{written} & O(p) \\" in to_latex(table).splitlines()
