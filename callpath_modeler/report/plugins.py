"""Installed plugins, as text and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callpath_modeler.report.layout import wrap
from callpath_modeler.report.table_formats import Cell, Table
from callpath_modeler.units import counted

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin.

    Attributes
    ----------
    kind : ``"reader"`` or ``"command"``
    name : the name that users type
    package : distribution that contains it, or its file
    version : version of the distribution, or ""
    description : one line of text
    suffixes : file name endings that a reader accepts
    problem : the reason why it cannot be used, or ""
    remedy : the remedy for the problem
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


def plugins_text(plugins: Sequence[Plugin], width: int | None = None) -> list[Text]:
    """Return the lines of `cpmodel plugins`: two per plugin, then unusable ones with the reason.

    Parameters
    ----------
    plugins : the plugins
    width : width in columns, longer lines are wrapped; None = unlimited
    """
    usable = [plugin for plugin in plugins if not plugin.problem]
    unusable = [plugin for plugin in plugins if plugin.problem]
    names = max((len(plugin.name) for plugin in usable), default=0)
    beside, below = f"{'':{names + 4}}", " " * 4
    lines: list[Text] = []
    for kind in ("reader", "command"):
        listed = [plugin for plugin in usable if plugin.kind == kind]
        lines += wrap(f"{kind}s", width) if listed else []
        for plugin in listed:
            facts = " · ".join(filter(None, (" ".join(plugin.suffixes), plugin.origin)))
            lines += wrap(f"  {plugin.name:{names}}  {plugin.description}", width, indent=beside)
            lines += wrap(beside + facts, width, indent=beside)
    if unusable:
        lines += wrap(f"{counted(len(unusable), 'plugin')} cannot be used:", width)
        for plugin in unusable:
            told = f"  {plugin.origin}: {plugin.problem} -> {plugin.remedy}"
            lines += wrap(told, width, indent=below)
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
