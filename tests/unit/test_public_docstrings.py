"""Docstrings: public names have the sections that apply to them; documented parameters exist."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from msgspec import Struct

import callpath_modeler

PUBLIC = {name: getattr(callpath_modeler, name) for name in callpath_modeler.__all__}
FUNCTIONS = {name: thing for name, thing in PUBLIC.items() if inspect.isfunction(thing)}
CLASSES = {name: thing for name, thing in PUBLIC.items() if inspect.isclass(thing)}
METHODS = [
    "fit",
    "check",
    "compare",
    "explain",
    "advise",
    "losses",
    "measured_excess",
    "excess_work",
]
"""Functions with a method from the literature."""

SECTION = re.compile(r"^(\w+)\n-+$", re.MULTILINE)


ROOT = Path(__file__).resolve().parents[2]
MODULES = [path for room in ("callpath_modeler", "plugins") for path in (ROOT / room).rglob("*.py")]


def sections(thing):
    """Return the sections of a docstring by title, without the summary."""
    return sections_of(inspect.getdoc(thing) or "")


def sections_of(docstring):
    """Return the sections of the text of a docstring by title."""
    summary, *rest = SECTION.split(docstring)
    return {"": summary.strip(), **dict(zip(rest[::2], rest[1::2], strict=True))}


def documented(section):
    """Return the names in a section of parameters."""
    heads = re.findall(r"^([\w, ]+) : \S", section, re.MULTILINE)
    return [name.strip() for head in heads for name in head.split(",")]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_docstring_begins_with_a_sentence_in_one_line(name):
    first = sections(PUBLIC[name])[""].split("\n")[0]
    assert first[0].isupper()
    assert first.endswith(".")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_documents_parameters_result_and_errors(name):
    found = sections(FUNCTIONS[name])
    assert documented(found["Parameters"]) == list(inspect.signature(FUNCTIONS[name]).parameters)
    assert found["Returns"].strip()
    assert re.search(r"^\w+Error", found["Raises"], re.MULTILINE)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_the_literature_names_its_source(name):
    assert re.search(r"\b(19|20)\d\d\b", sections(FUNCTIONS[name])["References"])


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_documents_its_attributes(name):
    of_class = CLASSES[name]
    found = sections(of_class)
    listed = documented(found.get("Attributes", "") + found.get("Parameters", ""))
    if issubclass(of_class, enum.Enum):
        assert listed == [member.name for member in of_class]
    elif is_dataclass(of_class):
        assert listed == [field.name for field in fields(of_class) if field.name[0] != "_"]
    elif issubclass(of_class, Struct):
        assert listed == [name for name in of_class.__struct_fields__ if name[0] != "_"]


@pytest.mark.parametrize("name", CLASSES)
def test_a_method_or_property_has_a_docstring(name):
    for member, thing in vars(CLASSES[name]).items():
        if member[0] != "_" and isinstance(thing, property | classmethod | staticmethod):
            assert inspect.getdoc(thing), member
        elif member[0] != "_" and inspect.isfunction(thing):
            assert sections(thing)[""], member


def unknown_parameters(source):
    """Return the functions of a module that document parameters which they do not have."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            listed = documented(sections_of(ast.get_docstring(node) or "").get("Parameters", ""))
            parameters = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
            if unknown := set(listed) - parameters:
                found[node.name] = unknown
    return found


def test_each_documented_parameter_of_any_function_exists():
    assert len(MODULES) > 300
    found = {path.name: unknown_parameters(path.read_text("utf-8")) for path in MODULES}
    assert {name: unknown for name, unknown in found.items() if unknown} == {}


def test_a_documented_parameter_that_is_gone_is_found():
    source = 'def f(a):\n    """Return it.\n\n    Parameters\n    ---\n    a, b : numbers\n    """'
    assert unknown_parameters(source) == {"f": {"b"}}
