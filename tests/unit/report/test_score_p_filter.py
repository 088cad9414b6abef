"""Filter files follow the grammar of Score-P, whatever the names of functions are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callpath_modeler.analysis.refinement import is_writable, refine
from callpath_modeler.report.refinement_text import KEYWORDS, filter_text, pattern
from cells import cells
from instrumented import compiled, ranked
from score_p_filters import FilterSyntaxError, Rule, excluded, rules

MAIN = (compiled("main"), 100.0, 1.0)
HOSTILE = (
    *("operator*", "f[abc]", "what?", "int f(int, char**)", "a#b", "#c", " lead", "tail "),
    *("EXCLUDE", "INCLUDE", "MANGLED", "DEMANGLED", "SCOREP_REGION_NAMES_END"),
    *(
        "SCOREP_FILE_NAMES_BEGIN",
        "*",
        "?",
        "[",
        "]",
        "[!a]",
        "[]]",
        "f[",
        "ü€😀",
        "a\tb",
        "x" * 5000,
    ),
    *("new\nline", "esc\x1b[31m", "back\\slash", "tail\\", "\udc80", ""),
)


def filtered(*regions):
    functions = [(region, 0.001, 1e6) for region in regions]
    return refine(ranked([MAIN, *functions]))


def test_the_parser_of_these_tests_knows_the_grammar():
    text = (
        "# comment\nSCOREP_REGION_NAMES_BEGIN EXCLUDE foo* b\\ r # more\n"
        "INCLUDE MANGLED _Z? DEMANGLED foo[12] a\\#b\nSCOREP_REGION_NAMES_END\n"
    )
    assert rules(text) == [
        Rule("foo*", True, False),
        Rule("b\\ r", True, False),
        Rule("_Z?", False, True),
        Rule("foo[12]", False, False),
        Rule("a\\#b", False, False),
    ]
    found = rules(text)
    assert excluded(found, "food", "_Zfood")
    assert excluded(found, "b r", "")
    assert not excluded(found, "foo1", "")
    assert not excluded(found, "foo", "_Zf")
    for wrong in (
        "EXCLUDE f",
        "SCOREP_REGION_NAMES_BEGIN f SCOREP_REGION_NAMES_END",
        "SCOREP_REGION_NAMES_BEGIN MANGLED SCOREP_REGION_NAMES_END",
        "SCOREP_REGION_NAMES_BEGIN EXCLUDE f",
        "SCOREP_REGION_NAMES_BEGIN EXCLUDE f\\\nSCOREP_REGION_NAMES_END",
        "SCOREP_REGION_NAMES_END",
    ):
        with pytest.raises(FilterSyntaxError):
            rules(wrong)


def test_a_filter_has_names_of_the_source_and_of_the_linker():
    regions = (compiled("plain"), compiled("f(int)", "_Zfi"), compiled("f(char)", "_Zfc"))
    text = filter_text(filtered(*regions))
    assert rules(text) == [
        Rule("plain", True, False),
        Rule("_Zfc", True, True),
        Rule("_Zfi", True, True),
    ]
    assert "_Zfi # f(int)" in text


def test_a_filter_without_functions_is_valid():
    text = filter_text(refine(ranked([MAIN])))
    assert rules(text) == []
    assert "# 0 functions with 0 % of the visits" in text


@cells("mangled", [False, True])
@cells("name", HOSTILE)
def test_hostile_names_are_matched_exactly_or_kept(name, mangled):
    region = compiled("f" if mangled else name, name if mangled else "")
    found = filtered(region, compiled("other", "_Zother"), compiled("fa"))
    made = rules(filter_text(found))
    others = ["other", "fa", "_Zother", "main", name + "x", f"x{name}", name[:-1]]
    is_excluded = excluded(made, region.name, region.mangled)
    assert is_excluded == any(each.region == region for each in found.excluded)
    assert excluded(made, "other", "_Zother")
    for other in others[3:]:
        if other not in {name, "f", "fa"}:
            assert not excluded(made, other, other)


@given(st.text(st.sampled_from("aZ_0*?[]!-#~ (),:<>'\"éü€")).filter(is_writable))
def test_a_pattern_matches_its_name_and_no_other(name):
    word = pattern(name)
    assert word not in KEYWORDS
    text = f"SCOREP_REGION_NAMES_BEGIN\n  EXCLUDE\n    {word} # {name!r}\nSCOREP_REGION_NAMES_END\n"
    (rule,) = rules(text)
    assert rule.matches(name, "")
    for other in (name + "x", "x" + name, name[1:], name.replace("*", "x"), name.replace("?", "x")):
        assert rule.matches(other, "") == (other == name)
