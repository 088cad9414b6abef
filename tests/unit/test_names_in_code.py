"""Names of modules and classes: one name has one meaning."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import callpath_modeler

PACKAGE = Path(callpath_modeler.__file__).parent
PLUGINS = PACKAGE.parent / "plugins"

WITHOUT_A_NOUN = {
    "again", "wanted", "known", "held", "look", "facts", "usual", "together", "ahead", "place",
    "surroundings", "asking", "gathering", "retelling", "alike", "turning", "tried", "reach",
    "utils", "helpers", "common", "misc",
}  # fmt: skip


def test_each_module_is_named_after_what_it_holds():
    modules = {path.stem for folder in (PACKAGE, PLUGINS) for path in folder.rglob("*.py")}
    assert modules & WITHOUT_A_NOUN == set()


def test_each_public_class_of_the_package_has_a_name_of_its_own():
    homes = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        if path.is_relative_to(PACKAGE / "testing"):
            continue  # what a file of another tool holds
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(PACKAGE)))
    assert len(homes) > 200
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
