"""Reader of Caliper profiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

from msgspec import structs

from callpath_modeler.errors import InputError, UsageError, reading
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.readers.base import API_VERSION, Agreement, Match, RunSource
from callpath_modeler.support.input_limits import first_block
from cpmodel_caliper.contents import (
    FUNCTIONS,
    MAGIC,
    Contents,
    RecordColumn,
    region_name,
)

_BLOCK = 1 << 14
_COPY_IT_AGAIN = "copy the profile again, or repeat the run"


class CaliperReader:
    """Reader of files of Caliper and `cali-query`."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "caliper"
    description: ClassVar[str] = "Caliper profiles: .cali, JSON (json-split and records)"
    suffixes: ClassVar[tuple[str, ...]] = (".cali", ".json")

    def match(self, path: Path) -> Match:
        """Return whether `path` is a Caliper profile, by its first block.

        A directory is one if its files have different processes of one run.
        """
        if path.is_dir():
            return _match_directory(path)
        head = _head(path)
        if head.startswith(MAGIC):
            return Match.CONTENT
        # The parsers are imported for files that may be Caliper's.
        if head.lstrip().startswith(("{", "[")):
            from cpmodel_caliper.cali_json import is_json

            if is_json(head, partial(_whole, path)):
                return Match.CONTENT
        return Match.NAME if head and path.name.lower().endswith(".cali") else Match.NO

    @contextmanager
    def open_runs(self, path: Path) -> Iterator[Sequence[RunSource]]:
        """Open the single run of `path`, with its problem size as a parameter.

        Raises
        ------
        InputError
            If the file is not a Caliper profile, or has no usable values.
        """
        from cpmodel_caliper.profile import CaliperProfile

        parts = [(file, contents_of(file)) for file in files_in(path)] if path.is_dir() else []
        contents = joined(parts) if parts else contents_of(path)
        profile = CaliperProfile(contents, str(path))
        yield [RunSource(profile, profile.parameters)]

    def verify(self, path: Path) -> Sequence[Agreement]:
        """Return the comparison of every value of a `.cali` file with Caliper's own reader."""
        if path.is_dir():
            return [Agreement("all metrics", 0, 0, "each process has a file of its own")]
        return verify(path, contents_of(path))


def _match_directory(path: Path) -> Match:
    """Return whether the first two files in a directory are of two processes of one run."""
    files = files_in(path)[:2]
    if len(files) < 2 or not all(_head(file).startswith(MAGIC) for file in files):
        return Match.NO
    try:
        first, second = map(contents_of, files)
    except InputError:
        return Match.NO
    return Match.CONTENT if are_of_one_run(first, second) else Match.NO


def contents_of(path: Path) -> Contents:
    """Return the contents of a file.

    Raises
    ------
    InputError
        If the file cannot be read, or is not a Caliper profile.
    """
    from cpmodel_caliper import cali, cali_json

    with (
        reading(path, _COPY_IT_AGAIN),
        path.open(encoding="utf-8-sig", errors="backslashreplace", newline="\n") as file,
    ):
        if _head(path).startswith(MAGIC) or path.name.lower().endswith(".cali"):
            return cali.read(file)
        return cali_json.read(file.read())


