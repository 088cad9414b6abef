"""Foreign text in each language that is written."""

from __future__ import annotations

import ast
import shlex

from hypothesis import example, given
from hypothesis import strategies as st

from callpath_modeler.printable import (
    c_comment,
    dot_string,
    printable,
    python_docstring,
    shell_word,
    shell_words,
)

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
