"""Errors in expectation files: one line that begins with file and line."""

from __future__ import annotations

import pytest

from callpath_modeler.analysis.expectations.clauses import read
from callpath_modeler.errors import InputError
from cells import cells

EXPECT = "schema = 1\n[[expect]]\n"

BAD = {
    "nothing at all": ("", 1, "schema is missing"),
    "no TOML": ("schema 1\n", 1, "Expected '=' after a key"),
    "an open list": (EXPECT + "x = [1,\n", 3, "end of the file"),
    "an open text": (EXPECT + 'growth = "<= O(1)\n', 3, "column"),
    "a key twice": (EXPECT + 'growth = "O(1)"\ngrowth = "O(p)"\n', 4, "overwrite"),
    "brackets without end": ("x = " + "[" * 99_999, 1, "nested too deeply"),
    "another schema": ("schema = 2\n", 1, "schema 2 is not known"),
    "a schema in quotes": ("schema = '1'\n", 1, "schema must be a whole number, not text"),
    "no expectation": ("schema = 1\n\n", 1, "nothing is expected"),
    "a table of another name": ("schema = 1\n\n[[expct]]\n", 3, "did you mean 'expect'?"),
    "a single table": ("schema = 1\n[expect]\nname = 'a'\n", 2, "expect must be a list of tables"),
    "a misspelt key": (EXPECT + "# c\ngrwoth = 'O(1)'\n", 4, "did you mean 'growth'?"),
    "a misspelt default": ("schema = 1\n[defaults]\n\nmetrik = 'time'\n", 4, "'metric'"),
    "a key of another table": (EXPECT + "numbers = 3\n", 3, "no key 'numbers' belongs here"),
    "a number for a text": (EXPECT + "\nvalue = 3\n", 4, "value must be text in quotes"),
    "a date for a text": (EXPECT + "name = 1979-05-27\n", 3, "name must be text in quotes"),
    "half a call path": (EXPECT + "growth='O(1)'\nat_least = 1.5\n", 4, "a whole number"),
    "fewer than none": (EXPECT + "growth='O(1)'\nat_least = -1\n", 4, "below zero"),
    "what to do when unsure": (
        EXPECT + "growth='O(1)'\nunsure = 'ask'\n",
        4,
        "one of fail, pass, warn",
    ),
    "a sure confidence": (EXPECT + "growth='O(1)'\nconfidence = 1\n", 4, "no probability"),
    "no confidence": (EXPECT + "growth='O(1)'\nconfidence = 0.2\n", 4, "from 0.5"),
    "a deviation below 1": (
        EXPECT + "growth='O(p)'\ndeviation='O(p^-1)'\n",
        4,
        "is below O(1)",
    ),
    "a bad default confidence": (
        "schema = 1\n[defaults]\nconfidence = 95\n[[expect]]\ngrowth = 'O(1)'\n",
        3,
        "confidence 95 is no probability",
    ),
    "a target without parameter": ("schema = 1\ntarget = 4096\n", 2, "target must be a table"),
    "a target in words": ("schema = 1\ntarget = { p = 'big' }\n", 2, "p = 'big' is no scale"),
    "a target below zero": ("schema = 1\n\ntarget.p = -4\n", 3, "p = -4 is no scale"),
    "a target of nothing": ("schema = 1\ntarget = {}\n", 2, "a target names no parameter"),
    "no expectation in an expectation": (EXPECT + "callpath = 'main'\n", 2, "nothing is expected"),
    "an empty pattern": (EXPECT + "growth = 'O(1)'\ncallpath = ' '\n", 4, "empty call-path"),
    "no growth": (EXPECT + "growth = '<= O(lg(p)'\n", 3, "at column 11 of '<= O(lg"),
    "growth of another parameter": (
        "schema = 1\ntarget = { p = 4 }\n[[expect]]\ngrowth = 'O(n)'\n",
        4,
        "is of n, the others are of p",
    ),
    "a deviation of something else": (
        EXPECT + "growth = 'O(p)'\ndeviation = 'D'\n",
        4,
        "is of D, the others are of p",
    ),
    "no deviation": (EXPECT + "growth = 'O(p)'\ndeviation = 'p log'\n", 4, "deviation: "),
    "a bound without comparison": (EXPECT + "value = '2.5 s'\n", 3, "begin with <= or >="),
    "a bound without number": (EXPECT + "value = '<= s'\n", 3, "a number and its unit"),
    "a share in seconds": (EXPECT + "share = '<= 5 s'\n", 3, "a fraction has no unit s"),
    "half a comparison": (EXPECT + "bound = 'bytes * 2'\n", 3, "<= or >="),
    "an open bracket": (EXPECT + "bound = '(bytes <= 2 GB'\n", 3, "closing bracket"),
    "a strange sign": (EXPECT + "bound = 'bytes ? 2 <= 1'\n", 3, "'?' is not allowed here"),
    "call paths in a bound": (EXPECT + "bound = '{main} <= 2 s'\n", 3, "belong to a [[rule]]"),
    "half a rule": ("schema = 1\n[[rule]]\nrule = '{main} <='\n", 3, "at column 10 of"),
    "a rule without a rule": ("schema = 1\n[[rule]]\nname = 'a'\n", 2, "rule is missing"),
    "a key that no rule has": (
        "schema = 1\n[[rule]]\nrule = '{a} <= {b}'\ngrowth = 'O(1)'\n",
        4,
        "no key 'growth' belongs here",
    ),
    "a number in words": ("schema = 1\n[numbers]\nn = 'many'\n", 3, "n = 'many'"),
    "a truth for a number": (
        "schema = 1\n[numbers]\nn = true\n[[expect]]\ngrowth='O(1)'\n",
        3,
        "n is no number",
    ),
    "two of one name": (
        EXPECT + "name='a'\ngrowth='O(1)'\n[[expect]]\nname='a'\ngrowth='O(1)'\n",
        6,
        "the first is in line 2",
    ),
    "an unknown control": (
        EXPECT + "name='a'\ngrowth='O(1)'\ncontrol='b'\n",
        5,
        "no other expectation is called 'b'",
    ),
    "itself as control": (
        EXPECT + "name='a'\ngrowth='O(1)'\ncontrol='a'\n",
        5,
        "no other expectation is called 'a'",
    ),
}


@cells(("text", "line", "words"), BAD.values())
def test_a_bad_file_is_refused_by_its_line(tmp_path, text, line, words):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read(path)
    assert refused.value.message.startswith(f"{path}:{line}: ")
    assert "\n" not in refused.value.message
    assert words in f"{refused.value.message} {refused.value.hint}"
    assert refused.value.hint


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_bytes(b"schema = 1\n# \xff\n")
    with pytest.raises(InputError, match="not text in UTF-8"):
        read(path)


def test_a_file_that_is_not_there_is_refused_with_the_command_that_makes_one(tmp_path):
    with pytest.raises(InputError, match="No such file") as refused:
        read(tmp_path / "none.toml")
    assert "cpmodel baseline" in refused.value.hint
