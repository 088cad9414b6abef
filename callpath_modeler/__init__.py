"""Scalability models, excess work and predicted ranks for every call path of an application.

>>> import callpath_modeler as cpm
>>> study = cpm.Study("sample_profiles/lulesh")            # doctest: +SKIP
>>> study.ranking(target=4096)                             # doctest: +SKIP
>>> experiment = cpm.load(["sample_profiles/lulesh"])      # doctest: +SKIP
>>> fitted = cpm.fit(experiment, "time")                   # doctest: +SKIP
>>> ranking = cpm.rank(fitted, target=4096)                # doctest: +SKIP
>>> cpm.ranking_table(ranking).to_frame()                  # doctest: +SKIP
>>> fitted["main/**/CalcForceForNodes/MPI_Waitall"].predict([1024, 4096])  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
import sys

# `typing` would take a third of the time until Ctrl-C can end a command without a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from callpath_modeler.analysis.advise import Advice, advise
    from callpath_modeler.analysis.answer import By, Ranking, rank
    from callpath_modeler.analysis.cause import Cause
    from callpath_modeler.analysis.ensemble import Losses, losses
    from callpath_modeler.analysis.excess_work import Excess, excess_work, measured_excess
    from callpath_modeler.analysis.expectations.check_result import BrokenExpectationsError, Check
    from callpath_modeler.fitted import CallPathModel, Fitted
    from callpath_modeler.modeling import SearchSpace
    from callpath_modeler.profile.experiment import Experiment, Scaling
    from callpath_modeler.profile.schema import Metric, Reduction
    from callpath_modeler.readers.assemble import ReadOptions
    from callpath_modeler.report.diff_table import difference_table
    from callpath_modeler.report.model_tables import graph
    from callpath_modeler.report.ranking_table import ranking_table
    from callpath_modeler.report.thickets import from_thicket
    from callpath_modeler.studies.comparison import Compared, compare
    from callpath_modeler.studies.data_frame import from_frame
    from callpath_modeler.studies.expectation_check import check
    from callpath_modeler.studies.loading import LoadOptions, load
    from callpath_modeler.studies.pipeline import FitOptions, explain, fit
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study

_HOMES = {
    "Advice": "analysis.advise",
    "BrokenExpectationsError": "analysis.expectations.check_result",
    "By": "analysis.answer",
    "Cause": "analysis.cause",
    "Compared": "studies.comparison",
    "CallPathModel": "fitted",
    "Check": "analysis.expectations.check_result",
    "Excess": "analysis.excess_work",
    "Experiment": "profile.experiment",
    "FitOptions": "studies.pipeline",
    "Fitted": "fitted",
    "LoadOptions": "studies.loading",
    "Losses": "analysis.ensemble",
    "Metric": "profile.schema",
    "Question": "studies.question",
    "Ranking": "analysis.answer",
    "ReadOptions": "readers.assemble",
    "Reduction": "profile.schema",
    "Scaling": "profile.experiment",
    "SearchSpace": "modeling",
    "Study": "studies.study",
    "advise": "analysis.advise",
    "check": "studies.expectation_check",
    "compare": "studies.comparison",
    "difference_table": "report.diff_table",
    "excess_work": "analysis.excess_work",
    "explain": "studies.pipeline",
    "fit": "studies.pipeline",
    "from_frame": "studies.data_frame",
    "from_thicket": "report.thickets",
    "graph": "report.model_tables",
    "load": "studies.loading",
    "losses": "analysis.ensemble",
    "measured_excess": "analysis.excess_work",
    "rank": "analysis.answer",
    "ranking_table": "report.ranking_table",
}

__all__ = [
    "Advice",
    "BrokenExpectationsError",
    "By",
    "CallPathModel",
    "Cause",
    "Check",
    "Compared",
    "Excess",
    "Experiment",
    "FitOptions",
    "Fitted",
    "LoadOptions",
    "Losses",
    "Metric",
    "Question",
    "Ranking",
    "ReadOptions",
    "Reduction",
    "Scaling",
    "SearchSpace",
    "Study",
    "advise",
    "check",
    "compare",
    "difference_table",
    "excess_work",
    "explain",
    "fit",
    "from_frame",
    "from_thicket",
    "graph",
    "load",
    "losses",
    "measured_excess",
    "rank",
    "ranking_table",
]


def _register() -> None:
    # pandas takes longer to import than most commands run, so only a user of it gets the accessor.
    if sys.modules.get("pandas") is not None:
        importlib.import_module(f"{__name__}.studies.accessor")


def __getattr__(name: str) -> object:
    # Public names are imported on demand, so that `cpmodel --help` does not wait for numpy.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _register()
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    # Notebooks complete these names without importing them.
    return [*globals(), *_HOMES]


_register()
