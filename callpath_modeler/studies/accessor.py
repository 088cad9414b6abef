"""The accessor `cpm` of data frames: models of a table in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.studies.pipeline import FitOptions


@pd.api.extensions.register_dataframe_accessor("cpm")
class CallPathAccessor:
    """Experiments and models of a table with one row per call path and run.

    Parameters
    ----------
    frame : the table, as for `callpath_modeler.from_frame`
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def experiment(self, **columns: Any) -> Experiment:
        """Return the experiment of the table.

        Parameters
        ----------
        columns : columns of call paths, parameters, repetitions and metrics, as for `from_frame`

        Raises
        ------
        UsageError, InputError
            As `from_frame`.
        """
        from callpath_modeler.studies.data_frame import from_frame

        return from_frame(self._frame, **columns)

    def fit(
        self, metric: str | None = None, options: FitOptions | None = None, **columns: Any
    ) -> Fitted:
        """Return the models of the table.

        Parameters
        ----------
        metric, options : as for `callpath_modeler.fit`
        columns : as for `experiment`

        Raises
        ------
        UsageError, InputError, DataError
            As `from_frame` and `fit`.
        """
        from callpath_modeler.studies.pipeline import fit

        return fit(self.experiment(**columns), metric, options)
