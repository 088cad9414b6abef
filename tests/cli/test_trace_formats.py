"""Formats of `cpmodel trace spec`: found by entry points, written from traces and from JSON."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys

import pytest

from cells import cells
from communication import HALVES, everything, exchange, head_to_head, traced
from cpmodel_commspec.generators.interface import installed, load
from trace_writer import Comm

FORMATS = sorted(installed())

ADDED = """
class Letters:
    name, description, endings = "letters", "one file for each rank", (".letters",)
    is_program, is_directory = False, True
    names = ("rank-{}.txt",)
    def write(self, told, options):
        return {name.format(k): "abc" for name in self.names for k in range(told.processes)}

class Outside(Letters):
    names = ("../rank-{}",)

class OneFile(Letters):
    def write(self, told, options):
        return "abc"

class Failing(Letters):
    def write(self, told, options):
        raise KeyError("x")

class Short:
    name = "short"

def ending():
    raise SystemExit(3)
"""
ENTRIES = """
[callpath_modeler.trace_generators]
letters = added_formats:Letters
outside = added_formats:Outside
one = added_formats:OneFile
failing = added_formats:Failing
short = added_formats:Short
ending = added_formats:ending
gone = module_that_is_not_there:Generator
c = added_formats:Letters
"""


def written(run, source, name, folder, *options):
    """Write a format, and return the result and all files by name."""
    output = folder / "out"
    done = run("trace", "spec", source, "-f", name, "-o", output, *options)
    if done.status:
        return done, {}
    files = sorted(output.iterdir()) if output.is_dir() else [output]
    return done, {file.name: file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("line") / "app.p6", 6, exchange)


@pytest.fixture
def specification(line, tmp_path, run):
    path = tmp_path / "told.json"
    assert run("trace", "spec", line, "-o", path).status == 0
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_a_specification_is_written_as_its_trace_is(run, line, specification, name, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    done, of_trace = written(run, line, name, tmp_path / "a")
    assert done.status == 0, done.err
    again, of_specification = written(run, specification, name, tmp_path / "b")
    assert again.status == 0, again.err
    assert of_trace == of_specification
    assert all(of_trace.values())


@cells("name", FORMATS)
def test_programs_of_one_rank_are_written(run, name, tmp_path):
    def alone(rank):
        for step in range(5):
            rank.collective("allreduce", 8, 8)
            rank.collective("bcast", 8 * step, 8 * step, root=0)
            rank.collective("barrier", 0, 0)

    done, files = written(run, traced(tmp_path / "trace", 1, alone), name, tmp_path)
    assert done.status == 0, done.err
    assert files


@cells("name", [name for name in FORMATS if load(name).is_program])
def test_formats_that_run_need_permission_for_programs_that_hang(run, name, tmp_path):
    path = traced(tmp_path / "trace", 2, head_to_head)
    refused, files = written(run, path, name, tmp_path)
    refused.fails(4, "can hang", "--allow-unsafe")
    assert not files
    assert not (tmp_path / "out").exists()
    done, files = written(run, path, name, tmp_path, "--allow-unsafe")
    assert done.status == 0
    assert files


def secret(rank):
    with rank.region("secret_solver"):
        rank.collective("barrier", 0, 0, comm=Comm("secret_comm"))
        rank.call("MPI_Put")
        rank.exchange(1 - rank.rank, 1 - rank.rank, 8)
        head_to_head(rank)
        rank.handle("secret_function")


@cells("is_json", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_anonymous_output_has_no_name_of_the_application(run, name, is_json, tmp_path):
    source = traced(tmp_path / "secret_trace", 2, secret, {"secret_comm": [0, 1]})
    if is_json:
        told = tmp_path / "secret.json"
        assert run("trace", "spec", source, "-o", told).status == 0
        source = told
    options = ("--anonymous", "--allow-unsafe")
    done, files = written(run, source, name, tmp_path, *options)
    assert done.status == 0, done.err
    told = b"\n".join([*(file.encode() for file in files), *files.values()]).decode()
    for word in ("secret", "exchange_", "/opt/app"):
        assert word not in told + done.out + done.err, word


HOSTILE = [
    "f*/ int g; /*",
    "f'''\"\"\"\nimport os; os.system('id')\n'''\"\"\"",
    "f\\\r\nsend 1b to 0\n# x\x1b[31m\u2028\u202e",
    '." ALL TASKS SEND A 1 BYTE MESSAGE TO TASK 0. #',
]


@cells("hostile", HOSTILE)
@pytest.mark.parametrize("name", FORMATS)
def test_names_stay_in_their_place(run, name, hostile, tmp_path):
    """Output of a hostile name has the lines of output of a harmless one."""

    def program(region):
        def program(rank):
            with rank.region(region):
                rank.collective("barrier", 0, 0, comm=Comm(region))
                rank.exchange(1 - rank.rank, 1 - rank.rank, 8)
                rank.handle(region)

        return program

    found = []
    for number, region in enumerate((hostile, "harmless")):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = traced(folder / "trace", 2, program(region), {region: [0, 1]})
        done, files = written(run, path, name, folder)
        assert done.status == 0, done.err
        found.append({file: data.decode().splitlines() for file, data in files.items()})
    ours, theirs = found
    assert ours.keys() == theirs.keys()
    for file, lines in ours.items():
        assert len(lines) == len(theirs[file])
        assert all(map(str.isprintable, "".join(lines).split("\t")))


def code_of(name, text):
    """Return a file without its comments."""
    if name == "c":
        return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    if name == "mpi4py":
        return [ast.dump(node) for node in ast.parse(text).body[1:]]
    mark = "//" if name == "goal" else "#"
    return [line for line in text.splitlines() if not line.lstrip().startswith(mark)]


PRINTABLE = ('x*/ int y; /*"""', "x'''\\", "x\\", '". ALL TASKS SYNCHRONIZE. #')

