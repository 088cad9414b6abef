"""Files and folders of benchmarks: which reader reads a file, and what its path says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.readers.discover import natural_order
from cpmodel_guidelines.campaigns.campaign import Campaign, Section, campaign_of
from cpmodel_guidelines.suites import headed
from cpmodel_guidelines.suites.means import ImbReader, OsuReader, SkampiReader
from cpmodel_guidelines.suites.pgmpi import CATALOGUE, CONFIGURATION, configured_processes
from cpmodel_guidelines.suites.sections import Source
from cpmodel_tables.text import first_text, opened_lines

_SUFFIXES = frozenset({"", ".txt", ".dat", ".out", ".log", ".csv", ".tsv", ".sko", ".res"})
_PROCESSES = re.compile(r"(?:^|[._-])(?:p|np)([0-9]{1,9})(?=[._-]|$)")
_LIBRARY = re.compile(r"([A-Za-z][\w .+-]{0,60})=(.+)")
_MOST_FILES = 10_000


@dataclass(frozen=True, slots=True)
class Suite:
    """A benchmark suite.

    Attributes
    ----------
    name : name of the suite
    matches : returns whether the beginning of a file is its output
    read : returns the sections of a file
    """

    name: str
    matches: Callable[[str], bool]
    read: Callable[[Source, Iterable[str]], list[Section]]


SUITES = (
    Suite("OSU", OsuReader.matches, OsuReader.read),
    Suite("Intel MPI Benchmarks", ImbReader.matches, ImbReader.read),
    Suite("SKaMPI", SkampiReader.matches, SkampiReader.read),
    Suite("ReproMPI, PGMPI, PGChecker or table", headed.matches, headed.read),
)
"""All suites; the first one that matches reads a file."""


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """A file of a benchmark, with its suite.

    Attributes
    ----------
    path : the file
    suite : the suite that reads it
    library : name of the MPI library that the user gave; "" = none
    processes : number of processes in the path or in PGMPI's configuration; None = unknown
    """

    path: Path
    suite: Suite
    library: str
    processes: int | None


@dataclass(frozen=True, slots=True)
class BenchmarkFiles:
    """The files of a campaign.

    Attributes
    ----------
    name : name for messages
    files : the files in natural order
    catalogues : PGMPI's lists of guidelines
    """

    name: str
    files: tuple[BenchmarkFile, ...]
    catalogues: tuple[Path, ...]


def benchmark_files(sources: Sequence[str], processes: int | None = None) -> BenchmarkFiles | None:
    """Return the files of benchmarks among sources; None = no source is output of a benchmark.

    Parameters
    ----------
    sources : files and folders, or ``LIBRARY=PATH``
    processes : number of processes of files that do not state it

    Raises
    ------
    InputError
        If some sources are output of benchmarks and others are not, if a source has ratios only,
        or if a folder is too large.
    """
    found: list[BenchmarkFile] = []
    catalogues: list[Path] = []
    others = []
    for source in sources:
        library, path = _library(source)
        files = [*_files(path)] if path.is_dir() else [path]
        here = [
            BenchmarkFile(each, suite, library, processes or _stated_processes(each, path))
            for each in files
            if (suite := _suite_of(each)) is not None
        ]
        if not here:
            _refuse_ratios(files)
            others.append(source)
        found += here
        if path.is_dir():
            catalogues += [each for each in _configurations(path, CATALOGUE) if each.is_file()]
    if not found:
        return None
    if others:
        raise InputError(
            f"{others[0]}: not the output of a known benchmark, and other files are",
            hint="give files of ReproMPI, PGMPI, PGChecker, OSU, IMB or SKaMPI, or one table",
        )
    name = Path(_library(sources[0])[1]).name or "benchmark"
    return BenchmarkFiles(name, tuple(found), tuple(dict.fromkeys(catalogues)))


def required_files(sources: Sequence[str], processes: int | None, hint: str) -> BenchmarkFiles:
    """Return the files of benchmarks among sources that have to be output of benchmarks.

    Parameters
    ----------
    sources, processes : as in `benchmark_files`
    hint : what to give instead, for the error

    Raises
    ------
    InputError
        If a source does not exist, or none is the output of a benchmark; further errors as in
        `benchmark_files`.
    """
    for source in sources:
        if not _library(source)[1].exists():
            raise InputError(f"{source}: no such file or directory", hint="check the spelling")
    files = benchmark_files(sources, processes)
    if files is None:
        raise InputError(f"{sources[0]}: not the output of a known benchmark", hint=hint)
    return files


def read_campaign(of: BenchmarkFiles, *, strict: bool = False) -> Campaign:
    """Return the campaign of files.

    Parameters
    ----------
    strict : raise an error for the first file that cannot be used, instead of a finding

    Raises
    ------
    InputError
        If no file can be used, or one cannot be used and `strict` is true.
    DataError
        If no file has a time.
    """
    sections: list[Section] = []
    findings: list[Finding] = []
    for file in of.files:
        source = Source(file.path, file.library, file.processes)
        try:
            with opened_lines(file.path) as lines:
                sections += file.suite.read(source, lines)
        except InputError as error:
            if strict or len(of.files) == 1:
                raise
            what = error.message.removeprefix(f"{file.path}: ")
            findings.append(Finding("CPM101", str(file.path), what))
        findings += source.findings()
    if not sections and findings:
        first = findings[0]
        raise InputError(
            f"{first.subject}: {first.message}", hint="no file of the benchmark is usable"
        )
    return campaign_of(of.name, sections, findings)


def _library(source: str) -> tuple[str, Path]:
    """Return the library and the path of ``LIBRARY=PATH``, or of a path alone."""
    found = _LIBRARY.fullmatch(source)
    if found is None or Path(source).exists() or not Path(found[2]).exists():
        return "", Path(source)
    return found[1], Path(found[2])


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder in natural order, that may be output of a benchmark."""
    every = []
    for path in folder.rglob("*"):
        suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
        if suffix.lower() in _SUFFIXES or re.fullmatch(r"\.[pr]\d+", suffix):
            every.append(path)
        if len(every) > _MOST_FILES:
            raise InputError(
                f"{folder}: more than {_MOST_FILES} files", hint="name the files to check"
            )
    # The number of an mpirun follows from the order.
    ordered = sorted(every, key=lambda path: natural_order(str(path)))
    return (path for path in ordered if path.is_file())


