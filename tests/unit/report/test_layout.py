from __future__ import annotations

from rich.cells import cell_len

from callpath_modeler.report.layout import TextColumn, chain_text, shorten, table, tree_table, wrap
from cells import cells

VALUES = TextColumn("p=64", ["1.23e+06 s", "4 s"])
BAND = TextColumn("95% band", ["10 … 20 s", "3 … 5 s"])
GROWTH = TextColumn("growth", ["O(p log p)", "O(1)"], right=False, droppable=1)
TRUST = TextColumn("trust", ["●●○○", "●●●●"], droppable=2)
SHARE = TextColumn("share", ["10 → 20 %", "1 → 2 %"], droppable=3)
COLUMNS = [VALUES, BAND, SHARE, GROWTH, TRUST]
PATHS = [["main", "LagrangeLeapFrog", "CalcForceForNodes", "MPI_Waitall"], ["main"]]


def lines(width, columns=COLUMNS, paths=PATHS):
    return [line.plain for line in table(columns, paths, width)]


def test_without_a_width_nothing_is_cut():
    text = lines(None)
    assert text[0].split() == ["p=64", "95%", "band", "share", "growth", "trust", "call", "path"]
    assert text[1].endswith("main/LagrangeLeapFrog/CalcForceForNodes/MPI_Waitall")


def test_numbers_are_aligned_to_the_right_and_words_to_the_left():
    head, first, second = lines(None)
    assert head.index("p=64") + 4 == second.index(" s") + 2 == first.index(" s") + 2
    assert first.index("O(p") == second.index("O(1)")


@cells("width", range(44, 120))
def test_no_line_is_wider_than_the_terminal_and_no_number_is_cut(width):
    text = lines(width)
    assert max(map(cell_len, text)) <= width
    for number in ("1.23e+06 s", "10 … 20 s"):
        assert number in text[1]


def test_columns_go_in_order_of_their_value():
    kept = [[c.header for c in COLUMNS if c.header in lines(w)[0]] for w in range(120, 20, -1)]
    distinct = list(dict.fromkeys(map(tuple, kept)))
    whole = tuple(c.header for c in COLUMNS)
    expected = [whole]
    for gone in ("share", "trust", "growth"):
        expected.append(tuple(name for name in expected[-1] if name != gone))
    assert distinct == expected


def test_on_a_terminal_too_narrow_for_the_numbers_they_still_stand():
    assert "1.23e+06 s" in lines(10)[1]


def test_what_goes_last_goes_only_where_no_call_path_fits_beside_it():
    columns = [TextColumn("p=64", ["1.23 s", "4 s"], droppable=-1), BAND, GROWTH]
    assert lines(39, columns)[0].split() == ["p=64", "95%", "band", "call", "path"]
    for width in (27, 20):
        narrow = lines(width, columns, [PATHS[0], ["91 others"]])
        assert narrow[0].split() == ["95%", "band", "call", "path"]
        assert narrow[2].endswith("  91 others")


def test_in_a_tree_what_goes_last_goes_before_names_are_cut_to_their_indentation():
    columns = [TextColumn("value", ["1.00 s"] * 6), TextColumn("growth", ["O(p)"] * 6, droppable=1)]
    nodes = [(depth, "a_function") for depth in range(6)]

    def shown(width):
        return [line.plain for line in tree_table(columns, nodes, width, title="call path")]

    taken = len("1.00 s  growth  ")
    assert shown(taken + 14)[0] == " value  growth  call path"
    narrower = shown(taken + 13)
    assert narrower[0] == " value  call path"
    assert narrower[-1] == "1.00 s            a_function"


def test_a_path_that_fits_is_whole():
    assert shorten(["main", "a", "b"], 8) == "main/a/b"
    assert shorten(["main", "a", "b"], None) == "main/a/b"


@cells("space", range(4, 60))
def test_a_shortened_path_fits_and_ends_as_the_path_does(space):
    names = ["main", "LagrangeLeapFrog", "CalcForceForNodes", "MPI_Waitall"]
    short = shorten(names, space)
    assert cell_len(short) <= space
    full = "/".join(names)
    assert short == full or full.endswith(short.rpartition("…")[2])


def test_wide_characters_count_as_two_cells():
    assert cell_len(shorten(["main", "計算" * 10], 12)) <= 12


def test_ascii_has_three_dots():
    assert shorten(["main", "a" * 30, "b"], 12, "...").isascii()


def test_a_long_line_goes_on_in_the_next_but_no_number_is_broken():
    text = "predicted 1 234 567 s and 35 500 s at most"
    for width in range(12, 50):
        parts = [part.plain for part in wrap(text, width)]
        assert max(map(len, parts)) <= width
        assert " ".join(part.strip() for part in parts) == text
        assert any("1 234 567 s" in part for part in parts)
        assert any("35 500 s" in part for part in parts)


def test_no_line_breaks_inside_of_an_interval_or_a_setting():
    text = "worse, +4.5 % (+4.2 % … +4.7 %) at p = 125, size = 50"
    for width in range(19, 50):
        parts = " | ".join(part.plain for part in wrap(text, width))
        assert "(+4.2 % … +4.7 %)" in parts
        assert "p = 125" in parts
        assert "size = 50" in parts


def test_a_line_that_fits_stays_as_it_is():
    assert [part.plain for part in wrap("  a  b", 6)] == ["  a  b"]
    assert [part.plain for part in wrap("", 6)] == [""]
    assert [part.plain for part in wrap("x" * 500, None)] == ["x" * 500]


def test_paths_that_look_alike_keep_their_ends_beside_their_marks_where_there_is_room():
    alike = [["main", "a", "solver", "reduce"], ["main", "b", "solver", "reduce"]]
    marks = ["@1ea757f", "@b455d9a"]
    values = [TextColumn("value", ["1 s", "2 s"])]
    shown = {
        width: [row.plain[7:] for row in table(values, alike, width, marks=marks)[1:]]
        for width in (22, 21, 20, 7)
    }
    assert shown == {
        22: [f"…educe {mark}" for mark in marks],
        21: [f"…duce {mark}" for mark in marks],
        20: marks,
        7: marks,
    }


@cells(
    ("room", "shown"),
    [
        (80, "a > bb > cc > dd > z"),
        (20, "a > bb > cc > dd > z"),
        (19, "a > … (3) … > z"),
        (14, "… (4) … > z"),
        (10, "z"),
    ],
)
def test_a_chain_keeps_its_ends_and_counts_the_others(room, shown):
    assert chain_text(["a", "bb", "cc", "dd", "z"], room) == shown


def test_a_chain_of_one_name_is_shortened_as_a_name():
    assert chain_text(["z"], 10) == "z"
    assert chain_text(["a", "z"], 4) == "z"
    assert len(chain_text(["function_with_a_long_name"], 10)) <= 10
