"""Keys of the browser, and their actions on its state."""

from __future__ import annotations

from collections.abc import Collection
from textwrap import wrap

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding, BindingType

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.outline import SHARED, Opening
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.profile.view_request import Sort, find_node
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle
from callpath_modeler.tui.state import SearchHits, State, search_view


class Session(State):
    """The state of a browser with the actions of keys.

    Parameters
    ----------
    forecast : values at a target, of one experiment or of two
    request : initial view; its filters of lines only apply to that view
    """

    # View

    def show(self, kind: ViewKind) -> None:
        """Show another view."""
        self.kind = kind
        self.found = SearchHits()
        self.refresh()

    def sort_next(self) -> None:
        """Order siblings by the next column."""
        sorts = self.forecast.sorts
        self.sort = sorts[(sorts.index(self.sort) + 1) % len(sorts)]
        self.refresh()

    def sort_by(self, sort: Sort) -> None:
        """Order siblings by a column; by the same column: reverse their order."""
        if sort is self.sort:
            self.turn_round()
        elif sort in self.forecast.sorts:
            self.sort, self.reverse = sort, False
            self.refresh()

    def turn_round(self) -> None:
        """Reverse the order of siblings."""
        self.reverse = not self.reverse
        self.refresh()

    def lead_with_other(self) -> None:
        """Switch between inclusive and exclusive values as the leading ones."""
        self.inclusive = not self.leads_inclusive
        self.refresh()

    def hide_or_show_small(self) -> None:
        """Hide nodes with a small share, or show them."""
        self.hides = not self.hides
        self.refresh()

    def filter(self, pattern: str) -> None:
        """Show only nodes that match a pattern; an empty pattern shows all.

        Raises
        ------
        UsageError
            If nothing matches; the state is then unchanged.
        """
        before, kept_before = self.pattern, self.kept_costs
        self.pattern, self.kept_costs = pattern, {}
        try:
            self.refresh()
        except UsageError:
            self.pattern, self.kept_costs = before, kept_before
            raise

    # The cursor

    def caller(self) -> None:
        """Go to the line above in the tree."""
        above = self.outline.above(self.cursor) if len(self.outline) else -1
        if above >= 0:
            self.go(above)

    # Opening and closing

    @property
    def can_open(self) -> bool:
        """Whether the line under the cursor has lines to open."""
        return self.node != SHARED and bool(self.outline.is_closed[self.cursor])

    def open(self) -> None:
        """Open the node under the cursor."""
        if self.can_open:
            self.tree_cursor.open(self.node)
            self.refresh()

    def go_in(self) -> None:
        """Open the node under the cursor; if it is open, go to its first line."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.go(self.cursor + 1)
        else:
            self.open()

    def close(self) -> None:
        """Close the node under the cursor."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.tree_cursor.close(self.node)
            self.refresh()

    def go_out(self) -> None:
        """Close the node under the cursor; if it is closed, go to the node above."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.close()
        else:
            self.caller()

    def toggle(self) -> None:
        """Open or close the node under the cursor."""
        if len(self.outline) and self.outline.is_open[self.cursor]:
            self.close()
        else:
            self.open()

    def open_all(self) -> None:
        """Open the subtree of the node under the cursor."""
        if self.node != SHARED and len(self.outline):
            self.tree_cursor.forget_below(self.node)
            self.tree_cursor.told[self.node] = Opening.ALL
            self.refresh()

    def close_all(self) -> None:
        """Close the subtree of the node under the cursor; at the top of the view, also the node."""
        if self.node == SHARED or not len(self.outline):
            return
        node = self.node
        self.tree_cursor.forget_below(node)
        if self.tree_cursor.opens_below(node):
            self.tree_cursor.told[node] = Opening.CLOSED
        self.refresh()

    # Navigation

    def follow_hot_path(self) -> None:
        """Open the hot path below the cursor, and go to its end."""
        node = self.node
        self.open_hot(node if node != SHARED else ROOT)
        self.refresh()

    def zoom(self) -> None:
        """Show the view from the node under the cursor."""
        if self.node != SHARED and len(self.outline) and self.node != self.tree_cursor.start:
            self.tree_cursor.zooms.append(self.node)
            self.tree_cursor.open(self.node)
            self.refresh()

    def unzoom(self) -> None:
        """Show the view from the previous zoomed node, or from the whole program."""
        if self.tree_cursor.zooms:
            self.tree_cursor.zooms.pop()
            self.refresh()

    def search(self, text: str) -> int:
        """Find nodes whose name contains a text, go to the costliest, and return their number."""
        self.found = search_view(
            self.view,
            text,
            self.tree_cursor.start,
            self.forecast.decides,
            inclusive=self.leads_inclusive,
            chains=self.forecast.chains,
        )
        if len(self.found.nodes):
            self._reveal(self.found.go(0))
        return len(self.found.nodes)

    def next_match(self, step: int = 1) -> tuple[int, int]:
        """Go to the search hit after the cursor; return its number, from 1, and the number of hits.

        From a node that is no hit, it is the one after the last hit that was shown.
        """
        if not len(self.found.nodes):
            return 0, 0
        here = self.found.number(self.node)
        if here:
            self.found.at = here - 1
        self._reveal(self.found.go(step))
        return self.found.at + 1, len(self.found.nodes)

    def end_search(self) -> None:
        """Forget the search."""
        self.found = SearchHits()

    def go_to(self, callpath: str) -> None:
        """Go to a call path in the top-down view.

        Raises
        ------
        UsageError
            If there is no such call path; the state is then unchanged.
        """
        self.go_to_row(find_node(self._view_of(ViewKind.TOP_DOWN, self.forecast), callpath))

    def go_to_row(self, node: int) -> None:
        """Go to a call path in the top-down view, by its row."""
        self.show(ViewKind.TOP_DOWN)
        start, end = self.tree_cursor.start, self.view.tree.end
        if start != ROOT and not start <= node < end[start]:
            self.tree_cursor.zooms.clear()
        self._reveal(node)

    def _reveal(self, node: int) -> None:
        """Open the nodes above a node and go to it, even if it is hidden."""
        above = self.view.parent(node)
        while above != ROOT:
            if (
                not self.tree_cursor.opens_below(above)
                or self.tree_cursor.told.get(above) is Opening.CLOSED
            ):
                self.tree_cursor.open(above)
            above = self.view.parent(above)
        if self.kind is not ViewKind.TOP_DOWN:
            self.tree_cursor.zooms.clear()
        self.tree_cursor.node = node
        self.refresh()
        if self.node != node and self.hides:
            self.hides = False
            self.tree_cursor.node = node
            self.refresh()
        if self.node != node and self.pattern:
            self.filter("")
            self.select(node)


ARROWS: tuple[BindingType, ...] = (
    Binding("up", "move(-1)"),
    Binding("down", "move(1)"),
    Binding("pageup", "page(-1)"),
    Binding("pagedown", "page(1)"),
    Binding("home", "move(-1000000000)"),
    Binding("end", "move(1000000000)"),
)
"""Keys without letters that move in lists: they call `action_move` and `action_page`."""
MOVES: tuple[BindingType, ...] = (*ARROWS, Binding("k", "move(-1)"), Binding("j", "move(1)"))
"""The same with letters."""

_ACTIONS = (
    ("q,ctrl+c,ctrl+q", "quit"),
    ("right,l", "do('go_in')"),
    ("left,h", "do('go_out')"),
    ("enter", "do('toggle')"),
    ("e", "do('open')"),
    ("E", "do('open_all')"),
    ("c", "do('close')"),
    ("C", "do('close_all')"),
    ("u", "do('caller')"),
    ("H", "do('follow_hot_path')"),
    ("z", "do('zoom')"),
    ("backspace", "do('unzoom')"),
    ("1", "show('top-down')"),
    ("2", "show('bottom-up')"),
    ("3", "show('flat')"),
    ("s", "do('sort_next')"),
    ("S", "do('turn_round')"),
    ("i", "do('lead_with_other')"),
    ("full_stop", "do('hide_or_show_small')"),
    ("g", "heat"),
    ("m", "metric"),
    ("left_square_bracket", "target(0.5)"),
    ("right_square_bracket", "target(2.0)"),
    ("t", "prompt('target')"),
    ("p", "basis"),
    ("slash", "prompt('search')"),
    ("n", "found(1)"),
    ("N", "found(-1)"),
    ("f", "prompt('filter')"),
    ("d", "prompt('compare')"),
    ("b", "prompt('pair')"),
    ("x", "prompt('check')"),
    ("r", "processes"),
    ("w", "prompt('write')"),
    ("y", "command"),
    ("ctrl+d", "scroll(1)"),
    ("ctrl+u", "scroll(-1)"),
    ("Y", "copy"),
    ("B", "prompt('note')"),
    ("apostrophe", "bookmarks"),
    ("question_mark", "help"),
    ("escape", "escape"),
)

BINDINGS: list[BindingType] = [
    # Text that is typed or pasted right after such a key belongs to the prompt.
    Binding(keys, action, priority=action.startswith("prompt"))
    for keys, action in _ACTIONS
]

KEYS = (
    "↑↓ move  →← open close  [ ] target ½ ×2  t target  1 2 3 view  H hot path  / search  "
    "f filter  z zoom  s sort  m metric  i incl/excl  . small  "
    "b two scales  d compare  x expectations  r ranks  y command  ? keys  q quit"
)
KEYS_ASCII = KEYS.replace("↑↓", "j k").replace("→←", "l h").replace("½ ×2", "/2 x2")

_HELP = """\
Move         up down or j k   page up, page down, home, end   u  the caller
Open, close  right or l, left or h   Enter does either   H  the hot path
             e  open   E  all below   c  close   C  all below
