"""What the browser is given by who starts it: models, targets, files, commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from callpath_modeler.analysis.forecast import Forecast
from callpath_modeler.analysis.forecast_inputs import ForecastInputs
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.listing import Listing


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """What came of a question that has a command of its own.

    Attributes
    ----------
    title : what was asked
    listing : lays it out for a width in terminal cells
    command : the command that prints it
    """

    title: str
    listing: Callable[[int], Listing]
    command: str


@dataclass(frozen=True, slots=True)
class BrowserServices:
    """What the browser is given by who starts it.

    Attributes
    ----------
    models_of : makes the models of another metric
    target_of : reads a target as it is typed
    command : writes the command that prints a view of what is known, at a target
    save : writes a view to a file, and returns what to say of it
    compare : compares what is shown with another experiment; told whether inclusive values lead
    check : holds the expectations of a file against the models
    expectations : the expectation file that is likely meant; "" = none is near
    ascii_only : use no character beyond ASCII
    message : what to say at first
    """

    models_of: Callable[[str], Fitted]
    target_of: Callable[[str, Fitted], float]
    command: Callable[[ViewRequest, ForecastInputs, float], str]
    save: Callable[[Forecast, ViewRequest, Path], str]
    compare: Callable[[str, Forecast, bool], CommandAnswer]
    check: Callable[[str, Forecast], CommandAnswer]
    expectations: str = ""
    ascii_only: bool = False
    message: str = ""
