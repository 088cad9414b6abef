"""Names and tables from bug reports; each kind has another test with different files."""

from __future__ import annotations

import pytest

from callpath_modeler.studies.loading import load
from cells import cells


def folded(directory, *names):
    for name in names:
        path = directory / f"{name}.folded"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("main 100\nmain;solve 8\n")
    return directory


def points(experiment):
    return {parameter.name: parameter.values for parameter in experiment.parameters}


def test_decimal_commas_are_numbers(tmp_path_factory):
    names = [f"mm.x{x}.y1.r1/profile" for x in ("1,25", "1,5", "1,75", "2")]
    experiment = load(folded(tmp_path_factory.mktemp("runs"), *names))
    assert points(experiment) == {"x": (1.25, 1.5, 1.75, 2)}


def test_a_file_alone_in_its_directory_keeps_the_numbers_of_its_name(tmp_path_factory):
    names = [f"p{p}/app_p{p}-n{n}" for p in (2, 4, 16) for n in (100, 200, 400)]
    experiment = load(folded(tmp_path_factory.mktemp("runs"), *names, "p8/app_p8-n100"))
    assert points(experiment) == {"p": (2, 4, 8, 16), "n": (100, 200, 400)}


@cells(
    "form",
    ["ntasks_{}_threads_2", "p_{}_t_2/x", "ntasks_{}/x", "{}/x", "lulesh-{}cores", "{}ranks/x"],
)
def test_words_and_numbers_apart_are_scales(tmp_path_factory, form):
    experiment = load(folded(tmp_path_factory.mktemp("runs"), *map(form.format, (4, 8, 16))))
    assert points(experiment) == {"p": (4, 8, 16)}
    if "_2" in form:
        assert experiment.constants == {"threads": 2}


def test_reported_files_have_their_right_scales(shared_data):
    reports = shared_data / "reports"
    if not reports.is_dir():
        pytest.skip("needs the reported files in ../shared/data/reports")
    folder = next(reports.glob("b04*"))
    assert points(load(folder)) == {"x": (1.25, 1.5, 1.75, 2)}
    folder = next(reports.glob("b07*"))
    alone = load(folder / "runs")
    assert points(alone) == {"p": (2, 4, 8, 16), "n": (100, 200, 400)}
    assert len(alone.runs) == 10
    folder = next(reports.glob("b11*"))
    named = [load(folder / name) for name in "abcd"]
    assert [points(each)["p"] for each in named] == [(4, 8, 16)] * 4
    assert all(each.constants.get("threads", 2) == 2 for each in named)
    files = sorted(folder.glob("*.folded"))
    assert points(load(files)) == {"p": (4, 8, 16, 32, 64)}
    folder = next(reports.glob("b15*"))
    tables = [load(folder / name) for name in ("jobid2.csv", "jobid2_ok.csv")]
    assert [points(each) for each in tables] == [{"p": (4, 8, 16, 32, 64)}] * 2
    assert [len(each.runs) for each in tables] == [15, 15]
