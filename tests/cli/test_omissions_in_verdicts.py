"""Verdicts say what they leave out, whoever left it out, in each place where people look."""

from __future__ import annotations

import json
import shutil
import tomllib
from xml.etree import ElementTree as ET

import pytest

import configured
from callpath_modeler import store
from callpath_modeler.history import run_records

HIDES = '[defaults]\nignore = ["**/MPI_*", "**/solve*"]\nignore_findings = ["CPM139"]\n'
LIMITS = 'schema = 1\n[[expect]]\nvalue = "<= 100 ms"\n'
AT = ("--target", "1024")


@pytest.fixture
def runs(samples, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "me"))
    path = tmp_path / "runs"
    shutil.copytree(samples / "stencil", path)
    return path


@pytest.fixture
def limits(tmp_path):
    return configured.write(tmp_path / "limits.toml", LIMITS)


def said(run, runs, *words):
    """Return what all verdicts of `check` have to say about the runs with these options."""
    found = json.loads(run("info", runs, *words, "-f", "json").out)["findings"]
    messages = [each["message"] for each in found if each["code"] in {"CPM139", "CPM140"}]
    return messages[0].removesuffix(" of all runs")


def test_a_file_beside_profiles_hides_no_cost_from_a_check(run, runs, limits):
    fair = run("check", runs, limits, *AT)
    assert fair.status == 1
    configured.write(runs / "cpmodel.toml", HIDES)
    attacked = run("check", runs, limits, *AT)
    unused = f", without the keys ignore_findings, ignore from {runs / 'cpmodel.toml'}"
    assert attacked.status == fair.status
    assert attacked.out.count(unused) == 2
    assert attacked.out.replace(unused, "") == fair.out
    assert "CPM181" in attacked.err


@pytest.mark.parametrize("where", ["trusted", "named", "mine", "line"])
def test_a_check_says_what_is_left_out_whoever_left_it_out(run, runs, limits, tmp_path, where):
    words, before = (), ()
    if where == "line":
        words = ("--ignore", "**/MPI_*", "--ignore", "**/solve*")
    elif where == "mine":
        configured.write(tmp_path / "me" / "cpmodel" / "config.toml", HIDES)
    else:
        path = configured.write(runs / "cpmodel.toml", HIDES)
        before = ("--config", path) if where == "named" else ()
        if where == "trusted":
            assert run("trust", runs).status == 0
    left_out = "without 16 call paths, 72 % of the time"
    junit = tmp_path / "j.xml"
    done = run(*before, "check", runs, limits, *AT, *words, "--all", "--junit", junit)
    assert done.status == 0, done.err
    text = " ".join(done.out.split())
    assert "whole program" not in text
    assert "PASS rest of the program" in text
    assert text.count(left_out) == 2
    suites = ET.fromstring(junit.read_text())  # noqa: S314 - ours
    cases = suites.findall(".//testcase")
    assert [each.get("name") for each in cases][1:] == ["parts left out"]
    assert "whole program" not in junit.read_text()
    assert left_out in cases[0].find("system-out").text
    assert left_out in cases[1].find("skipped").get("message")
    github = run(*before, "check", runs, limits, *AT, *words, "-f", "github").out
    assert f"::warning title=parts left out::judged {left_out}" in github.replace("%25", "%")
    assert left_out in github.splitlines()[-1]
    told = json.loads(run(*before, "check", runs, limits, *AT, *words, "-f", "json").out)
    (part,) = told["left_out"]
    assert (part["kind"], part["count"], part["message"]) == ("ignore", 16, left_out)
    assert part["share"] == pytest.approx(0.72, abs=0.005)


def test_a_check_of_the_whole_program_says_so(run, runs, limits, tmp_path):
    junit = tmp_path / "j.xml"
    done = run("check", runs, limits, *AT, "--junit", junit)
    assert "whole program" in done.out
    assert "without" not in done.out
    assert "left out" not in junit.read_text()
    assert json.loads(run("check", runs, limits, *AT, "-f", "json").out)["left_out"] == []


@pytest.mark.parametrize(
    ("words", "text", "is_whole"),
    [
        (("--hide", "**/MPI_*"), "call paths folded into callers, ", True),
        (("--where", "p>8"), "of 15 runs, ", True),
        (("--ranks", "rank < 4"), "with processes of rank < 4 only", False),
    ],
)
def test_each_way_of_leaving_out_is_named(run, runs, tmp_path, words, text, is_whole):
    generous = configured.write(tmp_path / "e.toml", LIMITS.replace("100 ms", "1 h"))
    out = " ".join(run("check", runs, generous, *AT, *words, "--all").out.split())
    assert text in out
    assert ("whole program" in out) is is_whole
    kept = tmp_path / "kept.cpm"
    assert run("fit", runs, *words, "-o", kept).status == 0
    assert text in " ".join(run("check", kept, generous, *AT).out.split())