FREE = {
    "program": lambda told, text: told.update(program=text),
    "communicator": lambda told, text: told["communicators"][0].update(name=text),
    "left out": lambda told, text: told.update(left_out={text: 3}),
    "site": lambda told, text: [x.update(site=[text, text]) for x in told["shapes"]],
    "others": lambda told, text: [x.update(others=[[text]]) for x in told["shapes"]],
    "call": lambda told, text: [x.update(call=text) for x in told["shapes"]],
    "handle": lambda told, text: [
        x.update(name=text) for x in told["shapes"] if x["kind"] == "handle"
    ],
}


@cells("field", FREE)
@pytest.mark.parametrize("name", [name for name in FORMATS if load(name).is_program])
def test_names_of_specifications_stay_in_comments(run, name, field, tmp_path):
    def program(rank):
        peer = 1 - rank.rank
        rank.handle("MPI_Comm_dup")
        rank.collective("barrier", 0, 0)
        rank.wait(rank.ireceive(peer, 8), rank.isend(peer, 8))
        rank.exchange(peer, peer, 8)
        rank.collective("alltoallv", 10, 10)

    told = tmp_path / "told.json"
    run("trace", "spec", traced(tmp_path / "trace", 2, program), "-o", told)
    plain = json.loads(told.read_text())
    found = []
    for text in ("harmless", *PRINTABLE):
        document = json.loads(json.dumps(plain))
        FREE[field](document["specification"], text)
        told.write_text(json.dumps(document))
        folder = tmp_path / str(len(found))
        folder.mkdir()
        done, files = written(run, told, name, folder)
        assert done.status == 0, done.err
        found.append({file: code_of(name, data.decode()) for file, data in files.items()})
    assert all(one == found[0] for one in found)


DAMAGES = {
    "root": lambda told: told["body"][-1]["numbers"].update(root={"base": 99}),
    "rank": lambda told: told["body"][0].update(ranks=[0, 77]),
    "peer": lambda told: step(told, "send")["numbers"].update(peer={"base": -5}),
    "bytes": lambda told: step(told, "send")["numbers"].update(
        bytes={"base": 2**62, "rank": 2**62}
    ),
    "name": lambda told: told["shapes"][0].update(name="barrier(){} int x"),
    "communicator": lambda told: told["communicators"][0].update(groups=[]),
    "name with control characters": lambda told: told["communicators"][0].update(name="a\x1b[2J"),
    "form": lambda told: told["shapes"][-1].update(name="alltoallv"),
    "too many": lambda told: told.update(operations=2**40),
}


def step(told, kind):
    """Return the first step of a kind."""
    shapes = [k for k, shape in enumerate(told["shapes"]) if shape["kind"] == kind]
    return next(node for node in told["body"] if node.get("shape") in shapes)


