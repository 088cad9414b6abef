from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import callpath_modeler
from cells import cells

ROOT = Path(callpath_modeler.__file__).parents[1]
WITH_EXAMPLES = [
    ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
    for folder, packages in ((ROOT, "callpath_modeler"), (ROOT / "plugins", "cpmodel_*"))
    for package in sorted(folder.glob(packages))
    for path in sorted(package.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@cells(
    "name",
    WITH_EXAMPLES,
)
def test_examples_in_docstrings_are_true(name):
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted
    assert not done.failed


def test_every_public_name_is_there():
    missing = [name for name in callpath_modeler.__all__ if getattr(callpath_modeler, name) is None]
    assert callpath_modeler.__all__
    assert missing == []


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
