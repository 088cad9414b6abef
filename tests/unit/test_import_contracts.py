"""The import contracts detect imports that the design of modelling excludes."""

from __future__ import annotations

import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from cells import cells

pytest.importorskip("importlinter", reason="import-linter is not installed")

import grimp
from importlinter import configuration
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract

TYPES = {
    "acyclic_siblings": AcyclicSiblingsContract,
    "forbidden": ForbiddenContract,
    "layers": LayersContract,
    "protected": ProtectedContract,
}
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
MODELING = "callpath_modeler.modeling"
CIRCLES = "No import circles"
DOOR = "Kernels are called through their door"
LAYERS = "Layers of modelling"
BROKEN = [
    (LAYERS, "mixture.posterior", "factor_catalogue"),
    (LAYERS, "mixture.candidates", "empirical_bayes"),
    (LAYERS, "products_of_factors", "lines"),
    (LAYERS, "shapes", "model_columns"),
    (LAYERS, "constants.noise", "growth"),
    (DOOR, "mixture.candidates", "compiled.library"),
    (DOOR, "fitting", "compiled.library"),
    (DOOR, "kernels", "compiled.library"),
    ("Constants of models depend on nothing", "constants.noise", "growth"),
    (CIRCLES, "model_columns", "models"),
    (CIRCLES, "mixture.posterior", "compiled.c_kernels"),
    (CIRCLES, "mixture.scaled_rows", "mixture.candidates"),
]


@pytest.fixture(scope="module")
def contracts() -> dict[str, Any]:
    """Return the contracts of the project, by name."""
    configuration.configure()
    session = _session()
    return {
        each["name"]: TYPES[each["type"]](each["name"], session, _as_text(each))
        for each in session.pop("contracts")
    }


def _session() -> dict[str, Any]:
    """Return the options of import-linter in the project."""
    return dict(tomllib.loads(PROJECT.read_text())["tool"]["importlinter"])


def _as_text(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with texts for booleans, as import-linter reads them."""
    return {key: str(each) if isinstance(each, bool) else each for key, each in options.items()}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(
        *_session()["root_packages"], include_external_packages=True, cache_dir=None
    )


@cells(("name", "importer", "imported"), BROKEN)
def test_a_contract_detects_an_import_that_it_excludes(
    contracts: dict[str, Any], graph: grimp.ImportGraph, name: str, importer: str, imported: str
) -> None:
    ends = {"importer": f"{MODELING}.{importer}", "imported": f"{MODELING}.{imported}"}
    assert not graph.direct_import_exists(**ends)
    broken = deepcopy(graph)
    broken.add_import(**ends)
    assert contracts[name].check(deepcopy(graph), verbose=False).kept
    assert not contracts[name].check(broken, verbose=False).kept
