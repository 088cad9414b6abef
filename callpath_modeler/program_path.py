"""Directories from which programs come: everything but the working directory.

The working directory is often a folder of profiles that somebody else made. Python puts it first on
the search path for ``python -m``, ``python -c``, notebooks, and an empty entry of ``PYTHONPATH``. A
file ``numpy.py`` in it would be run in place of numpy, and a directory ``x.dist-info`` would be a
plugin. Only Python itself can keep that from the first import of this package. From then on, the
functions of this module do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from pathlib import Path

_PYTHONPATH, _SAFE = "PYTHONPATH", "PYTHONSAFEPATH"
_OURS = str(Path(__file__).resolve().parents[1])
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


def installed_entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, without those of packages in the working directory."""
    path = program_path()
    if path == sys.path:
        return list(_entry_points(tuple(path), group))
    entries = (entry for package in _packages(tuple(path)) for entry in package.entry_points)
    return [entry for entry in entries if entry.group == group]


@cache
def _entry_points(path: tuple[str, ...], group: str) -> tuple[EntryPoint, ...]:  # noqa: ARG001
    """Return the entry points of a group on `sys.path`, which `path` repeats.

    A command asks ten times, and each search of 150 packages takes 20 ms.
    """
    return tuple(entry_points(group=group))


@cache
def _packages(path: tuple[str, ...]) -> list[Distribution]:
    """Return the packages of a search path; of two with one name, the first one.

    Their metadata are parsed for the names, which takes a quarter of a second.
    """
    found: dict[str, Distribution] = {}
    for package in distributions(path=list(path)):
        if name := package.metadata["Name"]:
            found.setdefault(name, package)
    return list(found.values())


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
