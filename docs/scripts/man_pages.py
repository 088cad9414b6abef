"""Man pages of `cpmodel` and its commands, from the texts of `--help`.

``make man`` writes them to ``docs/man``, and every wheel installs them from there. They are kept in
the repository, so that the build of a wheel imports no command.
"""

from __future__ import annotations

import re
import sys

from command_tree import ROOT, CommandText, command_texts

sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

FOLDER = ROOT / "docs" / "man"
_GLYPHS = {
    "\\": "\\e",
    "-": "\\-",
    "^": "\\(ha",
    "~": "\\(ti",
    "`": "\\(ga",
    "'": "\\(aq",
    '"': "\\(dq",
}
_CODE = re.compile(r"`([^`]+)`")


def escaped(text: str) -> str:
    r"""Return text as one line of roff input that prints unchanged.

    >>> print(escaped(".5 in 'a-b'"))
    \&.5 in \(aqa\-b\(aq
    """
    signs = (_GLYPHS.get(sign, sign) for sign in " ".join(text.split("\n")))
    line = "".join(sign if sign.isascii() else f"\\[u{ord(sign[0]):04X}]" for sign in signs)
    return f"\\&{line}" if line.startswith(".") else line


def man_page(text: CommandText, version: str) -> str:
    """Return the man page of a command as roff text."""
    title, source = escaped(text.name.upper()), escaped(f"callpath_modeler {version}")
    lines = [
        f'.TH "{title}" 1 "" "{source}" "User Commands"',
        ".SH NAME",
        f"{escaped(text.name)} \\- {escaped(text.summary)}",
        ".SH SYNOPSIS",
        f"{_bold(' '.join(text.words))} {escaped(text.usage)}",
        ".SH DESCRIPTION",
        *(line for paragraph in text.paragraphs for line in _paragraph(paragraph)),
    ]
    if text.options:
        lines.append(".SH OPTIONS")
        for heading, options in text.options.items():
            lines += [f".SS {escaped(heading)}"] * (len(text.options) > 1)
            for spelling, about in options:
                lines += [".TP", _bold(spelling), _with_code(about)]
    if text.subcommands:
        lines.append(".SH COMMANDS")
        for words, summary in text.subcommands:
            lines += [".TP", f"{_bold('-'.join(words))}(1)", f"{_with_code(summary)}."]
    if len(text.words) > 1:
        lines += [".SH SEE ALSO", f"{_bold('-'.join(text.words[:-1]))}(1)"]
    return "\n".join(lines) + "\n"


def _bold(text: str) -> str:
    return f"\\fB{escaped(text)}\\fR"


def _with_code(text: str) -> str:
    """Return a paragraph with `code` in bold."""
    parts = _CODE.split(text)
    return "".join(_bold(part) if odd % 2 else escaped(part) for odd, part in enumerate(parts))


def _paragraph(paragraph: str) -> list[str]:
    lines = paragraph.split("\n")
    if len(lines) == 1:
        return [".PP", _with_code(paragraph)]
    return [".PP", ".nf", *map(escaped, lines), ".fi"]


def man_pages() -> dict[str, str]:
    """Return the text of every man page by its file name."""
    import tomllib

    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return {f"{text.name}.1": man_page(text, version) for text in command_texts()}


def main() -> None:
    """Replace the man pages in ``docs/man``."""
    pages = man_pages()  # old pages stay if the commands cannot be imported
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.1"):
        old.unlink()
    for name, page in pages.items():
        (FOLDER / name).write_text(page, encoding="ascii")


if __name__ == "__main__":
    main()
