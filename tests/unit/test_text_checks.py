"""`make texts` finds what is wrong in texts and names."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

import check_texts
from callpath_modeler.diagnostics import KINDS
from cells import cells
from command_tree import command_texts

SOUND = {
    "what": "values are missing",
    "why": "Sums are too small.",
    "remedy": "Measure again.",
    "example": "time: 3 values are missing",
}


@cells(
    ("part", "text", "problem"),
    [
        ("what", "Values are missing ", "spaces at its ends"),
        ("why", "Sums are too smäll.", "not printable ASCII"),
        ("what", "values are missing", "capital letter"),
        ("what", "Values are missing.", "no full stop"),
        ("remedy", "Measure again", "is not a sentence"),
        ("why", "sums are too small.", "is not a sentence"),
        ("why", f"So{' very' * 25} small. Yes.", "more than 25 words"),
        ("remedy", "Add --where 'p>=64'.", "condition on a parameter"),
        ("example", "3 values are missing", "a subject"),
    ],
)
def test_a_problem_in_the_text_of_a_finding_is_found(part, text, problem):
    sound = SOUND | {"what": "Values are missing"}
    assert list(check_texts.problems_of_a_kind(SimpleNamespace(**sound))) == []
    (found,) = check_texts.problems_of_a_kind(SimpleNamespace(**sound | {part: text}))
    assert problem in found


@cells(
    ("line", "problem"),
    [
        ("$ cpmodel rank runs --target 64  # in seconds", ""),
        ("cpmodel trace spec app.otf2 -f c", ""),
        ("cpmodel rank runs --traget 64", "No such option"),
        ("cpmodel rnk runs", "no command"),
        ("cpmodel trace spce app.otf2", "no command"),
    ],
)
def test_a_command_that_does_not_exist_is_found(line, problem):
    found = check_texts.problem_of_a_command(line)
    assert problem in found if problem else not found


def test_an_option_that_its_man_page_lacks_and_a_warning_of_groff_are_found(monkeypatch):
    text = command_texts()[0]
    assert list(check_texts.man_page_problems(text)) == []
    monkeypatch.setattr(check_texts, "man_page", lambda *_: ".nothing\n")
    found = " ".join(check_texts.man_page_problems(text))
    assert "lacks -h, --help" in found
    if check_texts.shutil.which("groff"):
        assert "groff warns" in found


def test_code_that_the_example_lacks_is_found(monkeypatch, tmp_path):
    (tmp_path / "example").mkdir()
    monkeypatch.setattr(check_texts, "PLUGINS", tmp_path)
    assert len(list(check_texts.code_of_the_example())) == 5


def test_wide_lines_are_found():
    assert check_texts.wide_lines(f"a\n{'b' * 120}\n{'c' * 121}\n") == [3]


def function(number):
    """Return it.

    Parameters
    ----------
    number : what is returned

    Returns
    -------
    the number

    Raises
    ------
    UsageError : never
    """
    return number


@dataclass
class Documented:
    """A class.

    Attributes
    ----------
    number : what it has
    """

    number: int


def changed(thing, old, new):
    """Return a copy of a function or class with another docstring."""
    assert old in thing.__doc__
    copy = type("C", (thing,), {}) if isinstance(thing, type) else lambda number: number
    copy.__doc__ = thing.__doc__.replace(old, new, 1)
    return copy


@cells(
    ("thing", "old", "new", "problem"),
    [
        (function, "Return it.", "return it.", "needs a sentence"),
        (function, "Return it.", "Return it", "needs a sentence"),
        (function, "number : what", "other : what", "parameters in their order"),
        (function, "the number", "", "its result"),
        (function, "UsageError", "nothing", "its errors"),
        (Documented, "number : what", "other : what", "instead of ['number']"),
    ],
)
def test_a_problem_of_a_docstring_is_found(thing, old, new, problem):
    assert list(check_texts.docstring_problems("name", thing)) == []
    (found,) = check_texts.docstring_problems("name", changed(thing, old, new))
    assert problem in found


def test_a_member_without_docstring_and_a_method_without_source_are_found():
    class Short(Documented):
        __doc__ = Documented.__doc__

        def double(self):
            return 2 * self.number

    (found,) = check_texts.docstring_problems("name", Short)
    assert found == "double has no docstring"
    (found,) = check_texts.docstring_problems("fit", function)
    assert "source of its method" in found


def test_a_documented_parameter_that_is_gone_is_found():
    source = 'def f(a):\n    """Return it.\n\n    Parameters\n    ---\n    a, b : numbers\n    """'
    assert check_texts.unknown_parameters(source) == {"f": {"b"}}


def test_classes_of_one_name_are_found():
    sources = [("a.py", "class A: pass\nclass _B: pass"), ("b.py", "class A: pass\nclass _B: pass")]
    assert check_texts.shared_classes(sources) == {"A": ["a.py", "b.py"]}
    assert check_texts.shared_classes(sources[:1]) == {}


def test_a_page_of_a_method_and_its_headings_are_read():
    source = '"""The prior.\n\nSee docs/explanation/modeling.md,\n\'Priors\' and \'Noise\'.\n"""'
    assert check_texts.method_pages(source) == [("modeling.md", "Priors", "Noise")]
    assert check_texts.method_pages('"""The prior."""') == []


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("WIDEST_LINE", 60, "page_layout"),
        ("LARGEST_PICTURE", 100, "pictures"),
        ("LONGEST_SENTENCE", 3, "architecture"),
        ("WITHOUT_A_NOUN", {"fitted"}, "names"),
        ("FROM_THE_LITERATURE", ("nothing",), "public_docstrings"),
        ("NAMES", {"Studies": ("Study", "Study")}, "versions_and_names"),
        ("method_pages", lambda _: [], "modules_and_pages"),
        ("rows_of", lambda *_: [["change", "`none/such.py`"]] * 10, "contributing"),
        (
            "pages",
            lambda: dict.fromkeys((f"reference/findings/{k}.md" for k in KINDS), ""),
            "findings",
        ),
    ],
)
def test_a_check_of_the_project_fails_where_its_rule_is_broken(monkeypatch, name, value, check):
    monkeypatch.setattr(check_texts, name, value)
    assert list(getattr(check_texts, check)())
