"""`--plot FILE` of show, rank and excess, and `export --what flame`."""

from __future__ import annotations

import sys

import pytest

from cells import cells

pytest.importorskip("matplotlib", reason="plots need matplotlib: the extra [plot]")

CALL_PATH = "**/TimeIncrement/MPI_Allreduce"
COMMANDS = {
    "show": ("show", CALL_PATH, "--target", "1000"),
    "rank": ("rank", "--target", "1000"),
    "excess": ("excess",),
}
BEGINNINGS = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}


def words(name, source):
    command, *others = COMMANDS[name]
    return [command, source, *others]


@cells("form", BEGINNINGS)
@cells("name", COMMANDS)
def test_an_answer_is_drawn_as_well(run, lulesh, stored, tmp_path, name, form):
    source = lulesh if name == "excess" else stored
    path = tmp_path / f"fig.{form}"
    plain, told = (run(*words(name, source), *more) for more in ((), ("--plot", path)))
    assert told.status == 0, told.err
    assert told.out == plain.out
    assert path.read_bytes().startswith(BEGINNINGS[form])
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", COMMANDS)
def test_other_endings_are_refused_before_anything_is_read(run, tmp_path, name):
    told = run(*words(name, tmp_path / "nothing"), "--plot", tmp_path / "fig.jpg")
    told.fails(2, "no plot has this ending", ".pdf, .svg, .png")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_plot_that_exists_is_replaced_with_force_only(run, lulesh, stored, tmp_path, name):
    path = tmp_path / "fig.svg"
    path.write_text("mine")
    asked = [*words(name, lulesh if name == "excess" else stored), "--plot", path]
    run(*asked).fails(6, "exists", "--force")
    assert path.read_text() == "mine"
    assert run(*asked, "--force").status == 0
    assert path.read_text() != "mine"


@pytest.mark.parametrize("name", COMMANDS)
def test_without_matplotlib_the_extra_is_named(run, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = run(*words(name, tmp_path / "nothing"), "--plot", tmp_path / "fig.pdf")
    told.fails(2, "plots need matplotlib", "pip install 'callpath-modeler[plot]'")


def test_without_a_plot_matplotlib_is_not_imported(spawn, stored, tmp_path):
    package = tmp_path / "matplotlib"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit(99)\n")
    asked = ["rank", stored, "--target", "1000"]
    assert spawn(*asked, PYTHONPATH=str(tmp_path)).status == 0
    plotted = spawn(*asked, "--plot", tmp_path / "fig.pdf", PYTHONPATH=str(tmp_path))
    assert plotted.status == 99


def test_a_plot_of_a_ranking_heeds_select_and_top(run, stored, tmp_path):
    path = tmp_path / "fig.svg"
    asked = ["rank", stored, "--target", "1000", "--select", "**/MPI_Wait*", "-n", "3"]
    assert run(*asked, "--plot", path).status == 0
    # matplotlib writes texts as comments beside their outlines.
    shown = path.read_text()
    assert shown.count("MPI_Waitall") == 3
    assert "MPI_Init" not in shown


def test_a_plot_of_a_ranking_at_infinity_is_refused(run, stored, tmp_path):
    told = run("rank", stored, "--target", "inf", "--plot", tmp_path / "fig.svg")
    told.fails(2, "at infinity", "--target with a number")


def test_a_plot_is_of_one_ranking(run, lulesh, tmp_path):
    told = run("rank", lulesh, "--target", "64", "--group-by", "p", "--plot", tmp_path / "f.pdf")
    told.fails(2, "--plot and --group-by exclude each other")


def test_a_plot_of_excess_work_has_the_lines_of_the_table(run, lulesh, tmp_path):
    path = tmp_path / "fig.svg"
    asked = ["excess", lulesh, "--pair", "8,125", "--view", "flat", "-n", "2", "--plot", path]
    assert run(*asked, "-f", "csv").status == 0
    shown = path.read_text()
    assert "MPI_Init" in shown
    assert "more -->" in shown
    assert "p = 8 to 125" in shown


def test_configuration_files_have_no_plots(run, lulesh, tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('[defaults]\nplot = "fig.pdf"\n')
    assert run("--config", path, "rank", lulesh, "--target", "64").status == 2


# Flame graphs


def test_a_flame_graph_goes_to_standard_output(run, lulesh):
    told = run("export", lulesh, "--what", "flame")
    assert told.status == 0
    assert told.out.startswith("<?xml")
    assert run("export", lulesh, "--what", "flame", "-f", "svg").out == told.out


def test_folded_stacks_are_for_flame_graphs_as_well(run, lulesh):
    asked = [run("export", lulesh, *more, "-f", "folded") for more in ((), ("--what", "flame"))]
    assert asked[0].out == asked[1].out


@cells(
    ("options", "words"),
    [
        (["--what", "flame", "-f", "csv"], ["no flame graph in csv", "svg, folded, speedscope"]),
        (["--what", "models", "-f", "svg"], ["--what models is not svg"]),
        (["-f", "csv", "--base", "8"], ["--base is for flame graphs"]),
        (["-f", "folded", "--color-by", "growth"], ["--color-by is for flame graphs"]),
        (["-f", "svg", "--target", "inf"], ["svg at infinity"]),
        (["-f", "svg", "--base", "7"], ["no run at p = 7"]),
        (["-f", "svg", "--base", "7", "--target", "1000"], ["no measured scale", "1, 8, 27"]),
        (["-f", "svg", "--base", "many"], ["--base"]),
    ],
)
def test_what_no_flame_graph_is_made_of_is_refused(run, lulesh, options, words):
    run("export", lulesh, *options).fails(2, *words)
