"""Tables of results, for the terminal and between markers in documents."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from environments import Peer

BENCHMARKS = Path(__file__).resolve().parent
DOCUMENTS = (
    BENCHMARKS / "RESULTS.md",
    BENCHMARKS.parent / "docs" / "explanation" / "modeling.md",
    BENCHMARKS.parent / "docs" / "explanation" / "expectations.md",
)
"""Where measured tables are kept, between markers that name the benchmark."""


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison.

    Attributes
    ----------
    what : what was measured
    ours, peer : the figures, with units; the peer's with its name
    ratio : how many times the peer's figure ours is worth, None where that means nothing
    goal : what we want; "" for figures that only inform
    met : whether we have it, None without a goal
    """

    what: str
    ours: str
    peer: str = ""
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the row as text, as `compared` heads it."""
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
    numeric : columns that are aligned to the right
    """

    head: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]
    numeric: range

    def aligned(self, *, rule: str = "  ") -> list[str]:
        """Return the lines of the table, the head first; `rule` parts its columns."""
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
        """Return the table as Markdown."""
        columns = range(len(self.head))
        rule = "|" + "|".join("---:" if c in self.numeric else "---" for c in columns) + "|"
        head, *lines = (f"| {line} |" for line in self.aligned(rule=" | "))
        return "\n".join([head, rule, *lines])


def compared(rows: Sequence[Row]) -> Table:
    """Return the table of some comparisons."""
    head = ("what", "ours", "peer", "ratio", "goal", "met")
    return Table(head, [row.cells() for row in rows], range(1, 4))


def write(name: str, table: Table, notes: str, peers: Sequence[Peer]) -> None:
    """Write a table wherever a document has the markers of the benchmark `name`."""
    text = "\n".join(
        [table.markdown(), "", notes.rstrip(), "", f"Measured {_circumstances(peers)}."]
    )
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
