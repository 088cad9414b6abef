"""Which plugins are installed, for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callpath_modeler.report.formats import Cell, Table
from callpath_modeler.report.layout import aligned
from callpath_modeler.units import counted


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin.

    Attributes
    ----------
    kind : ``"reader"`` or ``"command"``
    name : what users type
    package : distribution that brings it, or the file it is in
    version : of that distribution, or ""
    description : one line for people
    suffixes : file name endings that a reader takes
    problem : why it cannot be used, or ""
    remedy : what to do about that
    """

    kind: str
    name: str
    package: str
    version: str
    description: str = ""
    suffixes: tuple[str, ...] = ()
    problem: str = ""
    remedy: str = ""

    @property
    def origin(self) -> str:
        """Package and version."""
        return f"{self.package} {self.version}".strip()


def plugins_text(plugins: Sequence[Plugin]) -> list[str]:
    """Return the lines of `cpmodel plugins`."""
    usable = [plugin for plugin in plugins if not plugin.problem]
    readers = [
        (p.name, " ".join(p.suffixes), p.origin, p.description)
        for p in usable
        if p.kind == "reader"
    ]
    commands = [(p.name, p.origin, p.description) for p in usable if p.kind == "command"]
    lines = aligned([("reader", "files", "from", "reads"), *readers])
    if commands:
        lines += ["", *aligned([("command", "from", "does"), *commands])]
    unusable = [plugin for plugin in plugins if plugin.problem]
    if unusable:
        lines += ["", f"{counted(len(unusable), 'plugin')} cannot be used:"]
        lines += [f"  {p.origin}: {p.problem} -> {p.remedy}" for p in unusable]
    return lines


def plugins_table(plugins: Sequence[Plugin]) -> Table:
    """Return one row per plugin."""
    columns: dict[str, list[Cell]] = {
        "kind": [p.kind for p in plugins],
        "name": [p.name for p in plugins],
        "package": [p.package for p in plugins],
        "version": [p.version for p in plugins],
        "suffixes": [" ".join(p.suffixes) for p in plugins],
        "description": [p.description for p in plugins],
        "status": ["unusable" if p.problem else "ok" for p in plugins],
        "problem": [p.problem for p in plugins],
    }
    return Table(columns)
