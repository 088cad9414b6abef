"""Small files that unpack to much are refused before they are, and with little memory."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

import cube_writer as cw
from cells import cells
from fuzz.bombs import MIB, archive, dense_archive, packed
from fuzz.judge import MEMORY

TESTS = Path(__file__).resolve().parents[1]
TOO_MUCH, NO_PROFILE = "too much for its size", "not a profile that any installed reader knows"
XML = b'<?xml version="1.0"?><cube version="3.0">'
_ALWAYS, _RATIO = 64 * MIB, 150
"""What every file may unpack to, and how many times its own size."""
_BEYOND = MIB
"""Pieces that are unpacked before a reader notices, and the first block, which all readers see."""
HUNG = 600
"""Seconds after which a reader that does not end is stopped, however slow the machine."""
POINTS = b"PARAMETER p\nPOINTS 1\nREGION a\nMETRIC t\n"


def parquet(path: Path) -> Path:
    import pyarrow as pa
    from pyarrow import parquet as pq

    column = pa.array(["main"]).take(pa.array([0] * MIB)).dictionary_encode()
    table = pa.table({"callpath": column, "p": pa.array([4] * MIB), "time": pa.array([1.5] * MIB)})
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(16):
            writer.write_table(table)
    return path


def definitions(path: Path, unit: bytes, size: int) -> Path:
    text = XML.replace(b"3.0", b"4.4") + unit * (size // len(unit))
    return cw.pack(path, [("anchor.xml", gzip.compress(text, 1, mtime=0))])


BOMBS = {
    "definitions.cubex": (lambda path: definitions(path, b" ", 40 * MIB), "much for their size"),
    "tags.cubex": (lambda path: definitions(path, b"<a>", 7 * MIB), "nested too deeply"),
    "ampersands.cubex": (lambda path: definitions(path, b"&", 7 * MIB), "errors to repair"),
    "zeros.cube.gz": (lambda path: packed(path, b"\0", 1000 * MIB), TOO_MUCH),
    "tags.cube.gz": (lambda path: packed(path, b"<a>", 500 * MIB, XML), TOO_MUCH),
    "one-line.csv.gz": (lambda path: packed(path, b"a", 6000 * MIB), "a line is longer than 8 MiB"),
    "one-row.csv.gz": (lambda path: packed(path, b"ab,", 31 * MIB), "a line is longer than 8 MiB"),
    "columns.csv.gz": (lambda path: packed(path, b"ab,", 7 * MIB), "columns, but at most 20000"),
    "newlines.csv.gz": (lambda path: packed(path, b"\n", 3000 * MIB), NO_PROFILE),
    "blanks.csv.gz": (
        lambda path: packed(path, b"\n", 3000 * MIB, b"callpath,p,time\n"),
        "consecutive rows are empty or comments",
    ),
    "empty-cells.csv.gz": (
        lambda path: packed(path, b",\n", 3000 * MIB, b"a,b\n"), "are empty or comments"
    ),
    "comments.csv.gz": (lambda path: packed(path, b"#\n", 3000 * MIB), "are empty or comments"),
    "two-titles.csv.gz": (lambda path: packed(path, b"1,1\n", 3000 * MIB, b"a,a\n"), "two columns"),
    "rows.jsonl.gz": (lambda path: packed(path, b'{"a":1}\n', 1000 * MIB), TOO_MUCH),
    "objects.json.gz": (
        lambda path: packed(path, b"{},", 60 * MIB, b'[{"callpath":"main","p":1,"time":1},'),
        TOO_MUCH,
    ),
    "nodes.json.gz": (
        lambda path: packed(path, b"{},", 60 * MIB, b'[{"name":"main","frame":{},"metrics":{}},'),
        TOO_MUCH,
    ),
    "numbers.json.gz": (
        lambda path: packed(path, b"0,", 60 * MIB, b'{"parameters":["p"],"measurements":{"a":['),
        TOO_MUCH,
    ),
    "spaces.json.gz": (lambda path: packed(path, b" ", 3000 * MIB), NO_PROFILE),
    "newlines.folded.gz": (
        lambda path: packed(path, b"\n", 3000 * MIB, b"main 1\n"),
        "blank lines follow each other",
    ),
    "one-stack.folded.gz": (
        lambda path: packed(path, b"a;", 3000 * MIB), "a line is longer than 8 MiB"
    ),
    "stacks.folded.gz": (lambda path: packed(path, b"a 1\n", 100 * MIB), TOO_MUCH),
    "newlines.txt.gz": (lambda path: packed(path, b"\n", 3000 * MIB, POINTS), "blank lines"),
    "wide-letters.txt.gz": (
        lambda path: packed(path, "\U0001f600".encode(), 60 * MIB, POINTS),
        "a line is longer than 8 MiB",
    ),
    "values.txt.gz": (
        lambda path: packed(path, b"REGION a\nDATA 1\n", 1000 * MIB, POINTS), TOO_MUCH
    ),
    "texts.ppk": (
        lambda path: packed(
            path,
            b"\0",
            3000 * MIB,
            "PPK".encode("utf-16-be") + b"\0\0\0\1" * 2 + b"\0\0\0\0\x7f\xff\xff\xff",
        ),
        TOO_MUCH,
    ),
    "objects.extra-p": (lambda path: archive(path, b'{"a":{}},', 60 * MIB, b"["), TOO_MUCH),
    "numbers.extra-p": (
        lambda path: archive(path, b"0,", 60 * MIB, b'{"parameters":[', b"0]}"), TOO_MUCH
    ),
    "wide-letters.extra-p": (
        lambda path: archive(path, b" ", 60 * MIB, b'"\xf0\x9f\x98\x80'),
        "not JSON",
    ),
    "zeros.extra-p": (lambda path: dense_archive(path, 8700 * MIB), TOO_MUCH),
    "rows.parquet": (parquet, "cells of rows and columns are too many"),
}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Read each bomb in a separate process, and return the outcomes."""
    folder = tmp_path_factory.mktemp("bombs")
    paths = [make(folder / name) for name, (make, _) in BOMBS.items()]
    plain = folder / "plain.csv"
    plain.write_text("callpath,p,time\nmain,4,1\n")
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.bombs", str(plain), *map(str, paths)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=True,
        timeout=HUNG,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return {Path(each["path"]).name: each for each in told}


@cells("name", BOMBS)
def test_a_bomb_is_refused_before_it_is_unpacked_and_with_little_memory(outcomes, name):
    found = outcomes[name]
    size = Path(found["path"]).stat().st_size
    assert BOMBS[name][1] in found["told"]
    assert found["memory"] <= MEMORY
    assert found["unpacked"] <= max(_ALWAYS, _RATIO * size) + _BEYOND


def test_what_is_unpacked_is_counted(outcomes):
    # Refused by its first line of 8 MiB, and not before.
    assert 8 * MIB < outcomes["one-line.csv.gz"]["unpacked"] < 10 * MIB
    assert outcomes["objects.extra-p"]["unpacked"] > MIB
