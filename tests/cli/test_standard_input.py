"""`-` is standard input: tables, JSON, logs, packed or not."""

from __future__ import annotations

import gzip
import os
import pty
import re
import subprocess
import sys

import pytest

import program_logs
import table_files
import working
from cells import cells

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


@cells(
    ("content", "program"),
    [
        (TABLE.encode(), "p"),
        (b"\xef\xbb\xbf" + TABLE.encode(), "p"),
        (gzip.compress(TABLE.encode()), "p"),
        (table_files.JSON_LINES.encode(), "p"),
        (program_logs.PROGRAMS["NPB"].log(4).encode(), "CG"),
        (b'[{"p": 4, "time": 2}, {"p": 8, "time": 1}]', "p"),
    ],
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


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(TABLE)
    return path


def test_one_of_two_experiments_may_be_standard_input(table):
    slower = re.sub(r"(?m)[0-9.]+$", lambda time: str(2 * float(time[0])), TABLE[16:])
    slower = (TABLE[:16] + slower).encode()
    for sources in ((table, "-"), ("-", table)):
        done = run("diff", *map(str, sources), "-f", "json", given=slower)
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode()
        assert str(table) in text or '"rows"' in text
    done = run("diff", str(table), "-", given=slower)
    assert "2" in done.stdout.decode()
    done = run("views", "-", "--compare", str(table), given=slower)
    assert done.returncode == 0, done.stderr
    done = run("views", str(table), "--compare", "-", given=slower)
    assert done.returncode == 0, done.stderr


def test_runs_for_a_verification_and_for_scores_may_be_standard_input(table, tmp_path):
    store = str(tmp_path / "history.db")
    done = run("rank", str(table), "--target", "512", "--at", "size=1e6", given=b"")
    later = b"ranks,size,time\n512,1000000,2.1\n512,1000000,2.2\n"
    asked = ("rank", str(table), "--target", "512")
    done = run(*asked, "--verify", "-", given=later)
    assert done.returncode == 0, done.stderr
    assert "2.15" in done.stdout.decode()
    done = run(*asked, "--remember", store, given=b"")
    assert done.returncode == 0, done.stderr
    done = run("score", store, "-", given=later)
    assert done.returncode == 0, done.stderr
    assert "512" in done.stdout.decode()


@pytest.mark.parametrize(
    "words", [("diff", "-", "-"), ("rank", "-", "--target", "512", "--verify", "-")]
)
def test_standard_input_is_read_once(words):
    done = run(*words, given=TABLE.encode())
    assert done.returncode == 2
    assert b"standard input can be read once" in done.stderr


def test_a_shard_is_not_read_from_standard_input():
    done = run("merge", "-", "-o", "x.cpm", given=b"x")
    assert done.returncode == 2
    assert done.stderr.decode().startswith("cpmodel: -: a shard is a file")
