"""Lines of keys, for messages about them."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from callpath_modeler.support.toml import _read_plain, lines_of
from cells import cells

HARD = '''\
# schema = 0
schema = 1 # [[no]]
target = { p = 4096, "q r" = 1979-05-27 07:32:00 }

[defaults]
metric = "ti#me"
a.b . "c.d" = """
multi \\""" line = "quoted" ""
"""
[[expect]]
name = \'\'\'
[[x]]
''y\'\'\'
list = [
  1, # c, ]
  { k = "}" , l = [ ] },
  "a,]",
]
[expect.sub]
z = 1.5e3
[[expect]]
growth = "x"
[[expect.deep]]
q = 1
[[expect.deep]]
q = 2
'''


@cells(
    ("place", "line"),
    [
        (("schema",), 2),
        (("target", "p"), 3),
        (("target", "q r"), 3),
        (("defaults",), 5),
        (("defaults", "metric"), 6),
        (("defaults", "a", "b", "c.d"), 7),
        (("expect", 0), 10),
        (("expect", 0, "name"), 11),
        (("expect", 0, "list"), 14),
        (("expect", 0, "list", 1, "l"), 16),
        (("expect", 0, "list", 2), 17),
        (("expect", 0, "sub", "z"), 20),
        (("expect", 1), 21),
        (("expect", 1, "deep", 0, "q"), 24),
        (("expect", 1, "deep", 1, "q"), 26),
    ],
)
def test_a_key_is_found_whatever_stands_before_it(place, line):
    assert lines_of(HARD)[place] == line


def test_line_ends_of_windows_count_as_one():
    assert lines_of("a = 1\r\n\r\n[b]\r\nc = 2\r\n")["b", "c"] == 4


def places(value, place=()):
    """Return the paths of all values."""
    yield place
    if isinstance(value, dict):
        for key, part in value.items():
            yield from places(part, (*place, key))
    if isinstance(value, list):
        for k, part in enumerate(value):
            yield from places(part, (*place, k))


def test_every_value_of_a_text_has_a_line():
    assert set(places(tomllib.loads(HARD))) <= set(lines_of(HARD))


KEYS = st.text("ab.# =[]\"'é", min_size=1, max_size=5).map(
    lambda text: '"' + text.replace('"', '\\"') + '"'
)
SCALARS = st.sampled_from(
    [
        "1",
        "-2.5e3",
        "true",
        "inf",
        '"]}#,"',
        "'\"{'",
        '"""\n]]\n"""',
        "1979-05-27 07:32:00",
        "'''x'''",
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: "[\n" + " ,# ]\n".join(parts) + "\n]"),
        st.dictionaries(KEYS, inner, max_size=3).map(
            lambda parts: "{" + ", ".join(f"{k}\t= {v}" for k, v in parts.items()) + "}"
        ),
    ),
    max_leaves=6,
)


@given(st.lists(VALUES, max_size=4))
def test_keys_behind_any_value_are_found_in_their_lines(values):
    text = "".join(f"k{n} = {value}\n" for n, value in enumerate(values))
    lines = lines_of(text)
    assert set(places(tomllib.loads(text))) <= set(lines)
    for n in range(len(values)):
        assert text.splitlines()[lines[f"k{n}",] - 1].startswith(f"k{n} = ")


PLAIN = """\
# limits

schema = 1
target = { p = 64, n = 1e6 }  # a comment
[defaults]
confidence = 0.95
[[expect]]
name = "main # no comment"
callpath = 'a\\b "c"'
[[expect]]
name = ""
others = true # "
"""


def test_plain_lines_are_read_like_any_text():
    assert _read_plain(PLAIN) == (tomllib.loads(PLAIN), lines_of(PLAIN))


LINES = st.sampled_from(
    [
        *PLAIN.splitlines(),
        *HARD.splitlines(),
        *(
            "[a]",
            "[[a]]",
            "[a.b]",
            "a = 1",
            "a = [1, 2]",
            "[expect]",
            "[[expect]",
            "[[]]",
            "a =",
            "=",
        ),
        *('a = "x" y', 'a = "\\t"', "a = 'x'", "a = 01", "\u00e9 = 1", "a = 1\x00", "  a = 2"),
    ]
)


@given(st.lists(LINES, max_size=8))
def test_lines_that_are_read_as_plain_mean_the_same_to_the_parser(lines):
    text = "\n".join(lines)
    found = _read_plain(text)
    if found is not None:
        assert found == (tomllib.loads(text), lines_of(text))
