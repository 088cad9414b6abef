"""`cpmodel explain`: the meaning of a finding."""

from __future__ import annotations

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.errors import UsageError, closest


@click.command("explain")
@click.argument("code", required=False, metavar="[CODE]")
@click.pass_obj
def command(console: Console, code: str | None) -> None:
    """Explain a finding: what it means, why it matters, and what to do.

    CODE is in parentheses at the end of a message, e.g. CPM115. Without CODE, the command lists
    all findings.
    """
    from callpath_modeler.diagnostics import KINDS
    from callpath_modeler.report.explanation import explanation, overview

    if code is None:
        console.lines(overview())
        return
    name = code.strip().upper()
    if name not in KINDS:
        near = closest(name, KINDS)
        hint = f"did you mean {near}? `cpmodel explain` lists all findings"
        raise UsageError(
            f"there is no finding {code!r}",
            hint=hint if near else "`cpmodel explain` lists all findings",
        )
    console.lines(explanation(name))
