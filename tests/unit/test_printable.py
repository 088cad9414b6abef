"""Foreign text in each output language."""

from __future__ import annotations

import ast
import html
import json
import re
import shlex
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callpath_modeler.printable import (
    c_comment,
    csv_cell,
    csv_text,
    dot_string,
    github_message,
    github_property,
    json_text,
    markdown_text,
    printable,
    python_docstring,
    shell_word,
    shell_words,
    xml_text,
)
from cells import cells

NAMES = st.text(
    alphabet=st.sampled_from([*"ab*/\\\"'$`;|&>(){}", "\n", "\r", "\x1b", "\u202e", " "])
)


@given(NAMES)
@example("x*\\/ system(1);")
@example("*//*")
def test_a_comment_of_c_holds_neither_its_end_nor_another_beginning(text):
    comment = c_comment(text)
    assert "*/" not in comment
    assert "/*" not in comment
    assert "\n" not in comment
    assert comment.isprintable()


@given(NAMES)
def test_a_string_of_dot_ends_where_it_should(text):
    quoted = dot_string(text)
    inside = quoted[1:-1].replace("\\\\", "").replace('\\"', "")
    assert quoted[0] == quoted[-1] == '"'
    assert '"' not in inside
    assert not inside.endswith("\\")


@given(NAMES)
def test_a_docstring_of_python_is_one_text(text):
    (node,) = ast.parse(f'"""{python_docstring(text)}."""').body
    assert isinstance(node.value.value, str)


@given(st.lists(NAMES, max_size=4))
def test_words_for_a_shell_are_read_as_they_were(words):
    assert shlex.split(shell_words(words)) == [printable(word) for word in words]
    assert all("\n" not in shell_word(word) for word in words)


CELLS = st.text(alphabet=st.sampled_from([*"=+-@'1.e a", "\t", "\r", "\n", "\uff1d"]), max_size=6)


@given(CELLS)
@example("'=1+1")
@example("-1")
@example("'-1")
def test_a_cell_begins_no_formula_and_gives_the_text_back(text):
    cell = csv_cell(text)
    assert csv_text(cell) == "\n".join(map(printable, text.split("\n")))
    if cell != text or not re.fullmatch(r"-|[+-]?[0-9.]+(e[+-]?[0-9]+)?", text):
        assert cell[:1] not in {*"=+-@", "\t", "\r", "\n", "\uff1d"}


@cells("text", ["main/f", "operator=", "'quoted'", "-5", "+3e-7", "-inf", "-", "@0520392", ""])
def test_a_text_that_is_no_formula_is_its_own_cell(text):
    assert csv_cell(text) == text


@cells(
    "text",
    [
        *("<script>x</script>", "[x](http://y)", "![x](http://y)", "`x`", "a|b", "__main__"),
        *("*x*", "&lt;", "\\|", "a\n# b", "[x]: http://y", "~~x~~", "$x$", "[x][y]"),
    ],
)
def test_markdown_shows_a_text_as_it_is(text):
    written = markdown_text(text)
    unescaped = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", written.replace("<!-- -->", ""))
    assert unescaped == text.replace("\n", " ")
    assert written != text
    # Without escaped characters, no special character is left.
    left = re.sub(r"\\.", "", written)
    assert not re.search(r"<\w|</|`|\||\]\(|\]\[|\]:|\*\w|\b_|_\b|~|\$|&\w", left)
    assert html.unescape(left) == left


@cells(
    "text",
    [
        *("@owner", "me@example.org", "#1", "owner/code#12", "GH-7", "gh-7", "!5", "a&3"),
        *("www.example.org", "WWW.example.org", "http://example.org", "ftp://x", "%9", "~bug"),
    ],
)
def test_markdown_has_no_link_mention_or_reference(text):
    written = markdown_text(f"f {text} g")
    seen = re.sub(r"\\(?=[!-/:-@\[-`{-~])", "", written)
    assert seen.replace("<!-- -->", "") == f"f {text} g"
    # These signs make links even in a text whose special characters are escaped.
    assert not re.search(r"[@#!&%~]\w|www\.|://|gh-\d", seen, re.IGNORECASE)


@pytest.mark.parametrize("text", ["MPI_Init", "3.99 * p^(1/2)", "5.9 * [p > 181]", "a[3]"])
def test_names_and_models_stay_readable_in_markdown(text):
    assert markdown_text(text) == text


@given(st.text())
@example("\x00\x1b[31m\u202e\x85\ufffe")
def test_any_text_can_stand_in_xml(text):
    written = xml_text(text)
    ET.fromstring(f"<a>{html.escape(written)}</a>")  # noqa: S314 - our own text
    assert not set(written) & {"\x1b", "\x07", "\x85", "\u202e"}


@given(NAMES)
@example("x\n::error file=a::b")
@example("a,title=b::c")
def test_a_workflow_command_of_github_is_one_line_and_holds_no_other(text):
    message, value = github_message(text), github_property(text)
    assert message.isprintable()
    assert value.isprintable()
    assert not {*",:"} & {*value}
    assert message.replace("%0A", "\n").replace("%25", "%") == "\n".join(
        printable(line) for line in text.split("\n")
    )


@given(st.text())
@example("\x7f\x9b\u202e\U000e0041\x1b")
def test_json_means_the_same_without_signs_that_a_terminal_obeys(text):
    document = json_text(json.dumps([text], ensure_ascii=False))
    assert json.loads(document) == [text]
    assert not set(document) & {"\x1b", "\x7f", "\x9b", "\u202e", "\u2028", "\U000e0041"}
