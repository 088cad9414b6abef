"""Exit status of commands."""

from __future__ import annotations

import shlex
import subprocess
import sys

import click
import pytest

from callpath_modeler.cli import EXIT_NO
from callpath_modeler.cli.console import run as run_command
from callpath_modeler.errors import OutputError


@click.command()
@click.option("--no", "says_no", is_flag=True)
@click.pass_context
def answering(ctx, says_no):
    ctx.ensure_object(dict)
    if says_no:
        ctx.exit(EXIT_NO)


@pytest.mark.parametrize(("arguments", "status"), [([], 0), (["--no"], 1), (["--help"], 0)])
def test_a_command_that_answers_no_leaves_with_status_one(monkeypatch, arguments, status):
    monkeypatch.setattr("sys.argv", ["answering", *arguments])
    with pytest.raises(SystemExit) as left:
        run_command(answering)
    assert left.value.code == status


LOUD = ["rank", "--target", "512"]
"""A ranking that also writes to standard error."""


@pytest.fixture
def shell(stored, clean):  # noqa: ARG001
    """Run `cpmodel` on the sample profiles with these redirections of a shell."""

    def shell(*words, redirected):
        command, *others = words
        line = shlex.join([sys.executable, "-m", "callpath_modeler", command, str(stored), *others])
        return subprocess.run(
            ["/bin/sh", "-c", f"{line} {redirected}"], capture_output=True, text=True, check=False
        )

    return shell


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "<&-"])
def test_a_closed_standard_error_changes_neither_result_nor_status(shell, redirected):
    heard, unheard = shell(*LOUD, redirected=""), shell(*LOUD, redirected=redirected)
    assert "(CPM" in heard.stderr
    assert (unheard.returncode, unheard.stdout) == (0, heard.stdout)


def test_a_check_that_nobody_reads_has_its_status(shell, tmp_path):
    expected = tmp_path / "expected.toml"
    expected.write_text('schema = 1\n[[expect]]\ngrowth = "<= O(1)"\n')
    assert shell("check", str(expected), redirected=">&-").returncode == EXIT_NO


@pytest.mark.parametrize("words", [LOUD, ["rank", "--help"]])
def test_results_for_a_full_disk_are_no_bug(shell, words):
    done = shell(*words, redirected=">/dev/full")
    assert done.returncode == OutputError.exit_code
    assert "cpmodel: standard output: the disk is full\n  hint: " in done.stderr
