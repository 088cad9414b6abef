"""Reader of Caliper profiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import API_VERSION, Agreement, Match, RunSource
from cpmodel_caliper.contents import MAGIC, Contents, MalformedError

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

        contents = contents_of_run(path) if path.is_dir() else contents_of(path)
        profile = CaliperProfile(contents, str(path))
        yield [RunSource(profile, profile.parameters)]

    def verify(self, path: Path) -> Sequence[Agreement]:
        """Return the comparison of every value of a `.cali` file with Caliper's own reader."""
        from cpmodel_caliper.verify import verify

        if path.is_dir():
            return [Agreement("all metrics", 0, 0, "each process has a file of its own")]
        return verify(path, contents_of(path))


def _match_directory(path: Path) -> Match:
    """Return whether the first two files in a directory are of two processes of one run."""
    from cpmodel_caliper.rank_files import are_of_one_run, files_in

    files = files_in(path)[:2]
    if len(files) < 2 or not all(_head(file).startswith(MAGIC) for file in files):
        return Match.NO
    try:
        first, second = map(contents_of, files)
    except InputError:
        return Match.NO
    return Match.CONTENT if are_of_one_run(first, second) else Match.NO


def contents_of_run(directory: Path) -> Contents:
    """Return the contents of the files of all processes of a run.

    Raises
    ------
    InputError
        As by `contents_of`, or if the files do not belong together.
    """
    from cpmodel_caliper.rank_files import files_in, joined

    return joined([(file, contents_of(file)) for file in files_in(directory)])


def contents_of(path: Path) -> Contents:
    """Return the contents of a file.

    Raises
    ------
    InputError
        If the file cannot be read, or is not a Caliper profile.
    """
    from cpmodel_caliper import cali, cali_json

    try:
        with path.open(encoding="utf-8-sig", errors="backslashreplace", newline="\n") as file:
            if _head(path).startswith(MAGIC) or path.name.lower().endswith(".cali"):
                return cali.read(file)
            return cali_json.read(file.read())
    except OSError as cause:
        what = cause.strerror or str(cause)
        raise InputError(f"{path}: cannot be read: {what}", hint=_COPY_IT_AGAIN) from None
    except MalformedError as error:
        raise InputError(f"{path}: {error}", hint=_COPY_IT_AGAIN) from None


def _whole(path: Path) -> str:
    """Return the text of a file; "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="backslashreplace")
    except OSError:
        return ""


def _head(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_BLOCK).decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError:
        return ""
