"""Completion in shells after `eval "$(cpmodel completion bash)"`."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_completion_and_that_of_the_login_is_meant(run, monkeypatch, shell):
    named = run("completion", shell)
    assert (named.status, named.err) == (0, "")
    assert f"_CPMODEL_COMPLETE={shell}_complete" in named.out
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert run("completion").out == named.out


def test_of_another_shell_it_is_said_that_there_is_none(run, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    run("completion").fails(2, "no completion for shell 'tcsh'", "bash, zsh, fish")
    run("completion", "tcsh").fails(2, "'tcsh'")


def test_where_no_variable_tells_the_shell_it_has_to_be_named(run):
    run("completion").fails(2, "the variable SHELL is not set", "bash, zsh, fish")


BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="no bash")
@pytest.mark.parametrize(
    ("typed", "completed"), [(["ra"], "rank"), (["rank", "--targ"], "--target")]
)
def test_bash_completes_commands_and_options(run, tmp_path, typed, completed):
    """Use the printed script, and a `cpmodel` that bash finds."""
    program = tmp_path / "cpmodel"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m callpath_modeler "$@"\n')
    program.chmod(0o755)
    words = " ".join(["cpmodel", *typed])
    script = (
        f"{run('completion', 'bash').out}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed)}\n"
        "_cpmodel_completion cpmodel; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(
        [BASH, "-c", script],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [completed]
