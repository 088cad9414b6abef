"""Commands that other packages add through entry points."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import click

@click.command()
@click.pass_obj
def hello(console):
    console.result("hello from a plugin\\n")

impostor = hello
not_a_command = 7
"""
ENTRIES = """
[callpath_modeler.commands]
hello = added_commands:hello
rank = added_commands:impostor
gone = module_that_is_not_there:command
seven = added_commands:not_a_command
"""


@pytest.fixture
def cpmodel(tmp_path):
    (tmp_path / "added_commands.py").write_text(CODE)
    installed = tmp_path / "added-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: added\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(ENTRIES)

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "callpath_modeler", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )

    return run


def test_a_plugin_adds_a_command(cpmodel):
    assert "hello (of added)" in " ".join(cpmodel("--help").stdout.split())
    done = cpmodel("hello")
    assert (done.returncode, done.stdout) == (0, "hello from a plugin\n")


def test_a_plugin_cannot_take_the_place_of_a_command(cpmodel):
    assert "Rank call paths" in cpmodel("rank", "--help").stdout


@pytest.mark.parametrize("name", ["gone", "seven"])
def test_a_command_that_does_not_load_is_one_clear_line(cpmodel, name):
    done = cpmodel(name)
    assert done.returncode == 5
    assert "reinstall or remove added" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_typo_finds_the_command_of_a_plugin(cpmodel):
    done = cpmodel("helo")
    assert done.returncode == 2
    assert "did you mean 'hello'?" in done.stderr
