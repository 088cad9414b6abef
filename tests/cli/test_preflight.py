"""What a command refuses before it opens a profile, and inputs that no result replaces."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import click
import pytest

from callpath_modeler import shards as shards_module
from callpath_modeler.cli.group import cpmodel
from callpath_modeler.cli.option_groups import DefaultGroup
from callpath_modeler.cli.preflight import CheckedCommand, OutputPath
from callpath_modeler.readers import profile_runs as reading

TABLE = "callpath,p,time\n" + "".join(f"main,{p},{p**0.5}\nmain/f,{p},2\n" for p in (4, 8, 16, 32))


def commands(group=cpmodel, path=()):
    """Return all commands by the words that call them."""
    found = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        words = (*path, name)
        if isinstance(command, click.Group) and not isinstance(command, DefaultGroup):
            found |= commands(command, words)
        elif isinstance(command, DefaultGroup):
            found |= {(*words, each): command.commands[each] for each in command.commands}
        else:
            found[words] = command
    return found


def test_every_command_with_a_result_in_a_file_is_checked():
    with_output = {}
    for words, command in commands().items():
        if words == ("run",):
            continue  # Its output is a directory, which the same command goes on with.
        names = {each.name for each in command.params}
        kinds = [each for each in command.params if isinstance(each.type, OutputPath)]
        if names & {"output", "junit", "plot", "remember"}:
            with_output[words] = command
            assert kinds, words
        if kinds:
            assert isinstance(command, CheckedCommand), words
        for name in ("output", "junit", "plot", "remember"):
            if name in names:
                assert name in {each.name for each in kinds}, (words, name)
    assert len(with_output) > 20


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "measured.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def runs(samples, tmp_path):
    return shutil.copytree(samples / "stencil", tmp_path / "runs")


@pytest.fixture
def unopened(monkeypatch):
    """No profile may be opened."""

    def opened(*_args, **_kwargs):
        raise AssertionError("a profile was opened")

    monkeypatch.setattr(reading, "read_runs", opened)
    monkeypatch.setattr("callpath_modeler.readers.profile_runs.read_runs", opened)


WRITERS = {
    "export": ("-f", "csv"),
    "rank": ("-f", "csv", "--target", "64"),
    "views": ("-f", "csv", "--target", "64"),
    "efficiency": ("-f", "csv"),
    "excess": ("-f", "csv"),
    "info": ("-f", "csv"),
    "refine": (),
    "report": (),
    "baseline": (),
    "fit": (),
}


@pytest.mark.parametrize("command", WRITERS)
def test_no_command_replaces_its_input_even_with_force(run, table, command, unopened):  # noqa: ARG001
    words = (table, *WRITERS[command], "-o", table, "--force")
    run(command, *words).fails(6, f"-o is an input: {table}")
    assert table.read_text() == TABLE


@pytest.mark.parametrize("kind", ["symbolic", "hard", "another way"])
def test_another_name_of_an_input_is_the_input(run, table, kind):
    other = table.with_name("other.csv")
    if kind == "symbolic":
        other.symlink_to(table)
    elif kind == "hard":
        os.link(table, other)
    else:
        (table.parent / "d").mkdir()
        other = table.parent / "d" / ".." / table.name
    run("export", table, "-o", other, "--force").fails(6, "-o is an input")
    assert table.read_text() == TABLE


def test_a_profile_in_an_input_folder_is_an_input(run, runs, table):
    profile = next(runs.rglob("*.cubex"))
    link = runs.parent / "link.cubex"
    link.symlink_to(profile)
    hard = runs.parent / "hard.cubex"
    os.link(profile, hard)
    manifest = runs.parent / "runs.toml"
    manifest.write_text(run("info", runs, "--write-manifest", "-o", runs.parent / "m.toml").out)
    shutil.move(runs.parent / "m.toml", manifest)
    content = profile.read_bytes()
    for source in (runs, manifest):
        for path in (profile, link, hard, profile.parent, runs):
            words = (source, "-f", "cubex", "--target", "1024", "-o", path, "--force")
            run("export", *words).fails(6, "-o is an input")
    run("report", runs, table, "-o", table, "--force").fails(6, "-o is an input")
    assert profile.read_bytes() == content


def test_a_manifest_in_an_input_folder_and_the_profiles_that_it_lists_are_inputs(run, runs):
    """The folder of a manifest stands for the manifest, so it may list files that lie elsewhere."""
    folder = runs.parent / "listed"
    folder.mkdir()
    manifest = folder / "runs.toml"
    run("info", runs, "--write-manifest", "-o", manifest)
    profile = next(runs.rglob("*.cubex"))
    before = profile.read_bytes(), manifest.read_text()
    for path in (profile, manifest):
        run("report", folder, "-o", path, "--force").fails(6, "-o is an input")
        words = ("check", folder, path.parent / "none.toml", "--junit", path, "--force")
        run(*words).fails(6, "--junit is an input")
    assert (profile.read_bytes(), manifest.read_text()) == before


def test_results_beside_profiles_can_be_replaced(run, runs):
    for _ in range(2):
        for name, words in (("page.html", ("report",)), ("limits.toml", ("baseline",)),
                            ("models.csv", ("export",))):  # fmt: skip
            done = run(*words, runs, "-o", runs / name, "--force")
            assert done.status == 0, done.err


def test_a_store_and_its_files_are_inputs(run, runs, tmp_path):
    store = tmp_path / "s.cpm"
    assert run("fit", runs, "-o", store).status == 0
    before = {each.name: each.read_bytes() for each in store.iterdir()}
    run("fit", store, "-o", store, "--force").fails(6, "-o is an input")
    run("fit", store, "--force", "-o", tmp_path).fails(6, "-o is an input")
    for name in ("header.json", "values-0.npy"):
        words = (store, "-f", "json", "--target", "1024", "-o", store / name, "--force")
        run("rank", *words).fails(6, "-o is an input")
    # A new file in a store would be taken for a part of it.
    run("export", store, "-o", store / "new.csv").fails(6, "-o is in a store of models")
    run("export", runs, "-o", store / "new.csv").fails(6, "-o is in a store of models")
    assert {each.name: each.read_bytes() for each in store.iterdir()} == before


def test_the_default_name_of_a_store_is_checked_before_models(run, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("fit", runs).status == 0
    (store,) = tmp_path.glob("*.cpm")

    def modelled(*_args):
        raise AssertionError("a model was made")

    monkeypatch.setattr("callpath_modeler.studies.pipeline.fit", modelled)
    run("fit", runs).fails(6, "exists")
    run("fit", store.name, "--force").fails(6, "-o is an input")


def test_shards_expectations_and_histories_are_inputs(run, runs, table, tmp_path):
    shard, limits = tmp_path / "1.cpm", tmp_path / "limits.toml"
    assert run("fit", runs, "--shard", "1/1", "-o", shard).status == 0
    run("merge", shard, "-o", shard, "--force").fails(6, "-o is an input")
    assert run("baseline", table, "-o", limits).status == 0
    run("check", table, limits, "-o", limits, "-f", "json", "--force").fails(6, "-o is an input")
    run("check", table, limits, "--junit", limits, "--force").fails(6, "--junit is an input")
    run("check", table, limits, "--junit", table, "--force").fails(6, "--junit is an input")
    run("watch", "add", table, table, "--commit", "a").fails(6, "is an input")
    run("rank", table, "--target", "64", "--remember", table).fails(6, "--remember is an input")
    history = tmp_path / "h.db"
    assert run("watch", "add", history, table, "--commit", "a").status == 0
    for option in ("-o", "--junit"):
        words = (history, option, history, "-f", "json", "--force")
        run("watch", "status", *words).fails(6, f"{option} is an input")
    assert run("watch", "add", history, table, "--commit", "b").status == 0


def test_configuration_and_reader_are_inputs(run, table, tmp_path):
    configured = tmp_path / "cpmodel.toml"
    configured.write_text("[defaults]\ntarget = 64\n")
    words = (table, "-o", configured, "--force")
    run("baseline", *words).fails(6, "-o is an input")
    run("--config", configured, "baseline", *words).fails(6, "-o is an input")


def test_a_trace_and_its_companions_are_inputs(run, tmp_path):
    trace = tmp_path / "traces.otf2"
    events = tmp_path / "traces"
    events.mkdir()
    parts = [trace, tmp_path / "traces.def", events / "0.evt"]
    for each in parts:
        each.write_bytes(b"OTF2")
    for each in parts:
        run("trace", "spec", trace, "-f", "json", "-o", each, "--force").fails(6, "-o is an input")


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("present", "exists"),
        ("none/result", "No such file or directory"),
        ("measured.csv/result", "Not a directory"),
        ("n" * 300, "File name too long"),
    ],
)
def test_a_result_that_cannot_be_written_is_refused_before_a_profile_is_opened(
    run,
    table,
    tmp_path,
    command,
    place,
    said,
    unopened,  # noqa: ARG001
):
    (tmp_path / "present").touch()
    run(command, table, *WRITERS[command], "-o", tmp_path / place).fails(6, said)


def test_a_folder_that_takes_no_file_is_refused_before_a_profile_is_opened(
    run,
    table,
    tmp_path,
    monkeypatch,
    unopened,  # noqa: ARG001
):
    monkeypatch.setattr(os, "access", lambda *_: False)
    run("export", table, "-o", tmp_path / "a.csv").fails(6, "Permission denied")


def test_two_results_in_one_file_are_refused(run, table, tmp_path, unopened):  # noqa: ARG001
    pytest.importorskip("matplotlib")
    one = tmp_path / "a.svg"
    words = (table, "--target", "64", "-f", "csv", "-o", one, "--plot", one)
    run("rank", *words).fails(6, "name the same file")


@pytest.mark.parametrize("command", ["rank", "show", "views", "efficiency", "why", "report"])
@pytest.mark.parametrize(
    "wrong",
    [("--target", "abc"), ("--target", "-4"), ("--at", "p"), ("--at", "p="),
     ("--param", "p=nothing"), ("--pair", "3")],
)  # fmt: skip
def test_values_that_no_profile_makes_valid_are_refused_first(
    run,
    table,
    command,
    wrong,
    unopened,  # noqa: ARG001
):
    if wrong[0] == "--pair" and command == "efficiency":
        pytest.skip("efficiency compares no pairs")
    callpath = ("main",) if command in {"show", "why"} else ()
    run(command, table, *callpath, *wrong).fails(2)


@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "0"}, 3),
        ({"PMI_SIZE": "16", "PMI_RANK": "0"}, 16),
        ({"SLURM_STEP_NUM_TASKS": "64", "SLURM_NTASKS": "64", "SLURM_PROCID": "0"}, 64),
        ({"SLURM_NTASKS": "64", "SLURM_PROCID": "0"}, 64),
        ({"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "2"}, None),
        ({"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}, None),
        ({"SLURM_NTASKS": "64", "SLURM_PROCID": "0", "ENVIRONMENT": "BATCH"}, None),
        ({"SLURM_NTASKS": "64"}, None),
        ({"PMI_SIZE": "many", "PMI_RANK": "0"}, None),
    ],
)
def test_one_of_several_ranks_says_that_all_do_the_same_work(
    run, table, monkeypatch, variables, count
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = run("info", table)
    assert done.status == 0
    if count is None:
        assert "do the same work" not in done.err
    else:
        assert f"{count} processes do the same work, each all of it; add --executor mpi" in done.err


def test_a_store_among_shards_is_named(run, runs, tmp_path):
    store, shard = tmp_path / "one.cpm", tmp_path / "part1.cpm"
    assert run("fit", runs, "-o", store).status == 0
    assert run("fit", runs, "--shard", "1/1", "-o", shard).status == 0
    done = run("merge", store, shard, "-o", tmp_path / "x.cpm")
    done.fails(3, "one.cpm: a whole experiment, not a shard")


def test_shards_of_two_builds_are_not_merged(run, runs, tmp_path):
    shards = [tmp_path / f"{number}.cpm" for number in (1, 2)]
    assert run("fit", runs, "--shard", "1/2", "-o", shards[0]).status == 0
    assert run("fit", runs, "--shard", "2/2", "-o", shards[1]).status == 0
    other = replace(shards_module.read(shards[1]), build="0.1.0, sources 00000000")
    shards_module.write(other, shards[1], overwrite=True)
    done = run("merge", *shards, "-o", tmp_path / "x.cpm")
    done.fails(4, "0.1.0, sources 00000000", "one installation")


def test_a_store_of_another_build_is_read(run, runs, tmp_path, monkeypatch):
    monkeypatch.setattr("callpath_modeler.store.build_identity", lambda: "0.0.9, sources 00000000")
    store = tmp_path / "s.cpm"
    assert run("fit", runs, "-o", store).status == 0
    monkeypatch.undo()
    assert run("rank", store, "--target", "1024").status == 0
    assert "0.0.9, sources 00000000" in run("info", store, "--verify").out
