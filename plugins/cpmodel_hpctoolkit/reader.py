"""Readers of HPCToolkit databases."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import API_VERSION, Agreement, Match, RunSource
from callpath_modeler.support.input_limits import first_block

if TYPE_CHECKING:
    from cpmodel_hpctoolkit.profile import Database, HpctoolkitProfile

_META, _PROFILE, _EXPERIMENT = "meta.db", "profile.db", "experiment.xml"
_LOOKED_AT = 1000
"""Maximum number of files of a directory that are checked for measurements."""

RUN_HPCPROF = "run hpcprof of HPCToolkit 2022.10 or later on the measurements"


class HpctoolkitReader:
    """Reader of databases of hpcprof: directories with `meta.db` or `experiment.xml`."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "hpctoolkit"
    description: ClassVar[str] = "HPCToolkit databases (versions 4 and 2), functions only"
    # A database without `meta.db` must produce an error, so it has to be recognized.
    suffixes: ClassVar[tuple[str, ...]] = (_META, _PROFILE, _EXPERIMENT)
    _keep_loops: ClassVar[bool] = False

    def match(self, path: Path) -> Match:
        """Return whether `path` is a database, or a file that represents it."""
        directory = _directory(path)
        if directory is None:
            return Match.NO
        if first_block(directory / _META).startswith(b"HPCTOOLKITmeta"):
            return Match.CONTENT
        if b"HPCToolkitExperiment" in first_block(directory / _EXPERIMENT):
            return Match.CONTENT
        return Match.NAME if _is_ours(directory) else Match.NO

    @contextmanager
    def open(self, path: Path) -> Iterator[HpctoolkitProfile]:
        """Open the database `path`, or the database that contains the file `path`.

        Raises
        ------
        InputError
            If there is no database, its version is not supported, or it is damaged.
        """
        from cpmodel_hpctoolkit.profile import profile_of

        with self._opened(path) as database:
            yield profile_of(database)

    @contextmanager
    def open_runs(self, path: Path) -> Iterator[Sequence[RunSource]]:
        """Return the run of a database, or those of several scales in one of version 2.

        Raises
        ------
        InputError
            As by `open`.
        """
        from cpmodel_hpctoolkit.profile import profile_of

        with self._opened(path) as database:
            scales = database.scales()
            runs = [RunSource(profile_of(each), {"p": p}) for p, each in scales.items()]
            yield runs or [RunSource(profile_of(database))]

    @contextmanager
    def _opened(self, path: Path) -> Iterator[Database]:
        from cpmodel_hpctoolkit import version2, version4
        from cpmodel_hpctoolkit.contexts import Detail

        directory, detail = _database(path), Detail(loops=self._keep_loops)
        if (directory / _META).is_file():
            with version4.opened(directory, detail) as database:
                yield database
        else:
            with version2.opened(directory, detail) as older:
                yield older

    def verify(self, path: Path) -> Sequence[Agreement]:
        """Return the comparison of the values of a version 4 database with the copies in `cct.db`.

        Raises
        ------
        InputError
            If there is no database, or it is damaged.
        """
        from cpmodel_hpctoolkit.version4 import verify

        directory = _database(path)
        if (directory / _META).is_file():
            return verify(directory)
        return [Agreement("all metrics", 0, 0, "version 2 has no copy of its values")]


class HpctoolkitLoopsReader(HpctoolkitReader):
    """Reader with loops as separate call paths; used only if selected by name."""

    name: ClassVar[str] = "hpctoolkit-loops"
    description: ClassVar[str] = "the same with loops as call paths; only if named"
    _keep_loops: ClassVar[bool] = True

    def match(self, path: Path) -> Match:
        """Return the match of `HpctoolkitReader`, with less priority."""
        return min(super().match(path), Match.NAME)


def _directory(path: Path) -> Path | None:
    """Return the directory of the database that `path` is or represents; None = neither."""
    if path.is_dir():
        return path
    is_named = path.name in {_META, _PROFILE, _EXPERIMENT} and path.exists()
    return path.parent if is_named else None


def _database(path: Path) -> Path:
    """Return the directory of a database of either version.

    Raises
    ------
    InputError
        If there is no database.
    """
    directory = _directory(path)
    if directory is None:
        raise InputError(f"{path}: not an HPCToolkit database", hint=RUN_HPCPROF)
    if (directory / _META).is_file() or (directory / _EXPERIMENT).is_file():
        return directory
    if _holds_measurements(directory):
        raise InputError(
            f"{directory}: measurements that hpcprof has not processed yet", hint=RUN_HPCPROF
        )
    raise InputError(f"{directory}: {_META} is missing", hint=RUN_HPCPROF)


def _is_ours(directory: Path) -> bool:
    """Return whether a directory belongs to HPCToolkit although its database is incomplete."""
    files = (directory / _META, directory / _PROFILE)
    is_begun = any(first_block(file).startswith(b"HPCTOOLKIT") for file in files)
    return is_begun or _holds_measurements(directory)


def _holds_measurements(directory: Path) -> bool:
    try:
        with os.scandir(directory) as entries:
            return any(entry.name.endswith(".hpcrun") for entry in islice(entries, _LOOKED_AT))
    except OSError:
        return False
