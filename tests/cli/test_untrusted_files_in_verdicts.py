"""Verdicts name an untrusted configuration file beside the profiles, and what it states."""

from __future__ import annotations

import json
import shutil
from xml.etree import ElementTree as ET

import pytest

import configured

LIMITS = 'schema = 1\n[[expect]]\nvalue = "<= 100 ms"\n'
AT = ("--target", "1024")
P_IS_REPETITION = '[experiment]\nname = "stencil.p{n}.r{p}"\n'
SOURCES = ["name", "none", "nodes", "threads", "metadata:repetition"]


@pytest.fixture(autouse=True)
def me(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "me"))


@pytest.fixture
def runs(samples, tmp_path):
    path = tmp_path / "runs"
    shutil.copytree(samples / "stencil", path)
    return path


@pytest.fixture
def limits(tmp_path):
    return configured.write(tmp_path / "limits.toml", LIMITS)


@pytest.fixture
def table(tmp_path):
    """A table of times without a unit, in a directory of its own."""
    rows = (f"{p},{r},main/f,{900000 + 100 * p + r}\n" for p in (2, 4, 8, 16, 32) for r in (1, 2))
    return configured.write(tmp_path / "bare" / "t.csv", "p,rep,callpath,time\n" + "".join(rows))


def places(run, tmp_path, *words):
    """Return what `check` says in each place where people and programs look."""
    junit = tmp_path / "j.xml"
    text = run("-q", "check", *words, "--junit", junit, "--force")
    suites = ET.fromstring(junit.read_text())  # noqa: S314 - ours
    last = suites.findall(".//testcase")[-1].find("skipped")
    told = json.loads(run("-q", "check", *words, "-f", "json").out)["left_out"]
    return text.status, {
        "text": " ".join(text.out.split()),
        "junit": "" if last is None else last.get("message"),
        "github": run("-q", "check", *words, "-f", "github").out,
        "json": ", ".join(each["message"] for each in told),
    }


def test_each_place_of_a_verdict_names_a_unit_and_its_file(run, table, tmp_path):
    limits = configured.write(tmp_path / "e.toml", LIMITS.replace("100 ms", "10 s"))
    path = configured.write(table.parent / "cpmodel.toml", '[defaults]\nunit = ["time=us"]\n')
    status, said = places(run, tmp_path, table, limits, *AT)
    assert status == 0
    for place, text in said.items():
        assert f'with unit "time=us" from {path}' in text, place
    named = run("check", table, limits, *AT, "--unit", "time=us").out
    assert str(path) not in named
    assert run("trust", table.parent).status == 0
    assert str(path) not in run("check", table, limits, *AT).out


def test_a_store_keeps_what_an_untrusted_file_stated(run, table, tmp_path):
    limits = configured.write(tmp_path / "e.toml", LIMITS.replace("100 ms", "10 s"))
    path = configured.write(table.parent / "cpmodel.toml", '[defaults]\nunit = ["time=us"]\n')
    kept, parts = tmp_path / "kept.cpm", [tmp_path / "1.cpm"]
    assert run("fit", table, "-o", kept).status == 0
    assert run("fit", table, "--shard", "1/1", "-o", parts[0]).status == 0
    assert run("merge", *parts, "-o", tmp_path / "merged.cpm").status == 0
    for each in (kept, tmp_path / "merged.cpm"):
        text = " ".join(run("check", each, limits, *AT).out.split())
        assert f'with unit "time=us" from {path}' in text
    # A file beside a store does not change how its profiles were read.
    configured.write(tmp_path / "cpmodel.toml", '[defaults]\nunit = ["time=s"]\n')
    assert "time=s" not in run("check", kept, limits, *AT).out


