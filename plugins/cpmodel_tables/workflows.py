"""Reader of results of workflow tools: JUBE, ReFrame, Ramble, Benchpark, Thicket."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import Match, RunSource
from cpmodel_tables import jube, ramble, reframe, thicket
from cpmodel_tables.reader import JSON, PICKLE, YAML
from cpmodel_tables.tables import runs_of_grid
from cpmodel_tables.text import first_text

_PRINTED = re.compile(r"\s*Callpath: [^\n]*\n\s*Metric: ")


class Results:
    """Reader of results of workflow tools: JUBE, ReFrame, Ramble, Benchpark, Thicket."""

    def match(self, path: Path) -> Match:
        """Return whether `path` contains results of a workflow tool, by its first block."""
        if path.name.lower().endswith((*PICKLE, *YAML)):
            return Match.NAME if path.stat().st_size else Match.NO
        text = first_text(path)
        if path.name.lower().endswith(JSON):
            is_ours = ramble.is_json(text) or reframe.is_report(text) or thicket.is_json(text)
            return Match.CONTENT if is_ours else Match.NO
        if ramble.is_text(text) or reframe.is_log(text) or jube.is_pretty(text):
            return Match.CONTENT
        return Match.NAME if text.strip() else Match.NO

    def runs(self, path: Path) -> Sequence[RunSource]:
        """Return the runs in the results.

        Raises
        ------
        InputError
            If the file is damaged, or its variant is not supported.
        """
        if path.name.lower().endswith(PICKLE):
            raise InputError(
                f"{path}: pickles are not read, because they can execute any program",
                hint="write thicket.to_json(), or DataFrame.to_csv() or to_parquet(), instead",
            )
        text = first_text(path)
        if path.name.lower().endswith(YAML):
            hint = "write results.latest.json with: ramble workspace analyze --formats json"
            what = "Ramble's results in YAML are" if ramble.is_yaml(text) else "YAML is"
            raise InputError(f"{path}: {what} not read", hint=hint)
        if path.name.lower().endswith(JSON):
            return _runs_of_json(path, text)
        if ramble.is_text(text):
            return ramble.read_text(path)
        if reframe.is_log(text):
            return reframe.read_log(path)
        if reframe.is_old_log(text):
            raise InputError(
                f"{path}: this log of ReFrame has no header; only logs of version 4 and later do",
                hint="use the run report (run-report.json), or a log of version 4",
            )
        if _PRINTED.match(text):
            raise InputError(
                f"{path}: this printout of Extra-P has only three digits, and no parameter values",
                hint="save the measurements: extrap ... --save-experiment app.extra-p",
            )
        return runs_of_grid(*jube.read(path))


def _runs_of_json(path: Path, text: str) -> list[RunSource]:
    if thicket.is_json(text):
        return runs_of_grid(*thicket.read(path))
    return reframe.read_report(path) if reframe.is_report(text) else ramble.read_json(path)
