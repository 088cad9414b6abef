"""Errors in TOML files of one format, with the line."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.support.toml import TomlFormat
from cells import cells


class Leaf(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["one", "two"]
    size: int | float = 0


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    named: dict[str, Leaf] = {}
    listed: list[Leaf] = []
    either: str | dict[str, int | float] | list[str] = ""
    flag: bool = False


EXAMPLES = {"named": "[named.a]", "kind": 'kind = "one"', "either": "either = { p = 1 }"}
FORM = TomlFormat(Whole, EXAMPLES, UsageError, {"colour": "it is said elsewhere"})

MISFITS = {
    "unknown key": ("\nflagg = true", 2, "'flagg'", "did you mean 'flag'?"),
    "unknown key without likeness": ("zzz = 1", 1, "'zzz'", "choose one of named, listed, either"),
    "key with a home": ("colour = 1", 1, "'colour'", "it is said elsewhere"),
    "key in a table with a name": (
        '[named.a]\nkind = "one"\n[named.b]\nkind = "one"\nsise = 1', 5, "'sise'", "'size'?",
    ),
    "key in a list": ('[[listed]]\nkind = "one"\n[[listed]]\nsise = 1', 4, "'sise'", "'size'?"),
    "missing": ("[named.a]\nsize = 1", 1, "kind is missing", 'kind = "one"'),
    "one of several": ('[named.a]\nkind = "three"', 2, "kind = 'three'", "one of one, two"),
    "type": ("flag = 1", 1, "flag must be true or false, not a whole number", "flag"),
    "type of a table with a name": ("[named]\na = 3", 2, "a must be a table", "[named.a]"),
    "type in a free table": ("either = { p = true }", 1, "either must be a number", "{ p = 1 }"),
    "type of a choice": ("either = 1", 1, " or a list, not a whole number", "{ p = 1 }"),
    "type in a list of a choice": ("either = [\n1]", 2, "either must be text", "{ p = 1 }"),
    "no list of tables": ("listed = 3", 1, "a list of tables, [[...]]", "listed"),
    "syntax": ("flag = tru", 1, "column", "TOML"),
}  # fmt: skip


@cells(("text", "line", "message", "hint"), MISFITS.values())
def test_what_does_not_belong_there_is_refused_by_its_line(text, line, message, hint):
    with pytest.raises(UsageError) as refused:
        FORM.parse(text, "a.toml")
    assert refused.value.message.startswith(f"a.toml:{line}: ")
    assert message in refused.value.message
    assert hint in str(refused.value.hint)


def test_bytes_are_read_as_text_with_or_without_a_mark():
    for content in (b"flag = true", b"\xef\xbb\xbfflag = true"):
        assert FORM.parse(content, "a.toml").document.flag
    with pytest.raises(UsageError, match="not text in UTF-8"):
        FORM.parse(b"\xff\xfe", "a.toml")


def test_what_is_written_knows_its_lines_and_refuses_with_them():
    written = FORM.parse('\n[named.a]\nkind = "one"', "a.toml")
    assert written.line(("named", "a", "size")) == 2
    with pytest.raises(UsageError, match=r"^a.toml:3: no$"):
        written.refuse(("named", "a", "kind"), "no", "hint")
