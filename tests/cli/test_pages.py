"""Examples on pages, compared with the output of their commands.

CPMODEL_NEW_PAGES=1 updates the pages. A block with lines `$ cpmodel ...` is an example: the output
follows each command, and `...` replaces lines that the page omits. If a command writes nothing to
standard output, the page shows standard error.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from check_texts import PAGES, blocks
from communication import exchange, traced, uneven
from patterns import stencil2
from several_laws import LAWS, write_runs

ROOT = Path(__file__).resolve().parents[2]
ANEW = bool(os.environ.get("CPMODEL_NEW_PAGES"))
WIDTH = "100"
ELSEWHERE = {"configure.md"}
"""Pages whose examples contain files of a user and a machine; they are checked manually."""


@dataclass(frozen=True)
class Example:
    """A block: its page, its text, and (command, shown output) of each command."""

    page: Path
    text: str
    steps: tuple[tuple[str, str], ...]


def steps(text):
    return tuple(re.findall(r"^\$ (cpmodel .*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE))


EXAMPLES = [
    Example(page, text, steps(text))
    for page in PAGES
    if page.name not in ELSEWHERE
    for text in blocks(page)
    if steps(text)
]

# The files for the commands of the pages.


def samples(path, data):  # noqa: ARG001
    path.symlink_to(ROOT / "sample_profiles")


def mpi(path, data):
    path.write_bytes((data() / "third_party" / "mpi_collectives" / "mpi_data.csv").read_bytes())


def library(path, data):
    table = pd.read_csv(data() / "third_party" / "mpi_collectives" / "mpi_data.csv")
    rows = table[table["mpi"] == path.stem][["variable", "Ranks", "median"]]
    rows.columns = ["callpath", "p", "latency_us"]
    rows.to_csv(path, index=False)


def quartz(path, data):
    """Write LULESH on Quartz; in slow.jsonl one call path is 50 % slower from size 40 on."""
    original = data() / "third_party" / "caliper" / "lulesh_quartz_weak_p8-125.jsonl"
    rows = [json.loads(line) for line in original.read_text().splitlines()]
    for row in rows:
        slower = row["params"]["size"] >= 40 and row["callpath"].endswith("CalcKinematicsForElems")
        row["value"] *= 1.5 if slower and path.name == "slow.jsonl" else 1
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def shared_work(path, data):  # noqa: ARG001
    # Each has three repetitions that differ by some thousandths.
    noise = np.random.default_rng(1).normal(1, 0.002, (5, 3))
    rows = "".join(
        f"main,{p},{(1000 / p + 0.01 * p) * factor}\n"
        for p, factors in zip((8, 16, 32, 64, 128), noise, strict=True)
        for factor in factors
    )
    path.write_text("callpath,p,time\n" + rows)


def grid(path, data):  # noqa: ARG001
    write_runs(path, LAWS, seed=11)


def halo(path, data):  # noqa: ARG001
    traced(path, 6, exchange)


def unequal(path, data):  # noqa: ARG001
    traced(path, 8, uneven)


def on_a_grid(path, data):  # noqa: ARG001
    traced(path, int(path.suffix.removeprefix(".p")), stencil2)


INPUTS = {
    "sample_profiles": samples,
    "mpi_data.csv": mpi,
    "IntelMPI.csv": library,
    "OpenMPI.csv": library,
    "grid.csv": grid,
    "quartz.jsonl": quartz,
    "slow.jsonl": quartz,
    "strong.csv": shared_work,
    "app.p6": halo,
    "app.p8": unequal,
    "grid.p4": on_a_grid,
    "grid.p8": on_a_grid,
    "grid.p16": on_a_grid,
    "grid.p32": on_a_grid,
}


ALL_DIGITS = re.compile(r"\d+\.\d{9,}")


def rounded(number):
    return f"{float(number[0]):.7g}"


def fits(shown, printed):
    """Return whether the output matches a page, where `...` stands for one or more lines.

    Numbers with all digits match in the first seven, because the last ones depend on the processor.
    """
    shown, printed = ([ALL_DIGITS.sub(rounded, line) for line in each] for each in (shown, printed))
    if "..." not in shown:
        return shown == printed
    k = shown.index("...")
    head, tail = shown[:k], shown[k + 1 :]
    return (
        len(printed) >= len(shown)
        and printed[:k] == head
        and printed[len(printed) - len(tail) :] == tail
    )


def anew(shown, printed):
    """Return the new lines of a page, with as many lines around `...` as before."""
    if "..." not in shown:
        return printed
    k = shown.index("...")
    return [*printed[:k], "...", *printed[len(printed) - (len(shown) - k - 1) :]]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e.page.stem}: {e.steps[0][0]}")
def test_examples_show_what_is_printed(run, request, tmp_path, monkeypatch, example):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", WIDTH)
    for name, make in INPUTS.items():
        if any(name in command for command, _ in example.steps):
            make(tmp_path / name, lambda: request.getfixturevalue("shared_data"))
    text = example.text
    for command, below in example.steps:
        done = run(*shlex.split(command)[1:])
        printed, shown = (done.out or done.err).splitlines(), below.splitlines()
        if ANEW:
            new = "".join(line + "\n" for line in anew(shown, printed))
            text = text.replace(f"$ {command}\n{below}", f"$ {command}\n{new}")
        else:
            assert fits(shown, printed), "\n".join(printed)
    if text != example.text:
        page = example.page.read_text("utf-8")
        example.page.write_text(page.replace(example.text, text), "utf-8")


def test_each_page_that_had_examples_has_examples():
    found = {example.page.name for example in EXAMPLES}
    assert found >= {"README.md", "compare.md", "guidelines.md", "tell-communication.md"}


def test_lines_that_are_left_out_are_one_or_more_and_all_others_count():
    assert fits(["a", "...", "d"], ["a", "b", "c", "d"])
    assert not fits(["a", "...", "d"], ["a", "d"])
    assert not fits(["a", "...", "d"], ["a", "b", "c"])
    assert not fits(["1 %", "..."], ["2 %", "b"])
    assert not fits(["a"], ["a", "b"])
