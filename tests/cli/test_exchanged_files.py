"""Import and export in the formats of other programs, on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

RANK = ("--target", "4096", "-f", "csv")
FILES = {
    "app.jsonl": ("-f", "extra-p"),
    "app.extra-p": (),
    "ours.csv": ("--what", "values"),
    "ours.json": ("--what", "values"),
    "ours.parquet": ("--what", "values"),
}


def ranked(outcome):
    """Return a ranking without the parts that depend on names of files."""
    assert outcome.status == 0, outcome.err
    # Predictions obey the run time of the slowest process, and what waits follows the slowest
    # processes of what it waits for. Only profiles have them.
    columns = ("callpath", "id", "growth", "growth_low", "growth_high", "model")
    table = csv.DictReader(io.StringIO(outcome.out))
    others = (row for row in table if "MPI_Wait" not in row["callpath"])
    return sorted(tuple(row[name] for name in columns) for row in others)


@pytest.fixture(scope="module")
def kept():
    return {}


@pytest.fixture
def of_profiles(run, samples, kept):
    """Rank the profiles, once."""
    if not kept:
        kept["rows"] = ranked(run("rank", samples / "lulesh", *RANK))
    return kept["rows"]


@pytest.mark.parametrize("name", FILES)
def test_the_ranking_is_the_same_whatever_the_format(run, samples, tmp_path, of_profiles, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    folder = tmp_path / "runs"
    folder.mkdir()
    profiles = samples / "lulesh"
    made = run("export", profiles, "-o", folder / name, *FILES[name])
    assert made.status == 0
    assert made.out == ""
    assert ranked(run("rank", folder / name, *RANK)) == of_profiles


def test_what_cannot_be_said_in_text_of_extrap_is_refused(run, samples, tmp_path):
    target = tmp_path / "app.txt"
    outcome = run("export", samples / "lulesh", "-f", "extra-p", "-o", target)
    outcome.fails(2, "text needs every point")
    assert not target.exists()
    points = ("--where", "p>1", "-m", "time")
    assert run("export", samples / "lulesh", "-f", "extra-p", "-o", target, *points).status == 0
    assert target.read_text().startswith("PARAMETER p\nPOINTS ( 8 )\n")


def test_json_lines_of_extrap_go_to_a_pipe(run, samples):
    out = run("export", samples / "lulesh", "-f", "extra-p", "-m", "visits").out
    first = json.loads(out.partition("\n")[0])
    assert first["metric"] == "visits"
    assert set(first["params"]) == {"p"}


def test_an_experiment_of_extrap_is_binary(run, samples, tmp_path):
    outcome = run("export", samples / "lulesh", "-o", tmp_path / "app.extra-p")
    assert outcome.status == 0
    assert (tmp_path / "app.extra-p").read_bytes().startswith(b"PK")
    run("export", samples / "lulesh", "-o", tmp_path / "app.extra-p").fails(6, "exists")


@pytest.mark.parametrize("form", ["folded", "hatchet"])
def test_one_profile_is_as_measured_or_with_a_target_as_predicted(run, samples, form):
    measured = run("export", samples / "lulesh", "-f", form)
    predicted = run("export", samples / "lulesh", "-f", form, "--target", "4096")
    assert measured.status == predicted.status == 0
    assert measured.out != predicted.out
    assert "MPI_Allreduce" in measured.out


def test_models_for_viewers_of_cube_have_the_values_of_the_ranking(run, stored, tmp_path):
    path = tmp_path / "models.cubex"
    done = run("export", stored, "--target", "4096", "-o", path)
    assert (done.status, done.out) == (0, "")
    assert "models without a formula in the file" in done.err
    table = csv.DictReader(io.StringIO(run("rank", stored, "-n", "all", "-e", *RANK).out))
    wanted = {row["callpath"]: float(row["value_at_target[s]"]) for row in table}
    values = run("export", path, "-m", "time_at_target", "--what", "values", "-f", "csv").out
    found = {row["callpath"]: float(row["value[s]"]) for row in csv.DictReader(io.StringIO(values))}
    assert found == pytest.approx(wanted)
    again = tmp_path / "again.cubex"
    assert run("export", stored, "--target", "4096", "-f", "cubex", "-o", again).status == 0
    assert again.read_bytes() == path.read_bytes()


def test_models_for_viewers_of_cube_need_a_file_and_replace_none(run, stored, tmp_path):
    path = tmp_path / "models.cubex"
    path.write_text("mine")
    run("export", stored, "-o", path).fails(6, "exists")
    assert path.read_text() == "mine"
    run("export", stored, "-f", "cubex").fails(6, "binary", "-o")
    assert run("export", stored, "-o", path, "--force", "-i").status == 0


def test_models_in_several_parameters_have_formulas_along_one(run, tmp_path):
    lines = ["callpath,p,n,time [s]"]
    lines += [
        f"main,{p},{n},{1 + 0.5 * p + 0.1 * n * n}" for p in (2, 4, 8, 16, 32) for n in (1, 2, 4, 8)
    ]
    (tmp_path / "runs.csv").write_text("\n".join([*lines, ""]))
    path = tmp_path / "models.cubex"
    done = run("export", tmp_path / "runs.csv", "--at", "p=64,n=8", "-o", path)
    assert done.status == 0, done.err
    assert b"Model of the exclusive value over x = p at n = 8" in path.read_bytes()


@pytest.mark.parametrize("form", ["folded", "speedscope", "hatchet", "cubex"])
def test_a_profile_at_infinity_is_refused(run, samples, form):
    done = run("export", samples / "lulesh", "-f", form, "--target", "inf")
    done.fails(2, f"{form} at infinity", "--target with a number")


def test_stacks_are_not_made_of_what_does_not_add_up(run, samples):
    words = ("export", samples / "lulesh", "-m", "min_time", "-f")
    run(*words, "folded").fails(2, "min_time does not add up")
    run(*words, "speedscope").fails(2, "no metric adds up")
    assert run(*words, "hatchet").status == 0


def test_folded_stacks_sum_up_to_the_predicted_total(run, samples):
    stacks = run("export", samples / "lulesh", "-f", "folded", "--target", "4096").out
    ranking = json.loads(run("rank", samples / "lulesh", "--target", "4096", "-f", "json").out)
    microseconds = sum(int(line.rpartition(" ")[2]) for line in stacks.splitlines())
    assert microseconds == round(1e6 * ranking["total"]["at_target"])


def test_values_need_no_model(run, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("callpath,p,n,time\nmain,2,1,5\nmain,2,2,6\nmain,4,1,7\n")
    outcome = run("export", table, "--what", "values", "-f", "csv")
    assert outcome.status == 0
    assert len(outcome.out.splitlines()) == 4
    run("rank", table, "--target", "8").fails(4, "2 points of p (2, 4)", "--where p=2")


def test_a_bad_table_is_one_line_with_its_number(run, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("callpath,p,time\nmain,2,5\nmain,4,six\n")
    run("info", table).fails(3, "t.csv: line 3: time: 'six' is not a number")


def test_reductions_of_a_table_cannot_be_chosen(run, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("callpath,p,time\nmain,2,5\n")
    run("info", table, "--locations", "mean").fails(4, "holds no mean over processes")


def test_times_that_look_inclusive_are_told_of_unless_their_title_says_what_they_are(run, tmp_path):
    rows = [("main", 10), ("main/a", 8), ("main/a/x", 6), ("main/a/x/y", 4), ("main/b", 1)]
    told = {}
    for title in ("time", "time (inc)", "time (exc)"):
        lines = [f"{path},{p},{value * p}" for p in (2, 4, 8) for path, value in rows]
        (tmp_path / "a.csv").write_text("\n".join([f"callpath,p,{title}", *lines, ""]))
        told[title] = run("info", tmp_path / "a.csv").out
    assert "CPM135 ×1" in told["time"]
    assert "CPM155" not in told["time"]
    assert "CPM135" not in told["time (inc)"] + told["time (exc)"]


def test_an_ending_that_says_nothing_names_all_formats(run, samples, tmp_path):
    told = run("export", samples / "snap", "-o", tmp_path / "app.foo")
    told.fails(2, "the suffix '.foo' selects no format")
    assert all(name in told.err for name in ("csv", "graphml", "extra-p", "hatchet"))
    assert "table" not in told.err