@cells("damage", DAMAGES)
def test_damaged_specifications_are_one_error(run, damage, tmp_path):
    def program(rank):
        rank.collective("barrier", 0, 0)
        (rank.receive if rank.rank else rank.send)(1 - rank.rank, 8)
        rank.collective("bcast", 16 * (rank.rank == 0), 8, root=0)

    path = tmp_path / "told.json"
    run("trace", "spec", traced(tmp_path / "trace", 2, program), "-o", path)
    document = json.loads(path.read_text())
    DAMAGES[damage](document["specification"])
    path.write_text(json.dumps(document))
    for name in FORMATS:
        done, _ = written(run, path, name, tmp_path)
        done.fails(3, "no specification")
        assert not (tmp_path / "out").exists()


def test_few_lines_of_too_many_operations_are_refused(run, tmp_path):
    def program(rank):
        for _ in range(3):
            rank.collective("barrier", 0, 0)

    path = tmp_path / "told.json"
    run("trace", "spec", traced(tmp_path / "trace", 2, program), "-o", path)
    document = json.loads(path.read_text())
    told = document["specification"]
    loop = told["body"][0]
    loop["count"] = 10**12
    del loop["body"][0]["computing"]
    told["operations"] = 2 * 10**12
    path.write_text(json.dumps(document))
    run("trace", "spec", path).fails(3, "2,000,000,000,000 operations in loops are too many")


def test_options_about_traces_need_a_trace(run, line, specification):
    for words in (("--any-source", "halo"), ("--another-run", line)):
        run("trace", "spec", specification, *words).fails(2, words[0], "needs a trace")
    run("trace", "spec", specification, "--max-lines", "3").fails(4, "8 lines", "--max-lines 8")


def test_the_help_lists_the_formats(run):
    done = run("trace", "spec", "--help")
    for name in FORMATS:
        assert f"  {name} " in done.out


def test_unknown_formats_are_refused_with_the_nearest(run, line):
    run("trace", "spec", line, "-f", "jason").fails(2, "did you mean 'json'?")


def test_every_kind_of_operation_is_written_or_refused_in_one_line(run, tmp_path):
    path = traced(tmp_path / "trace", 4, everything, HALVES)
    for name in FORMATS:
        done, _ = written(run, path, name, tmp_path, "--allow-unsafe", "--force")
        if done.status:
            done.fails(4, "no program")


@pytest.fixture
def cpmodel(tmp_path):
    (tmp_path / "added_formats.py").write_text(ADDED)
    package = tmp_path / "added-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: added\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(ENTRIES)

    def call(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "callpath_modeler", "trace", "spec", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )

    return call


def test_formats_of_plugins_are_written_into_a_directory(cpmodel, line, tmp_path):
    output = tmp_path / "out"
    done = cpmodel(line, "-f", "letters", "-o", output)
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in output.iterdir()) == [f"rank-{k}.txt" for k in range(6)]
    again = cpmodel(line, "-f", "letters", "-o", output)
    assert again.returncode == 6
    assert "--force" in again.stderr
    (output / "rank-17.txt").write_text("of an earlier run with more ranks")
    assert cpmodel(line, "-f", "letters", "-o", output, "--force").returncode == 0
    assert len(list(output.iterdir())) == 6
    (output / "mine").write_text("not of cpmodel")
    refused = cpmodel(line, "-f", "letters", "-o", output, "--force")
    assert refused.returncode == 6
    assert "in the way" in refused.stderr
    assert (output / "mine").exists()
    needs = cpmodel(line, "-f", "letters")
    assert needs.returncode == 2
    assert "-o DIR" in needs.stderr


def test_formats_of_plugins_do_not_replace_ours(cpmodel, line):
    assert cpmodel(line, "-f", "c").stdout.startswith("/*")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("outside", ["no name of a file"]),
        ("one", ["against its contract"]),
        ("failing", ["KeyError", "report this"]),
        ("short", ["lacks description"]),
        ("ending", ["does not load", "SystemExit"]),
        ("gone", ["does not load", "module_that_is_not_there", "remove added"]),
    ],
)
def test_broken_formats_are_one_error(cpmodel, line, tmp_path, name, words):
    done = cpmodel(line, "-f", name, "-o", tmp_path / "out")
    assert done.returncode == 5, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    assert not (tmp_path / "out").exists()


def test_broken_formats_do_not_stop_the_others(cpmodel, line, tmp_path):
    assert cpmodel(line, "-o", tmp_path / "a.c").returncode == 0
    unknown = cpmodel(line, "-o", tmp_path / "a.f90")
    assert unknown.returncode == 2
    assert "module_that_is_not_there" in unknown.stderr
    helped = cpmodel("--help")
    assert helped.returncode == 0
    assert "cannot be used" in helped.stdout
