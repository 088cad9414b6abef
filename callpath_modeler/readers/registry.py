"""Finding the reader for a profile, among those built in and those installed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from callpath_modeler.errors import InputError, PluginError, UsageError
from callpath_modeler.readers.base import API_VERSION, Match, Reader

GROUP = "callpath_modeler.readers"


def installed() -> dict[str, EntryPoint]:
    """Return the installed readers by name, without importing any of them."""
    return {entry.name: entry for entry in sorted(entry_points(group=GROUP))}


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
            f"no reader is called {name!r}", hint=f"installed readers: {known}"
        ) from None
    try:
        reader: Reader = entry.load()()
    except Exception as cause:
        raise PluginError(
            f"reader {name!r} ({entry.value}) does not load: {cause}",
            hint="reinstall or remove the package that brings it",
        ) from cause
    if reader.api_version != API_VERSION:
        raise PluginError(
            f"reader {name!r} is for plugin API {reader.api_version}, this is {API_VERSION}",
            hint=f"upgrade {entry.dist.name}" if entry.dist else None,
        )
    return reader


@dataclass(frozen=True, slots=True)
class Registry:
    """The readers of this session; a plugin that does not load is kept out, and why is kept.

    Attributes
    ----------
    readers : those that load
    broken : the errors of those that do not
    """

    readers: tuple[Reader, ...]
    broken: tuple[PluginError, ...] = ()

    @classmethod
    def of_installed(cls, only: str | None = None) -> Registry:
        """Load all installed readers, or `only` one, whose failure then is an error."""
        if only is not None:
            return cls((load(only),))
        readers, broken = [], []
        for name in installed():
            try:
                readers.append(load(name))
            except PluginError as error:
                broken.append(error)
        return cls(tuple(readers), tuple(broken))

    def match(self, path: Path) -> Reader | None:
        """Return the reader that is surest of `path`, or None."""
        best, surest = None, Match.NO
        # Opening a named pipe would wait for a writer that never comes.
        if not (path.is_file() or path.is_dir()):
            return None
        for reader in self.readers:
            sure = reader.match(path)
            if sure > surest:
                best, surest = reader, sure
        return best

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
        if reader is None:
            raise InputError(f"{path}: {_what(path)}", hint=self._hint())
        return reader

    def suffixes(self) -> tuple[str, ...]:
        """Return the file name endings that the readers know."""
        return tuple(suffix for reader in self.readers for suffix in reader.suffixes)

    def _hint(self) -> str:
        known = ", ".join(f"{reader.name} ({' '.join(reader.suffixes)})" for reader in self.readers)
        return f"readers: {known or 'none'}" + "".join(f"; {error}" for error in self.broken)


def _what(path: Path) -> str:
    if path.is_file() and path.stat().st_size == 0:
        return "empty file"
    if not os.access(path, os.R_OK):
        return "may not be read"
    return "not a profile that any installed reader knows"
