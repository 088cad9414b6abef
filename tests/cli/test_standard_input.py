"""`-` is standard input: tables, JSON, logs, packed or not."""

from __future__ import annotations

import gzip
import os
import pty
import subprocess
import sys

import pytest

import program_logs
import table_files
import working

TABLE = "ranks,size,time\n64,1000000,12.3\n128,1000000,6.4\n256,1000000,3.6\n"


def run(*words, given, **options):
    return subprocess.run(
        [sys.executable, "-m", "callpath_modeler", *words],
        input=given,
        capture_output=True,
        timeout=working.HUNG,
        check=False,
        **options,
    )


@pytest.mark.parametrize(
    ("content", "program"),
    [
        (TABLE.encode(), "p"),
        (b"\xef\xbb\xbf" + TABLE.encode(), "p"),
        (gzip.compress(TABLE.encode()), "p"),
        (table_files.JSON_LINES.encode(), "p"),
        (program_logs.PROGRAMS["NPB"].log(4).encode(), "CG"),
        (b'[{"p": 4, "time": 2}, {"p": 8, "time": 1}]', "p"),
    ],
    ids=["csv", "mark", "packed", "lines", "log", "json"],
)
def test_each_format_is_read_from_standard_input(tmp_path, content, program):
    done = run("info", "-", given=content, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert program in done.stdout.decode()
    assert not [*tmp_path.iterdir()]


def test_the_next_command_names_standard_input_again():
    done = run("rank", "-", "--target", "1024", given=TABLE.encode())
    assert done.returncode == 0, done.stderr
    assert "next: cpmodel show - @" in done.stdout.decode()


def test_damaged_gzip_is_refused():
    done = run("rank", "-", given=b"\x1f\x8b" + b"x" * 40)
    assert done.returncode == 3
    assert b"standard input is damaged gzip" in done.stderr


def test_an_empty_standard_input_is_refused():
    done = run("rank", "-", given=b" \n")
    assert done.returncode == 3
    assert done.stderr.decode().startswith("cpmodel: -: standard input is empty\n")


def test_a_terminal_as_standard_input_is_refused():
    leader, follower = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "callpath_modeler", "rank", "-"],
            stdin=follower,
            capture_output=True,
            timeout=working.HUNG,
            check=False,
        )
    finally:
        os.close(leader)
        os.close(follower)
    assert done.returncode == 2
    assert b"standard input is a terminal" in done.stderr
