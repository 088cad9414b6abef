"""Output: streams and formats, tables, charts, files, colours, narrow terminals, pipes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec

import networkx as nx
import pytest

from callpath_modeler import modeling
from callpath_modeler.cli.group import LazyGroup, cpmodel
from callpath_modeler.report.layout import wrap
from cells import cells

RANK = ("--target", "262144")
COLUMNS = (
    "rank callpath id metric growth model value_at_largest[s] value_at_target[s] low[s] high[s] "
    "share_at_target excess_inclusive excess_exclusive status"
)
ESCAPE = "\x1b["


def shell(command, directory, **environment):
    """Run a command line of a user."""
    here = f'cpmodel() {{ {shlex.quote(sys.executable)} -m callpath_modeler "$@"; }}\n'
    return subprocess.run(
        ["/bin/bash", "-c", "set -o pipefail\n" + here + command],
        cwd=directory,
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )


def rows(text, delimiter=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def test_the_main_command_works_as_typed(lulesh, tmp_path):
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    for folder in lulesh.iterdir():
        (profiles / f"{folder.name}.cubex").symlink_to(folder / "profile.cubex")
    ranked = shell("cpmodel rank profiles/*.cubex --target 262144", tmp_path)
    assert ranked.returncode == 0, ranked.stderr
    assert "at p = 262144 (" in ranked.stdout.decode().split("\n")[0]
    written = shell(
        "cpmodel rank profiles/*.cubex --target 262144 --format csv -o kernels.csv", tmp_path
    )
    assert written.returncode == 0
    assert not written.stdout
    head = (tmp_path / "kernels.csv").read_text().splitlines()[0].split(",")
    assert set(COLUMNS.split()) <= set(head)


def test_a_closed_pipe_ends_quietly(stored, tmp_path):
    for form in ("table", "csv", "json"):
        done = shell(f"cpmodel -q rank {stored} --target 64 -f {form} | head -c 1", tmp_path)
        assert done.stderr == b""
    reader, writer = os.pipe()
    os.close(reader)
    gone = subprocess.run(
        [sys.executable, "-m", "callpath_modeler", "-q", "rank", stored, "--target", "64"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert gone.returncode == 141
    assert gone.stderr == b""


def imported_by(*words):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "callpath_modeler", *words],
        capture_output=True,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}


def test_help_needs_no_numpy_and_no_reader():
    imported = imported_by("--help")
    assert "callpath_modeler.cli.group" in imported
    heavy = {"numpy", "scipy", "pandas", "networkx", "rich", "msgspec", "cpmodel_scorep"}
    assert not heavy & imported


@pytest.mark.parametrize("words", [("rank",), ("show", "main/MPI_Barrier"), ("diff",)])
def test_what_is_asked_most_needs_neither_scipy_nor_a_reader_of_others(words, samples):
    runs = str(samples / "lulesh")
    command, *more = words
    more += [runs] if command == "diff" else ["--target", "1000"]
    imported = imported_by(command, runs, *more)
    assert {"callpath_modeler.modeling.fitting", "cpmodel_scorep.stream"} <= imported
    assert not {"scipy", "pandas", "networkx", "cpmodel_otf2.events", "otf2"} & imported


def test_help_is_for_the_taking(run):
    assert run("--help").out == run().out
    assert "262144" in run("-h").out
    for name in LazyGroup.list_commands(cpmodel, None):
        outcome = run(name, "--help")
        assert outcome.status == 0
        assert outcome.out.startswith(f"Usage: cpmodel {name} ")
        assert name in run("--help").out
    assert re.fullmatch(r"cpmodel, version \d+\.\d+\.\d+\n", run("--version").out)


def test_results_are_all_that_goes_to_standard_output(run, stored):
    outcome = run("rank", stored, *RANK)
    assert "CPM" not in outcome.out
    assert "CPM" in outcome.err
    silent = run("-q", "rank", stored, *RANK)
    assert (silent.out, silent.err) == (outcome.out, "")


def test_all_findings_are_listed_when_asked_for(run, stored):
    listed = run("info", stored, "--diagnostics")
    assert all(re.search(r"\(CPM\d{3}( x\d+)?\)$", line) for line in listed.out.splitlines())
    assert listed.err == ""


def test_the_last_note_is_the_command_that_lists_every_finding(run, lulesh):
    asked = ("rank", lulesh, "--target", 5000, "--method", "classic", "--where", "p>1")
    note = run(*asked).err.splitlines()[-1]
    count, words = note.split(" more notes: cpmodel ")
    listed = run(*shlex.split(words))
    assert listed.status == 0
    # They include findings about models and about the target.
    told = {line[-20:] for line in run("-v", *asked).err.splitlines() if "(CPM" in line}
    assert len(told) == 3 + int(count)
    assert told <= {line[-20:] for line in listed.out.splitlines()}
    assert "(CPM205)" in listed.out


def test_findings_about_runs_are_listed_where_no_model_can_be_made(run, lulesh):
    listed = run("info", lulesh, "--where", "p<=8", "--diagnostics")
    assert listed.status == 0
    assert "(CPM134" in listed.out
    assert "CPM2" not in listed.out


def test_what_was_read_has_no_target_and_no_metric(run, stored):
    for words in (("--target", "64"), ("-m", "time"), ("--method", "classic")):
        run("info", stored, *words).fails(2, "--diagnostics")


def test_what_is_next_can_be_typed_as_it_stands(run, lulesh):
    options = ("--target", "64", "-m", "visits", "--exponents", "0,1", "-i")
    out = run("rank", lulesh, *options).out
    words = shlex.split(out.splitlines()[-1].removeprefix("next: cpmodel "))
    shown = run(*words)
    assert shown.status == 0
    assert "visits(p) =" in shown.out
    assert "--inclusive" in words


@pytest.mark.parametrize("width", [40, 60])
def test_what_is_next_can_be_pasted_from_a_narrow_terminal(run, lulesh, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    out = run("rank", lulesh, "--target", "64", "-m", "visits", "-i").out
    pasted = out[out.index("next: cpmodel ") :]
    assert pasted.count("\n") > 1
    joined = pasted.replace("\\\n", "")
    assert joined.count("\n") == 1
    assert "visits(p) =" in run(*shlex.split(joined)[2:]).out


def test_no_word_of_a_shell_is_broken():
    text = "next: cpmodel show 'with a space' \"and 'an other\" --target 8"
    lines = [line.plain for line in wrap(text, 20)]
    assert lines == [
        "next: cpmodel show \\",
        "  'with a space' \\",
        '  "and \'an other" \\',
        "  --target 8",
    ]


def answer(outcome):
    """Return the output without the lines that repeat the invocation."""
    return [line for line in outcome.out.splitlines() if " cpmodel " not in f" {line} "]


def test_every_format_tells_the_same(run, stored):
    table = rows(run("rank", stored, *RANK, "-f", "csv").out)
    assert rows(run("rank", stored, *RANK, "-f", "tsv").out, "\t") == table
    document = json.loads(run("rank", stored, *RANK, "-f", "json").out)
    lines = [
        json.loads(line) for line in run("rank", stored, *RANK, "-f", "jsonl").out.splitlines()
    ]
    assert document["rows"] == lines
    assert [row["callpath"] for row in lines] == [row["callpath"] for row in table]
    assert [row["value_at_target"] for row in lines] == [
        float(r["value_at_target[s]"]) for r in table
    ]
    assert {"schema", "findings", "parameters", "inputs", "units", "target"} <= set(document)
    markdown = run("rank", stored, *RANK, "-f", "markdown", "--columns", "all").out.splitlines()
    assert len(markdown) == len(table) + 2


def test_columns_rows_and_header_can_be_chosen(run, stored):
    outcome = run(
        "rank", stored, *RANK, "-f", "csv", "--columns", "callpath,rank", "-n", "2", "--no-header"
    )
    lines = list(csv.reader(io.StringIO(outcome.out)))
    assert [line[1] for line in lines] == ["1", "2"]


@cells("by", ["value", "growth", "loss", "share"])
@cells("target", ["64", "inf"])
def test_every_order_works_at_a_target_and_at_infinity(run, stored, by, target):
    table = rows(run("rank", stored, "--target", target, "--by", by, "-f", "csv").out)
    ranked = [int(row["rank"]) for row in table if row["rank"]]
    assert ranked == list(range(1, len(ranked) + 1))


def test_target_and_at_say_the_same(run, stored):
    one, other = (run("rank", stored, *words) for words in (["--at", "p=64"], ["--target", "64"]))
    assert answer(one) == answer(other)


def test_a_selection_keeps_the_places_of_the_whole_ranking(run, stored):
    whole = {r["id"]: r["rank"] for r in rows(run("rank", stored, *RANK, "-f", "csv").out)}
    some = rows(run("rank", stored, *RANK, "-f", "csv", "--select", "**/MPI_*").out)
    assert 0 < len(some) < len(whole)
    assert all("MPI_" in row["callpath"] for row in some)
    assert all(whole[row["id"]] == row["rank"] for row in some)


@pytest.mark.parametrize("width", [80, 120])
def test_numbers_are_whole_on_every_terminal(run, stored, monkeypatch, width):
    wide = run("rank", stored, *RANK).out.splitlines()
    monkeypatch.setenv("COLUMNS", str(width))
    narrow = run("rank", stored, *RANK).out.splitlines()
    number = r"(?: *\d+)? +([-\d. e+]+ \w*s)  +([-\d. e+]+ \w*s) "
    cells = [
        [m.groups() for line in text if (m := re.match(number, line))] for text in (wide, narrow)
    ]
    assert len(cells[0]) > 10
    assert cells[0] == cells[1]


def test_wide_shows_everything_on_a_narrow_terminal(run, stored, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert (
        "int main(int, char**)/void LagrangeLeapFrog(Domain&)"
        in run("rank", stored, *RANK, "--wide").out
    )


def test_colour_is_used_when_asked_for_and_never_in_pipes(run, stored, monkeypatch):
    rank = ("rank", stored, *RANK)
    plain = run(*rank).out
    assert ESCAPE not in plain
    coloured = run("--color", "always", *rank).out
    assert ESCAPE in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert ESCAPE in run(*rank).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert ESCAPE not in run(*rank).out
    assert ESCAPE in run("--color", "always", *rank).out
    assert ESCAPE not in run("--color", "never", *rank).out


@pytest.mark.parametrize(
    "environment",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
    ids=["ascii", "C"],
)
def test_a_terminal_without_unicode_gets_ascii(spawn, stored, environment):
    for arguments in (("rank", stored, *RANK), ("info", stored), ("show", stored, "main/MPI_Init")):
        outcome = spawn(*arguments, **environment)
        assert outcome.status == 0, outcome.err
        assert (outcome.out + outcome.err).isascii()


def test_files_get_the_format_of_their_ending(run, stored, tmp_path):
    for ending, start in {
        "csv": "rank,",
        "tsv": "rank\t",
        "json": "{",
        "md": "| # | p=125 |",
        "txt": "lulesh2.0 will run ",
    }.items():
        outcome = run("rank", stored, *RANK, "-o", tmp_path / f"x.{ending}")
        assert (outcome.status, outcome.out) == (0, "")
        assert (tmp_path / f"x.{ending}").read_text().startswith(start)
    run("rank", stored, "--target", "64", "-o", tmp_path / "x.csv").fails(6, "--force")
    assert run("rank", stored, "--target", "64", "-o", tmp_path / "x.csv", "--force").status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"x.{ending}" for ending in ("csv", "tsv", "json", "md", "txt")
    )


def test_a_dash_for_a_file_is_standard_output(run, stored, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ("rank", stored, "--target", "64", "-f", "csv")
    assert run(*asked, "-o", "-").out == run(*asked).out
    assert not list(tmp_path.iterdir())


def test_a_file_is_what_standard_output_would_be(run, stored, tmp_path):
    for form in ("csv", "json", "table"):
        run("rank", stored, *RANK, "-f", form, "-o", tmp_path / form)
        assert (tmp_path / form).read_text() == run("rank", stored, *RANK, "-f", form).out


@pytest.mark.skipif(find_spec("pyarrow") is not None, reason="pyarrow is there")
def test_parquet_without_pyarrow_says_what_to_install(run, stored, tmp_path):
    run("rank", stored, *RANK, "-o", tmp_path / "x.parquet").fails(2, "pyarrow")


def test_one_call_path_is_shown_by_pattern_or_id(run, stored):
    by_pattern = run("show", stored, "**/CalcForceForNodes/MPI_Waitall")
    callpath_id = re.search(r"@\w{7}", by_pattern.out).group()
    assert run("show", stored, callpath_id).out == by_pattern.out
    for words in ("excess work", "could also be", "called by CalcForceForNodes", "measured  p ="):
        assert words in by_pattern.out
    assert run("show", stored, callpath_id, "--linear", "--target", "inf").status == 0


def test_the_graph_reads_back_with_models_and_predictions(run, stored, tmp_path):
    run("export", stored, "-o", tmp_path / "tree.graphml", "--target", "4096")
    graph = nx.read_graphml(tmp_path / "tree.graphml")
    assert nx.is_arborescence(graph)
    table = {r["id"][1:]: r for r in rows(run("rank", stored, "--target", "4096", "-f", "csv").out)}
    assert set(graph.nodes) == set(table)
    for node, data in graph.nodes(data=True):
        assert data["callpath"] == table[node]["callpath"]
        assert data["status"] == table[node]["status"]
    dot = run("export", stored, "-f", "dot").out
    assert dot.startswith("digraph ")
    assert dot.count(" -> ") == graph.number_of_edges()


def test_an_export_needs_a_format(run, stored):
    run("export", stored).fails(2, "no format")


def test_a_stored_experiment_gives_the_ranking_of_its_profiles(run, series, tmp_path):
    runs, kept = series(), tmp_path / "app.cpm"
    made = run("fit", runs, "-o", kept)
    assert made.status == 0
    assert made.out.startswith(f"{kept}: 3 call paths, 2 metrics")
    for options in (RANK, (*RANK, "-m", "visits"), ("--target", "inf"), (*RANK, "-i")):
        assert answer(run("rank", kept, *options)) == answer(run("rank", runs, *options))
    assert run("info", kept).out == run("info", runs).out
    table = ("rank", kept, *RANK, "-f", "csv", "--where", "p>1")
    assert run(*table).out == run("rank", runs, *table[2:]).out


def test_stored_models_are_fitted_again_only_for_other_settings(run, stored, monkeypatch):
    fits = []

    def counted(*args, **options):
        # Models of requirements, which tell the cause of growth, have no options.
        fits.extend([options["confidence"]] if "confidence" in options else [])
        return fit(*args, **options)

    fit = modeling.fit
    monkeypatch.setattr(modeling, "fit", counted)
    for target in ("64", "inf"):
        assert run("rank", stored, "--target", target).status == 0
    assert fits == []
    run("rank", stored, *RANK, "--confidence", "0.5")
    run("rank", stored, *RANK, "-i")
    run("rank", stored, *RANK, "--where", "p<=125")
    # An inclusive view is a sum of the stored models.
    # The run time has a separate model.
    assert fits == [0.5, 0.5, 0.95, 0.95]


def test_a_stored_experiment_is_named_after_the_program(run, series, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = series(name="code-2.0")
    outcome = run("fit", runs, "-m", "time")
    (kept,) = tmp_path.glob("*.cpm")
    assert outcome.out.startswith(kept.name)


def test_a_manifest_reads_back_as_the_runs_it_was_made_of(run, series, tmp_path):
    runs = series()
    before = run("info", runs, "-f", "csv")
    printed = run("info", runs, "--write-manifest", "-o", runs / "runs.toml")
    assert (printed.status, printed.out) == (0, "")
    after = run("info", runs, "-f", "csv")
    assert after.out == before.out
    assert run("info", runs / "runs.toml", "-f", "csv").out == before.out
    assert "schema = 1" in run("info", tmp_path / "series", "--write-manifest").out


def test_reading_is_verified_value_by_value(run, series):
    outcome = run("info", series(), "--verify")
    assert outcome.status == 0
    assert outcome.out.count("agrees") == 10
    assert "all agree" in outcome.err
