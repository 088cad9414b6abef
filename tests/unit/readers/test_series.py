"""Files with several runs."""

from __future__ import annotations

import pytest

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import Extent
from callpath_modeler.readers.assemble import ReadOptions, assemble
from callpath_modeler.readers.base import ProfileReader, RunSource, SeriesReader, opened_runs
from synthetic import TIME, VISITS, FakeReader, FakeSeriesReader, FakeSource, call_tree, registry

PATHS = ["main", "main/f", "main/g"]


@pytest.fixture
def reader():
    return FakeSeriesReader()


def source(time, *, paths=PATHS, processes=0, metric=TIME, **others):
    return FakeSource(call_tree(paths), {metric: time}, Extent(processes, 0), **others)


def runs(points=(2, 4, 8), repetitions=(1, 2)):
    return [
        RunSource(source([1.0, 2.0 * p + r, 3.0]), {"p": p, "n": 30}, r)
        for p in points
        for r in repetitions
    ]


def made(reader, *files, **options):
    return assemble(files, registry(reader), ReadOptions(**options))


def test_a_file_of_several_runs_becomes_an_experiment_of_them(reader, tmp_path):
    experiment = made(reader, reader.add(tmp_path, "app", runs()))
    assert len(experiment.runs) == 6
    assert experiment.points("p").tolist() == [2, 4, 8]
    assert experiment.values("time")[1].tolist() == [5, 6, 9, 10, 17, 18]
    assert experiment.constants == {"n": 30}
    assert [p.origin for p in experiment.parameters] == ["profile"]
    assert experiment.name == "app"


def test_each_run_is_named_by_its_file_and_its_setting(reader, tmp_path):
    file = reader.add(tmp_path, "app", runs())
    assert made(reader, file).runs[2].source == f"{file.path}[p=4,n=30 r1]"
    alone = reader.add(tmp_path, "alone", runs()[:1])
    assert made(reader, alone).runs[0].source == str(alone.path)


def test_findings_are_of_one_run_not_of_the_file(reader, tmp_path):
    held = runs()
    noticed = Finding("CPM105", "x", "three values")
    held.append(RunSource(source([1, 2, 3], noticed=[noticed]), {"p": 16, "n": 30}))
    experiment = made(reader, reader.add(tmp_path, "app", held))
    assert [f.code for f in experiment.findings if f.subject != "scaling"] == ["CPM105"]
    assert len(experiment.runs) == 7


def test_a_file_name_adds_only_what_its_runs_do_not_state(reader, tmp_path):
    file = reader.add(tmp_path, "app.p2.size7", runs())
    experiment = made(reader, file)
    assert experiment.points("p").tolist() == [2, 4, 8]
    assert experiment.constants == {"n": 30, "size": 7}
    assert experiment.findings == ()


def test_several_files_of_runs_make_one_experiment(reader, tmp_path):
    first = reader.add(tmp_path, "a", runs((2, 4)))
    second = reader.add(tmp_path, "b", runs((4, 8)))
    experiment = made(reader, first, second)
    at_4 = [run for run in experiment.runs if run.parameters["p"] == 4]
    assert [run.repetition for run in at_4] == [1, 2, 3, 4]


def test_parameters_need_no_number_of_processes(reader, tmp_path):
    held = [RunSource(source([1, s, 3]), {"s": s}) for s in (64, 512, 4096)]
    experiment = made(reader, reader.add(tmp_path, "app", held))
    assert [p.name for p in experiment.parameters] == ["s"]
    assert experiment.scaling_reason == "assumed: the number of processes is unknown"


def test_without_a_duration_the_first_metric_is_read(reader, tmp_path):
    held = [RunSource(source([1, p, 3], metric=VISITS), {"p": p}) for p in (2, 4)]
    assert list(made(reader, reader.add(tmp_path, "app", held)).columns) == ["visits"]


def test_a_file_without_runs_is_an_input_error(reader, tmp_path):
    with pytest.raises(InputError, match="holds no run"):
        made(reader, reader.add(tmp_path, "app", []))


def test_readers_of_one_run_and_of_several_are_opened_the_same_way(reader, tmp_path):
    single = FakeReader()
    file = single.add(tmp_path, "one", source([1, 2, 3]))
    assert isinstance(single, ProfileReader)
    assert not isinstance(single, SeriesReader)
    with opened_runs(single, file.path) as held:
        assert [(run.parameters, run.repetition) for run in held] == [({}, None)]
    with opened_runs(reader, reader.add(tmp_path, "app", runs()).path) as held:
        assert len(held) == 6