def test_shards_say_which_processes_they_have(run, runs, tmp_path):
    generous = configured.write(tmp_path / "e.toml", LIMITS.replace("100 ms", "1 h"))
    parts = [tmp_path / f"{k}.cpm" for k in (1, 2)]
    for k, part in enumerate(parts, 1):
        words = ("--shard", f"{k}/2", "--ranks", "rank < 4", "-o", part)
        assert run("fit", runs, *words).status == 0
    whole = tmp_path / "whole.cpm"
    assert run("merge", *parts, "-o", whole, "--where", "p>8").status == 0
    out = " ".join(run("check", whole, generous, *AT).out.split())
    assert "with processes of rank < 4 only, without" in out


def test_shares_of_what_is_left_out_twice_are_of_the_whole(run, runs, tmp_path):
    generous = configured.write(tmp_path / "e.toml", LIMITS.replace("100 ms", "1 h"))
    once, kept = tmp_path / "once.cpm", tmp_path / "kept.cpm"
    both = ("--ignore", "**/MPI_*", "--ignore", "**/solve*")
    assert run("fit", runs, "--ignore", "**/MPI_*", "-o", once).status == 0
    assert run("fit", runs, *both, "-o", kept).status == 0
    twice = store.read_experiment(kept).omissions
    out = run("check", once, generous, *AT, "--ignore", "**/solve*").out
    assert twice[0].text in " ".join(out.split())


def test_a_list_of_runs_beside_profiles_leaves_none_out_unsaid(run, runs, tmp_path):
    generous = configured.write(tmp_path / "e.toml", LIMITS.replace("100 ms", "1 h"))
    assert run("info", runs, "--write-manifest", "-o", runs / "runs.toml").status == 0
    listed = (runs / "runs.toml").read_text()
    assert "CPM182" not in run("info", runs).err
    parts = listed.split("\n\n[[run]]")
    (runs / "runs.toml").write_text("\n\n[[run]]".join(parts[:-3]))
    done = run("check", runs, generous, *AT)
    assert f"without 3 of {len(parts) - 1} profiles" in " ".join(done.out.split())
    assert "CPM182" in run("info", runs).err


def test_a_baseline_of_a_part_is_not_called_that_of_the_whole(run, runs):
    whole, part = (run("baseline", runs, *words).out for words in ((), ("--ignore", "**/MPI_*")))
    names = [tomllib.loads(each)["expect"][0]["name"] for each in (whole, part)]
    assert names == ["whole program", "rest of the program"]


def test_a_comparison_says_what_it_leaves_out(run, series, tmp_path):
    base = shutil.copytree(series(), tmp_path / "base")
    gate = ("--fail-on", "growth")
    fair = run("diff", base, base, *gate)
    assert "Judged" not in fair.out
    assert "--fail-on" not in fair.err
    done = run("diff", base, base, *gate, "--ignore", "**/f")
    left_out = said(run, base, "--ignore", "**/f")
    assert f"Judged without {left_out}." in " ".join(done.out.split())
    assert f"limits of --fail-on were applied without {left_out}" in done.err
    told = json.loads(run("diff", base, base, "--ignore", "**/f", "-f", "json").out)
    assert told["new"]["left_out"][0]["message"] == f"without {left_out}"
    chosen = run("diff", base, base, *gate, "--select", "**/g")
    assert "limits of --fail-on were applied without 2 call paths" in chosen.err
    told = json.loads(run("diff", base, base, *gate, "--select", "**/g", "-f", "json").out)
    assert told["unjudged"][0]["count"] == 2


def test_a_history_says_what_its_records_leave_out(run, series, tmp_path, monkeypatch):
    runs, history = series(), tmp_path / "h.db"
    for commit in "abc":
        words = ("--commit", commit, "--ignore", "**/f")
        assert run("watch", "add", history, runs, *words).status == 0
    left_out = f"without {said(run, runs, '--ignore', '**/f')}"
    assert f"Judged {left_out}." in " ".join(run("watch", "status", history).out.split())
    told = json.loads(run("watch", "status", history, "-f", "json").out)
    assert told["left_out"][0]["message"] == left_out
    assert left_out in told["verdict"]
    for form in ("github", "gitlab", "comment", "html"):
        out = run("watch", "status", history, "-f", form).out.replace("\N{NO-BREAK SPACE}", " ")
        assert left_out in out.replace("%25", "%"), form
    assert "(of a part)" in run("watch", "status", history, "-f", "badge").out
    junit = tmp_path / "j.xml"
    assert run("watch", "status", history, "--junit", junit).status == 0
    suites = ET.fromstring(junit.read_text())  # noqa: S314 - ours
    case = suites.findall(".//testcase")[-1]
    assert left_out in case.find("skipped").get("message")
    # Later records of everything are not compared with them in silence.
    assert run("watch", "add", history, runs, "--commit", "d").status == 0
    text = " ".join(run("watch", "status", history).out.split())
    assert f"Earlier records are {left_out}." in text
    monkeypatch.setattr(run_records, "KEPT", 2)
    assert run("watch", "add", tmp_path / "few.db", runs, "--commit", "a").status == 0
    assert "Judged without 1 call path, " in run("watch", "status", tmp_path / "few.db").out
