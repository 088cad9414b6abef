"""The registry of readers: built-in readers, installed plugins, Python files, and their errors."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from callpath_modeler.errors import CallpathModelerError, InputError, PluginError, UsageError
from callpath_modeler.readers.base import API_VERSION, Match, ProfileReader, Reader, SeriesReader
from callpath_modeler.support.program_path import OURS, EntryPoint, installed_entry_points

_REQUIRED = ("api_version", "name", "description", "suffixes", "match")


def made(make: Callable[[], Any], who: str, remedy: str) -> Any:
    """Return what a plugin makes.

    Parameters
    ----------
    make : function of the plugin
    who : name of the result, for messages
    remedy : hint of the error

    Raises
    ------
    PluginError
        If the function fails.
    """
    try:
        return make()
    except MemoryError:
        raise
    # An import may also end the process with SystemExit.
    except (Exception, SystemExit) as cause:
        raise PluginError(f"{who} does not load: {error_line(cause)}", hint=remedy) from cause


def loaded(make: Callable[[], Any], who: str, remedy: str) -> Reader:
    """Return a new reader after checking the contract.

    Parameters
    ----------
    make : function that creates the reader
    who : name of the reader, for messages
    remedy : hint of the error

    Raises
    ------
    PluginError
        If the reader cannot be created, or if it violates the contract.
    """
    reader: Reader = made(make, who, remedy)
    missing = [name for name in _REQUIRED if not hasattr(reader, name)]
    if not isinstance(reader, ProfileReader | SeriesReader) and not missing:
        missing = ["open"]
    if missing:
        raise PluginError(f"{who} lacks {', '.join(missing)}", hint=remedy)
    if reader.api_version != API_VERSION:
        raise PluginError(
            f"{who} is for plugin API {reader.api_version}, this is {API_VERSION}", hint=remedy
        )
    if not isinstance(reader.suffixes, tuple):
        raise PluginError(f"{who}: suffixes is not a tuple of file name endings", hint=remedy)
    return reader


@contextmanager
def naming_the_reader(reader: Reader, path: Path) -> Iterator[None]:
    """Convert unexpected exceptions of a reader to errors that name the reader.

    Raises
    ------
    PluginError
        For every exception that the contract of readers does not allow.
    """
    try:
        yield
    except (CallpathModelerError, MemoryError, PermissionError):
        raise
    except Exception as cause:
        raise PluginError(
            f"{path}: reader {reader.name!r} failed: {error_line(cause)}",
            hint=f"report this to its authors ({type(reader).__module__}); "
            "--reader NAME reads with another one",
        ) from cause


def error_line(error: BaseException) -> str:
    """Return an exception as one line, with its position in the plugin."""
    words = " ".join([f"{type(error).__name__}:", *str(error).split()]).removesuffix(":")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_machinery(f.filename)]
    # The text of a syntax error contains its position.
    if not frames or isinstance(error, SyntaxError):
        return words
    return f"{words} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


def _is_machinery(filename: str) -> bool:
    is_ours = Path(filename).parent == Path(__file__).parent
    return is_ours or filename.startswith("<frozen") or "importlib" in filename


_MEND = "correct the file, or read without it"


def readers_in(path: Path) -> tuple[Reader, ...]:
    """Import `path` and return its readers.

    A reader is a class with a method ``match`` that the file defines.

    Raises
    ------
    UsageError
        If the file does not exist.
    PluginError
        If the file cannot be imported, contains no reader, or contains one that violates the
        contract.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file", hint="check the spelling")
    module = _imported(path)
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and callable(getattr(value, "match", None))
    ]
    if not found:
        raise PluginError(
            f"{path}: holds no reader",
            hint="define a class with api_version, name, description, suffixes, match and open",
        )
    return tuple(loaded(c, f"{path}: {c.__name__}", _MEND) for c in found)


def _imported(path: Path) -> ModuleType:
    name = f"cpmodel_reader_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path}: is not a Python file", hint="give a file that ends in .py")
    module = module_from_spec(spec)
    # Dataclasses and pickle need the module of a class by its name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as cause:
        del sys.modules[name]
        raise PluginError(f"{path}: does not load: {error_line(cause)}", hint=_MEND) from cause
    return module


GROUP = "callpath_modeler.readers"


def offered(group: str = GROUP) -> list[EntryPoint]:
    """Return the plugins of all installed packages without imports, this package's first."""
    found = installed_entry_points(group)
    return sorted(found, key=lambda e: (e.package != OURS, e.name, e.value))


def installed(group: str = GROUP) -> dict[str, EntryPoint]:
    """Return the installed plugins by name, without imports; of two of one name, the first."""
    by_name: dict[str, EntryPoint] = {}
    for entry in offered(group):
        by_name.setdefault(entry.name, entry)
    return by_name


