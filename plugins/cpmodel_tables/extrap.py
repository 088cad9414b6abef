"""Reader of Extra-P's own formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from callpath_modeler.diagnostics import Finding
from callpath_modeler.readers.base import API_VERSION, Match, RunSource
from callpath_modeler.readers.records import runs_of
from cpmodel_tables import extrap_experiment, extrap_json, extrap_text, talpas
from cpmodel_tables.tables import runs_of_grid
from cpmodel_tables.talpas import is_talpas
from cpmodel_tables.text import first_text, whole_text

_EXPERIMENT = (".extra-p",)
_JSON = (".json", ".json.gz")
_TEXT = (".txt", ".txt.gz")


class ExtrapReader:
    """Reader of Extra-P text, JSON and experiments. `TableReader` reads Extra-P's JSON Lines."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "extra-p"
    description: ClassVar[str] = "Extra-P experiments, text and JSON"
    suffixes: ClassVar[tuple[str, ...]] = (*_EXPERIMENT, *_JSON, *_TEXT)

    def match(self, path: Path) -> Match:
        """Return whether `path` is a file of Extra-P, by its beginning."""
        if not path.is_file() or not path.name.lower().endswith(self.suffixes):
            return Match.NO
        if path.name.lower().endswith(_EXPERIMENT):
            return Match.CONTENT if extrap_experiment.is_experiment(path) else _by_name(path)
        if path.name.lower().endswith(_JSON):
            return Match.CONTENT if extrap_json.is_json(path) else Match.NO
        text = first_text(path)
        return Match.CONTENT if extrap_text.is_text(text) or is_talpas(text) else Match.NO

    @contextmanager
    def open_runs(self, path: Path) -> Iterator[Sequence[RunSource]]:
        """Return the runs in the file.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        findings: list[Finding] = []
        if path.name.lower().endswith(_EXPERIMENT):
            series, means = extrap_experiment.read(path)
            if means:
                message = f"{means} values are means; the file does not contain their repetitions"
                findings.append(Finding("CPM130", str(path), message, means))
        elif path.name.lower().endswith(_JSON):
            series = extrap_json.read(path, whole_text(path, is_json=True))
        elif is_talpas(first_text(path)):
            yield runs_of_grid(talpas.read(path))
            return
        else:
            series = extrap_text.read(path)
        yield runs_of(series.records(), findings)


def _by_name(path: Path) -> Match:
    return Match.NAME if path.stat().st_size else Match.NO
