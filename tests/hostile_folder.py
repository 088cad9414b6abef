"""A folder of profiles with files that Python would run if it imported from there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

MODULES = (
    "loky", "pickle", "numpy", "sitecustomize", "usercustomize", "click", "msgspec", "queue",
    "multiprocessing", "distributed", "mpi4py", "matplotlib", "cpmodel_tables", "signal",
    "callpath_modeler",
)  # fmt: skip
"""Modules that this package, its workers, or Python import."""

LATE = ("loky", "cpmodel_tables", "distributed", "mpi4py", "matplotlib")
"""Modules that nothing imports before the first line of the command runs."""

_PLUGIN = """[callpath_modeler.readers]
beside = beside_plugin:Reader
[callpath_modeler.commands]
beside = beside_plugin:command
[callpath_modeler.trace_generators]
beside = beside_plugin:Generator
"""


class HostileFolder:
    """A folder of small runs, whose modules, plugins and programs write a mark when they run.

    Attributes
    ----------
    path : the folder
    """

    def __init__(self, path: Path, modules: tuple[str, ...] = MODULES, scales: int = 20) -> None:
        self.path = path
        self._mark = path.parent / "ran"
        path.mkdir()
        for p in range(2, 2 + scales):
            text = f"main;a {1000 * p}\nmain;b 500\n"
            (path / f"a.p{p}.r0.folded").write_text(text)
            (path / f"a.p{p}.r1.folded").write_text(text)
        code = f"open({str(self._mark)!r}, 'a').write(__file__ + chr(10))\n"
        for name in (*modules, "beside_plugin"):
            (path / f"{name}.py").write_text(code)
        info = path / "beside-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beside\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(_PLUGIN)
        for name in ("cc", "smpicc", "smpirun", "python3", Path(sys.executable).name):
            program = path / name
            program.write_text(f"#!/bin/sh\necho $0 >> {self._mark}\nexit 1\n")
            program.chmod(0o755)

    @property
    def ran(self) -> str:
        """Names of the files that ran, one a line."""
        return self._mark.read_text() if self._mark.exists() else ""


def environment(**more: str) -> dict[str, str]:
    """Return the variables of this process without those that make Python safe already."""
    known = {k: v for k, v in os.environ.items() if k not in {"PYTHONSAFEPATH", "PYTHONPATH"}}
    return {**known, **more}
