"""Ctrl-C while modules load."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys


class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "callpath_modeler.cli.group":
            raise KeyboardInterrupt
        return None


sys.meta_path.insert(0, Interrupting())
from callpath_modeler.cli import main

main()
"""


def test_an_interruption_of_imports_ends_with_the_status_of_interruptions():
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert done.stderr == ""


def test_ctrl_c_is_handled_before_larger_modules_are_imported():
    """An interruption of earlier imports prints a traceback."""
    code = """
import signal, sys
before = set(sys.modules)
import callpath_modeler.cli
print(*sorted(name for name in set(sys.modules) - before if "importlib" not in name))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = ["callpath_modeler", "callpath_modeler.cli"]
    assert done.stdout.split() == ["__future__", *own, "warnings"]
