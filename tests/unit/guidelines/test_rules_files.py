"""Files of rules, as the libraries read them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from callpath_modeler.errors import DataError
from cells import cells
from cpmodel_guidelines.rules import parse
from cpmodel_guidelines.tuning.choices import (
    Library,
    ProcessRange,
    Rules,
    SizeRange,
    Unwritten,
    process_ranges,
    size_ranges,
)
from cpmodel_guidelines.tuning.gains import Gain, Place
from cpmodel_guidelines.tuning.open_mpi import COLLECTIVES, Algorithm, Scale
from cpmodel_guidelines.tuning.rules_files import (
    open_mpi_json,
    open_mpi_text,
    profiles,
    require_rules,
)
from rule_readers import (
    Row,
    at_in_open_mpi_4,
    at_in_open_mpi_6,
    at_in_pgmpitunelib,
    open_mpi_4,
    open_mpi_6,
    pgmpitunelib,
)

PROBE = Path(__file__).parents[2] / "tools" / "rules_probe.c"


def rules(ranges, library=Library.OPEN_MPI, group=("lib",), written=None):
    return Rules(library, group, ranges, written or {}, ())


def drawn(seed, whats):
    """Draw ranges of processes and sizes that are disjoint and ascending."""
    rng = np.random.default_rng(seed)
    entries, p = [], int(rng.integers(1, 4))
    for _ in range(rng.integers(1, 4)):
        last, sizes, start = p + int(rng.integers(0, 3)), [], int(rng.integers(0, 3)) * 5
        for _ in range(rng.integers(1, 4)):
            end = start + int(rng.integers(0, 40))
            sizes.append(SizeRange(start, end, whats[rng.integers(len(whats))]))
            start = end + 1 + int(rng.integers(0, 2)) * 7
        if rng.random() < 0.3:
            sizes[-1] = SizeRange(sizes[-1].low, None, sizes[-1].what)
        entries.append(ProcessRange(p, last, tuple(sizes)))
        p = last + 1 + int(rng.integers(0, 3))
    return tuple(entries)


def expected(entries, processes, size):
    for entry in entries:
        if entry.low <= processes <= entry.high:
            for each in entry.sizes:
                if each.low <= size and (each.high is None or size <= each.high):
                    return each.what
    return None


def row(what):
    return None if what is None else Row(what.number, what.fan_out, what.segment)


@cells("seed", range(30))
def test_the_text_and_the_json_select_the_rules_of_each_place(seed):
    whats = [Algorithm("Bcast", 1), Algorithm("Bcast", 3, 8192), Algorithm("Bcast", 2, 0, 2)]
    entries = {name: drawn(seed + k, whats) for k, name in enumerate(("Bcast", "Reduce_scatter"))}
    text, document = open_mpi_text(rules(entries)), open_mpi_json(rules(entries))
    old, new = open_mpi_4(text), open_mpi_6(document)
    for name, key in (("Bcast", "bcast"), ("Reduce_scatter", "reducescatter")):
        for p in range(1, 20):
            for size in range(200):
                what = row(expected(entries[name], p, size))
                assert at_in_open_mpi_4(old, COLLECTIVES[name].number, p, size) == what
                assert at_in_open_mpi_6(new, key, p, size) == what
    assert at_in_open_mpi_4(old, COLLECTIVES["Allreduce"].number, 4, 100) is None


@cells("seed", range(20))
def test_profiles_select_the_mock_ups_of_each_place(seed):
    entries = drawn(seed, ["gather_as_reduce", "gather_as_gatherv"])
    single = [ProcessRange(each.low, each.low, tuple(s for s in each.sizes if s.high is not None))
              for each in entries]  # fmt: skip
    single = [each for each in single if each.sizes]
    found = profiles(rules({"Gather": tuple(single)}, Library.PGMPITUNELIB))
    read = {path: pgmpitunelib(text) for path, text in found.items()}
    assert {*read} == {f"p{each.low}/gather.prf" for each in single}
    for entry in single:
        of = read[f"p{entry.low}/gather.prf"]
        for size in range(1, 200):
            what = expected(single, entry.low, size)
            assert at_in_pgmpitunelib(of, entry.low, size) == what
        assert of[0] == "MPI_Gather"
        assert at_in_pgmpitunelib(of, entry.low + 1, 10) is None


def test_a_profile_says_that_sizes_are_elements():
    (text,) = profiles(
        rules(
            {"Reduce_scatter_block": (ProcessRange(4, 4, (SizeRange(1, 9, "x"),)),)},
            Library.PGMPITUNELIB,
        )
    ).values()
    assert "elements" in text


def gain(group=("lib",), guideline="Allreduce <= Reduce + Bcast", algorithm=None):
    told = parse(guideline)
    place = Place(group, told.left.function, 4, 1024.0)
    return Gain(
        place, told, "Reduce + Bcast", algorithm, "mock-up", 2e-5, 1e-5, 2.0, 1.8, 2.2, 0.01
    )


HOSTILE = ["a\n5 5 5", "x\x1b[31m", "# 7", "µ€\u202e", "", "a" * 5000, "*/ 3", "\r9 9 9"]


@cells("name", HOSTILE)
def test_names_of_libraries_stay_in_comments(name):
    what = Algorithm("Allreduce", 2)
    entries = {"Allreduce": (ProcessRange(4, 4, (SizeRange(8, 64, what),)),)}
    shown = gain((name,))
    text = open_mpi_text(rules(entries, group=(name,), written={shown.place: (what, shown)}))
    assert at_in_open_mpi_4(open_mpi_4(text), 2, 4, 8) == Row(2, 4, 0)
    assert max(map(len, text.splitlines())) < 200
    assert "\x1b" not in text
    assert len(text.splitlines()) == text.count("\n")
    mock_up = {"Allreduce": (ProcessRange(4, 4, (SizeRange(8, 64, "allreduce_as_reduce_bcast"),)),)}
    (profile,) = profiles(rules(mock_up, Library.PGMPITUNELIB, (name,))).values()
    assert pgmpitunelib(profile)[2] == [(8, 64, "allreduce_as_reduce_bcast")]


def test_without_rules_the_error_names_the_reason():
    with pytest.raises(DataError, match="nothing is written: no gain is shown"):
        require_rules(rules({}))
    shown = Unwritten(gain(guideline="Gather <= Gatherv"), "no algorithm of Open MPI does this")
    none = Rules(Library.OPEN_MPI, ("lib",), {}, {}, (shown,))
    with pytest.raises(DataError, match="no algorithm of Open MPI does this"):
        require_rules(none)


# Ranges.


def test_a_range_reaches_half_the_way_to_the_next_size():
    assert size_ranges([64, 256, 1024, 4096], {256: "x", 1024: "x"}) == (SizeRange(129, 2048, "x"),)
    assert size_ranges([64, 256], {64: "x", 256: "y"}) == (
        SizeRange(64, 128, "x"),
        SizeRange(129, 256, "y"),
    )


def test_no_range_leaves_the_measured_sizes():
    assert size_ranges([64, 256], {64: "x"}) == (SizeRange(64, 128, "x"),)
    assert size_ranges([64, 256], {256: "x"}) == (SizeRange(129, 256, "x"),)
    assert size_ranges([0], {0: "x"}) == (SizeRange(0, 0, "x"),)
    assert size_ranges([64, 256], {}) == ()


def test_neighbouring_sizes_have_their_own_ranges():
    assert size_ranges([0, 1, 2], {1: "x"}) == (SizeRange(1, 1, "x"),)


def test_between_two_numbers_of_processes_both_have_to_agree():
    found = {
        4: (SizeRange(10, 100, "x"), SizeRange(200, 300, "y")),
        8: (SizeRange(50, 250, "x"),),
        16: (SizeRange(50, 250, "x"),),
    }
    assert process_ranges(found, [2, 4, 8, 16]) == (
        ProcessRange(4, 4, found[4]),
        ProcessRange(5, 7, (SizeRange(50, 100, "x"),)),
        ProcessRange(8, 16, found[8]),
    )
    exact = process_ranges(found, [2, 4, 8, 16], exact=True)
    assert [(each.low, each.high) for each in exact] == [(4, 4), (8, 8), (16, 16)]


def test_a_number_of_processes_without_a_gain_ends_the_range():
    same = (SizeRange(10, 100, "x"),)
    found = process_ranges({4: same, 16: same}, [4, 8, 16])
    assert found == (ProcessRange(4, 4, same), ProcessRange(16, 16, same))


# Open MPI itself.


def test_algorithms_have_the_numbers_that_open_mpi_lists():
    tool = shutil.which("ompi_info")
    if tool is None:
        pytest.skip("needs ompi_info of Open MPI 4")
    told = subprocess.run(
        [tool, "--param", "coll", "tuned", "--level", "9", "--parsable"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    listed = re.findall(r"param:coll_tuned_(\w+)_algorithm:enumerator:value:(\d+):(\S+)", told)
    if ("allreduce", "2", "nonoverlapping") not in listed or "bruck-k-fanout" in told:
        pytest.skip("needs Open MPI 4")
    known = {
        (name.lower(), str(number), algorithm)
        for name, of in COLLECTIVES.items()
        for number, algorithm in enumerate(of.algorithms, 1)
    }
    assert {each for each in listed if each[1] != "0"} == known


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    """Return a function that runs the probe with a file of rules."""
    compiler, launcher = shutil.which("mpicc"), shutil.which("mpirun")
    if compiler is None or launcher is None:
        pytest.skip("needs mpicc and mpirun of Open MPI 4")
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False)
    if "Open MPI) 4" not in version.stdout:
        pytest.skip("needs mpirun of Open MPI 4")
    folder = tmp_path_factory.mktemp("probe")
    program = folder / "probe"
    subprocess.run([compiler, "-O1", "-o", program, PROBE], check=True)
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def run(text, sizes):
        file = folder / "rules.conf"
        file.write_text(text, "ascii")
        told = ["--mca", "coll_tuned_use_dynamic_rules", "1",
                "--mca", "coll_tuned_dynamic_rules_filename", str(file),
                "--mca", "btl", "self,vader", "--oversubscribe", "-n", "4"]  # fmt: skip
        made = subprocess.run(
            [launcher, *told, program, *map(str, sizes)],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
            env={**os.environ, **allowed},
        )
        lines = (line.split() for line in made.stdout.splitlines())
        return {(name, int(p), int(size)) for name, p, size in lines}

    return run


SIZES = (1, 9, 10, 11, 19, 20, 21, 33, 34, 66, 67, 99, 100, 150, 200, 201, 300)


def test_open_mpi_reads_the_rules_as_they_are_meant(probe):
    """A rule selects an algorithm that does not exist, so each call that obeys it fails."""
    bad = {name: Algorithm(name, 99) for name in COLLECTIVES}
    by_size = ("Allgather", "Allreduce", "Alltoall", "Bcast", "Reduce", "Reduce_scatter",
               "Reduce_scatter_block")  # fmt: skip
    ranges = {
        name: (ProcessRange(3, 3, (SizeRange(20, 100, bad[name]), SizeRange(200, 200, bad[name]))),)
        for name in by_size
    }
    ranges |= {name: (ProcessRange(2, 3, (SizeRange(0, None, bad[name]),)),)
               for name in ("Scan", "Gather")}  # fmt: skip
    found = probe(open_mpi_text(rules(ranges)), SIZES)
    meant = {
        (name, p, size)
        for name, entries in ranges.items()
        for p in (2, 3, 4)
        for size in SIZES
        if expected(entries, p, size * (p if COLLECTIVES[name].scale is Scale.WHOLE else 1))
    }
    assert found == meant
    assert len(found) > 60


def test_open_mpi_ignores_a_file_that_is_not_complete(probe):
    entries = {
        "Allreduce": (ProcessRange(3, 3, (SizeRange(20, 100, Algorithm("Allreduce", 99)),)),)
    }
    lines = open_mpi_text(rules(entries)).splitlines()
    assert probe("\n".join([*lines, ""]), [50]) == {("Allreduce", 3, 50)}
    assert probe("\n".join([*lines[:-2], ""]), [50]) == set()
