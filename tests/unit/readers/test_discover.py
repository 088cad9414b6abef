from __future__ import annotations

import os

import pytest

from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.readers.discover import RunFile, discover, natural_order, write_manifest
from cells import cells
from synthetic import FakeReader, registry

KNOWN = registry(FakeReader())


def put(directory, *names, content=b"x"):
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def names(runs, directory):
    return [run.path.relative_to(directory).as_posix() for run in runs]


def test_numbers_sort_as_numbers():
    assert sorted(["p64", "p8", "p125", "a"], key=natural_order) == ["a", "p8", "p64", "p125"]


def test_a_directory_is_searched_to_any_depth_in_natural_order(tmp_path):
    put(tmp_path, "b/app.p64.r1/profile.fake", "b/app.p8.r1/profile.fake", "a/deep/er/x.fake")
    put(tmp_path, "notes.txt", ".hidden/profile.fake")
    runs = discover([tmp_path], KNOWN)
    assert names(runs, tmp_path) == [
        "a/deep/er/x.fake",
        "b/app.p8.r1/profile.fake",
        "b/app.p64.r1/profile.fake",
    ]


def test_a_run_is_named_by_its_file_and_the_directories_above_it(tmp_path):
    put(tmp_path, "series.n30/app.p8.r2/profile.fake", "series.n30/app.p16.r1.FAKE.fake")
    below, beside = discover([tmp_path], KNOWN)
    assert below.components[:3] == ("app.p16.r1.FAKE", "series.n30", tmp_path.name)
    assert beside.components[:3] == ("profile", "app.p8.r2", "series.n30")
    assert not below.is_explicit


def test_what_lies_beside_the_profile_of_a_run_is_not_another_run(tmp_path):
    put(tmp_path, "app.p8/profile.fake", "app.p8/summary.fake", "app.p8/trace.fake")
    assert names(discover([tmp_path], KNOWN), tmp_path) == ["app.p8/profile.fake"]


@pytest.mark.parametrize("profile", ["profile.cubex", "summary.cubex"])
def test_a_trace_beside_a_profile_of_the_run_is_left_alone(tmp_path, profile):
    known = registry(FakeReader("cubes", ".cubex"), FakeReader("traces", ".otf2"))
    put(tmp_path / "app.p4.r1", profile, "traces.otf2", "traces.def", "traces/0.evt")
    put(tmp_path / "app.p8.r1", "traces.otf2", "traces.def", "traces/0.evt")
    runs = discover([tmp_path], known)
    assert names(runs, tmp_path) == [f"app.p4.r1/{profile}", "app.p8.r1/traces.otf2"]
    assert [run.components[1] for run in runs] == ["app.p4.r1", "app.p8.r1"]


def test_a_directory_without_profiles_is_an_input_error(tmp_path):
    put(tmp_path, "notes.txt")
    with pytest.raises(InputError, match="no profiles") as caught:
        discover([tmp_path], KNOWN)
    assert ".fake" in caught.value.hint


def test_what_is_named_like_a_profile_is_passed_on_even_if_it_is_none(tmp_path):
    put(tmp_path, "p1.fake", content=b"")
    (tmp_path / "p2.fake").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "p3.fake")
    assert len(discover([tmp_path], KNOWN)) == 3


