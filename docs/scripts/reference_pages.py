"""Pages generated from the code: commands, findings, the Python interface."""

from __future__ import annotations

import re
from collections.abc import Iterable

import callpath_modeler
from callpath_modeler.cli.explain import INTRODUCTION
from callpath_modeler.diagnostics import KINDS
from command_tree import CommandText, command_texts

NAMES = {
    "Studies": ("Study", "Question"),
    "Reading profiles": (
        "load",
        "from_frame",
        "from_thicket",
        "LoadOptions",
        "ReadOptions",
        "Experiment",
        "Metric",
        "Reduction",
        "Scaling",
    ),
    "Making models": ("fit", "FitOptions", "SearchSpace", "Fitted", "CallPathModel"),
    "Rankings": ("rank", "By", "Ranking", "ranking_table", "graph"),
    "Excess work": ("losses", "Losses", "excess_work", "measured_excess", "Excess"),
    "Causes and advice": ("explain", "Cause", "advise", "Advice"),
    "Comparisons": ("compare", "Compared", "difference_table"),
    "Expectations": ("check", "Check", "BrokenExpectationsError"),
}
"""All public names by topic, in the order of the site."""

OF_BASES = ("CallPathModel", "Experiment", "Ranking", "Losses")
"""Classes with public methods of base classes."""
ENUMERATIONS = ("By", "Reduction", "Scaling")
ERRORS = (
    "CallpathModelerError",
    "UsageError",
    "InputError",
    "DataError",
    "PluginError",
    "OutputError",
    "WorkerDiedError",
)


def pages() -> dict[str, str]:
    """Return the text of each page, by its path on the site."""
    return {**_command_pages(), **_finding_pages(), **_python_pages()}


def _command_pages() -> dict[str, str]:
    folder = "reference/command-line"
    texts = command_texts()
    found = {f"{folder}/{text.name}.md": _command_page(text) for text in texts}
    links = [_command_link(text.words, text.summary) for text in texts]
    introduction = "All commands with all options, as in `--help` and in the man pages."
    listed = _hidden_tree(text.name for text in texts)
    found[f"{folder}/index.md"] = "\n".join(
        ["# Options of every command", "", introduction, "", *links, "", listed]
    )
    return found


def _command_link(words: tuple[str, ...], summary: str) -> str:
    return f"- [`{' '.join(words)}`]({'-'.join(words)}.md): {escaped(summary)}."


def _command_page(text: CommandText) -> str:
    name = " ".join(text.words)
    lines = [f"# {name}", "", "```text", f"{name} {text.usage}", "```", ""]
    for paragraph in text.paragraphs:
        verbatim = "\n" in paragraph
        lines += ["```text", paragraph, "```", ""] if verbatim else [escaped(paragraph), ""]
    if text.subcommands:
        lines += ["## Commands", ""]
        lines += [_command_link(words, summary) for words, summary in text.subcommands]
        lines.append("")
    lines += ["## Options", "", f"```{{program}} {name}", "```", ""]
    for heading, options in text.options.items():
        lines += [f"### {heading}", ""] * (len(text.options) > 1)
        for spelling, about in options:
            lines += [f"````{{option}} {spelling}", escaped(about), "````", ""]
    return "\n".join(lines)


def _finding_pages() -> dict[str, str]:
    folder = "reference/findings"
    found = {
        f"{folder}/{code}.md": f"""\
# {code}

**{kind.what}.**

## Why it matters

{kind.why}

## What to do

{kind.remedy}

## Example

```text
{kind.example}
```

`cpmodel explain {code}` prints this page. [All findings](../findings.md)
"""
        for code, kind in KINDS.items()
    }
    rows = [f"| [{code}](findings/{code}.md) | {kind.what} |" for code, kind in KINDS.items()]
    found["reference/findings.md"] = "\n".join(
        [
            INTRODUCTION,
            "",
            "| code | what happened |",
            "|---|---|",
            *rows,
            "",
            _hidden_tree(f"findings/{code}" for code in KINDS),
        ]
    )
    return found


def _python_pages() -> dict[str, str]:
    folder = "reference/python"
    found = {
        f"{folder}/{_file_name(topic)}.md": _python_page(topic, "callpath_modeler", names)
        for topic, names in NAMES.items()
    }
    found[f"{folder}/errors.md"] = _python_page("Errors", "callpath_modeler.errors", ERRORS)
    lines = [
        "# Python interface",
        "",
        "`import callpath_modeler as cpm` has all of these names.",
        "[Use from Python](../../how-to/use-from-python.md) shows examples.",
        "",
    ]
    for topic, names in NAMES.items():
        lines += [f"## {topic}", "", "| name | description |", "|---|---|"]
        lines += [
            f"| {{py:obj}}`~callpath_modeler.{name}` | {escaped(_first_line(name))} |"
            for name in names
        ]
        lines.append("")
    base = "{py:exc}`~callpath_modeler.errors.CallpathModelerError`"
    lines += ["## Errors", "", f"All errors that a user can cause are subclasses of {base}.", ""]
    lines.append(_hidden_tree([*map(_file_name, NAMES), "errors"]))
    found[f"{folder}/index.md"] = "\n".join(lines)
    return found


def _python_page(topic: str, module: str, names: Iterable[str]) -> str:
    lines = [f"# {topic}", ""]
    for name in names:
        kind = "function" if name[0].islower() else "class"
        kind = "exception" if name.endswith("Error") else kind
        lines += [f"## {name}", "", "```{eval-rst}", f".. auto{kind}:: {module}.{name}"]
        lines += ["   :members:"] if kind == "class" else []
        # Only values of enumerations and fields under Attributes have no docstring.
        lines += ["   :undoc-members:"] if name in ENUMERATIONS else []
        lines += ["   :inherited-members:"] if name in OF_BASES else []
        lines += ["```", ""]
    return "\n".join(lines)


def _first_line(name: str) -> str:
    return (getattr(callpath_modeler, name).__doc__ or "").strip().split("\n")[0]


def _file_name(topic: str) -> str:
    return topic.lower().replace(" ", "-")


def _hidden_tree(documents: Iterable[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *documents, "```", ""])


def escaped(text: str) -> str:
    """Return text without special characters of Markdown, except for `code`."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(
        part if odd % 2 else re.sub(r"([\\*_<>\[\]{}#|~`$])", r"\\\1", part)
        for odd, part in enumerate(parts)
    )
