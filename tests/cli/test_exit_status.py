"""The status that a command leaves with."""

from __future__ import annotations

import click
import pytest

from callpath_modeler.cli.console import EXIT_NO
from callpath_modeler.cli.console import run as run_command


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
