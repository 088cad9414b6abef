from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.report.layout import TextStyle
from cells import cells
from cpmodel_guidelines.campaigns.campaign import Campaign, Cell, Detail, Measurement
from cpmodel_guidelines.matrix_content import (
    CellVerdict,
    Matrix,
    MatrixCell,
    MatrixContent,
    MatrixRow,
    counts_of,
    labels_of,
    limited,
    mark_of,
    published_matrices,
    published_table,
    published_text,
)
from cpmodel_guidelines.matrix_output.page import matrix_page
from cpmodel_guidelines.matrix_output.text import Grid, GridCell, matrix_table, matrix_text
from cpmodel_guidelines.published import PATTERNS, published_checks, published_guidelines
from cpmodel_guidelines.rules import GuidelineKind

SIZES = (8.0, 1024.0, 1500.0)

# Counts of monotony, split and pattern guidelines in Table II and Table IX of the paper of PGMPI,
# and the table that lists them.
PUBLISHED = {
    "IV": (5, 3, 8), "VII": (7, 6, 13), "VIII": (6, 7, 11), "XI": (4, 3, 12), "XII": (4, 4, 11),
    "XIII": (5, 4, 9),
}  # fmt: skip


def cell(verdict=CellVerdict.VIOLATED, factor=1.5, mark="**"):
    mark = mark if verdict is CellVerdict.VIOLATED else ""
    return MatrixCell(factor, 0.9 * factor, 1.1 * factor, verdict, 0.004, None, "mock-up", mark)


def with_counts(monotony, split, pattern, library="MPICH"):
    """Return a matrix of all published guidelines with that many violated ones of each kind."""
    left = {
        GuidelineKind.MONOTONY: monotony, GuidelineKind.SPLIT: split,
        GuidelineKind.PATTERN: pattern,
    }  # fmt: skip
    rows = []
    for number, guideline in enumerate(published_guidelines()):
        verdicts = [CellVerdict.NOT_SHOWN] * len(SIZES)
        if left[guideline.kind]:
            left[guideline.kind] -= 1
            verdicts[number % len(SIZES)] = CellVerdict.VIOLATED
        rows.append(MatrixRow(guideline, tuple(map(cell, verdicts))))
    return Matrix((library,), {"p": 16.0}, "size", SIZES, tuple(rows))


def content(*matrices):
    counts = tuple(map(counts_of, matrices))
    return MatrixContent("made", "Some are violated.", (), matrices, counts, ("note",), {}, ())


def lines(matrix_content, width=None, **style):
    return [each.plain for each in matrix_text(matrix_content, TextStyle(width=width, **style))]


@cells("table", PUBLISHED)
def test_published_counts_have_as_many_rows_with_a_mark_as_the_paper_lists(table):
    monotony, split, pattern = PUBLISHED[table]
    matrix = with_counts(monotony, split, pattern)
    shown = lines(content(matrix))
    (count,) = [line.split() for line in shown if line.endswith("MPICH, p = 16")]
    assert count[:3] == [f"{monotony}/9", f"{split}/9", f"{pattern}/15"]
    listed = [line for line in shown if "**" in line and " ≤ " in line]
    kinds = [sum(text in line for line in listed) for text in ("longer messages", "in pieces")]
    assert kinds == [monotony, split]
    assert len(listed) - sum(kinds) == pattern


def test_the_table_of_libraries_has_the_marks_of_each_count():
    every = [with_counts(*counts, library=f"L{k}") for k, counts in enumerate(PUBLISHED.values())]
    shown = lines(content(*every))
    start = next(k for k, line in enumerate(shown) if "at any size" in line)
    rows = shown[start + 1 : start + 34]
    # Each library has one column of four signs.
    for k, counts in enumerate(PUBLISHED.values()):
        assert sum("*" in row[4 * k : 4 * k + 3] for row in rows) == sum(counts)


def test_counts_do_not_include_functions_without_a_pattern():
    matrix = with_counts(0, 0, 0)
    alone = next(row for row in matrix.rows if row.guideline.kind is GuidelineKind.MONOTONY)
    term = replace(alone.guideline.left, function="Alltoall")
    other = MatrixRow(replace(alone.guideline, left=term), (cell(),) * 3)
    counts = counts_of(replace(matrix, rows=(*matrix.rows, other)))
    assert str(counts[GuidelineKind.MONOTONY]) == "0/9"


def test_the_mean_of_all_settings_is_a_violation():
    from cpmodel_guidelines.answer import MeanOfChecks

    matrix = with_counts(0, 0, 0)
    row = replace(matrix.rows[0], mean=MeanOfChecks(1.2, 1.1, 1.3, 0.008, True))
    matrix = replace(matrix, rows=(row, *matrix.rows[1:]))
    assert str(counts_of(matrix)[GuidelineKind.PATTERN]) == "1/15"
    head, first = [line for line in lines(content(matrix)) if "guideline" in line or "  **" in line]
    assert head.split()[-3:] == ["mean", "worst", "guideline"]
    assert first.split()[3:6] == ["**", "+20", "%"]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_matrices_fit_the_terminal_and_keep_every_cell(width):
    sizes = tuple(2.0**k for k in range(21))
    rows = tuple(
        MatrixRow(guideline, tuple(cell(mark="*" * (1 + k % 3)) for k in range(21)))
        for guideline in published_guidelines()
    )
    matrix = Matrix(("Open MPI",), {"p": 4.0}, "size", sizes, rows)
    shown = lines(content(matrix), width)
    assert max(map(len, shown)) <= width
    stars = [word for line in shown for word in line.split() if set(word) == {"*"}]
    assert len(stars) == 21 * len(rows)


