"""Keys: their actions, the line with the main ones, and the help with all."""

from __future__ import annotations

from collections.abc import Collection
from textwrap import wrap

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding, BindingType

from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle

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
