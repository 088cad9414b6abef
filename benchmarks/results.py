"""Tables of results, for the terminal and between markers in documents."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from environments import Peer

BENCHMARKS = Path(__file__).resolve().parent
DOCUMENTS = (
    BENCHMARKS / "RESULTS.md",
    BENCHMARKS / "ACCURACY.md",
)
"""Documents with measured tables, between markers with the name of the benchmark."""

_WIDTH = 120
"""Maximum width of a line in a document."""


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison.

    Attributes
    ----------
    what : the measured quantity
    ours, peer : figures with units; the peer's with its name
    ratio : how many times better our figure is than the peer's; None = no meaningful ratio
    goal : goal; "" = the figure is only informative
    met : True if the goal is met; None = no goal
    """

    what: str
    ours: str
    peer: str = ""
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the row as text, for the head of `compared`."""
        ratio = "" if self.ratio is None else f"{self.ratio:.3g} x"
        met = {True: "yes", False: "NO", None: ""}[self.met]
        return self.what, self.ours, self.peer, ratio, self.goal, met


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text.

    Attributes
    ----------
    head : names of the columns
    lines : cells of each line
    numeric : right-aligned columns
    """

    head: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]
    numeric: range

    def under(self, peer: str) -> Table:
        """Return the table with the name of its only peer in the head instead of in each line."""
        if "peer" not in self.head:
            return self
        column = self.head.index("peer")
        head = tuple(peer if name == "peer" else name for name in self.head)
        lines = [
            (*line[:column], line[column].removesuffix(f" {peer}"), *line[column + 1 :])
            for line in self.lines
        ]
        return replace(self, head=head, lines=lines)

    def aligned(self, *, rule: str = "  ") -> list[str]:
        """Return the lines of the table, the head first, with `rule` between columns."""
        cells = [self.head, *self.lines]
        widths = [max(len(line[column]) for line in cells) for column in range(len(self.head))]
        return [
            rule.join(
                cell.rjust(width) if column in self.numeric else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        ]

    def markdown(self) -> str:
        """Return the table as Markdown; cells of a table that is too wide are not padded."""
        columns = range(len(self.head))
        rule = "|" + "|".join("---:" if c in self.numeric else "---" for c in columns) + "|"
        lines = self.aligned(rule=" | ")
        if max(map(len, lines)) + 4 > _WIDTH:
            lines = [" | ".join(line) for line in (self.head, *self.lines)]
        head, *rest = (f"| {line} |" for line in lines)
        return "\n".join([head, rule, *rest])


def compared(rows: Sequence[Row]) -> Table:
    """Return the table of some comparisons."""
    head = ("what", "ours", "peer", "ratio", "goal", "met")
    return Table(head, [row.cells() for row in rows], range(1, 4))


def write(name: str, table: Table, notes: str, peers: Sequence[Peer]) -> None:
    """Write a table between the markers of the benchmark `name` in all documents."""
    shown = table.under(peers[0].name) if len(peers) == 1 else table
    circumstances = textwrap.fill(f"Measured {_circumstances(peers)}.", _WIDTH)
    text = f"{shown.markdown()}\n\n{notes.rstrip()}\n\n{circumstances}"
    start, end = f"<!-- measured: {name} -->\n", f"<!-- end of measured: {name} -->"
    for document in DOCUMENTS:
        before, found, rest = document.read_text(encoding="utf-8").partition(start)
        _, closed, after = rest.partition(end)
        if found and closed:
            document.write_text(f"{before}{start}\n{text}\n\n{end}{after}", encoding="utf-8")


def _circumstances(peers: Sequence[Peer]) -> str:
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    version = importlib.metadata.version
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    ours = f"callpath-modeler {version('callpath-modeler')} (Python {platform.python_version()}"
    told = [f"{ours}, {libraries})"]
    told += [f"{peer.name} {peer.version} ({peer.libraries()})" for peer in peers]
    return f"{time.strftime('%Y-%m-%d', time.gmtime())} on {system}: {'; '.join(told)}"
