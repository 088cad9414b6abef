from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import callpath_modeler

MODULES = [
    module.name
    for module in pkgutil.walk_packages(callpath_modeler.__path__, "callpath_modeler.")
    # Compiled libraries are files next to modules, not modules.
    if not module.name.endswith("__main__") and module.name.replace(".", "").isidentifier()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", callpath_modeler.__all__)
def test_every_public_name_is_there(name):
    assert getattr(callpath_modeler, name) is not None


def test_every_public_name_is_listed_where_names_are_completed():
    assert set(callpath_modeler.__all__) <= set(dir(callpath_modeler))


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nope"):
        callpath_modeler.nope  # noqa: B018


def test_importing_the_package_does_not_import_numpy():
    code = "import callpath_modeler, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_help_does_not_import_numpy():
    code = (
        "import atexit, os, sys\n"
        "from callpath_modeler.cli import main\n"
        "sys.argv = ['cpmodel', '--help']\n"
        "atexit.register(lambda: os._exit('numpy' in sys.modules))\n"
        "main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert ended.returncode == 0
