"""Databases as directories: discovery of series, and names of runs."""

from __future__ import annotations

import pytest

from callpath_modeler.errors import InputError
from callpath_modeler.readers.assemble import ReadOptions, assemble
from callpath_modeler.readers.discover import discover
from callpath_modeler.readers.registry import Registry
from callpath_modeler.testing.hpctoolkit import write_database
from cpmodel_hpctoolkit import HpctoolkitLoopsReader, HpctoolkitReader
from cpmodel_scorep import CubexReader

READERS = Registry((HpctoolkitReader(), HpctoolkitLoopsReader(), CubexReader()))


@pytest.fixture
def database(contexts, ranks):
    def write(folder):
        return write_database(folder, contexts, ranks)

    return write


def test_directories_that_are_databases_are_runs(tmp_path, database):
    for name in ("app.p8.r1", "app.p16.r1", "app.p16.r2"):
        database(tmp_path / name)
    runs = discover([tmp_path], READERS)
    assert [run.path for run in runs] == [
        tmp_path / "app.p8.r1",
        tmp_path / "app.p16.r1",
        tmp_path / "app.p16.r2",
    ]
    assert [run.components[0] for run in runs] == ["app.p8.r1", "app.p16.r1", "app.p16.r2"]
    assert discover([run.path for run in runs], READERS) == runs
    assert discover([run.path / "meta.db" for run in runs], READERS) == runs


def test_a_database_without_a_name_of_its_own_has_that_of_its_directory(tmp_path, database):
    database(tmp_path / "app.p8.n30" / "hpctoolkit-app-database")
    (run,) = discover([tmp_path], READERS)
    assert run.path == tmp_path / "app.p8.n30" / "hpctoolkit-app-database"
    assert run.components[:2] == ("hpctoolkit-app-database", "app.p8.n30")


def measure(folder):
    folder.mkdir(parents=True)
    (folder / "app-0-0.hpcrun").touch()


@pytest.mark.parametrize("job", ["", "-17"])
def test_measurements_beside_their_database_are_passed_over(tmp_path, database, job):
    database(tmp_path / f"hpctoolkit-app-database{job}")
    measure(tmp_path / f"hpctoolkit-app-measurements{job}")
    (run,) = discover([tmp_path], READERS)
    assert run.path.name == f"hpctoolkit-app-database{job}"


@pytest.mark.parametrize(
    "name", ["hpctoolkit-app-measurements-18", "app.p16.m", "p16/hpctoolkit-app-measurements-17"]
)
def test_measurements_without_a_database_are_a_run_that_is_left_out(tmp_path, database, name):
    database(tmp_path / "hpctoolkit-app-database-17")
    measure(tmp_path / name)
    made = assemble(discover([tmp_path], READERS), READERS, ReadOptions())
    (finding,) = [finding for finding in made.findings if finding.code == "CPM101"]
    assert finding.subject == str(tmp_path / name)
    assert finding.message == "measurements that hpcprof has not processed yet"


def test_measurements_alone_are_opened_to_hear_the_remedy(tmp_path):
    folder = tmp_path / "app.p8" / "hpctoolkit-app-measurements"
    measure(folder)
    (run,) = discover([tmp_path], READERS)
    assert run.path == folder
    with pytest.raises(InputError) as caught, READERS.find(run.path).open(run.path):
        pass
    assert "run hpcprof" in caught.value.hint


def test_a_database_without_its_definitions_is_named_not_passed_over(tmp_path, database):
    for name in ("app.p8", "app.p16"):
        database(tmp_path / name)
    (tmp_path / "app.p8" / "meta.db").unlink()
    runs = discover([tmp_path], READERS)
    assert [run.path.name for run in runs] == ["app.p8", "app.p16"]
    with (
        pytest.raises(InputError, match=r"app\.p8: meta\.db is missing"),
        READERS.find(runs[0].path).open(runs[0].path),
    ):
        pass
