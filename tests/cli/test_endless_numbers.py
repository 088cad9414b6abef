"""Errors for numbers of hundreds of digits and keys of thousands of parts."""

from __future__ import annotations

import pytest

from callpath_modeler.errors import LONGEST
from cells import cells

RANK = ["--target", "64"]
SHORT, LONG, LONGER = "9" * 400, "9" * 5000, "9" * 50_000


@cells(
    "arguments",
    [
        ["--target", LONG],
        ["--target", f"0.{LONG}x"],
        ["--at", f"p={LONG}"],
        ["--at", f"{LONG}=3"],
        [*RANK, "--logs", SHORT],
        [*RANK, "--logs", f"0,{LONG}"],
        [*RANK, "--exponents", SHORT],
        [*RANK, "--exponents", f"1/{LONG}"],
        [*RANK, "--exponential", SHORT],
        [*RANK, "--confidence", SHORT],
        [*RANK, "--confidence", f"{LONG}x"],
        [*RANK, "--terms", SHORT],
        [*RANK, "--top", LONG],
        [*RANK, "--where", f"p>{LONG}x"],
        [*RANK, "--where", LONGER],
        [*RANK, "--metric", LONGER],
        [*RANK, "--select", LONGER],
        [*RANK, "--select", f"~{'(' * 5000}"],
        [*RANK, "--parameter", LONGER],
        [*RANK, "--columns", LONGER, "-f", "csv"],
    ],
)
def test_an_option_of_thousands_of_digits_is_refused_in_short(run, stored, arguments):
    done = run("rank", stored, *arguments)
    done.fails(2)
    assert all(len(line) <= LONGEST + 20 for line in done.complaint.splitlines())


@cells(
    "text",
    [
        f"confidence = {SHORT}",
        f"confidence = 0.{SHORT}",
        f"target = {{ p = {LONG} }}",
        f"target = {{ p = 1e{SHORT} }}",
        f"[numbers]\nn = {LONG}",
        f'[numbers]\nn = "{LONG} GB"',
        f'[[expect]]\ngrowth = "<= O(p^{LONG})"',
        f'[[expect]]\nvalue = "<= {LONG}x s"',
        f'[[expect]]\nshare = "{LONG} %"',
        f'[[expect]]\nbound = "{"(" * 5000}"',
        f'[[rule]]\nrule = "{"x + " * 5000}"',
        f"[[expect]]\n{'k' * 5000} = 1",
        f"{'a.' * 20_000}b = 1",
        f"[{'a.' * 20_000}b]",
        f"a = {'[' * 20_000}",
        f'"{LONG}" = 1',
    ],
)
def test_a_file_of_expectations_with_endless_numbers_is_refused_in_short(
    run, stored, tmp_path, text
):
    path = tmp_path / "e.toml"
    path.write_text(f"schema = 1\n{text}\n")
    done = run("check", stored, path)
    done.fails(3, "e.toml:")
    assert all(len(line) <= LONGEST + 20 for line in done.complaint.splitlines())


@pytest.mark.parametrize("text", [f"{'a.' * 20_000}b = 1", f"[defaults]\nconfidence = {LONG}",
                                  f"[defaults]\njobs = {LONG}"],
                         ids=lambda text: text[:24])  # fmt: skip
def test_a_configuration_with_endless_numbers_is_refused_in_short(run, stored, tmp_path, text):
    path = tmp_path / "c.toml"
    path.write_text(text)
    done = run("--config", path, "rank", stored, *RANK)
    done.fails(2)
    assert all(len(line) <= LONGEST + 20 for line in done.complaint.splitlines())


@cells(
    "pattern", ["{a}{b}", "{a}1{b}", "x{a}.{b}.{c}".replace("x", "{d}e{e}") * 3, "{p}" * 5000,
                ".".join(f"{{{chr(97 + k)}}}" for k in range(13)), LONGER],
)  # fmt: skip
def test_a_pattern_of_names_whose_numbers_have_no_end_is_refused(run, tmp_path, pattern):
    path = tmp_path / f"{'1.' * 100}x.csv"
    path.write_text("callpath,time\nmain,1\n")
    done = run("info", path, "--name", pattern)
    done.fails(2)
    assert all(len(line) <= LONGEST + 20 for line in done.complaint.splitlines())
