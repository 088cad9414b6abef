"""Recipes on pages: their blocks, and a place where they run."""

from __future__ import annotations

import os
import re
import subprocess
import sys


def blocks(page, language):
    """Return the code blocks of a language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def furnish(folder, runs):
    """Make `cpmodel` a command in a folder, and `runs` a directory of runs."""
    (folder / "runs").symlink_to(runs)
    (folder / "bin").mkdir()
    command = folder / "bin" / "cpmodel"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m callpath_modeler "$@"\n')
    command.chmod(0o755)
    return folder


def shell(script, folder, **variables):
    """Run a shell script in a furnished folder, and return the ended process."""
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
