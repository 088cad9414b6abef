"""`--ignore` and `--hide`: call paths that are excluded, or folded into their callers."""

from __future__ import annotations

import csv
import io
import json
import shlex

import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import UsageError
from callpath_modeler.studies.study import Study

INIT = "**/MPI_Init"


def rows(outcome):
    assert outcome.status == 0, outcome.err
    return list(csv.DictReader(io.StringIO(outcome.out)))


def ranked(outcome):
    """Return values at the target by call path."""
    return {row["callpath"]: float(row["value_at_target[s]"] or 0) for row in rows(outcome)}


def test_what_is_ignored_is_not_ranked_and_not_part_of_the_total(run, lulesh):
    options = ("--target", "125", "-f", "json")
    whole = json.loads(run("rank", lulesh, *options).out)
    left = json.loads(run("rank", lulesh, *options, "--ignore", INIT).out)
    gone = [row for row in whole["rows"] if row["callpath"].endswith("MPI_Init")]
    assert len(whole["rows"]) - len(left["rows"]) == len(gone) == 1
    lost = gone[0]["value_at_target"]
    assert left["total"]["at_target"] == pytest.approx(whole["total"]["at_target"] - lost)
    assert "CPM139" in {finding["code"] for finding in left["findings"]}


def test_several_patterns_may_be_given_and_the_next_command_has_them(run, lulesh):
    words = ("--ignore", INIT, "--ignore", "**/MPI_Finalize", "--hide", "**/MPI_Wait*")
    done = run("rank", lulesh, "--target", "1000", *words)
    assert done.status == 0
    following = done.out.replace("\\\n", "").split("next: ")[1].split("\n")[0]
    assert shlex.join(words) in following
    shown = run(*shlex.split(following)[1:])
    assert shown.status == 0
    assert "MPI_Wait" not in shown.out


def test_every_answer_says_what_is_not_in_it(run, lulesh, tmp_path):
    said = "excluded: 1 call path, 50 % of the time of all runs"
    at = ("--target", "1000", "--ignore", INIT)
    page = tmp_path / "r.html"
    assert run("report", lulesh, *at, "-o", page).status == 0
    answers = [
        *(run(command, lulesh, *at).out for command in ("rank", "views")),
        *(run(command, lulesh, "--ignore", INIT).out for command in ("info", "excess")),
        run("diff", lulesh, lulesh, "--ignore", INIT).out,
        page.read_text(),
    ]
    for answer in answers:
        assert said in " ".join(answer.replace("\N{NO-BREAK SPACE}", " ").split())
    assert "excluded" not in run("rank", lulesh, "--target", "1000", "--hide", INIT).out


def test_what_is_hidden_counts_where_it_is_called(run, lulesh):
    options = ("--target", "125", "-f", "csv")
    whole = ranked(run("rank", lulesh, *options))
    folded = ranked(run("rank", lulesh, *options, "--hide", "**/MPI_*"))
    assert not [path for path in folded if "MPI_" in path]
    of_main = ("MPI_", "<program>")
    assert folded.keys() == {path for path in whole if of_main[0] not in path}
    for view in ("top-down", "flat"):
        words = ("--view", view, "--target", "125", "--hide", "**/MPI_*")
        assert "sum check: the lines add up" in run("views", lulesh, *words).out


def test_a_pattern_that_names_nothing_is_an_error_with_a_hint(run, lulesh):
    for option in ("--ignore", "--hide"):
        done = run("rank", lulesh, "--target", "64", option, "**/MPI_Int")
        done.fails(2, "no call path matches '**/MPI_Int'", "MPI_Init")
    run("rank", lulesh, "--target", "64", "--ignore", "~(").fails(2)
    run("rank", lulesh, "--target", "64", "--ignore", "**").fails(
        4, "--ignore excludes all call paths"
    )


def test_what_a_configuration_names_need_not_be_there(run, lulesh, tmp_path, monkeypatch):
    (tmp_path / "runs").symlink_to(lulesh)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cpmodel.toml"
    path.write_text('[defaults]\nignore = ["**/MPI_Init", "**/other"]\nhide = ["**/pthread_*"]\n')
    configured = run("--config", path, "rank", "runs", "--target", "64", "-f", "csv")
    assert ranked(configured) == ranked(
        run("rank", "runs", "--target", "64", "-f", "csv", "--ignore", INIT)
    )
    path.write_text('[defaults]\n\nhide = ["~MPI_("]\n')
    told = run("--config", path, "rank", "runs", "--target", "64")
    told.fails(2, "cpmodel.toml:3")
    path.write_text('[defaults]\nignore = ["**/a", "**/b"]\n')
    assert "**/a, **/b" in run("--config", path, "info", "runs", "--config").out
    path.write_text('[defaults]\nignore = "**/MPI_Init"\n')
    run("--config", path, "rank", "runs", "--target", "64").fails(2, "ignore")


def test_a_stored_experiment_is_modelled_anew_where_call_paths_are_gone(run, lulesh, stored):
    options = ("--target", "1000", "-f", "csv", "--ignore", INIT)
    assert ranked(run("rank", stored, *options)) == ranked(run("rank", lulesh, *options))


