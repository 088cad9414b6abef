"""The contract of generators, and the installed generators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from callpath_modeler.errors import PluginError, UsageError, nearest_or_all
from callpath_modeler.readers import registry
from callpath_modeler.support.program_path import EntryPoint
from cpmodel_commspec.specification import Specification

MEAN, HISTOGRAM = "mean", "histogram"
"""Computation of programs: the mean of all rounds, or seconds that differ as those of the run."""

Written: TypeAlias = "str | bytes | Mapping[str, str | bytes]"
"""The content of one file, or of several, by their names in the directory of the output."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a generator may adapt its output to.

    Attributes
    ----------
    width : cells of a line of text; None = any number
    ascii_only : whether people asked for text without other characters
    times : `MEAN` or `HISTOGRAM`, for programs that can do both
    """

    width: int | None = None
    ascii_only: bool = False
    times: str = MEAN


@runtime_checkable
class Generator(Protocol):
    """Writer of specifications in one format.

    Entry points of the group ``callpath_modeler.trace_generators`` are classes with this contract;
    they are called without arguments.

    Attributes
    ----------
    name : of the format, for ``-f``
    description : one line for the help
    endings : of file names that mean this format, such as ``(".c",)``; "" is a name without ending
    is_program : whether the format can be run: specifications that can hang are refused
    is_directory : whether it takes several files, which go into one directory
    """

    name: str
    description: str
    endings: tuple[str, ...]
    is_program: bool = True
    is_directory: bool = False

    def write(self, told: Specification, options: Options) -> Written:
        """Return the content of the file, or of all files if `is_directory`.

        Raises
        ------
        DataError
            If the format cannot express the specification.
        """
        ...


GROUP = "callpath_modeler.trace_generators"
_LISTS = ("name", "description", "endings", "is_program", "is_directory", "write")


def installed() -> dict[str, EntryPoint]:
    """Return the generators of all installed packages by name, without imports.

    Of two with one name, the one of this package or else the first is kept.
    """
    return registry.installed(GROUP)


def load(name: str) -> Generator:
    """Import the generator of a format.

    Raises
    ------
    UsageError
        If no generator has the name.
    PluginError
        If the generator cannot be imported, or violates the contract.
    """
    known = installed()
    if name not in known:
        raise UsageError(f"no format is called {name!r}", hint=nearest_or_all(name, known))
    return load_entry(known[name])


def load_entry(entry: EntryPoint) -> Generator:
    """Import a generator.

    Raises
    ------
    PluginError
        If it cannot be imported, or violates the contract.
    """
    who = f"format {entry.name!r} of {entry.package}"
    remedy = f"upgrade, reinstall or remove {entry.package}"

    def make() -> Any:
        return entry.load()()

    generator = registry.made(make, who, remedy)
    if not isinstance(generator, Generator):
        missing = ", ".join(name for name in _LISTS if not hasattr(generator, name))
        raise PluginError(f"{who} lacks {missing}", hint=remedy)
    if not isinstance(generator.endings, tuple):
        raise PluginError(f"{who}: endings is not a tuple of file name endings", hint=remedy)
    return generator


def of_file(output: Path | None) -> Generator:
    """Return the generator that the ending of a file name means; text for standard output.

    Raises
    ------
    UsageError
        If no generator that can be imported knows the ending.
    """
    if output is None:
        return load("text")
    ending = output.suffix
    broken: list[PluginError] = []
    for one in _loaded(broken):
        if ending in one.endings:
            return one
    raise UsageError(
        f"{output}: no format is known by the ending {ending!r}",
        hint="; ".join([f"name one with -f: {', '.join(installed())}", *map(str, broken)]),
    )


def described() -> list[tuple[str, str]]:
    """Return the names of all formats, each with its line of help, or why it cannot be used."""
    lines = []
    for name, entry in installed().items():
        try:
            one = load_entry(entry)
        except PluginError as error:
            lines.append((name, f"cannot be used: {error}"))
            continue
        endings = [ending for ending in one.endings if ending]
        places = ["a directory"] if one.is_directory else endings
        lines.append((name, f"{one.description} ({', '.join(places)})"))
    return lines


def _loaded(broken: list[PluginError]) -> Iterator[Generator]:
    """Yield the generators that can be imported, and add the errors of others to `broken`."""
    for entry in installed().values():
        try:
            yield load_entry(entry)
        except PluginError as error:
            broken.append(error)
