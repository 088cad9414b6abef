"""The bookmarks of an experiment: which lines have one, and a list to choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.binding import Binding, BindingType

from callpath_modeler.bookmarks import Bookmark, BookmarkFile
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import printable
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.report.layout import TextStyle, shorten
from callpath_modeler.report.listing import Listing, ListingEntry
from callpath_modeler.tui.screens import ChoiceScreen


class Bookmarks:
    """The bookmarks of an experiment.

    Parameters
    ----------
    file : their file; None = nothing can be kept
    """

    def __init__(self, file: BookmarkFile | None) -> None:
        self._file = file
        self.all: list[Bookmark] = []

    @property
    def place(self) -> str:
        """The path of the file."""
        return "" if self._file is None else str(self._file.path)

    def read(self) -> None:
        """Read the file again, because another browser may have changed it.

        Raises
        ------
        InputError
            If the file cannot be read.
        """
        self.all = [] if self._file is None else self._file.read()

    def rows(self, tree: CallTree) -> dict[int, str]:
        """Return the notes by call path."""
        return {row: mark.note for mark in self.all for row in tree.rows_of(mark.callpath)}

    def note(self, callpath: str) -> str:
        """Return the note of a call path; "" = none."""
        return next((mark.note for mark in self.all if mark.callpath == callpath), "")

    def add(self, callpath: str, note: str) -> None:
        """Add a bookmark, or change its note.

        Raises
        ------
        CallpathModelerError
            If the file cannot be read or written.
        """
        self._write(callpath, [Bookmark(callpath, note)])

    def remove(self, callpath: str) -> None:
        """Remove a bookmark; the errors are those of `add`."""
        self._write(callpath, [])

    def _write(self, callpath: str, new: Sequence[Bookmark]) -> None:
        if self._file is None:
            raise UsageError("bookmarks need an experiment with a path", hint="store it first")
        self.read()
        kept = [mark for mark in self.all if mark.callpath != callpath]
        self._file = self._file.write([*kept, *new])
        self.read()


class BookmarkList(ChoiceScreen):
    """The bookmarks; it returns the id of the chosen call path, "" for none.

    Parameters
    ----------
    bookmarks : the bookmarks
    tree : the call paths of the experiment
    remove : removes the bookmark of a call path
    style : characters of text
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x,delete", "remove"),
        Binding("q", "leave"),
    ]
    KEYS = "Enter  go to the call path   x  remove the bookmark   q  back"

    def __init__(
        self,
        bookmarks: Bookmarks,
        tree: CallTree,
        remove: Callable[[str], None],
        style: TextStyle,
    ) -> None:
        super().__init__(style)
        self.title = f"bookmarks in {bookmarks.place}"
        self._bookmarks = bookmarks
        self._tree = tree
        self._remove = remove

    def listing(self, width: int) -> Listing:
        """Return the list, laid out for a width in terminal cells."""
        say = self._line_style.say
        marks = self._bookmarks.all
        is_there = [bool(self._tree.rows_of(mark.callpath)) for mark in marks]
        room = max(20, width * 3 // 5)
        paths = [say(printable(mark.callpath)) for mark in marks]
        names = [shorten(path.split("/"), room, say("…")) for path in paths]
        left = max(map(cell_len, names), default=0)
        entries = []
        for mark, name, known in zip(marks, names, is_there, strict=True):
            about = say(printable(mark.note)) if known else "not in this experiment"
            line = f"{mark.id}  {set_cell_size(name, left)}  {about}"
            text = Text(set_cell_size(line, width), style="" if known else "dim")
            entries.append(ListingEntry([text], mark.callpath if known else ""))
        foot = [] if marks else [Text("no bookmarks: press B on a call path", style="dim")]
        return Listing([Text()], entries, foot)

    def action_remove(self) -> None:
        """Remove the bookmark under the cursor."""
        marks = self._bookmarks.all
        if marks:
            self._remove(marks[self._at].callpath)
            self._renew()
