"""Safe output of foreign text to a terminal, C, CSV, XML, or a shell.

Names of functions, metrics, parameters and files come from files that nobody checked. Each language
has one function, and all code that writes the language calls it. LaTeX has its own in
`report.model_formulas` and HTML in `report.page.markup`, because they also set formulas and tags.
That of matplotlib is `report.model_plot.label`, because it asks the font for its signs.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence

_COMMENT_SIGNS = re.compile(r"\*(?=/)|/(?=\*)")
_FORMULA_SIGNS = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""Characters that start a formula; some spreadsheets accept the wide forms as well."""
_FORMULA = re.compile(f"'*[{_FORMULA_SIGNS}]")
_COVERED = re.compile(f"'+[{_FORMULA_SIGNS}]")
_HARMLESS = re.compile(
    r"[+-]?(\d++\.?\d*+|\.\d++)([eE][+-]?\d++)?|[+-]?inf|-|@[0-9a-f]{7,}", re.ASCII
)
"""Numbers, a dash for nothing, and ids of call paths, which scripts pass to commands."""
_ALL_HARMLESS = re.compile(f"(?:(?:{_HARMLESS.pattern})\n)*", re.ASCII)
_LONG = 2**16
"""Length of a text from which it is examined as an array."""
_SUSPECT = frozenset(f"'{_FORMULA_SIGNS}")
"""Characters that start texts which a spreadsheet may read as a formula."""
_MARKDOWN = re.compile(
    r"[\\`|~$]|<(?=[^\s=])|&(?=[#\w])|\](?=[(\[:])|\*(?! )|(?<! )\*|(?<![^\W_])_|_(?![^\W_])"
)
_MARKDOWN_LINK = re.compile(
    r"(?<=[@#!&%~$])(?=\w)|(?<=www)(?=\.)|(?<=:)(?=//)|(?<=\bGH)(?=-\d)", re.IGNORECASE
)
"""Positions in texts that GitHub or GitLab would make a link: addresses, people, issues."""
_ID = re.compile("@[0-9a-f]+", re.ASCII)
_CUT = "<!-- -->"
"""An empty comment, which ends a link in Markdown and shows nothing, not even to a copy."""
_OBEYED = (
    "\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
"""Invisible characters beyond ASCII that control a terminal or an editor."""
_NOT_JSON = re.compile(f"[{_OBEYED}]")
_NOT_XML = re.compile(f"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[{_OBEYED}]")


def printable(text: str) -> str:
    r"""Return a text in which escapes of Python replace characters that cannot be printed.

    >>> printable("MPI_Init\x1b[31m\n")
    'MPI_Init\\x1b[31m\\n'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def shortened(text: str, most: int = 60) -> str:
    """Return a text of at most `most` characters; longer texts lose their middle.

    Every quotation from a file in an error or a finding passes this function.

    >>> shortened("MPI_Allreduce"), shortened("x" * 1000, 13)
    ('MPI_Allreduce', 'xxxxxxxx...xx')
    """
    if len(text) <= most:
        return text
    end = max(0, most - 3) // 4
    return f"{text[: max(0, most - 3 - end)]}...{text[len(text) - end :]}"


def in_one_line(text: str, other: str = " ") -> str:
    """Return a text in which `other` replaces characters that cannot be printed."""
    return "".join(sign if sign.isprintable() else other for sign in text)


def c_comment(text: str) -> str:
    r"""Return a text that cannot end a comment of C, or begin another.

    >>> c_comment("x*/ system(1); /\\*")
    'x* / system(1); /\\*'
    """
    # A backslash stays: as a slash it could end the comment.
    return _COMMENT_SIGNS.sub(r"\g<0> ", printable(text))


def dot_string(text: str) -> str:
    r"""Return a text as a quoted string of the DOT language.

    >>> print(dot_string('a"b\\'))
    "a\"b\\"
    """
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def python_docstring(text: str) -> str:
    """Return a text that is safe in a docstring of Python, in one line."""
    return in_one_line(text).replace("\\", "\\\\").replace('"', "'")


def shell_word(word: str) -> str:
    """Return one word for a POSIX shell, quoted if necessary.

    >>> shell_word("p>=64"), shell_word("p=64")
    ("'p>=64'", 'p=64')
    """
    return shlex.quote(printable(word))


def shell_words(words: Iterable[str]) -> str:
    """Return words for a POSIX shell, in one line.

    >>> shell_words(["rank", "a b", "$(id)"])
    "rank 'a b' '$(id)'"
    """
    return " ".join(map(shell_word, words))


def csv_cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet reads as a formula; `csv_text` undoes it.

    Spreadsheets compute a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break,
    and a formula can send data elsewhere. An apostrophe before it makes it text. Numbers, a dash
    and ids of call paths stay unchanged. Characters that cannot be printed, except line breaks, are
    escaped.

    >>> csv_cell("=HYPERLINK(1)"), csv_cell("'=x"), csv_cell("main/f"), csv_cell("-5.5e3")
    ("'=HYPERLINK(1)", "''=x", 'main/f', '-5.5e3')
    """
    if not text.isprintable():
        text = "\n".join(map(printable, text.split("\n")))
    return f"'{text}" if _FORMULA.match(text) and not _HARMLESS.fullmatch(text) else text


def csv_cells(texts: Sequence[str]) -> Sequence[str]:
    """Return texts as cells like `csv_cell`, but faster for many texts.

    >>> csv_cells(["main/f", "=1", "@0a1b2c3"])
    ['main/f', "'=1", '@0a1b2c3']
    """
    if not _is_printable("".join(texts)):
        return [*map(csv_cell, texts)]
    suspects = [k for k, text in enumerate(texts) if text[:1] in _SUSPECT]
    if _ALL_HARMLESS.fullmatch("".join(f"{texts[k]}\n" for k in suspects)):
        return texts
    cells = [*texts]
    for k in suspects:
        cells[k] = csv_cell(cells[k])
    return cells


def _is_printable(text: str) -> bool:
    """Return the same as `str.isprintable`, but faster for megabytes of text in ASCII."""
    if not text.isascii() or len(text) < _LONG:
        return text.isprintable()
    import numpy as np

    characters = np.frombuffer(text.encode(), np.uint8)
    return bool(characters.min() >= ord(" ") and characters.max() <= ord("~"))


def csv_text(cell: str) -> str:
    """Return the text of a cell that `csv_cell` wrote.

    >>> csv_text("'=x"), csv_text("'x'"), csv_text("-1")
    ('=x', "'x'", '-1')
    """
    return cell[1:] if _COVERED.match(cell) else cell


def markdown_text(text: str) -> str:
    r"""Return a text that Markdown shows literally, in one line and in one cell of a table.

    It contains no tags, links, images, emphasis, code or mathematics. GitHub and GitLab find no
    address, person or issue in it: an empty comment divides them. The id of a call path is code, so
    it can be copied from a log that shows Markdown as it is.

    >>> print(markdown_text("a|b[x](http://y) <img> MPI_Init 2 * p __main__"))
    a\|b[x\](http:<!-- -->//y) \<img> MPI_Init 2 * p \_\_main\_\_
    >>> print(markdown_text("@owner #1 www.example.org"))
    @<!-- -->owner #<!-- -->1 www<!-- -->.example.org
    >>> print(markdown_text("@049f532"))
    `@049f532`
    """
    if _ID.fullmatch(text):
        return f"`{text}`"
    return _MARKDOWN_LINK.sub(_CUT, _MARKDOWN.sub(r"\\\g<0>", in_one_line(text)))


def json_text(document: str) -> str:
    r"""Return equivalent JSON with escapes for characters that control a terminal.

    >>> json_text('["a\u202e"]')
    '["a\\u202e"]'
    """
    if document.isascii() and "\x7f" not in document:
        return document
    return _NOT_JSON.sub(
        lambda sign: json.dumps(sign[0])[1:-1].replace("\x7f", "\\u007f"), document
    )


def xml_text(text: str) -> str:
    """Return a text without characters that XML forbids or that control a terminal; lines stay."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def github_message(text: str) -> str:
    r"""Return the message of a workflow command of GitHub; it may have several lines.

    >>> github_message("100 %\n::error::x")
    '100 %25%0A::error::x'
    """
    lines = (printable(line) for line in text.split("\n"))
    return "%0A".join(line.replace("%", "%25") for line in lines)


def github_property(text: str) -> str:
    """Return the value of a property of a workflow command of GitHub.

    >>> github_property("a:b,c")
    'a%3Ab%2Cc'
    """
    return github_message(text).replace(":", "%3A").replace(",", "%2C")
