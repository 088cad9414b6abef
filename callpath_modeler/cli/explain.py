"""`cpmodel explain`: the meaning of a finding."""

from __future__ import annotations

import textwrap

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.diagnostics import KINDS
from callpath_modeler.errors import UsageError, closest


@click.command("explain")
@click.argument("code", required=False, metavar="[CODE]")
@click.pass_obj
def command(console: Console, code: str | None) -> None:
    """Explain a finding: what it means, why it matters, and what to do.

    CODE is in parentheses at the end of a message, e.g. CPM115. Without CODE, the command lists
    all findings.
    """
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


_WIDTH = 80
_PAGE = 100
INTRODUCTION = """\
# Findings

A finding is a message about the data or the models that you should know before you use a result.
Codes 1xx are about profiles and series of runs, 2xx about models, 3xx about comparisons.
`cpmodel explain CPM115` prints one of these sections.
"""


def explanation(code: str) -> list[str]:
    """Return the lines of `cpmodel explain CODE`: meaning, consequence, remedy, example."""
    kind = KINDS[code]
    parts = {
        "Why it matters": kind.why,
        "What to do": kind.remedy,
        "Example": kind.example,
    }
    lines = [f"{code}  {kind.what}", ""]
    for title, text in parts.items():
        head = f"{title}: ".ljust(max(map(len, parts)) + 2)
        indent = " " * len(head)
        # Commands are not wrapped, so that they can be pasted.
        lines += textwrap.wrap(
            head + text,
            _WIDTH,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def overview() -> list[str]:
    """Return one line for each kind of finding."""
    return [f"{code}  {kind.what}" for code, kind in KINDS.items()]


def reference_page() -> str:
    """Return the page of all findings, in Markdown."""
    return "\n".join([INTRODUCTION, *map(_section, KINDS)])


def _section(code: str) -> str:
    kind = KINDS[code]
    paragraphs = (
        f"**{kind.what}.** {kind.why}",
        f"Remedy: {kind.remedy}",
        f"Example: `{kind.example}`",
    )
    return "\n\n".join([f"## {code}", *map(_filled, paragraphs)]) + "\n"


def _filled(paragraph: str) -> str:
    return textwrap.fill(paragraph, _PAGE, break_long_words=False, break_on_hyphens=False)
