"""Errors for unreadable databases, their remedies, and recognition of databases."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.base import Match
from callpath_modeler.readers.registry import Registry
from callpath_modeler.testing.checks import read_or_refused
from callpath_modeler.testing.hpctoolkit import Kind, Measured, Scope, write_database
from cpmodel_hpctoolkit import HpctoolkitLoopsReader, HpctoolkitReader
from cpmodel_hpctoolkit.binary import BinaryFile, ProfileFile
from cpmodel_hpctoolkit.meta import read_meta

INTERIM = '<?xml version="1.0"?>\n<HPCToolkitExperiment version="4.0"><Header n="a"/>'


def refused(reader, path):
    with pytest.raises(InputError) as caught, reader.open(path) as source:
        source.reduce("CPUTIME", Reduction.MAX)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def test_measurements_are_refused_with_the_remedy(reader, tmp_path):
    (tmp_path / "app-000000-000-a8c00270-1-0.hpcrun").touch()
    assert reader.match(tmp_path) is Match.NAME
    error = refused(reader, tmp_path)
    assert "measurements" in error.message
    assert "run hpcprof" in error.hint
    with pytest.raises(InputError, match="measurements"):
        reader.verify(tmp_path)


def test_the_interim_format_is_refused_with_the_remedy(reader, tmp_path):
    (tmp_path / "experiment.xml").write_text(INTERIM)
    (tmp_path / "profile.db").write_bytes(b"HPCPROF-profdb__")
    assert reader.match(tmp_path) is Match.CONTENT
    error = refused(reader, tmp_path)
    assert "experiment.xml: version '4.0'" in error.message
    assert "2022.10" in error.hint


@pytest.mark.parametrize("name", ["meta.db", "profile.db"])
def test_a_database_without_one_of_its_files_is_refused(reader, tmp_path, contexts, ranks, name):
    (write_database(tmp_path, contexts, ranks) / name).unlink()
    error = refused(reader, tmp_path)
    assert name in error.message


@pytest.mark.parametrize("name", ["meta.db", "profile.db"])
def test_a_file_that_is_cut_short_is_refused(reader, tmp_path, contexts, ranks, name):
    path = write_database(tmp_path, contexts, ranks) / name
    path.write_bytes(path.read_bytes()[:-100])
    error = refused(reader, tmp_path)
    assert f"{name}: the file is cut off" in error.message
    assert "(byte 0x" in error.message


def places_in(directory):
    """Return the offsets of values and contexts of the first profile that is not a sum."""
    kinds = read_meta(directory / "meta.db").kinds
    with BinaryFile(directory / "profile.db") as file:
        return ProfileFile(file, kinds).profiles[0]


@pytest.mark.parametrize(
    ("row", "word"), [(0, "does not match the values"), (1, "not ascending"), (2, "not ascending")]
)
def test_contexts_that_are_overwritten_with_zeros_are_refused(
    reader, tmp_path, contexts, ranks, row, word
):
    path = write_database(tmp_path, contexts, ranks) / "profile.db"
    content, place = bytearray(path.read_bytes()), places_in(tmp_path).index + 12 * row
    content[place : place + 12] = bytes(12) if row else b"\1" * 12
    path.write_bytes(content)
    assert word in refused(reader, tmp_path).message


def test_profiles_that_are_not_the_stored_sum_are_refused(reader, tmp_path, contexts, ranks):
    path = write_database(tmp_path, contexts, ranks) / "profile.db"
    content, place = bytearray(path.read_bytes()), places_in(tmp_path).place
    content[place : place + 8] = bytes(8)
    path.write_bytes(content)
    assert "all processes and threads" in refused(reader, tmp_path).message


def test_call_paths_that_do_not_add_up_in_a_location_are_told(reader, tmp_path, contexts, ranks):
    path = write_database(tmp_path, contexts, ranks) / "profile.db"
    profile = places_in(tmp_path)
    content = bytearray(path.read_bytes())
    # Behind the values of the whole program.
    lost = slice(profile.values + 40, profile.values + 10 * profile.n_values)
    content[lost] = bytes(lost.stop - lost.start)
    path.write_bytes(content)
    with reader.open(tmp_path) as source:
        source.reduce("CPUTIME", Reduction.MAX)
        (finding,) = (found for found in source.findings() if found.code == "CPM114")
    assert "in 1 locations" in finding.message


def test_a_later_major_version_is_refused(reader, tmp_path, contexts, ranks):
    path = write_database(tmp_path, contexts, ranks) / "meta.db"
    content = bytearray(path.read_bytes())
    content[14] = 5
    path.write_bytes(content)
    assert "version 5.0" in refused(reader, tmp_path).message


def test_contexts_that_contain_each_other_are_refused(reader, tmp_path, contexts, ranks):
    path = write_database(tmp_path, contexts, ranks) / "meta.db"
    content = bytearray(path.read_bytes())
    (table,) = struct.unpack_from("<Q", content, 0x48)
    (entry,) = struct.unpack_from("<Q", content, table)
    size, first = struct.unpack_from("<QQ", content, entry)
    # The first context below the entry point becomes its own callee.
    struct.pack_into("<QQ", content, first, size, first)
    path.write_bytes(content)
    assert "contain each other" in refused(reader, tmp_path).message


@pytest.mark.parametrize("number", [2, 2**32 - 1])
def test_a_context_number_given_twice_or_wild_is_refused(reader, tmp_path, contexts, ranks, number):
    path = write_database(tmp_path, contexts, ranks) / "meta.db"
    content = bytearray(path.read_bytes())
    (table,) = struct.unpack_from("<Q", content, 0x48)
    (entry,) = struct.unpack_from("<Q", content, table)
    struct.pack_into("<L", content, entry + 16, number)
    path.write_bytes(content)
    assert "occurs twice" in refused(reader, tmp_path).message


def test_every_file_that_names_a_database_opens_it(reader, tmp_path, contexts, ranks):
    write_database(tmp_path, contexts, ranks)
    for path in (tmp_path, tmp_path / "meta.db", tmp_path / "profile.db"):
        assert reader.match(path) is Match.CONTENT
        with reader.open(path) as source:
            assert len(source.call_tree) == 5
    assert reader.match(tmp_path / "cct.db") is Match.NO


def test_loops_are_not_kept_unless_asked_for(tmp_path, contexts, ranks):
    write_database(tmp_path, contexts, ranks)
    plain, loops = HpctoolkitReader(), HpctoolkitLoopsReader()
    assert Registry((loops, plain)).match(tmp_path) is plain
    assert Registry((loops,)).match(tmp_path) is loops


@pytest.mark.parametrize("seed", range(3))
def test_wild_pointers_are_refused_or_harmless(reader, tmp_path, contexts, ranks, seed):
    """An aligned word of eight bytes is overwritten, forty times in each file."""
    rng = random.Random(seed)
    write_database(tmp_path, contexts, ranks)
    for name in ("meta.db", "profile.db"):
        path = tmp_path / name
        original = path.read_bytes()
        for _ in range(40):
            content = bytearray(original)
            at = rng.randrange(16, len(content) - 16) // 8 * 8
            wild = rng.choice([2**64 - 1, 2**63, 2**32 - 1, len(content), at, 8, 1, 0])
            struct.pack_into("<Q", content, at, wild)
            path.write_bytes(content)
            read_or_refused(reader, tmp_path)
        path.write_bytes(original)


def test_a_file_of_that_name_by_others_is_not_taken(reader, tmp_path):
    for name in ("meta.db", "profile.db", "experiment.xml"):
        (tmp_path / name).write_bytes(b"SQLite format 3\0" + bytes(100))
        assert reader.match(tmp_path / name) is Match.NO
    assert reader.match(tmp_path) is Match.NO


def test_a_database_without_a_thread_is_refused(reader, tmp_path):
    scopes = [Scope(-1, Kind.FUNCTION, "main")]
    of_stream = Measured({"NODE": 0, "RANK": 0, "GPUSTREAM": 1}, {"CPUTIME (sec)": np.ones(1)})
    database = write_database(tmp_path / "d", scopes, [of_stream])
    error = refused(reader, database)
    assert error.message == f"{database}: no profile is of a thread of a process"
