"""Layouts of tables in text: delimiters, bars of Markdown, runs of spaces, titles in comments."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from callpath_modeler.units import decimal_of

_DELIMITERS = (",", "\t", ";", "|")
_SEPARATOR_LINE = re.compile(r"sep=(.)\s*", re.IGNORECASE)
_EMPHASIS = re.compile(r"`|\*\*")
_RULE = frozenset("-+=|: \t")
_WIDE_GAP = re.compile(r"\s{2,}|\t")
_QUOTED = re.compile(r'"([^"]*)"|(\S+)')
_MOST_LINES = 200
"""Number of lines that tell the dialect."""
_MOST_HEADING = 10
_BETWEEN_TABLES = 2
"""Number of blank lines that separate tables of gnuplot."""
_LONGEST = 1 << 16

Row = tuple[list[str], int]
"""Fields of a row, and the number of its last line."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The layout of a table in text.

    Attributes
    ----------
    delimiter : character between the fields; " " = any run of spaces; "|" with `in_bars` = lines
        between bars, as in Markdown
    titles : titles, if they are not the first row
    in_bars : whether bars stand at both ends of a line
    first : number of the first line that may belong to the table
    """

    delimiter: str
    titles: tuple[str, ...] | None = None
    in_bars: bool = False
    first: int = 1


def dialect_of(text: str, is_table: Callable[[list[str]], bool]) -> Dialect:
    """Return the dialect of a table, from its first block.

    Parameters
    ----------
    is_table : whether titles are those of a table; of several tables in bars, the first of these
    """
    lines = text.splitlines()[:_MOST_LINES]
    told = _SEPARATOR_LINE.fullmatch(lines[0].lstrip("\ufeff")) if lines else None
    if told:
        return Dialect(told[1], first=2)
    bars = _first_in_bars(lines, is_table)
    if bars:
        return Dialect("|", in_bars=True, first=bars)
    rows = [line for line in lines if line.strip() and not line.startswith(("#", "%"))]
    if not rows:
        return Dialect(",")
    if len(rows) > 2 and len(text) >= _LONGEST:
        rows = rows[:-1]  # the block may end within the last line
    spaced = _spaced(lines, [line for line in rows if not is_rule(line)])
    if spaced is not None:
        return spaced
    delimiter = max(_DELIMITERS, key=rows[0].count)
    heading = _lines_of_heading(rows, is_table)
    if heading:
        rows = rows[heading:]
        delimiter = max(_DELIMITERS, key=rows[0].count)
        return Dialect(delimiter, first=1 + lines.index(rows[0]))
    titles = _commented(lines, rows, lambda line: _fields(line, delimiter))
    return Dialect(delimiter, titles)


def _lines_of_heading(rows: list[str], is_table: Callable[[list[str]], bool]) -> int:
    """Return the number of lines of free text above the titles, which have no delimiter."""
    for number, line in enumerate(rows[:_MOST_HEADING]):
        if any(delimiter in line for delimiter in _DELIMITERS):
            delimiter = max(_DELIMITERS, key=line.count)
            below = rows[number + 1 : number + 3]
            has_rows = bool(below) and all(delimiter in each for each in below)
            return number if has_rows and is_table(_fields(line, delimiter)) else 0
    return 0


def rows_of(lines: Iterable[str], dialect: Dialect) -> Iterator[Row]:
    """Yield the rows of a table, the titles first.

    Raises
    ------
    csv.Error
        If a quoted text does not end.
    """
    if dialect.titles is not None:
        yield [*dialect.titles], 1
    numbered = enumerate(lines, 1)
    if dialect.in_bars:
        yield from _rows_in_bars(numbered, dialect.first)
    elif dialect.delimiter == " ":
        for number, line in numbered:
            is_no_row = line.lstrip().startswith(("#", "%")) or is_rule(line.strip())
            if number >= dialect.first and not is_no_row:
                yield _words(line), number
    else:
        yield from _delimited_rows(lines, dialect)


def _delimited_rows(lines: Iterable[str], dialect: Dialect) -> Iterator[Row]:
    reader = csv.reader(lines, delimiter=dialect.delimiter, strict=True)
    try:
        for row in reader:
            if reader.line_num >= dialect.first:
                is_comment = bool(dialect.titles and row and row[0].startswith(("#", "%")))
                yield ([] if is_comment else row), reader.line_num
    except csv.Error as cause:
        raise csv.Error(f"line {reader.line_num}: {cause}") from cause


def _rows_in_bars(numbered: Iterator[tuple[int, str]], first: int) -> Iterator[Row]:
    for number, line in numbered:
        if number < first:
            continue
        text = line.strip()
        if not text.startswith("|"):
            return
        if not is_rule(text):
            cells = _cells(text)
            # Only the titles may begin with a number sign: "#cores".
            yield ([cells[0].lstrip("#"), *cells[1:]] if number == first else cells), number


def further_tables(
    lines: Iterable[str], dialect: Dialect, is_table: Callable[[list[str]], bool]
) -> list[int]:
    """Return the numbers of the lines with titles of tables below the table of a dialect.

    Only bars and titles in comments let a text have several tables. Any other title among the rows
    is an error of its cell.

    Parameters
    ----------
    is_table : whether titles are those of a table
    """
    numbered = enumerate(lines, 1)
    if dialect.in_bars:
        below = ((number, line) for number, line in numbered if number > dialect.first)
        return [number for number, titles in _titles_in_bars(below) if is_table(titles)]
    if dialect.titles is None:
        return []
    found, has_rows, blanks = list[int](), False, 0
    is_spaced = dialect.delimiter == " "
    for number, line in numbered:
        is_comment = line.lstrip().startswith(("#", "%"))
        is_row = not (is_comment or not line.strip())
        if is_comment and has_rows:
            text = line.strip().lstrip("#% ")
            titles = _words(text) if is_spaced else _fields(text, dialect.delimiter)
            if _are_further(titles, dialect.titles):
                found.append(number)
                blanks = 0
        elif is_row and has_rows and is_spaced and blanks >= _BETWEEN_TABLES:
            found.append(number)
        blanks = 0 if is_row else blanks + (not line.strip())
        has_rows = has_rows or is_row
    return found


def _are_further(titles: list[str], known: tuple[str, ...]) -> bool:
    """Return whether a comment has the titles of a further table: as many, and one of the first."""
    is_one = len(titles) == len(known) and not any(map(_is_number, titles))
    return is_one and bool({*titles} & {*known})


def _titles_in_bars(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the titles of every table in bars."""
    for (number, line), (_, below) in pairwise(numbered):
        is_titled = below.strip().startswith("|") and is_rule(below.strip())
        if is_titled and line.strip().startswith("|"):
            yield number, _cells(line.strip())


