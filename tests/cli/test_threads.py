"""Number of threads for linear algebra: one, unless the user sets another."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

RUN = """
import atexit, os, sys
from callpath_modeler.cli import main
atexit.register(lambda: print(os.environ.get("OPENBLAS_NUM_THREADS")))
sys.argv = ["cpmodel", "--version"]
main()
"""


@pytest.mark.parametrize(
    ("told", "threads"),
    [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3"), ({"OMP_NUM_THREADS": "4"}, "None")],
)
def test_the_command_line_has_one_thread_unless_told(told, threads):
    names = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"
    others = {name: value for name, value in os.environ.items() if name not in names}
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, env=others | told, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == threads
