"""Files that commands wrote, as text."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import struct
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VOID = frozenset({"meta", "link", "input", "br", "hr", "img", "path", "line", "rect", "circle"})
ROWS = frozenset({"tr", "li", "p", "summary", "h1", "h2", "h3", "caption", "title", "dt", "dd"})
UNSEEN = frozenset({"style", "script"})
SHAPES = frozenset({"path", "line", "rect", "circle", "polyline", "polygon", "use", "g", "ellipse"})

LONGEST = 500
"""Length of a line from which JSON is split."""
FORMULA = 848
"""Bytes of a value of Cube's type SCALE_FUNC."""


class Outline(HTMLParser):
    """Structure and text of a page: one line for each row, item or paragraph.

    The line has its elements with their classes, and its text. A picture is the number of its
    shapes, and its texts. Styles, programs, sizes and positions are left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._open: list[str] = []
        self._texts: list[str] = []
        self._shapes: Counter[str] = Counter()
        self._label = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag in SHAPES:
            kind = known.get("class")
            self._shapes[f"{tag}.{kind.replace(' ', '.')}" if kind else tag] += 1
        if tag in {"td", "th", "span", "button", "text"} and self._texts:
            self._texts.append("|")
        if tag in ROWS or tag in {"section", "table", "svg", "details", "nav", "ul", "div"}:
            self._end()
            names = [tag, *(f".{name}" for name in (known.get("class") or "").split())]
            names += [f"#{known['id']}"] if known.get("id") else []
            self._label = "".join(names)
        if known.get("href"):
            self._texts.append(f"[{known['href']}]")
        if known.get("aria-label"):
            self._texts.append(f"({known['aria-label']})")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        while tag in self._open and self._open.pop() != tag:
            pass
        if tag == "svg":
            self._end()
            shapes = ", ".join(f"{n} {name}" for name, n in sorted(self._shapes.items()))
            self.lines.append(f"svg of {shapes}")
            self._shapes.clear()
        elif tag in ROWS:
            self._end()

    def handle_data(self, data: str) -> None:
        if not UNSEEN & set(self._open[-1:]) and data.strip():
            self._texts.append(" ".join(data.split()))

    def _end(self) -> None:
        text = re.sub(r"(\| )+", "| ", " ".join(self._texts)).strip(" |")
        if text:
            self.lines.append(f"{self._label}: {text}")
        self._texts.clear()


def page(content: str) -> str:
    """Return structure and text of a page or a picture."""
    outline = Outline()
    outline.feed(content)
    outline.close()
    return "\n".join(outline.lines) + "\n"


def plot(content: str) -> str:
    """Return the groups and texts of a plot; Matplotlib writes each text as a comment."""
    found = re.findall(r'<g id="([a-zA-Z.]+)[\d_]*"|<!-- (.*?) -->', content)
    return "".join(f"{text!r}\n" if text else f"{group}\n" for group, text in found)


def cube(content: bytes) -> str:
    """Return the members of a Cube file: sizes, values, and the text of the anchor."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = {member.name: archive.extractfile(member).read() for member in archive}
    anchor = members["anchor.xml"].decode()
    types = dict(re.findall(r'<metric id="(\d+)".*?<dtype>(\w+)', anchor, re.DOTALL))
    lines = []
    for name, inside in members.items():
        lines.append(f"{name}: {len(inside)} bytes\n")
        number, _, kind = name.partition(".")
        values = inside[len(b"CUBEX.DATA") :]
        if kind == "data" and types[number] == "SCALE_FUNC":
            starts = range(0, len(values), FORMULA)
            lines += [formula(values[start : start + FORMULA]) for start in starts]
        elif kind == "data":
            lines += [f"  {value!r}\n" for (value,) in struct.iter_unpack("<d", values)]
    return "".join([*lines, anchor])


def formula(content: bytes) -> str:
    """Return a value of Cube's type SCALE_FUNC: its terms and measurements."""
    terms, measurements = struct.unpack_from("<II", content)
    parts = [
        *(struct.unpack_from("<diIi", content, 8 + 20 * k) for k in range(terms)),
        *(struct.unpack_from("<idd", content, 8 + 20 * (terms + k)) for k in range(measurements)),
    ]
    return f"  {parts}\n"


def archive(content: bytes) -> str:
    """Return the members of a ZIP file."""
    lines = []
    with zipfile.ZipFile(io.BytesIO(content)) as found:
        for name in found.namelist():
            inside = found.read(name)
            lines.append(f"{name}: {len(inside)} bytes\n")
            if name.endswith(".json"):
                lines.append(indented(inside.decode()))
    return "".join(lines)


def history(path: Path) -> str:
    """Return commits and number of records of each table of a history."""
    lines = []
    with closing(sqlite3.connect(path)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_schema ORDER BY 1")]
        for table in [name for name in names if not name.startswith("sqlite_")]:
            rows = database.execute(f"SELECT commit_id, time FROM {table} ORDER BY id")  # noqa: S608
            lines += [f"{table}: {commit} at {time}\n" for commit, time in rows]
    return "".join(lines)


def indented(text: str) -> str:
    """Return JSON in a single long line with one value a line, and other text as it is."""
    if text.startswith("{") and max(map(len, text.splitlines())) > LONGEST and text.count("\n") < 2:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
    return text


def parquet(content: bytes) -> str:
    """Return a table as CSV."""
    import pandas as pd

    return str(pd.read_parquet(io.BytesIO(content)).to_csv(index=False))


def png(content: bytes) -> str:
    """Return the size of a picture."""
    return "PNG of {} x {} pixels\n".format(*struct.unpack(">II", content[16:24]))


def text(content: bytes) -> str:
    """Return a text, where JSON in one long line is split."""
    return indented(content.decode())


def svg(content: bytes) -> str:
    """Return structure and text of a plot or of another picture."""
    return plot(content.decode()) if b"matplotlib" in content else page(content.decode())


KINDS: Mapping[str, Callable[[bytes], str]] = {
    ".cubex": cube,
    ".extra-p": archive,
    ".html": lambda content: page(content.decode()),
    ".parquet": parquet,
    ".pdf": lambda content: f"{content[1:4].decode()}\n",
    ".png": png,
    ".svg": svg,
}
"""Texts of files by suffix; others are texts."""


def as_text(path: Path, run: Callable[..., Any]) -> str:
    """Return a file or folder as text; `run` runs a command, for the description of a store."""
    if path.suffix == ".cpm":
        return str(run("info", path).out)
    if path.suffix == ".db":
        return history(path)
    if path.is_dir():
        inside = sorted(file for file in path.rglob("*") if file.is_file())
        return "".join(f"--- {file.relative_to(path)}\n{as_text(file, run)}" for file in inside)
    return KINDS.get(path.suffix, text)(path.read_bytes())
