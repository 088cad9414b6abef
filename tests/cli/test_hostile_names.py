"""Outputs contain no control characters, formulas or markup from names in files."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from xml.etree import ElementTree as ET

import pytest

FORMULAS = ("=HYPERLINK(1)", "+f", "-[NSObject init]", "@sum", "main", "a|b](http://x)<script>")
OTHERS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
ESCAPE = "\x1b[31m\x1b]0;title\x07"
OBEYED = ESCAPE + "\x9b\u202e\u2028\x7f\U000e0041"

FORMS = ["table", "csv", "tsv", "json", "jsonl", "markdown", "latex"]


@pytest.fixture
def table(tmp_path):
    """Write a series with escape sequences in every name that a file can set."""
    path = tmp_path / "runs.csv"
    lines = [f"callpath,p{ESCAPE},t{ESCAPE} [s]"]
    for p in (2, 4, 8, 16, 32):
        lines += [f"main,{p},1.0", f"main/f{ESCAPE}\u202e,{p},{p * 0.5}"]
    path.write_text("\n".join([*lines, ""]), "utf-8")
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["info"],
        ["-v", "info"],
        ["rank", "--target", "64"],
        ["rank", "--target", "64", "-f", "csv"],
        ["rank", "--target", "64", "-f", "tsv"],
        ["rank", "--target", "64", "-f", "jsonl"],
        ["rank", "--target", "64", "-f", "json"],
        ["rank", "--target", "64", "-f", "markdown"],
        ["rank", "--target", "64", "-f", "latex"],
        ["rank", "--target", "64", "--wide"],
        ["views", "--target", "64"],
        ["excess"],
        ["report", "--target", "64"],
        ["export", "-f", "dot"],
        ["export", "-f", "python"],
        ["export", "-f", "graphml"],
        ["export", "--what", "flame"],
        ["export", "--what", "flame", "--target", "64", "--color-by", "share"],
        ["export", "--what", "flame", "--color-by", "growth"],
        ["rank", "--target", "64", "-m", "nothing"],
        ["rank", "--target", "64", "--where", "nothing=1"],
    ],
    ids=" ".join,
)
def test_no_control_character_is_written(run, table, words):
    at = words.index("info") if "info" in words else 0
    told = run(*words[: at + 1], table, *words[at + 1 :])
    for text in (told.out, told.err):
        signs = {sign for sign in text if unicodedata.category(sign) in OTHERS}
        assert signs <= {"\n", "\t"}, (words, signs)
    assert told.status == (2 if any("nothing" in word for word in words) else 0), told.err


@pytest.mark.parametrize("form", [*FORMS, "github", "junit"])
def test_no_control_character_is_written_by_checks(run, table, tmp_path, form):
    expected = tmp_path / "e.toml"
    expected.write_text(
        f'schema = 1\n[[expect]]\nname = "{toml(OBEYED)}"\ncallpath = "main/*"\ngrowth = "O(1)"\n'
    )
    out = tmp_path / "out.xml"
    told = run("check", table, expected, *(["--junit", out] if form == "junit" else ["-f", form]))
    assert told.status == 1, told.err
    text = out.read_text("utf-8") if form == "junit" else told.out
    signs = {sign for sign in text + told.err if unicodedata.category(sign) in OTHERS}
    assert signs <= {"\n", *("\t" if form == "tsv" else "")}, signs
    if form == "junit":
        ET.fromstring(text)  # noqa: S314 - our own file
    if form == "github":
        assert [line[:2] for line in text.splitlines()].count("::") == 1


def toml(text):
    return "".join(sign if sign.isprintable() else f"\\U{ord(sign):08x}" for sign in text)


@pytest.fixture
def formulas(tmp_path):
    """Write a series with names that are formulas in spreadsheets and markup in Markdown."""
    path = tmp_path / "runs.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["callpath", "@p", "=t [s]"])
        for p in (2, 4, 8, 16, 32):
            writer.writerow(["=main", p, 1.0])
            writer.writerows(
                [f"=main/{name.replace('/', chr(92) + '/')}", p, (k + 1) * p - k]
                for k, name in enumerate(FORMULAS)
            )
            writer.writerows([name.replace("/", "\\/"), p, 0.1 * p] for name in FORMULAS)
    return path


LISTS = [
    ["rank", "--target", "64"],
    ["views", "--target", "64", "--view", "bottom-up"],
    ["views", "--target", "64", "--view", "flat"],
    ["excess", "--view", "flat"],
    ["export"],
    ["export", "--what", "values"],
    ["diff"],
]


@pytest.mark.parametrize("form", ["csv", "tsv"])
@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_no_cell_is_a_formula_of_a_spreadsheet(run, formulas, words, form):
    both = [formulas] * (2 if words == ["diff"] else 1)
    told = run(words[0], *both, *words[1:], "-f", form)
    assert told.status == 0, told.err
    rows = list(csv.reader(io.StringIO(told.out), delimiter="\t" if form == "tsv" else ","))
    assert sum(cell.startswith("'") for row in rows for cell in row) > 4
    for cell in (cell for row in rows for cell in row):
        if not re.fullmatch("@[0-9a-f]{7,}|-", cell):
            assert cell[:1] not in {*"=+-@\t\r"} or float(cell) <= 0, cell


def test_names_survive_a_table_that_is_written_and_read(run, formulas, tmp_path):
    again = tmp_path / "again.csv"
    assert run("export", formulas, "--what", "values", "-f", "csv", "-o", again).status == 0
    first, other = (
        run(
            "rank",
            path,
            "--target",
            "64",
            "-f",
            "jsonl",
            "--columns",
            "callpath,id",
        )
        for path in (formulas, again)
    )
    assert '"=main/@sum"' in first.out
    assert first.out == other.out


def test_no_name_is_markup_of_markdown(run, formulas):
    told = run("rank", formulas, "--target", "64", "-f", "markdown")
    assert told.status == 0, told.err
    left = re.sub(r"\\.", "", told.out)
    assert "](" not in left
    assert "<script" not in left
    assert len({line.count("|") for line in left.splitlines()}) == 1