Views        1  top-down   2  bottom-up   3  flat   z  zoom   Backspace  out
Target       [  half   ]  double   t  type it   p  measured or predicted
Values       m  list of metrics   i  inclusive, exclusive   g  growth heat
             s  next order   S  the other way round   r  values of ranks
Choose       /  search   n N  next, previous   Escape  end   .  small shares
             f  filter by a pattern, e.g. main/**/MPI_*; empty: all
Details      ctrl+d ctrl+u  scroll   Y  copy
Bookmarks    B  bookmark with a note   '  list
Ask          b  two scales   d  another experiment   x  expectations of a file
Keep         w  write the view: .txt .csv .json .md ...   y  its command
             ?  these keys   q  quit"""
_INDENT, _READABLE = 13, 73
_MEANINGS = """\
Share: part of the whole program's cost at the target. Band: it holds the value with the probability
in its title. Trust: the band lies within ●●●● 10 %, ●●●○ 25 %, ●●○○ a factor of 2, ●○○○ a factor of
5. Excess: cost beyond perfect scaling since the smallest run. Imbalance: maximum over mean of the
processes. A target that was run is measured; the column model is then the error of
the models. Chart: ● measured, ░ band, ┊ end of the data, ◆ target."""

_MEANINGS_OF_PAIR = """\
Base, new: values of both experiments. Difference: new minus base; red is worse, green is better.
Ratio: new over base; new, gone: the call path occurs in one of them only. ~: noise may explain the
difference. Own diff.: difference of the exclusive values. d with another path changes the base; d
with an empty line shows one experiment. Chart: ● measured, ░ band, ┊ end of the data, ◆ target."""


def help_text(width: int, *, is_pair: bool = False) -> str:
    """Return the help: all keys, and the meaning of the columns, in lines of `width`.

    Parameters
    ----------
    width : width in terminal cells
    is_pair : whether the columns are those of two experiments
    """
    lines = []
    for line in _HELP.splitlines():
        start, *rest = line[_INDENT:].split("   ")
        lines.append(line[:_INDENT] + start)
        for each in rest:
            if len(lines[-1]) + 3 + len(each) <= width:
                lines[-1] += f"   {each}"
            else:
                lines.append(" " * _INDENT + each)
    # Long lines continue below their start.
    below = " " * (_INDENT + 3)
    lines = [part for line in lines for part in wrap(line, width, subsequent_indent=below)]
    meanings = _MEANINGS_OF_PAIR if is_pair else _MEANINGS
    return "\n".join([*lines, "", *wrap(meanings, min(width, _READABLE))])


OF_MODELS = ("[ ] target ½ ×2", "[ ] target /2 x2", "t target")
"""Keys that the line leaves out if there are no models."""

_TARGET = "t target"
"""The key after which the key for measured targets is inserted."""


def line(
    width: int,
    *,
    other: str = "",
    without: Collection[str] = (),
    style: TextStyle = DEFAULT_STYLE,
) -> Text:
    """Return as many keys as fit the width, always with the key of the help.

    Parameters
    ----------
    width : width in cells
    other : the alternative basis of values, ``measured`` or ``predicted``; "" = none
    without : keys that are left out
    style : width, length of names, and characters of text
    """
    known = (KEYS_ASCII if style.ascii_only else KEYS).split("  ")
    if other:
        known.insert(known.index(_TARGET) + 1, f"p {other}")
    known = [key for key in known if key not in without]
    last = "  ".join(known[-2:])
    shown = ""
    for key in known[:-2]:
        if cell_len(f"{shown} {key}  {last}") > width - 1:
            break
        shown += f" {key} "
    return Text(f"{shown} {last}"[:width], style="dim")