def load(name: str) -> Reader:
    """Import the reader with this name.

    Raises
    ------
    UsageError
        If no reader has the name.
    PluginError
        If the reader cannot be imported, or if it violates the contract.
    """
    try:
        entry = installed()[name]
    except KeyError:
        known = ", ".join(installed()) or "none"
        raise UsageError(
            f"no reader is called {name!r}",
            hint=f"installed readers: {known}; your own reader: --reader FILE.py",
        ) from None
    return load_entry(entry)


def load_entry(entry: EntryPoint) -> Reader:
    """Import a reader and check the contract.

    Raises
    ------
    PluginError
        If the reader cannot be imported, or if it violates the contract.
    """
    remedy = f"upgrade, reinstall or remove {entry.package}"

    def make() -> Any:
        return entry.load()()

    return loaded(make, f"reader {entry.name!r} ({entry.value})", remedy)


@dataclass(frozen=True, slots=True)
class Registry:
    """The readers of a session.

    Attributes
    ----------
    readers : readers that were imported
    broken : errors of the readers that could not be imported
    requested : argument of `of_installed`, if that created the registry
    """

    readers: tuple[Reader, ...]
    broken: tuple[PluginError, ...] = ()
    requested: tuple[str | None, ...] = ()

    @classmethod
    def of_installed(cls, only: str | None = None) -> Registry:
        """Return a registry of all installed readers, or of a single one.

        Parameters
        ----------
        only : name of a reader, or a Python file with readers; None = all installed readers

        Raises
        ------
        UsageError
            If no reader has the name, or if the file does not exist.
        PluginError
            If the single reader cannot be imported. Without `only`, such readers are in `broken`.
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
        """Pickle the request, because readers and their modules may not support pickling."""
        if self.requested:
            # A worker may have another working directory.
            return _of_process, tuple(map(_absolute, self.requested))
        return Registry, (self.readers, self.broken)

    def match(self, path: Path) -> Reader | None:
        """Return the reader with the strongest evidence for `path`, or None."""
        return self.surest(path)[0]

    def surest(self, path: Path) -> tuple[Reader | None, Match]:
        """Return the reader with the strongest evidence for `path`, or None, and the evidence."""
        best, surest = None, Match.NO
        # Opening a named pipe would wait for a writer that never comes.
        if not (path.is_file() or path.is_dir()):
            return best, surest
        for reader in self.readers:
            try:
                sure = reader.match(path)
            except Exception:
                # A context for each reader takes longer than most answers.
                with naming_the_reader(reader, path):
                    raise
            if sure > surest:
                best, surest = reader, sure
            if surest == Match.CONTENT:
                break  # no evidence is stronger, and of two readers the first one is taken
        return best, surest

    def find(self, path: Path) -> Reader:
        """Return the reader with the strongest evidence for `path`.

        Raises
        ------
        InputError
            If the path does not exist or cannot be read, or if no reader recognises it.
        """
        if not path.exists():
            raise InputError(f"{path}: no such file or directory", hint="check the spelling")
        reader = self.match(path)
        if reader is None and not os.access(path, os.R_OK):
            raise InputError(f"{path}: no permission to read", hint="check its permissions")
        if reader is None:
            raise InputError(f"{path}: {_what(path)}", hint=self._hint())
        return reader

    def reader_of(self, path: Path, name: str) -> Reader:
        """Return the reader of a path; one that has recognised it is known by its name."""
        known = (reader for reader in self.readers if reader.name == name)
        return next(known, None) or self.find(path)

    def suffixes(self) -> tuple[str, ...]:
        """Return the endings of file names of all readers."""
        known = (suffix for reader in self.readers for suffix in reader.suffixes)
        return tuple(dict.fromkeys(known))

    def _hint(self) -> str:
        known = ", ".join(reader.name for reader in self.readers) or "none"
        broken = "".join(f"; {error}" for error in self.broken)
        return f"readers: {known}; `cpmodel plugins` lists their formats{broken}"


def _absolute(requested: str | None) -> str | None:
    """Return a requested reader with an absolute path, if it is a file."""
    is_file = requested is not None and requested.endswith(".py")
    return str(Path(requested).absolute()) if is_file and requested else requested


@cache
def _of_process(only: str | None) -> Registry:
    """Return the one registry of a worker, so that its readers are not made again for each task."""
    return Registry.of_installed(only)


def _what(path: Path) -> str:
    if not (path.is_file() or path.is_dir()):
        return "neither a file nor a directory"
    if path.is_file() and path.stat().st_size == 0:
        return "empty file"
    return "not a profile that any installed reader knows"
