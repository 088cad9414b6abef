"""Golden outputs cover each command, its formats and views, and each choice of an option."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import click
from golden_cases import Step, all_cases

from callpath_modeler.cli.group import cpmodel

OF_EACH_COMMAND = ("--format", "--view", "--by", "--sort", "--what")
SUFFIXES = {
    ".csv": "csv", ".cubex": "cubex", ".dot": "dot", ".graphml": "graphml", ".html": "html",
    ".jsonl": "jsonl", ".md": "markdown", ".parquet": "parquet", ".py": "python", ".svg": "svg",
    ".tex": "latex",
}  # fmt: skip
"""Formats by the suffix of a file."""
SELDOM = {
    ("--fold", "recursion"),  # changes nothing in programs without recursion
    ("--selector", "mpich"), ("--selector", "mvapich2"), ("--selector", "impi"),  # need SimGrid
    ("--selector", "ompi"),
}  # fmt: skip
"""Choices of options without a golden output."""
ON_A_SCREEN = {"cpmodel browse"}
"""Commands whose outputs are screens."""


def leaves(command: click.Command, name: str) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(name, command)]
    context = click.Context(command, info_name=name)
    found = []
    for each in command.list_commands(context):
        below = command.get_command(context, each)
        assert below is not None
        found += leaves(below, f"{name} {each}")
    return found


def parsed(step: Step) -> tuple[str, dict[str, object]] | None:
    """Return the command of a line, and the values of its options as written."""
    command: click.Command | None = cpmodel
    name, words, context = "cpmodel", list(step.words), None
    while isinstance(command, click.Group):
        context = command.make_context(name, words, parent=context, resilient_parsing=True)
        words = [*context._protected_args, *context.args]
        if not words:
            return None
        try:
            each, command, words = command.resolve_command(context, words)
        except click.UsageError:
            return None
        name = f"{name} {each}"
    assert command is not None
    parser = command.make_parser(click.Context(command, info_name=name, parent=context))
    try:
        values, _, _ = parser.parse_args(list(words))
    except click.UsageError:
        return None
    return name, values


COMMANDS = dict(leaves(cpmodel, "cpmodel"))


@cache
def steps() -> list[tuple[str, dict[str, object]]]:
    """Return the command and the options of each line, parsed only if a test needs them."""
    return [found for case in all_cases() for step in case.steps if (found := parsed(step))]


def chosen(option: click.Option, commands: set[str]) -> set[str]:
    """Return the values that golden outputs give an option of some commands."""
    found: set[str] = set()
    for name, values in steps():
        if name not in commands:
            continue
        value = values.get(str(option.name))
        found |= {str(each) for each in (value if isinstance(value, list) else [value])}
        if "--format" in option.opts and value is None:
            suffix = Path(str(values.get("output"))).suffix
            found |= {SUFFIXES[suffix]} if suffix in SUFFIXES else {"table", "text"}
        elif value is None:
            found.add(str(option.default))
    return found


def missing() -> set[str]:
    """Return choices of options without a golden output."""
    found = set()
    for name, command in COMMANDS.items():
        for option in command.params:
            if not isinstance(option, click.Option) or not isinstance(option.type, click.Choice):
                continue
            flag = option.opts[-1]
            is_own = flag in OF_EACH_COMMAND
            there = chosen(option, {name} if is_own else set(COMMANDS))
            found |= {
                f"{name if is_own else '...'} {flag} {choice}"
                for choice in option.type.choices
                if choice not in there and (flag, choice) not in SELDOM
            }
    return found


def test_each_choice_of_an_option_has_a_golden_output():
    assert not {each for each in missing() if not each.startswith(tuple(ON_A_SCREEN))}
