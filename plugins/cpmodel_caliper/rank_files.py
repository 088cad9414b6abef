"""Runs with a file for each process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import structs

from callpath_modeler.errors import InputError
from callpath_modeler.profile.calltree import ROOT
from cpmodel_caliper.contents import Contents, RecordColumn

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
