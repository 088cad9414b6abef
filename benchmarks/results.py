"""One table of results, for the terminal and as Markdown."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from environments import Peer

HEAD = ("what", "ours", "peer", "ratio", "goal", "met")
_NUMERIC = range(1, 4)


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
        """Return the row as text, in the order of `HEAD`."""
        ratio = "" if self.ratio is None else f"{self.ratio:.3g} x"
        met = {True: "yes", False: "NO", None: ""}[self.met]
        return self.what, self.ours, self.peer, ratio, self.goal, met


def aligned(rows: Sequence[Row], *, rule: str = "  ") -> list[str]:
    """Return the lines of a table; `rule` parts its columns."""
    cells = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    return [
        rule.join(
            cell.rjust(width) if column in _NUMERIC else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    ]


def markdown(rows: Sequence[Row], notes: str, peers: Sequence[Peer]) -> str:
    """Return the document that `RESULTS.md` is."""
    lines = [f"| {line} |" for line in aligned(rows, rule=" | ")]
    rule = "|" + "|".join(("---:" if c in _NUMERIC else "---") for c in range(len(HEAD))) + "|"
    machine = [f"- {line}" for line in _machine(peers)]
    return "\n".join(
        [
            "# Results of the benchmarks",
            "",
            "Written by `python benchmarks/run.py all`; do not edit.",
            "",
            *machine,
            "",
            lines[0],
            rule,
            *lines[1:],
            "",
            notes,
        ]
    )


def write(path: Path, rows: Sequence[Row], notes: str, peers: Sequence[Peer]) -> None:
    """Write the results as Markdown."""
    path.write_text(markdown(rows, notes, peers), encoding="utf-8")


def _machine(peers: Sequence[Peer]) -> list[str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}"
    version = importlib.metadata.version
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    ours = f"callpath-modeler {version('callpath-modeler')}: Python {platform.python_version()}"
    return [
        time.strftime("%Y-%m-%d", time.gmtime()),
        f"{system}, {os.cpu_count()} processors, {memory:.0f} GiB",
        f"{ours}, {libraries}",
        *(f"{peer.name} {peer.version}: {peer.libraries()}" for peer in peers),
    ]