def is_rule(text: str) -> bool:
    """Return whether a text is a line between rows."""
    return "-" in text and _RULE.issuperset(text)


def _cells(text: str) -> list[str]:
    text = text[1:].removesuffix("|") if text.startswith("|") else text
    cells = (cell.strip() for cell in text.replace("\\|", "\0").split("|"))
    return [_EMPHASIS.sub("", cell).replace("\0", "|").strip("*") for cell in cells]


def _first_in_bars(lines: list[str], is_table: Callable[[list[str]], bool]) -> int:
    """Return the number of the line with the titles of a table in bars; 0 = there is none."""
    found = 0
    for number, titles in _titles_in_bars(enumerate(lines, 1)):
        found = found or number
        if is_table(titles):
            return number
    return found


def _spaced(lines: list[str], rows: list[str]) -> Dialect | None:
    """Return the dialect of columns that are separated by runs of spaces; None = they are not."""
    if not rows:
        return None
    head, *rest = rows
    body = rest or rows
    if any(delimiter in line for line in body for delimiter in ",;\t|"):
        return None
    widths = {len(_words(line)) for line in body}
    if len(widths) != 1 or widths == {1}:
        return None
    (width,) = widths
    if any(map(_is_number, _words(head))) and len(_words(head)) == width:
        titles = _commented(lines, rows, lambda line: _titles(line, width) or _words(line))
        return Dialect(" ", titles) if titles else None
    named = _titles(head, width)
    if not named or not any(_is_number(word) for word in _words(body[0])):
        return None
    return Dialect(" ", tuple(named), first=1 + lines.index(head) + 1)


def _titles(line: str, width: int) -> list[str]:
    """Return the titles in a line of `width` columns; none if they do not fit."""
    text = line.strip()
    for found in (_fields(text, ","), _WIDE_GAP.split(text), _words(text), _fields(text, "\t")):
        if len(found) == width and all(found):
            return [title.strip() for title in found]
    return []


def _commented(
    lines: list[str], rows: list[str], split: Callable[[str], list[str]]
) -> tuple[str, ...] | None:
    """Return the titles in the last comment above the numbers, as numpy.savetxt writes them."""
    first = split(rows[0])
    if not any(map(_is_number, first)):
        return None
    above = lines[: lines.index(rows[0])]
    comments = (line.lstrip("#% ").strip() for line in reversed(above) if line.strip())
    for comment in comments:
        titles = split(comment)
        if len(titles) == len(first) and not any(map(_is_number, titles)):
            return tuple(title.strip() for title in titles)
    return None


def _words(line: str) -> list[str]:
    if '"' not in line:
        return line.split()
    return [found[1] if found[1] is not None else found[2] for found in _QUOTED.finditer(line)]


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _is_number(text: str) -> bool:
    try:
        decimal_of(text)
    except ValueError:
        return False
    return True