def test_signs_are_ascii_on_request():
    assert all(line.isascii() for line in lines(content(with_counts(5, 3, 8)), 80, ascii_only=True))


def test_a_row_limit_keeps_the_worst_guidelines_in_their_order():
    matrix = with_counts(5, 3, 8)
    few, other = limited([matrix, with_counts(0, 0, 0)], 4)
    assert [row.guideline for row in other.rows] == [row.guideline for row in few.rows]
    assert len(few.rows) == 4
    assert all(row.is_violated for row in few.rows)
    order = [row.guideline for row in matrix.rows]
    assert [order.index(row.guideline) for row in few.rows] == sorted(
        order.index(row.guideline) for row in few.rows
    )


def test_names_have_their_own_line_where_there_is_no_room_beside_the_cells():
    grid = Grid("guideline", ["a long name of a guideline"], ["1", "2"], [[GridCell("***")] * 2])
    assert [each.plain for each in grid.lines(20)][1:] == [
        "a long name of a", "  guideline", "  *** ***",
    ]  # fmt: skip
    assert [each.plain for each in grid.lines(None)] == [
        "  1   2  guideline", "*** ***  a long name of a guideline",
    ]  # fmt: skip


def test_titles_of_sizes_are_short_and_exact():
    assert labels_of(with_counts(0, 0, 0)) == ["8", "1Ki", "1500"]


def test_tables_have_a_row_per_guideline_and_a_column_per_size():
    table = matrix_table(content(with_counts(5, 3, 8)))
    assert len(table) == 33
    assert [*table.columns][-3:] == ["size=8", "size=1024", "size=1500"]
    marks = [mark for name in [*table.columns][-3:] for mark in table.columns[name]]
    assert marks.count("**") == 16
    assert marks.count("no violation") == 3 * 33 - 16
    (nested,) = table.header["matrices"]
    assert nested["counts"]["monotony"] == {"violated": 5, "of": 9}
    assert [each["value"] for each in nested["guidelines"][0]["cells"]] == [*SIZES]


def test_the_page_has_the_class_of_each_slowdown_and_escapes_names():
    matrix = replace(with_counts(1, 0, 0), group=("<script>alert(1)</script>\x1b[31m",))
    page = matrix_page(content(matrix))
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count('class="v h5"') == 1  # +50 %
    assert 'content="default-src &#x27;none&#x27;' in page
    assert "script-src" not in page


@cells(("factor", "colour"), [(0.5, 0), (0.8, 1), (1.0, 2), (1.05, 3), (1.6, 5), (9.0, 7)])
def test_colours_follow_the_slowdown(factor, colour):
    matrix = with_counts(0, 0, 0)
    cells = (cell(factor=factor),) * 3
    page = matrix_page(content(replace(matrix, rows=(MatrixRow(matrix.rows[0].guideline, cells),))))
    assert page.count(f'class="v h{colour}"') == 3


def test_marks_of_rates_beyond_the_stars():
    assert [mark_of(rate) for rate in (0.0005, 0.01, 0.05, 0.09)] == ["***", "**", "*", "x"]


# The published code.


def campaign(values):
    return Campaign("made", tuple(
        Measurement("", 4, Cell(*where), k, np.array([time]), Detail.OBSERVATIONS, "made")
        for where, times in values.items()
        for k, time in enumerate(times, 1)
    ))  # fmt: skip


def test_the_published_matrix_has_all_rows_of_the_paper_and_the_column_of_the_left_side():
    few = np.arange(5.0)
    made = campaign({
        ("MPI_Gather", 8.0): 20 + few, ("MPI_Gather", 16.0): 15 + few,
        ("GL_Gather_as_Reduce", 8.0): 10 + few, ("MPI_Bcast", 8.0): few + 1,
        ("MPI_Bcast", 20.0): 30 * (few + 1),
    })  # fmt: skip
    checks = published_checks(made)
    (matrix,) = published_matrices(made, checks)
    assert [str(count) for count in counts_of(matrix).values()] == ["1/9", "1/9", "1/15"]
    assert len(matrix.rows) == len(PATTERNS) + 2 * 9
    violated = {
        row.guideline.text: [size for size, each in zip(matrix.columns, row.cells, strict=True)
                             if each and each.is_violated]
        for row in matrix.rows if row.is_violated
    }  # fmt: skip
    assert violated == {
        "Gather <= Reduce": [8.0], "Gather <= longer messages": [8.0], "Bcast <= in pieces": [20.0],
    }  # fmt: skip
    assert published_table(made, checks).header["counts"] == {
        "/4": {"monotony": "1/9", "split": "1/9", "pattern": "1/15"}
    }
    text = [each.plain for each in published_text(made, checks, TextStyle())]
    assert text[1] == "p = 4: 5 mpiruns; monotony 1/9, split 1/9, pattern 1/15"


def test_factors_of_published_cells_are_ratios_of_medians():
    made = campaign({
        ("MPI_Gather", 8.0): [2.0] * 5, ("GL_Gather_as_Reduce", 8.0): [1.0] * 5,
    })  # fmt: skip
    (matrix,) = published_matrices(made, published_checks(made))
    (found,) = [row.cells[0] for row in matrix.rows if row.cells[0]]
    assert found.factor == 2.0
