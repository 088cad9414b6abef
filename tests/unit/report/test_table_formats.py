from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from callpath_modeler.report import table_formats
from callpath_modeler.report.model_formulas import latex_pieces
from callpath_modeler.report.table_formats import (
    SCHEMA,
    RowColumns,
    Table,
    csv_pieces,
    json_pieces,
    jsonl_pieces,
    markdown_pieces,
    to_csv,
    to_json,
    to_jsonl,
    to_markdown,
)
from cells import cells

NAN, INF = float("nan"), float("inf")
TABLE = Table(
    {
        "callpath": ["f(int, char)", 'say "hi"', "a|b\nc"],
        "rank": [1, 2, None],
        "value": [0.1 + 0.2, NAN, -INF],
        "good": [True, False, None],
    },
    {"value": "s"},
    {"target": 64, "findings": []},
)


def refuse(text):
    raise AssertionError(f"{text} is no JSON")


def test_csv_quotes_what_needs_it_and_keeps_full_precision():
    text = to_csv(TABLE)
    assert "\r" not in text
    head, *rows = csv.reader(io.StringIO(text))
    assert head == ["callpath", "rank", "value[s]", "good"]
    assert rows[0] == ["f(int, char)", "1", "0.30000000000000004", "true"]
    assert rows[1] == ['say "hi"', "2", "", "false"]
    assert rows[2] == ["a|b\nc", "", "-inf", ""]


def test_csv_may_go_without_header_and_with_tabs():
    assert to_csv(TABLE, header=False) == to_csv(TABLE).partition("\n")[2]
    assert to_csv(TABLE, delimiter="\t").splitlines()[0] == "callpath\trank\tvalue[s]\tgood"


FORMS = [csv_pieces, json_pieces, jsonl_pieces, markdown_pieces, latex_pieces]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_table_of_blocks_is_written_like_the_whole(form, monkeypatch):
    def cells(rows):
        return {name: [cells[k] for k in rows] for name, cells in TABLE.columns.items()}

    whole = "".join(form(TABLE))
    monkeypatch.setattr(table_formats, "BLOCK", 2)
    pieces = [*form(Table(RowColumns(np.arange(len(TABLE)), cells), TABLE.units, TABLE.header))]
    assert "".join(pieces) == whole
    assert not any("f(int" in piece and "a|b" in piece for piece in pieces)


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_csv_has_the_quotes_of_the_csv_module(delimiter):
    texts = ["", "a", 'a"b', "a,b", "a\tb", "a\nb", '"', " a ", "é", None]
    columns = {"text": texts, "x,y": [0.5, 1e-7, 1e22, 3.0, NAN, INF, 0.0, -0.0, 1e16, 2.5]}
    expected = io.StringIO()
    writer = csv.writer(expected, delimiter=delimiter, lineterminator="\n")
    cells = [
        ["" if each is None or str(each) == "nan" else each for each in c] for c in columns.values()
    ]
    cells[0] = [text.replace("\t", "\\t") for text in cells[0]]
    writer.writerows([[*columns], *zip(*cells, strict=True)])
    assert to_csv(Table(columns), delimiter=delimiter) == expected.getvalue()


def test_an_empty_field_alone_is_still_a_row():
    assert to_csv(Table({"since": [None, 2.0]})) == 'since\n""\n2.0\n'


def test_json_is_strictly_valid_and_says_schema_units_and_header():
    document = json.loads(to_json(TABLE), parse_constant=refuse)
    assert document["schema"] == SCHEMA
    assert document["target"] == 64
    assert document["units"] == {"value": "s"}
    assert [row["value"] for row in document["rows"]] == [0.1 + 0.2, None, "-inf"]
    assert document["rows"][2] == {
        "callpath": "a|b\nc",
        "rank": None,
        "value": "-inf",
        "good": None,
    }


@pytest.mark.parametrize("table", [TABLE, Table({"rank": [], "callpath": []})])
def test_json_is_indented_as_by_the_encoder_of_the_language(table):
    text = to_json(table)
    again = json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    assert text.splitlines() == again.splitlines()


def test_json_lines_are_one_object_per_row():
    lines = to_jsonl(TABLE).splitlines()
    assert [json.loads(line, parse_constant=refuse)["rank"] for line in lines] == [1, 2, None]


def test_markdown_escapes_the_bar_and_keeps_a_row_on_its_line():
    lines = to_markdown(TABLE).splitlines()
    assert lines[0] == "| callpath | rank | value[s] | good |"
    assert lines[1] == "| --- | --- | --- | --- |"
    assert len(lines) == 2 + 3
    assert "a\\|b" in lines[4]


@cells(("value", "held"), [(1.5, 1.5), (NAN, None), (INF, "inf"), (-INF, "-inf"), (0.0, 0.0)])
def test_numbers_become_what_json_can_hold(value, held):
    assert json.loads(to_json(Table({}, header={"at": [value]})))["at"] == [held]


def test_columns_can_be_picked_in_any_order_and_keep_their_units():
    picked = TABLE.pick(["value", "rank"])
    assert picked.titles() == ["value[s]", "rank"]
    assert picked.rows()[0] == (0.1 + 0.2, 1)


def test_an_empty_table_still_has_its_header():
    empty = Table({"rank": [], "callpath": []})
    assert len(empty) == 0
    assert to_csv(empty) == "rank,callpath\n"
    assert json.loads(to_json(empty))["rows"] == []


def test_a_frame_has_units_in_its_titles():
    frame = TABLE.to_frame()
    assert list(frame.columns) == TABLE.titles()
    assert len(frame) == 3
