"""Profiles of single processes by general profilers."""

from __future__ import annotations

import json
import marshal
import struct

import numpy as np
import pytest
from click.testing import CliRunner

import profiler_files
from callpath_modeler.cli.group import cpmodel
from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import Match
from callpath_modeler.readers.registry import Registry
from callpath_modeler.studies import loading
from cells import cells
from cpmodel_tables import ProfilerReader, TableReader

LISTS = {"callgrind.out.4711": "main", "app.prof": "python"}
"""Programs of profiles without call paths."""


def loaded(path):
    return loading.load([path], loading.LoadOptions(loading.ReadOptions(metrics=None)))


def values_of(experiment, metric):
    tree = experiment.tree
    values = experiment.values(metric)[:, 0].tolist()
    return {tree.path(row): value for row, value in enumerate(values)}


@pytest.fixture(params=profiler_files.FILES)
def file(request, tmp_path):
    path = tmp_path / request.param
    path.write_bytes(profiler_files.FILES[request.param])
    return path


def test_each_call_path_has_its_own_cost(file):
    experiment = loaded(file)
    program = LISTS.get(file.name)
    metric, unit = ("Ir", 1e3) if file.name.startswith("callgrind") else ("time", 1.0)
    found = values_of(experiment, metric)
    if file.name == "app.prof":
        found = {path.partition(" (app.py")[0]: value for path, value in found.items()}
    if file.name == "samples.perf":
        found = {path.removeprefix("main/"): value for path, value in found.items()}
    one = f"{program}/main" if program else "main"
    two = f"{program}/solve" if program else "main/solve"
    assert found[one] == pytest.approx(1.0 * unit)
    assert found[two] == pytest.approx(2.5 * unit)
    assert np.nansum(experiment.values(metric)) == pytest.approx(3.5 * unit)


def test_a_profile_is_recognised_by_its_content(file):
    assert ProfilerReader().match(file) is Match.CONTENT
    assert isinstance(Registry.of_installed().match(file), ProfilerReader)
    assert TableReader().match(file) is not Match.CONTENT


def test_any_part_of_a_profile_is_read_or_refused(file):
    content = file.read_bytes()
    for length in range(0, len(content), max(1, len(content) // 40)):
        file.write_bytes(content[:length])
        try:
            loaded(file)
        except InputError:
            continue


def test_calls_are_visits(tmp_path):
    path = tmp_path / "callgrind.out.1"
    path.write_text(profiler_files.CALLGRIND)
    experiment = loaded(path)
    assert values_of(experiment, "visits")["main/solve"] == 3
    assert values_of(experiment, "Dr") == {"main": 0, "main/main": 7, "main/solve": 9}


def test_the_longest_thread_gives_the_times_and_counts_are_sums(tmp_path):
    document = json.loads(profiler_files.SPEEDSCOPE)
    for profile in document["profiles"]:
        profile["unit"] = "none"
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    assert values_of(loaded(path), "samples") == {"main": 1.0, "main/solve": 5.5}


def test_the_own_export_comes_back(tmp_path, samples):
    profile, back = samples / "stencil.p1024" / "profile.cubex", tmp_path / "back.json"
    done = CliRunner().invoke(
        cpmodel, ["export", str(profile), "-f", "speedscope", "-o", str(back)]
    )
    assert done.exit_code == 0, done.output
    first, second = loading.load([profile]), loaded(back)
    before, after = values_of(first, "time"), values_of(second, "time")
    assert {path: value for path, value in after.items() if value} == pytest.approx(
        {path: value for path, value in before.items() if value > 0}, rel=1e-6
    )


def test_a_real_profile_of_python_is_read(tmp_path):
    path = tmp_path / "real.prof"
    path.write_bytes(profiler_files.cprofile())
    visits = values_of(loaded(path), "visits")
    assert visits["python/<built-in method builtins.sorted>"] == 1
    assert [value for path, value in visits.items() if "<lambda>" in path] == [3]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_all_versions_of_marshal_are_read(tmp_path, version):
    path = tmp_path / "app.prof"
    path.write_bytes(marshal.dumps(profiler_files.TIMINGS, version))
    assert values_of(loaded(path), "time")["python/solve (app.py:7)"] == 2.5


@cells(
    "content",
    [
        b"{(" + struct.pack("<I", 2**31),
        b"{)\x03z\x01az\x01bc\x00\x00",
        b"{" + b")\x01" * 10_000,
        b"{\xa9\x01r\x00\x00\x00\x00N0",
        marshal.dumps({("a", 1, "f"): compile("1", "a", "eval")}),
        marshal.dumps({("a", 1, "f"): (1, 1, "x", 1.0, {})}),
        marshal.dumps({(1, 2): 3}),
    ],
)
def test_hostile_marshal_is_refused(tmp_path, content):
    path = tmp_path / "a.prof"
    path.write_bytes(content)
    with pytest.raises(InputError):
        loaded(path)


def test_a_series_of_profiles_has_its_scales_from_names(tmp_path):
    for p in (2, 4, 8):
        stacks = [(("main",), 10**9), (("main", "solve"), p * 10**9)]
        (tmp_path / f"app.p{p}.pb.gz").write_bytes(profiler_files.pprof(stacks))
    experiment = loading.load([tmp_path])
    assert [run.parameters["p"] for run in experiment.runs] == [2, 4, 8]
    assert experiment.values("time").tolist() == [[1, 1, 1], [2, 4, 8]]
