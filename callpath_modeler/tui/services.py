"""Services of the command line for the browser, and source files of a program.

A profile names its source files, but it does not decide what is read. A name relative to the
profile is searched in the directory of the profile, and may not leave it. A replacement of the user
allows what is below its directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.analysis.pair_forecast import PairInputs, ViewForecast
from callpath_modeler.arrays import IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.printable import printable
from callpath_modeler.profile.bookmarks import BookmarkFile
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.layout import DEFAULT_STYLE, Listing, TextStyle

_LARGEST = 2_000_000
"""Size of the largest source file that is shown, in bytes."""
_COPIES = "src"
"""Directory of a database with copies of source files under their absolute names."""
_TABULATOR = 4


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Places of source files.

    Attributes
    ----------
    profiles : profiles, whose directories may contain copies of source files
    replaced : beginnings of names in profiles, and the directories that replace them
    known : text of files by name; a cache
    """

    profiles: Sequence[Path] = ()
    replaced: Sequence[tuple[str, Path]] = ()
    known: dict[str, Sequence[str]] = field(default_factory=dict)

    def lines(self, name: str) -> Sequence[str]:
        """Return the lines of a file that a profile names, safe for terminals; () = not found."""
        if name not in self.known:
            self.known[name] = next(filter(None, map(_text, self._places(name))), ())
        return self.known[name]

    def _places(self, name: str) -> Iterator[Path]:
        """Yield the files that may have this name, best first."""
        if not name or "\0" in name:
            return
        for old, new in self.replaced:
            if name.startswith(old.rstrip("/") + "/"):
                yield from _inside(new, name.removeprefix(old.rstrip("/")).lstrip("/"))
        folders = (path if path.is_dir() else path.parent for path in self.profiles)
        is_absolute = name.startswith("/")
        for folder in dict.fromkeys(folders):
            yield from _inside(folder / _COPIES if is_absolute else folder, name.lstrip("/"))
        if is_absolute:
            yield Path(name)
        else:
            yield from _inside(Path(), name)


def source_replacements(given: Iterable[str]) -> list[tuple[str, Path]]:
    """Return the replacements that a user states as ``OLD=NEW``.

    Raises
    ------
    UsageError
        If a text has another form.
    """
    found = []
    for text in given:
        old, sign, new = text.partition("=")
        if not (old.strip() and sign and new.strip()):
            raise UsageError(
                f"--source-path {text!r} is malformed",
                hint="e.g. --source-path /build/app=/home/me/app",
            )
        found.append((old.strip(), Path(new.strip()).expanduser()))
    return found


def _inside(folder: Path, name: str) -> Iterator[Path]:
    """Yield the file `name` in a directory, if neither dots nor links lead out of it."""
    try:
        path = (folder / name).resolve()
        if path.is_relative_to(folder.resolve()):
            yield path
    except (OSError, RuntimeError, ValueError):
        return  # a loop of links, or a name that is too long


def _text(path: Path) -> list[str]:
    """Return the lines of a file; [] = it is no readable file, or too large."""
    try:
        # Files of the kernel have no size, and reading some of them never ends.
        if not path.is_file() or not 0 < path.stat().st_size <= _LARGEST:
            return []
        text = path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return []
    return [printable(line.expandtabs(_TABULATOR)) for line in text.split("\n")]


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
