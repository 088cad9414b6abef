"""Reader of Extra-P's own formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from callpath_modeler.diagnostics import Finding
from callpath_modeler.readers.base import Match, RunSource
from callpath_modeler.readers.records import runs_of
from cpmodel_tables import extrap_experiment, extrap_json, extrap_text, talpas
from cpmodel_tables.reader import EXPERIMENT, JSON
from cpmodel_tables.tables import runs_of_grid
from cpmodel_tables.talpas import is_talpas
from cpmodel_tables.text import first_text, whole_text


class ExtrapFiles:
    """Reader of Extra-P text, JSON and experiments. `TableReader` reads Extra-P's JSON Lines."""

    def match(self, path: Path) -> Match:
        """Return whether `path` is a file of Extra-P, by its beginning."""
        if path.name.lower().endswith(EXPERIMENT):
            return Match.CONTENT if extrap_experiment.is_experiment(path) else _by_name(path)
        if path.name.lower().endswith(JSON):
            return Match.CONTENT if extrap_json.is_json(path) else Match.NO
        text = first_text(path)
        return Match.CONTENT if extrap_text.is_text(text) or is_talpas(text) else Match.NO

    def runs(self, path: Path) -> Sequence[RunSource]:
        """Return the runs in the file.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        findings: list[Finding] = []
        if path.name.lower().endswith(EXPERIMENT):
            series, means = extrap_experiment.read(path)
            if means:
                message = f"{means} values are means; the file does not contain their repetitions"
                findings.append(Finding("CPM130", str(path), message, means))
        elif path.name.lower().endswith(JSON):
            series = extrap_json.read(path, whole_text(path, is_json=True))
        elif is_talpas(first_text(path)):
            return runs_of_grid(talpas.read(path))
        else:
            series = extrap_text.read(path)
        return runs_of(series.records(), findings)


def _by_name(path: Path) -> Match:
    return Match.NAME if path.stat().st_size else Match.NO
