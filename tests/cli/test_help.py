"""The help of a command has groups, and the most frequent options come first."""

from __future__ import annotations

import re

import pytest

FIRST = ["target", "metric", "inclusive", "where", "ignore", "param", "name", "top", "format",
         "output"]  # fmt: skip


def sections(text):
    """Return the long names of options, by heading."""
    parts = re.split(r"^(\S.*):$", text, flags=re.MULTILINE)[1:]
    return {
        heading: re.findall(r"^  (?:-\w, )?--([\w-]+)", body, re.MULTILINE)
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.parametrize(
    "command",
    ["rank", "views", "guidelines check", "trace spec", "plugins", "export", "watch status"],
)
def test_help_fits_a_terminal_of_80_columns_and_names_each_option_once(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    text = run(*command.split(), "--help").out
    assert max(map(len, text.splitlines())) <= 80
    names = [name for each in sections(text).values() for name in each]
    assert len(names) == len({*names})
    assert "cpmodel --help" in text


def test_a_command_with_many_options_has_groups(run):
    found = sections(run("rank", "--help").out)
    assert [*found] == ["Common options", "What to ask", "Which runs", "Models", "Output"]
    assert found["Common options"] == FIRST
    assert "confidence" in found["Models"]
    assert "case" in found["Which runs"]


def test_a_command_with_few_options_has_one_list(run):
    assert sections(run("plugins", "--help").out) == {
        "Options": ["format", "output", "force", "help"]
    }
