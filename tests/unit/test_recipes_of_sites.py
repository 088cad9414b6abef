"""Recipes of Spack and EasyBuild, with which a site installs cpmodel for all users."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "containers"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REQUIREMENT = re.compile(r"([\w-]+)>=([\d.]+)")


def stated(requirements) -> dict[str, str]:
    """Return the lowest allowed version by name."""
    return dict(REQUIREMENT.fullmatch(each).groups() for each in requirements)


def calls(recipe: ast.Module, name: str) -> list[tuple[str, dict[str, object]]]:
    """Return the first argument and the keywords of the calls of a function."""
    return [
        (
            ast.literal_eval(node.args[0]),
            {each.arg: ast.literal_eval(each.value) for each in node.keywords},
        )
        for node in ast.walk(recipe)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def test_the_package_of_spack_has_the_requirements_of_the_project():
    recipe = ast.parse((FOLDER / "package.py").read_text("utf-8"))
    (package,) = (node for node in recipe.body if isinstance(node, ast.ClassDef))
    assert package.name == "PyCallpathModeler"
    assert [ast.unparse(base) for base in package.bases] == ["PythonPackage"]
    assert [version for version, _ in calls(recipe, "version")] == [PROJECT["version"]]
    assert [each for each, _ in calls(recipe, "license")] == [PROJECT["license"]]
    needed = dict(calls(recipe, "depends_on"))
    own = {
        spec.removeprefix("py-").partition("@")[0]: spec.partition("@")[2].rstrip(":")
        for spec, words in needed.items()
        if "run" in words["type"] and "when" not in words
    }
    assert own.pop("python") == PROJECT["requires-python"].removeprefix(">=")
    assert own == stated(PROJECT["dependencies"])
    for variant, _ in calls(recipe, "variant"):
        (name, version), *_ = stated(PROJECT["optional-dependencies"][variant]).items()
        assert needed[f"py-{name}@{version}:"]["when"] == f"+{variant}"


@pytest.fixture(scope="module")
def easyconfig() -> dict[str, object]:
    """Return the fields of the recipe as EasyBuild reads them."""
    parser = pytest.importorskip("easybuild.framework.easyconfig.parser")
    (path,) = FOLDER.glob("*.eb")
    return parser.EasyConfigParser(str(path)).get_config_dict()


def test_the_recipe_of_easybuild_has_known_fields(easyconfig):
    from easybuild.framework.easyconfig.default import DEFAULT_CONFIG

    assert easyconfig.keys() <= {*DEFAULT_CONFIG, "exts_list"}
    (path,) = FOLDER.glob("*.eb")
    toolchain = easyconfig["toolchain"]
    name = f"{easyconfig['name']}-{PROJECT['version']}-{toolchain['name']}-{toolchain['version']}"
    assert (path.stem, easyconfig["version"]) == (name, PROJECT["version"])


def test_the_recipe_of_easybuild_has_all_requirements(easyconfig):
    bundled = {"numpy", "scipy", "pandas"}
    assert "SciPy-bundle" in [name for name, _ in easyconfig["dependencies"]]
    found = {name: version for name, version, *_ in easyconfig["dependencies"]}
    found |= {name: version for name, version, _ in easyconfig["exts_list"]}
    for name, lowest in stated(PROJECT["dependencies"]).items():
        if name not in bundled:
            assert numbers(found[name]) >= numbers(lowest)
    *others, own = easyconfig["exts_list"]
    assert own[0] == "callpath-modeler"
    assert all(re.fullmatch("[0-9a-f]{64}", fields["checksums"][0]) for _, _, fields in others)


def numbers(version: str) -> tuple[int, ...]:
    """Return a version that can be compared."""
    return tuple(map(int, version.split(".")))
