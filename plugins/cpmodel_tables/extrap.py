"""The reader of Extra-P's own formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from callpath_modeler.readers.base import API_VERSION, Match, RunSource
from callpath_modeler.readers.records import runs_of
from cpmodel_tables import extrap_text
from cpmodel_tables.text import first_text, whole_text


class ExtrapReader:
    """Reads Extra-P's text."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "extra-p"
    description: ClassVar[str] = "Extra-P text"
    suffixes: ClassVar[tuple[str, ...]] = (".txt", ".txt.gz")

    def match(self, path: Path) -> Match:
        """Say by its first lines whether `path` is input of Extra-P."""
        if not path.is_file() or not path.name.endswith(self.suffixes):
            return Match.NO
        return Match.CONTENT if extrap_text.is_text(first_text(path)) else Match.NO

    @contextmanager
    def open_runs(self, path: Path) -> Iterator[Sequence[RunSource]]:
        """Read the file and make runs of it.

        Raises
        ------
        InputError
            If it is damaged.
        """
        yield runs_of(extrap_text.read(path, whole_text(path)).records())