def test_what_was_stored_without_call_paths_needs_no_other_models(run, lulesh, tmp_path):
    path = tmp_path / "app.cpm"
    assert run("fit", lulesh, "--ignore", INIT, "-o", path, "--method", "classic").status == 0
    kept = run("rank", path, "--target", "64", "-f", "json")
    done = run("rank", path, "--target", "64", "-f", "json", "--ignore", INIT)
    done.fails(2, "no call path matches")
    variable = run("rank", path, "--target", "64", "-f", "json", "--hide", "**/MPI_Barrier")
    assert json.loads(kept.out)["fit"]["method"] == "classic"
    assert json.loads(variable.out)["fit"]["method"] == "mixture"


def test_of_two_experiments_one_may_lack_what_is_ignored(run, series):
    old = series(name="old") / "old.*"
    new = series(name="new", names=("main", "f", "h")) / "new.*"
    for pattern in ("**/g", "**/h"):
        done = run("diff", old, new, "--ignore", pattern, "-f", "csv")
        assert done.status == 0, done.err
        assert pattern[3:] not in {row["callpath"].split("/")[-1] for row in rows(done)}
    for option in ("--ignore", "--hide"):
        run("diff", old, new, option, "**/k").fails(2, "no call path matches '**/k'")
    only_new = cpm.LoadOptions(ignore="**/h")
    found = Study(new, only_new).differences(old, cpm.fit(cpm.load(new, only_new)))
    assert "h" not in " ".join(found.pair.tree.paths(range(3)))


def test_excess_work_and_expectations_are_of_what_is_left(run, lulesh, tmp_path):
    flat = ("--view", "flat", "-n", "all", "-f", "csv", "--ignore", INIT)
    assert "MPI_Init" not in run("excess", lulesh, *flat).out
    path = tmp_path / "e.toml"
    assert run("baseline", lulesh, "-o", path, "--ignore", INIT).status == 0
    assert "MPI_Init" not in path.read_text()
    assert run("check", lulesh, path, "--ignore", INIT).status == 0


def test_from_python_patterns_are_one_or_several(lulesh):
    one = cpm.load(lulesh, cpm.LoadOptions(ignore=INIT))
    same = cpm.load(lulesh, cpm.LoadOptions(ignore=[INIT], hide=("**/MPI_Wait",)))
    assert len(one.tree) == 72
    assert len(same.tree) < 72
    for wrong in (7, [7], None):
        with pytest.raises(UsageError, match="ignore: "):
            cpm.LoadOptions(ignore=wrong)


def test_files_and_advice_say_what_they_leave_out(run, lulesh):
    said = "excluded: 1 call path, 50 % of the time of all runs"
    for words in (("export", "-f", "python"), ("baseline",), ("info", "--advise")):
        command, *more = words
        assert said in run(command, lulesh, *more, "--ignore", INIT).out
    for words in (("export", "-f", "python"), ("baseline",)):
        command, *more = words
        assert "excluded" not in run(command, lulesh, *more, "--hide", INIT).out


def test_findings_on_where_call_paths_occur_are_of_those_that_are_left(run, lulesh):
    def missing(*words):
        told = json.loads(run("rank", lulesh, "--target", "1000", "-f", "json", *words).out)
        return [each["message"] for each in told["findings"] if each["code"] == "CPM113"]

    assert missing() == ["25 of 73 call paths do not occur in every run"]
    assert missing("--where", "p>=8") == []
    (of_some,) = missing("--ignore", "**/LagrangeNodal")
    assert of_some.endswith(" of 46 call paths do not occur in every run")
    assert missing("--hide", "**/MPI_*") == []


def test_what_is_ignored_may_be_hidden_as_well(run, lulesh):
    def left(*words):
        return ranked(run("rank", lulesh, "--target", "64", "-f", "csv", *words))

    both = ("--ignore", "**/LagrangeNodal", "--hide", "**/LagrangeNodal")
    assert left(*both) == left(*both[:2])
    assert left("--ignore", "main/LagrangeLeapFrog", "--hide", "**/LagrangeNodal")


def test_a_call_path_that_was_taken_away_is_not_shown_for_that_reason(run, lulesh):
    at = ("show", lulesh, INIT, "--target", "64")
    run(*at, "--ignore", INIT).fails(2, "'**/MPI_Init' after --ignore")
    run(*at, "--hide", INIT).fails(2, "'**/MPI_Init' after --hide")
    assert run(*at).status == 0


def test_a_variable_counts_as_the_command_line_does(run, lulesh, monkeypatch):
    monkeypatch.setenv("CPMODEL_IGNORE", f"{INIT} **/MPI_Finalize")
    done = run("rank", lulesh, "--target", "64")
    assert "excluded: 2 call paths" in " ".join(done.out.split())
    monkeypatch.setenv("CPMODEL_HIDE", "**/other")
    run("rank", lulesh, "--target", "64").fails(2, "'**/other'")


def test_of_what_was_ignored_no_other_name_is_guessed_without_saying_why(run, lulesh, tmp_path):
    path = tmp_path / "e.toml"
    path.write_text('schema = 1\n[[expect]]\ncallpath = "main/MPI_Init"\nvalue = "<= 9 s"\n')
    done = run("check", lulesh, path, "--ignore", INIT)
    assert done.status == 1
    said = "'main/MPI_Init' names no call path after --ignore"
    assert said in " ".join(done.out.split())