def _whole(path: Path) -> str:
    """Return the text of a file; "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="backslashreplace")
    except OSError:
        return ""


def _head(path: Path) -> str:
    return first_block(path, _BLOCK).decode("utf-8", "replace").removeprefix("\ufeff")


ENDING = ".cali"

_APART = "put each run into its own directory"

_SIZE = "mpi.world.size"
_JOB = ("jobid", "cluster", "executablepath", "cmdline", "user", _SIZE)
"""Metadata that all processes of a run have in common."""


def files_in(directory: Path) -> list[Path]:
    """Return the files of Caliper in a directory, by name."""
    try:
        found = [path for path in directory.iterdir() if path.name.lower().endswith(ENDING)]
    except OSError:
        return []
    return sorted(path for path in found if path.is_file())


def rank_of(contents: Contents) -> int | None:
    """Return the process of a file, if the run had several and the file has one of them."""
    ranks = {rank for rank in contents.rank if rank is not None}
    processes = contents.globals.get(_SIZE, "")
    is_one_of_many = len(ranks) == 1 and processes.isdecimal() and processes != "1"
    return ranks.pop() if is_one_of_many else None


def are_of_one_run(first: Contents, second: Contents) -> bool:
    """Return whether two files have different processes of the same run."""
    ranks = rank_of(first), rank_of(second)
    return None not in ranks and ranks[0] != ranks[1] and _job(first) == _job(second)


def _job(contents: Contents) -> Mapping[str, str]:
    return {key: contents.globals.get(key, "") for key in _JOB}


def joined(parts: Sequence[tuple[Path, Contents]]) -> Contents:
    """Return the records of all processes of a run.

    Raises
    ------
    InputError
        If the files are of several runs, or two have the same process.
    """
    (path, whole), *others = parts
    known = {rank_of(whole): path}
    for other, contents in others:
        rank = rank_of(contents)
        if rank is None or _job(contents) != _job(whole):
            raise InputError(
                f"{other}: not a process of the run of {path.name}",
                hint=_APART,
            )
        if rank in known:
            raise InputError(
                f"{other}: process {rank} is in {known[rank].name} as well",
                hint=_APART,
            )
        known[rank] = other
        _add(whole, contents)
    return whole


def _add(whole: Contents, part: Contents) -> None:
    """Add the records of a file to those of others."""
    node_of = {ROOT: ROOT}
    # Callers come first.
    for node, (caller, name, site) in enumerate(
        zip(part.callers, part.names, part.sites, strict=True)
    ):
        node_of[node] = whole.path(node_of[caller], name, site)
    begun = len(whole.node)
    whole.node += [node_of[node] for node in part.node]
    whole.rank += part.rank
    whole.thread |= {begun + record: thread for record, thread in part.thread.items()}
    whole.wait |= {begun + record: wait for record, wait in part.wait.items()}
    whole.places |= {
        begun + record: structs.replace(place) for record, place in part.places.items()
    }
    whole.files |= part.files
    whole.quantities |= part.quantities
    whole.is_cut |= part.is_cut
    for name, column in part.columns.items():
        of_all: RecordColumn = whole.column(name)
        of_all.records += [begun + record for record in column.records]
        of_all.values += column.values


def verify(path: Path, contents: Contents) -> Sequence[Agreement]:
    """Return the comparison of call paths and values of every record, by attribute.

    Raises
    ------
    UsageError
        If the package caliper-reader is not installed.
    """
    if not path.name.lower().endswith(".cali"):
        return [Agreement(name, 0, 0, "no other reader for JSON") for name in contents.columns]
    try:
        import caliperreader
    except ModuleNotFoundError:
        raise UsageError(
            "the comparison needs caliper-reader", hint="pip install 'callpath-modeler[caliper]'"
        ) from None
    other = caliperreader.CaliperReader()
    other.read(str(path))
    paths = {ROOT: ()} | _paths(contents)
    agreements = []
    for name, column in contents.columns.items():
        ours = [
            (paths[contents.node[record]], value)
            for record, value in zip(column.records, column.values, strict=True)
        ]
        theirs = [
            (_told(record.get(FUNCTIONS) or record.get("path", ())), float(record[name]))
            for record in other.records
            if name in record and record.get("spot.channel") != "timeseries"
        ]
        differing = abs(len(ours) - len(theirs))
        differing += sum(a != b for a, b in zip(ours, theirs, strict=False))
        agreements.append(Agreement(name, len(ours), differing))
    return agreements


def _told(path: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of a path; caliper-reader returns a single name as a text.

    Blanks around a name are not part of it, as in `Contents`.
    """
    return tuple(map(region_name, (path,) if isinstance(path, str) else path))


def _paths(contents: Contents) -> dict[int, tuple[str, ...]]:
    paths: dict[int, tuple[str, ...]] = {ROOT: ()}
    for node, (caller, name) in enumerate(zip(contents.callers, contents.names, strict=True)):
        paths[node] = (*paths[caller], name)
    return paths
