"""Finding the reader for a profile, among those built in and those installed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from callpath_modeler.errors import InputError, PluginError, UsageError
from callpath_modeler.readers.base import Match, Reader
from callpath_modeler.readers.plugin_errors import loaded, naming_the_reader
from callpath_modeler.readers.single_file import readers_in

GROUP = "callpath_modeler.readers"
OURS = "callpath-modeler"


def offered() -> list[EntryPoint]:
    """Return all readers that installed packages offer, ours first, importing none."""
    return sorted(entry_points(group=GROUP), key=lambda e: (package_of(e) != OURS, e.name, e.value))


def installed() -> dict[str, EntryPoint]:
    """Return the installed readers by name, importing none; of two of one name the first counts."""
    by_name: dict[str, EntryPoint] = {}
    for entry in offered():
        by_name.setdefault(entry.name, entry)
    return by_name


def package_of(entry: EntryPoint) -> str:
    """Return the name of the package that brings a plugin."""
    return entry.dist.name if entry.dist else entry.value


def load(name: str) -> Reader:
    """Import one reader by its name.

    Raises
    ------
    UsageError
        If no reader has that name.
    PluginError
        If it does not load or was written for another version of the contract.
    """
    try:
        entry = installed()[name]
    except KeyError:
        known = ", ".join(installed()) or "none"
        raise UsageError(
            f"no reader is called {name!r}",
            hint=f"installed readers: {known}; a reader of your own: --reader FILE.py",
        ) from None
    return load_entry(entry)


def load_entry(entry: EntryPoint) -> Reader:
    """Import one reader and make sure that it keeps the contract.

    Raises
    ------
    PluginError
        If it does not.
    """
    remedy = f"upgrade, reinstall or remove {package_of(entry)}"

    def make() -> Any:
        return entry.load()()

    return loaded(make, f"reader {entry.name!r} ({entry.value})", remedy)


@dataclass(frozen=True, slots=True)
class Registry:
    """The readers of this session; a plugin that does not load is kept out, and why is kept.

    Attributes
    ----------
    readers : those that load
    broken : the errors of those that do not
    requested : what `of_installed` was asked for, if these are of it
    """

    readers: tuple[Reader, ...]
    broken: tuple[PluginError, ...] = ()
    requested: tuple[str | None, ...] = ()

    @classmethod
    def of_installed(cls, only: str | None = None) -> Registry:
        """Load all installed readers, or `only` one, whose failure then is an error.

        `only` is the name of a reader, or a Python file that holds one.
        """
        if only is not None and only.endswith(".py"):
            return cls(readers_in(Path(only)), requested=(only,))
        if only is not None:
            return cls((load(only),), requested=(only,))
        readers, broken = [], []
        for entry in installed().values():
            try:
                readers.append(load_entry(entry))
            except PluginError as error:
                broken.append(error)
        return cls(tuple(readers), tuple(broken), requested=(only,))

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as what was asked for: readers need not be fit for it, nor need their home."""
        if self.requested:
            return Registry.of_installed, self.requested
        return Registry, (self.readers, self.broken)

    def match(self, path: Path) -> Reader | None:
        """Return the reader that is surest of `path`, or None."""
        return self.surest(path)[0]

    def surest(self, path: Path) -> tuple[Reader | None, Match]:
        """Return the reader that is surest of `path`, and how sure it is."""
        best, surest = None, Match.NO
        # Opening a named pipe would wait for a writer that never comes.
        if not (path.is_file() or path.is_dir()):
            return best, surest
        for reader in self.readers:
            with naming_the_reader(reader, path):
                sure = reader.match(path)
            if sure > surest:
                best, surest = reader, sure
        return best, surest

    def find(self, path: Path) -> Reader:
        """Return the reader that is surest of `path`.

        Raises
        ------
        InputError
            If no reader knows it.
        """
        if not path.exists():
            raise InputError(f"{path}: no such file or directory", hint="check the spelling")
        reader = self.match(path)
        if reader is None and not os.access(path, os.R_OK):
            raise InputError(f"{path}: may not be read", hint="check its permissions")
        if reader is None:
            raise InputError(f"{path}: {_what(path)}", hint=self._hint())
        return reader

    def suffixes(self) -> tuple[str, ...]:
        """Return the file name endings that the readers know."""
        known = (suffix for reader in self.readers for suffix in reader.suffixes)
        return tuple(dict.fromkeys(known))

    def _hint(self) -> str:
        known = ", ".join(reader.name for reader in self.readers) or "none"
        broken = "".join(f"; {error}" for error in self.broken)
        return f"readers: {known}; `cpmodel plugins` lists what they take{broken}"


def _what(path: Path) -> str:
    if not (path.is_file() or path.is_dir()):
        return "neither a file nor a directory"
    if path.is_file() and path.stat().st_size == 0:
        return "empty file"
    return "not a profile that any installed reader knows"