@pytest.mark.parametrize("source", SOURCES)
def test_an_untrusted_file_replaces_no_number_of_processes(run, runs, limits, tmp_path, source):
    fair = run("check", runs, limits, *AT)
    assert fair.status == 1
    text = f'{P_IS_REPETITION}[parameters]\np = {{ from = "{source}" }}\n'
    path = configured.write(runs / "cpmodel.toml", text)
    status, said = places(run, tmp_path, runs, limits, *AT)
    assert status == 1
    for place, text in said.items():
        assert f'without p "{source}" from {path}' in text, place
        assert f'with name "stencil.p{{n}}.r{{p}}" from {path}' in text, place
    rank = run("rank", runs, *AT)
    assert f'{path}: p "{source}"' in rank.err
    assert "CPM183" in rank.err
    assert json.loads(run("info", runs, "-f", "json").out)["parameters"][0]["from"] == "processes"
    asked = run("info", runs, "--param", "p=name", "-f", "json")
    assert json.loads(asked.out)["parameters"][0]["from"] == "name"


def test_an_untrusted_pattern_makes_no_sample_of_processes(run, series, tmp_path):
    runs = tmp_path / "same"
    one = next(series().glob("*.p8.r1"))
    for n in (1, 2, 4, 8):
        shutil.copytree(one, runs / f"app.n{n}.r{8 * n}")
    path = configured.write(runs / "cpmodel.toml", '[experiment]\nname = "app.n{n}.r{p}"\n')
    done = run("info", runs, "-f", "json")
    told = json.loads(done.out)
    assert all(each["from"] != "name" for each in told["parameters"] if each["name"] == "p")
    assert f'{path}: p "name"' in done.err
    assert run("trust", runs).status == 0
    told = json.loads(run("info", runs, "-f", "json").out)
    assert any(each["name"] == "p" and each["from"] == "name" for each in told["parameters"])


def test_each_source_of_a_parameter_is_named_with_its_file(run, runs, limits, tmp_path):
    path = configured.write(runs / "cpmodel.toml", '[parameters]\nm = { from = "processes" }\n')
    _, said = places(run, tmp_path, runs, limits, "--target", "64")
    assert all(f'with m "processes" from {path}' in text for text in said.values())


def test_each_place_of_a_verdict_names_the_keys_that_are_not_used(run, runs, limits, tmp_path):
    path = configured.write(runs / "cpmodel.toml", '[defaults]\nignore = ["**/f"]\njobs = 2\n')
    status, said = places(run, tmp_path, runs, limits, *AT)
    assert status == 1
    for place, text in said.items():
        assert f"without the keys ignore, jobs from {path}" in text.replace("%25", "%"), place
    done = run("info", runs)
    assert "CPM181 ×2" in done.out
    assert done.err.count("(CPM181") == 1
    found = json.loads(run("info", runs, "-f", "json").out)["findings"]
    assert [each["message"] for each in found if each["code"] == "CPM181"] == ["ignore, jobs"]


def test_a_comparison_and_a_history_name_the_file(run, table, tmp_path):
    path = configured.write(
        table.parent / "cpmodel.toml", '[defaults]\nunit = ["time=us"]\njobs = 2\n'
    )
    used, unused = f'with unit "time=us" from {path}', f"without the key jobs from {path}"
    gate = ("--fail-on", "growth", *AT)
    done = run("diff", table, table, *gate)
    out = " ".join(done.out.split())
    assert f"Judged {used}, {unused}" in out
    assert f"limits of --fail-on were applied {used}, {unused}" in done.err
    new = json.loads(run("diff", table, table, *gate, "-f", "json").out)["new"]
    assert [each["kind"] for each in new["left_out"]] == ["configured", "not-configured"]
    history = tmp_path / "h.db"
    assert run("watch", "add", history, table, "--commit", "a").status == 0
    assert f"Judged {used}, {unused}." in " ".join(run("watch", "status", history).out.split())
    assert used in json.loads(run("watch", "status", history, "-f", "json").out)["verdict"]
    assert used in run("watch", "status", history, "-f", "github").out
    assert run("watch", "status", history, "--junit", tmp_path / "h.xml").status == 0
    suites = ET.parse(tmp_path / "h.xml")  # noqa: S314 - ours
    assert used in suites.findall(".//testcase")[-1].find("skipped").get("message")


def test_without_a_file_beside_the_profiles_verdicts_name_none(run, runs, limits, tmp_path):
    status, said = places(run, tmp_path, runs, limits, *AT)
    assert status == 1
    assert all("cpmodel.toml" not in text for text in said.values())
