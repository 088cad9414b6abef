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
