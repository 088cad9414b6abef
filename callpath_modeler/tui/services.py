"""Services of the command line for the browser: models, targets, files, commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from callpath_modeler.analysis.answer_inputs import AnswerInputs
from callpath_modeler.analysis.pair_forecast import PairInputs, ViewForecast
from callpath_modeler.arrays import IntArray
from callpath_modeler.bookmarks import BookmarkFile
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle
from callpath_modeler.report.listing import Listing
from callpath_modeler.report.source_text import SourceFiles


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """The answer of another command.

    Attributes
    ----------
    title : title of the panel
    listing : returns the layout for a width in terminal cells
    command : the command that prints it
    """

    title: str
    listing: Callable[[int], Listing]
    command: str


@dataclass(frozen=True, slots=True)
class BrowserServices:
    """Services of the command line for the browser.

    Attributes
    ----------
    models_of : returns the models of a metric; or, with two scales as ``8,128`` instead of "", its
        measured values there
    runs_of : returns the measured runs of a metric
    target_of : returns the target for the typed text
    command : returns the command that prints a view at a target
    save : writes what `command` prints to a file, and returns a message
    compare : returns the comparison of an earlier experiment, by its path, with the shown models;
        the last argument is whether predictions are used even if both ran a target
    check : evaluates an expectation file
    processes : shows the values of the processes of a node: of the names from the top of the view
        to the node, and the rows of its call paths; the last argument is whether inclusive values
        lead
    expectations : the most likely expectation file; "" = none was found
    bookmarks : the file of bookmarks; None = there are none
    style : width, length of names, and characters of text
    message : first message
    pair : the two scales that are compared at first; "" = all scales are shown
    other : path of the experiment that is compared at first; "" = none
    sources : places of source files
    """

    models_of: Callable[[str, str], Fitted]
    runs_of: Callable[[str], Experiment]
    target_of: Callable[[str, Fitted], float]
    command: Callable[[ViewRequest, AnswerInputs, float], str]
    save: Callable[[ViewForecast, ViewRequest, Path], str]
    compare: Callable[[str, Fitted, bool], PairInputs]
    check: Callable[[str, ViewForecast], CommandAnswer]
    processes: Callable[[Sequence[str], IntArray, ViewForecast, bool], CommandAnswer]
    expectations: str = ""
    bookmarks: BookmarkFile | None = None
    style: TextStyle = DEFAULT_STYLE
    message: str = ""
    pair: str = ""
    other: str = ""
    sources: SourceFiles = field(default_factory=SourceFiles)
