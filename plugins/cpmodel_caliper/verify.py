"""Verification: comparison with the reader of Caliper's authors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.readers.base import Agreement
from cpmodel_caliper.contents import FUNCTIONS, Contents, region_name


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
