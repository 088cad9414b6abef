"""Directories from which programs come: everything but the working directory.

The working directory is often a folder of profiles that somebody else made. Python puts it first on
the search path for ``python -m``, ``python -c``, notebooks, and an empty entry of ``PYTHONPATH``. A
file ``numpy.py`` in it would be run in place of numpy, and a directory ``x.dist-info`` would be a
plugin. Only Python itself can keep that from the first import of this package. From then on, the
functions of this module do.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, reduce
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

_PYTHONPATH, _SAFE = "PYTHONPATH", "PYTHONSAFEPATH"
_GROUPS = "callpath_modeler."
"""Start of the groups of our plugins."""
OURS = "callpath-modeler"
"""Name of this package."""
_OURS = os.path.realpath(os.path.join(__file__, "..", "..", ".."))  # noqa: PTH118 - text, as in the path
"""The directory that this package was imported from."""


def program_path(path: Sequence[str] | None = None) -> list[str]:
    """Return the search path of modules without the working directory.

    Relative entries are left out, because they move with the working directory. The working
    directory itself is left out where Python inserts it: before the standard library. It stays if
    ``PYTHONPATH`` names it in full, or if this package was imported from it.

    Parameters
    ----------
    path : a search path; None = `sys.path`
    """
    path = sys.path if path is None else path
    here, named = _resolved("."), _named()
    found = []
    for entry, is_implied in zip(path, _implied(path), strict=True):
        if not os.path.isabs(entry):  # noqa: PTH117 - text, as in the path
            # An installation in the working directory may be known as an empty entry only.
            found += [_OURS] * (_resolved(entry) == _OURS)
        elif not is_implied or entry in named or _resolved(entry) not in {here} - {_OURS}:
            found.append(entry)
    return found


def leave_working_directory() -> None:
    """Keep this process, and those that it starts, from importing from the working directory."""
    sys.path[:] = program_path()
    os.environ.update(safe_variables())


def safe_variables() -> dict[str, str]:
    """Return variables that keep other Python processes from importing from where they start."""
    variables = {_SAFE: "1"}
    if _PYTHONPATH in os.environ:
        # Without a value, the variable sets nothing.
        variables[_PYTHONPATH] = os.pathsep.join(_named())
    return variables


@contextmanager
def safe_environment() -> Iterator[None]:
    """Give processes that start within the block the `safe_variables`."""
    before = {name: os.environ.get(name) for name in (_SAFE, _PYTHONPATH)}
    os.environ.update(safe_variables())
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class EntryPoint(NamedTuple):
    """A plugin of an installed package.

    `importlib.metadata` has the same, but its import takes as long as the help of a command.

    Attributes
    ----------
    name : name of the plugin
    value : module and object, e.g. ``"my_package:Reader"``
    folder : directory with the metadata of the package
    """

    name: str
    value: str
    folder: str

    @property
    def package(self) -> str:
        """Name of the package."""
        return _stated(self.folder, "Name")

    @property
    def version(self) -> str:
        """Version of the package."""
        return _stated(self.folder, "Version")

    def load(self) -> Any:
        """Import the module, and return the object."""
        module, _, path = self.value.partition("[")[0].partition(":")
        steps = filter(None, path.strip().split("."))
        return reduce(getattr, steps, import_module(module.strip()))


def installed_entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, without those of packages in the working directory."""
    return [entry for kind, entry in _entry_points(tuple(program_path())) if kind == group]


@cache
def _entry_points(path: tuple[str, ...]) -> list[tuple[str, EntryPoint]]:
    """Return group and entry point of all plugins; of two packages with one name, the first.

    A command asks ten times, and each search of 150 packages takes some milliseconds.
    """
    folders: dict[str, str] = {}
    for entry in path:
        with suppress(OSError):
            for name in sorted(os.listdir(entry)):  # noqa: PTH208
                stem, ending = os.path.splitext(name)  # noqa: PTH122
                if ending in {".dist-info", ".egg-info"}:
                    package = re.sub(r"[-_.]+", "-", stem.partition("-")[0]).lower()
                    folders.setdefault(package, os.path.join(entry, name))  # noqa: PTH118
    return [plugin for folder in folders.values() for plugin in _plugins(folder)]


def _plugins(folder: str) -> Iterator[tuple[str, EntryPoint]]:
    """Yield group and entry point of the plugins of one package."""
    group = ""
    for line in _lines(folder, "entry_points.txt"):
        if line.startswith("["):
            group = line.strip("[]")
        elif line.startswith("#"):
            continue
        elif group.startswith(_GROUPS):
            name, _, value = (part.strip() for part in line.partition("="))
            yield group, EntryPoint(name, value, folder)


@cache
def _stated(folder: str, key: str) -> str:
    """Return a value of the metadata of a package, or ""."""
    lines = chain(_lines(folder, "METADATA"), _lines(folder, "PKG-INFO"))
    return next((line[len(key) + 2 :] for line in lines if line.startswith(f"{key}: ")), "")


def _lines(folder: str, name: str) -> list[str]:
    """Return the lines of a file that are not empty, or nothing without the file."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            return list(filter(None, map(str.strip, file)))
    except (OSError, ValueError):
        return []


def _implied(path: Sequence[str]) -> list[bool]:
    """Return for each entry whether it precedes the standard library."""
    library = _resolved(os.path.dirname(os.__file__))  # noqa: PTH120 - text, as in the path
    first = next((k for k, each in enumerate(path) if _resolved(each) == library), len(path))
    return [k < first for k in range(len(path))]


def _named() -> list[str]:
    """Return the absolute entries of ``PYTHONPATH``."""
    entries = os.environ.get(_PYTHONPATH, "").split(os.pathsep)
    return [entry for entry in entries if os.path.isabs(entry)]  # noqa: PTH117


def _resolved(path: str) -> str:
    return os.path.realpath(path or ".")