def _suite_of(path: Path) -> Suite | None:
    """Return the suite of a file; None = not the output of a benchmark."""
    head = first_text(path) if path.is_file() else ""
    return next((suite for suite in SUITES if suite.matches(head)), None) if head else None


def _refuse_ratios(files: Iterable[Path]) -> None:
    """Raise an error for a table of ratios; beside tables with times, it is left out."""
    for path in files:
        if path.is_file() and headed.has_ratios(first_text(path)):
            raise InputError(
                f"{path}: this table of PGChecker has ratios, and no times",
                hint="give its table raw or detailed, or its files data_*.dat",
            )


def _stated_processes(path: Path, source: Path) -> int | None:
    """Return the number of processes in the names of a file and its folders, the nearest first.

    Folders above the source of the user are not looked at, because names such as ``p1234`` are
    also those of projects. A file has its own folder as source.
    """
    folders = [*path.absolute().parents]
    top = source.absolute() if source.is_dir() else folders[0]
    inside = folders[: folders.index(top) + 1]
    for name in (path.name, *(each.name for each in inside)):
        found = _PROCESSES.findall(name)
        if found and int(found[-1]):
            return int(found[-1])
    return next(
        (
            processes
            for parent in [*path.absolute().parents][:4]
            for each in _configurations(parent, CONFIGURATION)
            if each.is_file() and (processes := configured_processes(each)) is not None
        ),
        None,
    )


def _configurations(folder: Path, name: str) -> tuple[Path, ...]:
    """Return where PGMPI keeps a configuration file of a folder of results."""
    return folder / "config" / name, folder / name
