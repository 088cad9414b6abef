"""Options of commands that read or write a history."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import MODELS, OUTPUT, F, option, option_group
from callpath_modeler.cli.options import A_FILE, HISTORY
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.analysis.calibration import BandCalibration
    from callpath_modeler.analysis.rank import Ranking

STORE, HISTORY_TO_WRITE = (
    click.argument("store", type=kind, metavar="STORE") for kind in (A_FILE, HISTORY)
)
LABELS = option(
    "--label KEY=VALUE",
    "A label of the runs in a history, e.g. machine=A. It also selects the records to read.",
    "labels",
    multiple=True,
    group=OUTPUT,
    key=None,
)


def labels_of(given: tuple[str, ...]) -> dict[str, str]:
    """Return the labels of ``--label KEY=VALUE`` by key."""
    labels: dict[str, str] = {}
    for text in given:
        key, sign, value = (part.strip() for part in text.partition("="))
        if not (key and sign and value) or len(text) > 1_000:
            raise UsageError(f"--label {text[:60]!r} is malformed", hint="e.g. --label machine=A")
        if labels.setdefault(key, value) != value:
            raise UsageError(f"--label {key} is given twice", hint="give one value for each key")
    return labels


class BandCorrection(Struct, frozen=True):
    """Correction of the bands of a ranking by a history.

    Attributes
    ----------
    ranking : the ranking with corrected bands; None = as it was
    calibration : scores of earlier predictions; None = nothing was asked
    sentence : what was corrected, and on how many predictions it rests
    """

    ranking: Ranking | None = None
    calibration: BandCalibration | None = None
    sentence: str = ""


class HistoryRequest(Struct, frozen=True):
    """Histories that keep the predictions of a command, or correct them.

    Attributes
    ----------
    remember : history that keeps the predictions; None = none
    calibrated : history whose scores correct bands; None = none
    labels : labels of the predictions, and of the scores
    """

    remember: Path | None
    calibrated: Path | None
    labels: Mapping[str, str]

    @property
    def stores(self) -> dict[str, Path | None]:
        """Histories by option."""
        return {"--remember": self.remember, "--calibrated": self.calibrated}

    def applied(self, console: Console, ranking: Ranking) -> BandCorrection:
        """Keep the predictions of a ranking, and return their correction.

        A history keeps the bands of the models. So no correction is corrected again.

        Raises
        ------
        UsageError
            If there are no predictions at the target.
        InputError, OutputError
            If a history cannot be read or written.
        """
        if self.remember is not None:
            self._remember(console, ranking, self.remember)
        return BandCorrection() if self.calibrated is None else self._of(ranking, self.calibrated)

    def _remember(self, console: Console, ranking: Ranking, store: Path) -> None:
        from callpath_modeler.history import prediction_store
        from callpath_modeler.history.run_records import prediction_of
        from callpath_modeler.units import counted

        record = prediction_of(ranking, time.time(), self.labels)
        is_new = prediction_store.remember(store, record)
        said = "remembered" if is_new else "in the history already"
        console.note(f"{store}: {counted(len(record.callpaths), 'prediction')}: {said}")

    def _of(self, ranking: Ranking, store: Path) -> BandCorrection:
        from callpath_modeler.history import prediction_store
        from callpath_modeler.history.prediction_scores import recalibrated, scored
        from callpath_modeler.report.scores import calibration_sentence

        if ranking.repetitions or math.isinf(ranking.target):
            raise UsageError(
                "--calibrated needs prediction bands, but values at this target have none",
                hint="a finite target beyond the runs, or --predicted",
            )
        fitted = ranking.fitted
        predictions = [
            each
            for each in prediction_store.predictions(store)
            if (each.metric, each.level) == (fitted.metric.name, fitted.models.confidence)
        ]
        found = scored(predictions, prediction_store.outcomes(store), labels=self.labels)
        return BandCorrection(
            recalibrated(ranking, found.calibration.factor),
            found.calibration,
            calibration_sentence(found, store),
        )


def history_options(command: F) -> F:
    """Add options that keep and correct predictions; they arrive as ``history``."""
    options = (
        option(
            "--remember STORE",
            "Keep the predictions in a history, for `cpmodel score`.",
            type=HISTORY,
            group=OUTPUT,
            key=None,
        ),
        option(
            "--calibrated STORE",
            "Correct the widths of bands by the scored predictions of a history.",
            type=A_FILE,
            group=MODELS,
            key=None,
        ),
        LABELS,
    )
    return option_group(command, options, "history", _make_history)


def _make_history(
    *, remember: Path | None, calibrated: Path | None, labels: tuple[str, ...]
) -> HistoryRequest:
    return HistoryRequest(remember, calibrated, labels_of(labels))
