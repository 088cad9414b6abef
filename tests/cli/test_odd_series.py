"""Series of runs as people have them: odd names, kinds in names, parameters in some files only."""

from __future__ import annotations

import itertools
import re
import shlex

import pytest

from callpath_modeler.readers.tokens import tokens_in
from callpath_modeler.studies import loading

SCALES = (2, 4, 8, 16)


@pytest.fixture
def series(tmp_path):
    """Write folded stacks with these names; the first call path takes 32,768 / p samples."""

    def written(names, ending=".folded"):
        folder = tmp_path / "runs"
        folder.mkdir()
        for name in names:
            p = next(p for p in SCALES if re.search(rf"(?<!\d){p}(?!\d)", name))
            text = f"main;sort {32768 // p}\nmain;comm {10 * p}\n"
            (folder / f"{name}{ending}").write_text(text)
        return folder

    return written


@pytest.mark.parametrize("ending", [".folded", ".txt", ".out"])
def test_folded_stacks_are_known_by_their_contents(series, ending):
    experiment = loading.load(series([f"app-p{p}" for p in SCALES], ending))
    assert experiment.points("p").tolist() == [*SCALES]
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]
    assert paths == ["main", "main/sort", "main/comm"]


def test_one_odd_name_is_left_out_and_named(tmp_path):
    sizes = itertools.product(SCALES, (65536, 262144), (1, 2, 3))
    runs = [(f"merge_{p}-{size}-{r}", p, size) for p, size, r in sizes]
    for name, p, size in [*runs, ("_4-8-1", 4, 8)]:
        text = f"callpath,p,InputSize,time\nmain,{p},{size},{size / p}\n"
        (tmp_path / f"{name}.csv").write_text(text)
    experiment = loading.load(tmp_path)
    assert len(experiment.runs) == 24
    (found,) = [each for each in experiment.findings if each.code == "CPM101"]
    assert found.subject.endswith("_4-8-1.csv")


def test_words_before_a_size_are_kinds(series, run):
    kinds = ("a", "pe", "re", "r")
    folder = series([f"p{p}-{kind}{size}" for p in SCALES for kind in kinds
                     for size in (65536, 262144)])  # fmt: skip
    experiment = loading.load(folder)
    assert {p.name: p.values for p in experiment.parameters} == {
        "p": SCALES,
        "n": (65536, 262144),
    }
    asked = ("rank", folder, "--target", "64", "--where", "n=65536")
    refused = run("views", *asked[1:])
    refused.fails(2, "4 cases of 'kind': a, pe, r, re")
    chosen = shlex.split(refused.complaint.partition("--case ")[2].partition(", or compare")[0])[0]
    assert "4 points, 4 runs" in run(*asked, "--case", chosen).out
    out = run(*asked, "--group-by", "kind").out
    assert [line for line in out.splitlines() if line.startswith("kind = ")] == [
        f"kind = {kind} (4 runs)" for kind in sorted(kinds)
    ]


@pytest.mark.parametrize("name", ["app-i{i}-p{p}", "case{i}-p{p}"])
def test_numbers_that_count_kinds_from_zero_are_cases(series, run, name):
    folder = series([name.format(i=i, p=p) for i in range(4) for p in SCALES])
    word = "i" if "-i" in name else "case"
    out = run("rank", folder, "--target", "64").out
    assert "of 4 cases" in out
    assert "4 points, 4 runs" in run("rank", folder, "--target", "64", "--case", f"{word}2").out


def test_a_number_from_zero_may_be_a_parameter_with_options_that_work(series, run):
    folder = series([f"app-i{i}-p{p}" for i in range(4) for p in SCALES])
    refused = run("rank", folder, "--target", "64", "--param", "i=name")
    refused.fails(4, "i = 0: models need positive values")
    hint = refused.complaint
    chosen = shlex.split(hint.partition("--where ")[2].partition(", or rank")[0])[0]
    asked = ("rank", folder, "--target", "64", "--param", "i=name")
    assert "4 points, 4 runs" in run(*asked, "--where", chosen).out
    grouped = shlex.split(hint.partition("--group-by ")[2])[0]
    out = run(*asked, "--group-by", grouped).out
    assert out.count("4 points, 4 runs") == 4


def test_a_parameter_that_some_profiles_state_comes_from_the_names(tmp_path):
    for p, size in itertools.product(SCALES, (100, 200)):
        stated = "input_size" if p > 4 else ""
        text = f"callpath,{stated or 'note'},time\nmain,{size if stated else 'x'},{size / p}\n"
        (tmp_path / f"sort-p{p}-a{size}.csv").write_text(text)
    experiment = loading.load(tmp_path)
    assert {p.name: p.values for p in experiment.parameters} == {"p": SCALES, "a": (100, 200)}
    (found,) = [each for each in experiment.findings if each.code == "CPM102"]
    assert "input_size is not in 4 profiles" in found.message


def test_the_hint_for_a_parameter_that_some_profiles_lack_works(tmp_path, run):
    for p in SCALES:
        column, cell = ("depth_of_tree", p + 3) if p > 4 else ("note", "x")
        (tmp_path / f"sort-p{p}.csv").write_text(f"callpath,{column},time\nmain,{cell},{9 / p}\n")
    refused = run("info", tmp_path)
    refused.fails(2, "no parameter 'depth_of_tree'")
    option = shlex.split(refused.complaint.partition("with ")[2].partition(", or give")[0])
    assert "4 points" in run("info", tmp_path, *option).out


def test_names_that_caliper_gives_hold_no_numbers():
    names = ["230711-163800_2063087_pLIix6MEOLeM", "230713-164010_2065084_oOj37HyVaQXe"]
    assert [tokens_in(name) for name in names] == [[], []]


def test_one_arrow_in_a_name_does_not_decide_for_the_table(tmp_path):
    rows = [
        f"{path},{p},1"
        for p in SCALES
        for path in ("main", "main/solve", "main/solve/MPI_Send", "main/solve/state a->b")
    ]
    path = tmp_path / "arrow.csv"
    path.write_text("\n".join(["callpath,p,time", *rows]) + "\n")
    tree = loading.load(path).tree
    assert [tree.name(row) for row in range(4)] == ["main", "solve", "MPI_Send", "state a->b"]
