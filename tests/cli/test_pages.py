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
from difflib import SequenceMatcher
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


def parts(shown):
    """Return the lists of lines before, between and after the lines `...`."""
    found = [[]]
    for line in shown:
        if line == "...":
            found.append([])
        else:
            found[-1].append(line)
    return found


def fits(shown, printed):
    """Return whether the output matches a page, where `...` stands for one or more lines.

    Numbers with all digits match in the first seven, because the last ones depend on the processor.
    """
    shown, printed = ([ALL_DIGITS.sub(rounded, line) for line in each] for each in (shown, printed))
    head, *others = parts(shown)
    if not others:
        return shown == printed
    *between, tail = others
    end, last = len(head), len(printed) - len(tail)
    for part in between:
        places = range(end + 1, last - len(part))
        place = next((k for k in places if printed[k : k + len(part)] == part), None)
        if place is None:
            return False
        end = place + len(part)
    return end < last and printed[: len(head)] == head and printed[last:] == tail


def anew(shown, printed):
    """Return the new lines of a page, which omits the same parts of the output as before."""
    head, *others = parts(shown)
    if not others:
        return printed
    *between, tail = others
    end, last = len(head), len(printed) - len(tail)
    new = [*printed[:end], "..."]
    for part in between:
        places = range(end + 1, last - len(part))
        place = max(places, key=lambda k: _likeness(part, printed[k : k + len(part)]))
        end = place + len(part)
        new += [*printed[place:end], "..."]
    return [*new, *printed[last:]]


def _likeness(old, new):
    return SequenceMatcher(None, "\n".join(old), "\n".join(new)).ratio()


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
    assert fits(["a", "...", "c", "...", "e"], ["a", "b", "c", "d", "e"])
    assert not fits(["a", "...", "c", "...", "e"], ["a", "c", "d", "e"])
    assert not fits(["a", "...", "d", "...", "c", "...", "e"], ["a", "b", "c", "d", "c", "e"])


def test_new_lines_of_a_page_are_the_ones_that_it_showed():
    old, new = ["a", "...", "c 1", "...", "e"], ["a", "b", "b", "c 2", "d", "e 2"]
    assert anew(old, new) == ["a", "...", "c 2", "...", "e 2"]
    assert anew(["a"], ["b", "c"]) == ["b", "c"]