def test_a_directory_that_may_not_be_read_is_passed_on(tmp_path, monkeypatch):
    put(tmp_path, "open.p1/profile.fake", "closed.p2/profile.fake")
    scandir = os.scandir

    def guarded(path):
        if str(path).endswith("closed.p2"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert {run.path.name for run in discover([tmp_path], KNOWN)} == {"profile.fake", "closed.p2"}


def test_a_link_to_a_directory_that_contains_it_ends(tmp_path):
    put(tmp_path, "app.p1/profile.fake")
    (tmp_path / "app.p1" / "loop").symlink_to(tmp_path)
    assert len(discover([tmp_path], KNOWN)) == 1


def test_links_to_runs_elsewhere_are_followed_and_each_place_is_looked_into_once(tmp_path):
    here, there = tmp_path / "runs", tmp_path / "scratch"
    put(there, "app.p8.r1/profile.fake", "app.p16.r1/profile.fake")
    put(here, "app.p4.r1/profile.fake")
    (here / "app.p8.r1").symlink_to(there / "app.p8.r1")
    (here / "latest").symlink_to("app.p4.r1")
    (here / "the-same").symlink_to(there / "app.p8.r1")
    (here / "up").symlink_to(tmp_path)
    found = discover([here], KNOWN)
    assert names(found, here) == ["app.p4.r1/profile.fake", "app.p8.r1/profile.fake"]
    (here / "work").symlink_to(there)
    assert len(discover([here], KNOWN)) == 4  # p8 by both links: reading tells that it is one


@cells(
    ("pattern", "name", "parameters"),
    [
        ("app.p{p}.n{n}.r{rep}", "app.p8.n2e3.r4", {"p": 8, "n": 2000}),
        ("{nodes}nodes", "job-16nodes-x", {"nodes": 16}),
        ("a+b{p}", "a+b7", {"p": 7}),
        ("{p}/{n}", "8/100", {"p": 8, "n": 100}),
        ("x{x}", "x1,25", {"x": 1.25}),
    ],
)
def test_a_pattern_of_names_says_where_parameters_stand(tmp_path, pattern, name, parameters):
    put(tmp_path, f"{name}/profile.fake")
    (run,) = discover([tmp_path], KNOWN, name_pattern=pattern)
    assert run.parameters == parameters


@cells("pattern", ["app", "{p}{p}", "{p", "p}", "{}", "{p2}"])
def test_a_malformed_pattern_is_a_usage_error(tmp_path, pattern):
    put(tmp_path, "app.p1/profile.fake")
    with pytest.raises(UsageError, match="malformed"):
        discover([tmp_path], KNOWN, name_pattern=pattern)


def test_a_pattern_that_fits_no_run_is_a_usage_error(tmp_path):
    put(tmp_path, "app.p1/profile.fake")
    with pytest.raises(UsageError, match="matches no run") as caught:
        discover([tmp_path], KNOWN, name_pattern="lulesh.{p}")
    assert "app.p1/profile.fake" in caught.value.hint


def test_a_manifest_says_which_runs_there_are(tmp_path):
    put(tmp_path, "one.fake", "two.fake", "three.fake")
    (tmp_path / "runs.toml").write_text(
        'schema = 1\n[[run]]\npath = "two.fake"\nrepetition = 3\n'
        'parameters = { p = 64, n = 0.5 }\n[[run]]\npath = "one.fake"\n'
    )
    runs = discover([tmp_path], KNOWN)
    assert runs == discover([tmp_path / "runs.toml"], KNOWN)
    assert names(runs, tmp_path) == ["two.fake", "one.fake"]
    assert runs[0] == RunFile(
        *(tmp_path / "two.fake", {"p": 64, "n": 0.5}, 3),
        from_manifest=True,
        names=runs[0].components,
    )
    assert [run.is_explicit for run in runs] == [True, False]


@cells(
    "text",
    [
        "",
        "not toml at all [",
        "schema = 2\nrun = []",
        f"schema = 1\n{'.'.join('a' * 40)} = 1",
        "schema = 1",
        'schema = 1\n[[run]]\npath = "a"\nprocesses = 3',
        "schema = 1\n[[run]]\nrepetition = 1",
        'schema = 1\n[[run]]\npath = "a"\nparameters = { p = "many" }',
        'schema = 1\nother = 2\n[[run]]\npath = "a"',
        'schema = 1\n[[run]]\npath = "a\\u0000"',
    ],
)
def test_a_malformed_manifest_is_an_input_error_with_a_hint(tmp_path, text):
    (tmp_path / "runs.toml").write_text(text)
    with pytest.raises(InputError, match=r"runs\.toml") as caught:
        discover([tmp_path], KNOWN)
    assert caught.value.hint


def test_a_manifest_with_a_key_of_very_many_parts_is_refused_before_it_is_parsed(tmp_path):
    (tmp_path / "runs.toml").write_text("schema = 1\n" + ".".join("a" * 25_000) + " = 1\n")
    with pytest.raises(InputError, match="line 2: a key has at most 32 parts"):
        discover([tmp_path], KNOWN)


def test_a_manifest_of_bytes_that_are_no_text_is_an_input_error(tmp_path):
    (tmp_path / "runs.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError):
        discover([tmp_path], KNOWN)


def test_a_manifest_that_was_written_reads_back(tmp_path):
    put(tmp_path, 'odd "name" é.p8.r2/profile.fake', "app.p16.n1e-3/profile.fake")
    runs = discover([tmp_path], KNOWN, name_pattern="p{p}")
    (tmp_path / "runs.toml").write_text(write_manifest(runs, tmp_path))
    read = discover([tmp_path], KNOWN)
    assert [(r.path, r.parameters) for r in read] == [(r.path, r.parameters) for r in runs]
    assert all(run.from_manifest for run in read)
