"""Reader of TAU profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from callpath_modeler.errors import InputError, reading
from callpath_modeler.readers.base import API_VERSION, Match
from callpath_modeler.support.input_limits import first_block
from cpmodel_tau import profile_files

if TYPE_CHECKING:
    from cpmodel_tau.profile import TauProfile

_PACKED = ".ppk"
_OTHER_FORMS = {"tauprofile.xml": b"<profile_xml", "snapshot.": b"<profile_xml", "pprof.dat": b""}
"""Names and beginnings of files with TAU profiles in unsupported formats."""
_PACK = "pack it with ParaProf: `paraprof --pack run.ppk`, and read run.ppk"


class TauReader:
    """Reader of the profiles of all threads of a run, and of their packed form."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "tau"
    description: ClassVar[str] = "TAU profiles: profile.n.c.t, MULTI__ directories, ParaProf's .ppk"
    suffixes: ClassVar[tuple[str, ...]] = ("profile.0.0.0", _PACKED)

    def match(self, path: Path) -> Match:
        """Return whether `path` is a directory of profiles, a profile, or a packed profile.

        Among the directories MULTI__* of a run, the one with the wall-clock time represents the
        run.
        """
        try:
            if path.is_dir():
                return Match.CONTENT if _is_run(path) else Match.NO
            if path.name.lower().endswith(_PACKED):
                return _match_packed(path)
            if profile_files.location_of(path.name) is None or not _is_profile(path):
                return Match.NO
            return Match.CONTENT if _stands_for_run(path.absolute().parent) else Match.NO
        except OSError:
            return Match.NO

    @contextmanager
    def open(self, path: Path) -> Iterator[TauProfile]:
        """Open a packed profile, or all profiles of the run that `path` belongs to.

        Raises
        ------
        InputError
            If a file is malformed or has an unsupported format.
        """
        from cpmodel_tau import packed
        from cpmodel_tau.profile import TauProfile

        if path.is_file() and path.name.lower().endswith(_PACKED):
            yield TauProfile(packed.PackedProfile(path), str(path))
            return
        with reading(path, "give the directory of the run"):
            directory = _run_of(path)
            _refuse_other_forms(directory)
            measurements = profile_files.ProfileFiles(directory)
        yield TauProfile(measurements, str(path))


def _match_packed(path: Path) -> Match:
    from cpmodel_tau import packed

    if not first_block(path):
        return Match.NO
    is_ours = first_block(path, unpack=True).startswith(packed.MAGIC)
    return Match.CONTENT if is_ours else Match.NAME


def _is_profile(path: Path) -> bool:
    return profile_files.is_profile(first_block(path).decode("utf-8", "replace"))


def _is_run(directory: Path) -> bool:
    """Return whether a directory contains profiles of a run, or directories of its metrics."""
    if not _stands_for_run(directory):
        return False
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries]
    profiles = [name for name in names if profile_files.location_of(name) is not None]
    if profiles:
        return _is_profile(directory / min(profiles))
    if any(name.startswith(profile_files.MULTI) for name in names):
        folders = profile_files.metric_directories(directory)
        return any(profile_files.files_in(folder) for folder in folders[:1])
    return False


def _stands_for_run(directory: Path) -> bool:
    """Return whether a directory is the one of a run, or the one of its wall-clock time."""
    if not directory.name.startswith(profile_files.MULTI):
        return True
    others = profile_files.metric_directories(directory.absolute().parent)
    return bool(others) and others[0].name == directory.name and directory.name.endswith("TIME")


def _run_of(path: Path) -> Path:
    """Return the directory of a run, from that directory, the one of a metric, or a file."""
    directory = path if path.is_dir() else path.absolute().parent
    if not path.exists():
        raise InputError(f"{path}: no such file or directory", hint="check the spelling")
    if directory.name.startswith(profile_files.MULTI):
        return directory.absolute().parent
    return directory


def _refuse_other_forms(directory: Path) -> None:
    """Raise an error if TAU wrote another format instead of profiles."""
    if profile_files.files_in(directory) or profile_files.metric_directories(directory):
        return
    for path in sorted(directory.iterdir())[:1000]:
        for name, content in _OTHER_FORMS.items():
            if path.name.startswith(name) and path.is_file() and content in first_block(path):
                raise InputError(
                    f"{path}: this format of TAU profiles is not supported", hint=_PACK
                )
