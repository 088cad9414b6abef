"""Text for people: its style, tables that fit the terminal, lists, and commands that go on.

Call paths are shortened, columns dropped, numbers kept.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.text import Text

from callpath_modeler.units import interval, quantity, to_ascii


@dataclass(frozen=True, slots=True)
class TextStyle:
    """The style of the lines of an answer.

    Attributes
    ----------
    width : columns of the terminal; None = lines are neither cut nor wrapped
    full_names : True = functions with return type and arguments
    ascii_only : True = no character beyond ASCII
    """

    width: int | None = None
    full_names: bool = False
    ascii_only: bool = False

    def say(self, text: str) -> str:
        """Return `text` in the characters that may be used."""
        return to_ascii(text) if self.ascii_only else text

    def amount(self, value: float, unit: str) -> str:
        """Return a quantity as text."""
        return quantity(value, unit, ascii_only=self.ascii_only)

    def interval(self, low: float, high: float, unit: str) -> str:
        """Return an interval of quantities as text."""
        return interval(low, high, unit, ascii_only=self.ascii_only)

    def lines(self, texts: Iterable[str], look: str = "", indent: str = "") -> list[Text]:
        """Return each text as lines that fit the width; `look` is a rich style."""
        return [part for text in texts for part in wrap(self.say(text), self.width, look, indent)]

    def answer(
        self,
        told: Iterable[str],
        context: Iterable[str],
        body: Iterable[Text],
        notes: Iterable[str],
        indent: str = "  ",
    ) -> list[Text]:
        """Return an answer as lines: sentences, a description, a table, and notes below it."""
        return [
            *self.lines(told, "bold"),
            *self.lines(context, "dim"),
            Text(""),
            *body,
            Text(""),
            *self.lines(notes, "dim", indent),
        ]

    def table(
        self,
        columns: Sequence[TextColumn],
        paths: Sequence[Sequence[str]],
        *,
        title: str = "call path",
        marks: Sequence[str] = (),
    ) -> list[Text]:
        """Return a table as the function `table` does, in characters that may be used."""
        spelled = [column.spelled(self.say) for column in columns]
        names = [[*map(self.say, path)] for path in paths]
        dots = self.say("…")
        return table(spelled, names, self.width, title=title, ellipsis=dots, marks=marks)

    def tree_table(
        self, columns: Sequence[TextColumn], nodes: Sequence[tuple[int, str]], *, title: str
    ) -> list[Text]:
        """Return a tree as the function `tree_table` does, in characters that may be used."""
        spelled = [column.spelled(self.say) for column in columns]
        named = [(depth, self.say(name)) for depth, name in nodes]
        return tree_table(spelled, named, self.width, title=title, ellipsis=self.say("…"))


DEFAULT_STYLE = TextStyle()
"""Lines of any width, short names, all characters."""


GAP = 2
# Blanks separate thousands, and numbers from units: "35 500 s", "4 % … 5 %", "p = 8".
_IN_A_QUANTITY = re.compile(
    r"(?<=\d) (?=(?:\d{3}|[A-Za-zµ]{1,2}|%)(?!\w))|(?<=[\w%]) (?=[…=] )|(?<= […=]) (?=[+\-\d])"
)
_TIE = "\N{NO-BREAK SPACE}"
NEXT = "next: "
"""Start of a line that ends with a command line."""
_SHELL_WORD = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")
_GOES_ON = " \\"
_ROOM = 24
"""Width of call paths, in cells; columns that may be dropped get the rest."""
_STEP = 2
"""Indentation of a node of a tree relative to its parent, in cells."""
_DEEPEST = 200
"""Largest indentation where nothing is cut, in cells: call chains can be 50,000 calls deep."""
_LEAST = 9
"""Least width of a call path, in cells, on any terminal."""
_LEAST_BESIDE = 5
"""Least width of a call path after its id, in cells; with less, only the id is shown."""


@dataclass(frozen=True, slots=True)
class TextColumn:
    """One column of a table.

    Attributes
    ----------
    header : its title
    cells : text per row
    right : align to the right, as for numbers
    droppable : priority of dropping the column on a narrow terminal, the highest first; 0 = never;
        1 = only after call paths are shortened as far as possible, then columns below 0; columns
        with the same number are dropped together
    styles : rich style per row, or empty
    """

    header: str
    cells: Sequence[str]
    right: bool = True
    droppable: int = 0
    styles: Sequence[str] = ()

    @property
    def width(self) -> int:
        """Width in terminal cells."""
        return max(cell_len(text) for text in (self.header, *self.cells))

    def spelled(self, say: Callable[[str], str]) -> TextColumn:
        """Return the column with the header and the cells that `say` returns for them."""
        return replace(self, header=say(self.header), cells=[say(cell) for cell in self.cells])


def table(
    columns: Sequence[TextColumn],
    paths: Sequence[Sequence[str]],
    width: int | None,
    *,
    title: str = "call path",
    ellipsis: str = "…",
    marks: Sequence[str] = (),
) -> list[Text]:
    """Return a table as lines: the header, then one line per row; call paths are the last column.

    Parameters
    ----------
    columns : columns before the call path
    paths : names from the root, per row; a single name is not shortened
    width : width of the terminal in cells; None = unlimited
    title : title of the last column
    ellipsis : text in place of omitted names
    marks : ids of the first rows, for call paths that look the same once shortened
    """
    kept = _kept(columns, width)
    labels = _labels(paths, _space(kept, width), ellipsis, marks)
    return _lines(kept, labels, title)


def tree_table(
    columns: Sequence[TextColumn],
    nodes: Sequence[tuple[int, str]],
    width: int | None,
    *,
    title: str,
    ellipsis: str = "…",
) -> list[Text]:
    """Return a tree as lines: the header, then one line per node; nodes are the last column.

    Parameters
    ----------
    columns : columns before the node
    nodes : depth and name of each node
    width : width of the terminal in cells; None = unlimited
    title : title of the last column
    ellipsis : text in place of omitted characters
    """
    deepest = max((depth for depth, _ in nodes), default=0)
    # Names need room after their indentation.
    kept = _kept(columns, width, min(_LEAST + deepest, _ROOM))
    space = _space(kept, width)
    step = _STEP if space is None or _STEP * deepest <= space // 2 else 1
    labels = [_node(depth, name, step, space, ellipsis) for depth, name in nodes]
    return _lines(kept, labels, shorten([title], space, ellipsis))


def _node(depth: int, name: str, step: int, space: int | None, ellipsis: str) -> str:
    """Return an indented name, with the depth as a number if there is no room for indentation."""
    deepest = _DEEPEST if space is None else space // 2
    indent = " " * min(step * depth, deepest)
    if step * depth > deepest:
        mark = f"({depth}) "
        indent = indent[: -len(mark)] + mark
    return indent + shorten([name], None if space is None else space - len(indent), ellipsis)


def _kept(
    columns: Sequence[TextColumn], width: int | None, least: int = _LEAST
) -> list[TextColumn]:
    """Return the columns that fit, given the least number of cells for call paths."""
    kept = list(columns)
    while width is not None and (those := [c.droppable for c in kept if c.droppable]):
        first = max(those)
        if _taken(kept) + (_ROOM if first > 1 else least) <= width:
            break
        kept = [column for column in kept if column.droppable != first]
    return kept


def _space(kept: Sequence[TextColumn], width: int | None) -> int | None:
    return None if width is None else max(_LEAST, width - _taken(kept))


def _lines(kept: Sequence[TextColumn], labels: Sequence[str], title: str) -> list[Text]:
    widths = [column.width for column in kept]
    lines = [_line([(c.header, c, "bold") for c in kept], widths, title, "bold")]
    for row, label in enumerate(labels):
        cells = [(c.cells[row], c, c.styles[row] if c.styles else "") for c in kept]
        lines.append(_line(cells, widths, label, ""))
    return lines


def _labels(
    paths: Sequence[Sequence[str]], space: int | None, ellipsis: str, marks: Sequence[str]
) -> list[str]:
    labels = [shorten(names, space, ellipsis) for names in paths]
    count = Counter(labels)
    for row, mark in enumerate(marks):
        if count[labels[row]] > 1:
            room = None if space is None else space - cell_len(mark) - 1
            is_shown = room is None or room >= _LEAST_BESIDE
            path = shorten(paths[row], room, ellipsis) if is_shown else ""
            labels[row] = f"{path} {mark}".lstrip()
    return labels


def wrap(text: str, width: int | None, style: str = "", indent: str = "") -> list[Text]:
    """Return a text as lines of at most `width`, broken between words but not inside numbers.

    A command line after `NEXT` can be pasted.
    """
    if width is None or cell_len(text) <= width:
        return [Text(text, style=style)]
    if text.startswith(NEXT):
        return [Text(part, style=style) for part in _commands(text, width)]
    parts = textwrap.wrap(tied(text), width, subsequent_indent=indent, break_on_hyphens=False)
    return [Text(part.replace(_TIE, " "), style=style) for part in parts]


def _commands(text: str, width: int) -> list[str]:
    """Return the lines of a text that ends with a command, with breaks that a shell accepts."""
    first, *words = _SHELL_WORD.findall(text)
    lines = [first]
    for word in words:
        if cell_len(f"{lines[-1]} {word}{_GOES_ON}") > width:
            lines[-1] += _GOES_ON
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}"
    return lines


def tied(text: str) -> str:
    r"""Return a text with no-break spaces inside numbers, intervals, ``p = 8`` and before units.

    >>> tied("in 16 900 s … 2 h at p = 8, or 3 runs").split(" ")[2:]
    ['at', 'p\xa0=\xa08,', 'or', '3', 'runs']
    """
    return _IN_A_QUANTITY.sub(_TIE, text)


def _taken(columns: Sequence[TextColumn]) -> int:
    return sum(column.width + GAP for column in columns)


def _line(
    cells: Sequence[tuple[str, TextColumn, str]], widths: Sequence[int], label: str, style: str
) -> Text:
    line = Text(no_wrap=True, overflow="ignore")
    for (text, column, cell_style), width in zip(cells, widths, strict=True):
        pad = " " * (width - cell_len(text))
        line.append(pad + text if column.right else text + pad, cell_style or None)
        line.append(" " * GAP)
    line.append(label, style or None)
    line.rstrip()
    return line


def aligned(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> list[str]:
    """Return one line per row of cells.

    Columns are aligned to the left. With `numbers`, all but the first are aligned to the right.

    >>> aligned([("p", "values"), ("size", "10")])
    ['p     values', 'size  10']
    >>> aligned([("p", "values"), ("size", "10")], numbers=True)
    ['p     values', 'size      10']
    """
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        pads = [" " * (w - cell_len(cell)) for cell, w in zip(row, widths, strict=True)]
        dressed = [
            pad + cell if numbers and place else cell + pad
            for place, (cell, pad) in enumerate(zip(row, pads, strict=True))
        ]
        lines.append((" " * GAP).join(dressed).rstrip())
    return lines


def chain_text(names: Sequence[str], room: int, ellipsis: str = "…") -> str:
    """Return a chain of calls as text: ``a > b > z``, or ``a > … (7) … > z`` in less room.

    Parameters
    ----------
    names : names of the functions, the first caller first
    room : width in terminal cells
    ellipsis : characters that replace names
    """
    *above, last = names
    cut = f"{ellipsis} ({{}}) {ellipsis}"
    forms = [" > ".join(names)]
    if len(above) > 1:
        forms.append(f"{above[0]} > {cut.format(len(above) - 1)} > {last}")
    if above:
        forms.append(f"{cut.format(len(above))} > {last}")
    fitting = (form for form in forms if cell_len(form) <= room)
    return next(fitting, "") or shorten([last], room, ellipsis)


def cut(text: str, room: int = 300) -> str:
    """Return a text of about `room` characters at most; longer ones lose their middle."""
    half = room // 2
    return text if len(text) <= room else f"{text[:half]} … {text[-half:]}"


def shorten(names: Sequence[str], space: int | None, ellipsis: str = "…") -> str:
    """Join names by ``/``; drop names from the middle if the text is wider than `space`.

    The first name stays if there is room for two of the last. Otherwise the end of the path takes
    all the room, because it is more informative.

    >>> shorten(["main", "LagrangeLeapFrog", "CommSBN", "MPI_Waitall"], 30)
    'main/…/CommSBN/MPI_Waitall'
    >>> shorten(["main", "LagrangeLeapFrog", "CommSBN", "MPI_Waitall"], 16)
    '…SBN/MPI_Waitall'
    """
    full = "/".join(names)
    if space is None or cell_len(full) <= space:
        return full
    # A name and its slash take at least two cells, so half the room limits the number of names.
    for start in range(max(2, len(names) - space // 2 - 1), len(names) - 1):
        short = "/".join([names[0], ellipsis, *names[start:]])
        if cell_len(short) <= space:
            return short
    room = space - cell_len(ellipsis)
    tail = full[-room:] if room > 0 else ""
    while tail and cell_len(tail) > room:  # characters that take two cells
        tail = tail[1:]
    return ellipsis + tail


@dataclass(frozen=True, slots=True)
class ListingEntry:
    """Lines about one call path, or about something else to choose.

    Attributes
    ----------
    lines : at least one line
    choice : the chosen text, such as a call path; "" = it cannot be chosen, or it is a call path
        of another experiment
    """

    lines: Sequence[Text]
    choice: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list, laid out for a width.

    Attributes
    ----------
    head, foot : lines above and below
    entries : in order
    chosen : number of the entry that is selected first
    """

    head: Sequence[Text]
    entries: Sequence[ListingEntry]
    foot: Sequence[Text]
    chosen: int = 0


_WITH_EXCESS_WORK = frozenset({"rank", "show", "views", "report", "excess"})
"""Commands that know expected costs."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The words of a command line, quoted for a shell.

    Attributes
    ----------
    sources : the experiment
    options : options that every command knows
    before : options before the command
    expected : option of expected costs, for commands with excess work
    """

    sources: str = "EXP"
    options: str = ""
    before: str = ""
    expected: str = ""

    def line(self, command: str, words: str = "") -> str:
        """Return the command line of another command on the same experiment with the same options.

        Parameters
        ----------
        command : name of the command
        words : further arguments of that command
        """
        expected = self.expected if command in _WITH_EXCESS_WORK else ""
        parts = ("cpmodel", self.before, command, self.sources, words, expected, self.options)
        return " ".join(part for part in parts if part)

    def hint(self, command: str, words: str = "") -> str:
        """Return the command line as a proposal for the next step."""
        return NEXT + self.line(command, words)


EXPERIMENT, NEW = Invocation(), Invocation("NEW")
"""Placeholders for an unknown experiment, and for the newer of two experiments."""
