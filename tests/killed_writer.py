"""Replacement of a store by processes that are killed: python killed_writer.py OLD NEW FOLDER.

OLD and NEW are stores. The content of NEW replaces a copy of OLD in FOLDER. The first process kills
itself before its first operation on the file system, the second process before its second, and so
on, until one process finishes. The script prints the content of the copy after each process as
JSON: a list of experiment names with the sum of their values.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np

from callpath_modeler import store
from callpath_modeler.support import atomic

NAMING = {"open", "os.mkdir", "os.rename", "os.chmod", "shutil.rmtree"}
REMOVING = {"os.remove", "os.rmdir"}
"""Events of removal, which report a name relative to an open directory."""


class Fuse:
    """A counter that kills the process before the n-th operation below a folder."""

    def __init__(self, folder: Path, left: int) -> None:
        self._folder, self._left = str(folder), left

    def burn(self) -> None:
        """Count an operation that is about to happen."""
        self._left -= 1
        if self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        """Count the file operations that Python's audit events report."""
        named = event in NAMING and any(self._folder in str(each) for each in arguments)
        if named or event in REMOVING:
            self.burn()


def replace(new: Path, path: Path, fuse: Fuse) -> None:
    """Replace a store by the content of another one."""
    experiment = store.read_experiment(new)
    fitted = store.read_models(new, experiment, experiment.metric().name, None)
    assert fitted is not None
    exchange = atomic._exchange

    def counted(*names: Path) -> None:
        fuse.burn()
        exchange(*names)
        fuse.burn()

    atomic._exchange = counted
    sys.addaudithook(fuse.hook)
    store.write([fitted], path, overwrite=True)


def held(path: Path) -> tuple[str, float]:
    """Return the name and the sum of all values of a store, after a check of all its files."""
    store.verify(path)
    experiment = store.read_experiment(path)
    return experiment.name, float(np.nansum(experiment.values()))


def main() -> None:
    """Kill one process after the other."""
    old, new, folder = map(Path, sys.argv[1:])
    found, killed = [], True
    while killed:
        place = folder / f"{len(found)}"
        path = place / "a.cpm"
        shutil.copytree(old, path)
        child = os.fork()
        if not child:
            replace(new, path, Fuse(place, len(found)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        assert killed or not status
        found.append(held(path))
        shutil.rmtree(place)
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
