"""Readers of files, by their names; the modules of a format are imported when a name matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Protocol, cast

from callpath_modeler.readers.base import API_VERSION, ColumnChoices, Match, RunSource, TableReading

DELIMITED = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
TEXT = (".dat", ".log", ".out", ".txt", ".result",
        ".dat.gz", ".log.gz", ".out.gz", ".txt.gz")  # fmt: skip
FOLDED = (".folded", ".folded.gz", ".collapsed")
MARKDOWN = (".md", ".markdown")
JSON = (".json", ".json.gz")
JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
PARQUET = (".parquet",)
EXPERIMENT = (".extra-p",)
EXTRAP_TEXT = (".txt", ".txt.gz")
LOGS = (*TEXT, ".csv", ".csv.gz")
PROGRAM_LOGS = (*LOGS, *JSON, ".lammps", ".mpip", "foam")
"""Endings of logs; those of OpenFOAM have the name of its programs, as ``log.icoFoam``."""
PROFILERS = (
    *(*JSON, *TEXT, ".prof", ".pstats", ".cprof", ".pprof", ".pb", ".pb.gz", ".perf", ".stacks"),
    ".speedscope",
)
YAML = (".yaml", ".yml")
PICKLE = (".pkl", ".pickle", ".pkl.gz", ".pickle.gz")


class Format(Protocol):
    """A format of files whose names match."""

    def match(self, path: Path) -> Match:
        """Return whether a file has the format, by its beginning."""

    def runs(self, path: Path) -> Sequence[RunSource]:
        """Return the runs in a file."""


class TableFormat(Format, Protocol):
    """A format of tables, whose columns have roles."""

    def runs(self, path: Path, choices: ColumnChoices = ...) -> Sequence[RunSource]:
        """Return the runs in a file, with the roles of columns that the user states."""

    def explain(self, path: Path, choices: ColumnChoices) -> TableReading:
        """Return how a table is read."""


class _Reader:
    """A reader of one format.

    Attributes
    ----------
    format : module and name of the `Format`
    prefix : beginning of names that may have any ending; "" = none
    """

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str]
    description: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    format: ClassVar[tuple[str, str]]
    prefix: ClassVar[str] = ""

    def match(self, path: Path) -> Match:
        """Return whether a file has the format, by its name and its beginning."""
        name = path.name.lower()
        is_named = name.endswith(self.suffixes) or (self.prefix and name.startswith(self.prefix))
        if not (is_named and path.is_file()):
            return Match.NO
        return self._format().match(path)

    @contextmanager
    def open_runs(self, path: Path) -> Iterator[Sequence[RunSource]]:
        """Return the runs in a file.

        Raises
        ------
        InputError
            If the file is damaged, or its variant is not supported.
        """
        yield self._format().runs(path)

    def _format(self) -> Format:
        module, name = self.format
        found: Format = getattr(import_module(f"{__package__}.{module}"), name)()
        return found


class TableReader(_Reader):
    """Reader of tables of measurements: CSV, TSV, text, Markdown, JSON, JSON Lines, Parquet."""

    name: ClassVar[str] = "tables"
    description: ClassVar[str] = "tables of measurements: CSV, TSV, text, Markdown, JSON, Parquet"
    suffixes: ClassVar[tuple[str, ...]] = (
        *(*DELIMITED, *TEXT, *MARKDOWN),
        *(*JSON_LINES, *JSON, *PARQUET),
    )
    format: ClassVar[tuple[str, str]] = ("tables", "Tables")

    def match(self, path: Path) -> Match:
        """Return whether a file is a table, and in text of any ending, no result of a tool."""
        found = super().match(path)
        is_text = found is Match.CONTENT and path.name.lower().endswith(TEXT)
        return Match.NO if is_text and WorkflowReader().match(path) is Match.CONTENT else found

    @contextmanager
    def open_columns(self, path: Path, choices: ColumnChoices) -> Iterator[Sequence[RunSource]]:
        """Return the runs in a table, with the roles of columns that the user states.

        Raises
        ------
        UsageError
            If a column does not exist.
        InputError
            If the file is not a table of measurements.
        """
        yield cast("TableFormat", self._format()).runs(path, choices)

    def explain(self, path: Path, choices: ColumnChoices) -> TableReading:
        """Return how a table is read.

        Raises
        ------
        UsageError, InputError
            As in `open_columns`.
        """
        return cast("TableFormat", self._format()).explain(path, choices)


class ExtrapReader(_Reader):
    """Reader of Extra-P text, JSON and experiments. `TableReader` reads Extra-P's JSON Lines."""

    name: ClassVar[str] = "extra-p"
    description: ClassVar[str] = "Extra-P experiments, text and JSON"
    suffixes: ClassVar[tuple[str, ...]] = (*EXPERIMENT, *JSON, *EXTRAP_TEXT)
    format: ClassVar[tuple[str, str]] = ("extrap", "ExtrapFiles")


class FoldedReader(_Reader):
    """Reader of folded stacks, the input of flame graphs: ``main;solve;MPI_Send 12``."""

    name: ClassVar[str] = "folded"
    description: ClassVar[str] = "folded stacks, as for flame graphs"
    suffixes: ClassVar[tuple[str, ...]] = (*FOLDED, *TEXT)
    format: ClassVar[tuple[str, str]] = ("profiles", "FoldedStacks")


class HatchetReader(_Reader):
    """Reader of node lists that Hatchet's ``to_literal`` returns, stored as JSON."""

    name: ClassVar[str] = "hatchet"
    description: ClassVar[str] = "Hatchet's literal as JSON"
    suffixes: ClassVar[tuple[str, ...]] = JSON
    format: ClassVar[tuple[str, str]] = ("profiles", "HatchetLiterals")


class WorkflowReader(_Reader):
    """Reader of results of workflow tools: JUBE, ReFrame, Ramble, Benchpark, Thicket."""

    name: ClassVar[str] = "workflows"
    description: ClassVar[str] = "results of JUBE, ReFrame, Ramble, Benchpark and Thicket"
    suffixes: ClassVar[tuple[str, ...]] = (*JSON, *LOGS, *YAML, *PICKLE)
    format: ClassVar[tuple[str, str]] = ("workflows", "Results")


class LogReader(_Reader):
    """Reader of logs that programs print, and of results of small benchmarks."""

    name: ClassVar[str] = "logs"
    description: ClassVar[str] = (
        "logs: LAMMPS, GROMACS, OpenFOAM, NPB, HPL, HPCG, STREAM, mpiP, Caliper, TALP, Kokkos, "
        "LIKWID, sacct, hyperfine, Google Benchmark"
    )
    suffixes: ClassVar[tuple[str, ...]] = PROGRAM_LOGS
    format: ClassVar[tuple[str, str]] = ("logs", "Logs")

    def match(self, path: Path) -> Match:
        """Return whether a file is a log; many programs call theirs ``log.NAME``."""
        is_log = path.name.lower().startswith("log.") and path.is_file()
        return self._format().match(path) if is_log else super().match(path)


class ProfilerReader(_Reader):
    """Reader of profiles of one process: perf script, pprof, callgrind, cProfile, speedscope."""

    name: ClassVar[str] = "profilers"
    description: ClassVar[str] = (
        "profiles of one process: perf script, pprof, callgrind, cProfile, pyinstrument, speedscope"
    )
    suffixes: ClassVar[tuple[str, ...]] = PROFILERS
    format: ClassVar[tuple[str, str]] = ("profilers.formats", "Profilers")
    prefix: ClassVar[str] = "callgrind.out"
