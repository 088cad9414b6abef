"""Which plugins are installed, for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callpath_modeler.report.formats import Cell, Table
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
    """Return the lines of `cpmodel plugins`: two for each, then what cannot be used and why."""
    usable = [plugin for plugin in plugins if not plugin.problem]
    unusable = [plugin for plugin in plugins if plugin.problem]
    width = max((len(plugin.name) for plugin in usable), default=0)
    lines: list[str] = []
    for kind in ("reader", "command"):
        listed = [plugin for plugin in usable if plugin.kind == kind]
        lines += [f"{kind}s"] if listed else []
        for plugin in listed:
            lines.append(f"  {plugin.name:{width}}  {plugin.description}")
            lines.append(f"  {'':{width}}  {' · '.join(filter(None, _facts(plugin)))}")
    if unusable:
        lines.append(f"{counted(len(unusable), 'plugin')} cannot be used:")
        lines += [f"  {p.origin}: {p.problem} -> {p.remedy}" for p in unusable]
    return lines


def _facts(plugin: Plugin) -> tuple[str, str]:
    return " ".join(plugin.suffixes), plugin.origin


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
