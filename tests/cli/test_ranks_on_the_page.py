"""Values of single ranks on the page of `cpmodel report`."""

from __future__ import annotations

import html
import re
import shutil

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler.errors import DataError
from callpath_modeler.profile.schema import Metric, Placement
from callpath_modeler.readers.process_values import ProcessValues
from callpath_modeler.report.page.cards import BARS, processes_part
from callpath_modeler.studies import process_profile as reading
from callpath_modeler.studies.loading import load
from callpath_modeler.studies.process_profile import ProcessProfile, process_profiles
from cells import cells

NAMES = ["main", "solve", "MPI_Wait", "other", "solve"]
TREE = cw.Tree([-1, 0, 1, 0, 3], NAMES)
SLOW, P = 11, 16


def times(p, repetition):
    """Return times [call paths, processes]; one process is twice as slow in main/solve."""
    draw = np.random.default_rng(100 * p + repetition)
    noise = np.exp(0.02 * draw.standard_normal((len(NAMES), p)))
    values = np.array([0.1, 1.0, 0.3, 0.2, 0.05])[:, None] * noise
    if p > SLOW:
        values[1, SLOW] *= 2
    return values


@pytest.fixture
def runs(tmp_path):
    for p in (4, 8, P):
        for repetition in (1, 2, 3):
            path = tmp_path / "runs" / f"app.p{p}.r{repetition}" / "profile.cubex"
            path.parent.mkdir(parents=True)
            metric = cw.MetricToWrite("time", times(p, repetition), unit="sec")
            cw.write(path, TREE, [metric], cw.Machine([1] * p))
    return tmp_path / "runs"


def page_of(done):
    assert done.status == 0, done.err
    return html.unescape(done.out.replace("\N{NO-BREAK SPACE}", " "))


def parts(page):
    """Return the part of each card with values of ranks, in order."""
    return re.findall(r'<div class="ranks">.*?</div>', page, re.DOTALL)


def heights(part, kind='"rank"'):
    """Return the heights of the bars of a picture, from left to right."""
    outline = re.search(rf'<path class={kind} d="([^"]*)"', part)[1]
    return [float(text) for text in re.findall(r"v-([\d.]+)h", outline)]


def test_the_slow_rank_is_named_and_drawn(run, runs):
    shown = parts(page_of(run("report", runs, "--target", "64")))
    assert len(shown) == 5
    told = run("show", runs, "main/solve", "--per-process").out.splitlines()
    assert told[2] == f"1 of 16 ranks is outlying: {SLOW}."
    assert told[2] in shown[0]
    assert told[1] in shown[0]
    assert "rank 15" in shown[0]
    slow = heights(shown[0], '"rank outlying"')
    median = np.median([times(P, k)[1] for k in (1, 2, 3)], axis=0)
    expected = np.delete(median, SLOW) / median.max()
    assert np.array(heights(shown[0])) / slow[0] == pytest.approx(expected, abs=0.01)
    assert all("No rank is outlying" in part for part in shown[1:])


def test_only_the_first_call_paths_are_read_and_each_profile_once(run, runs, monkeypatch):
    opened = []
    real = reading.opened_runs

    def counted(reader, path):
        opened.append(path)
        return real(reader, path)

    monkeypatch.setattr(reading, "opened_runs", counted)
    shown = parts(page_of(run("report", runs, "--target", "64", "-n", "2")))
    assert len(shown) == 2
    assert len(opened) == 3  # the repetitions of the largest scale


def test_an_inclusive_page_has_inclusive_values(run, runs):
    shown = parts(page_of(run("report", runs, "--target", "64", "-i")))
    assert len(shown) == 5
    assert all("time of each process, inclusive" in part for part in shown)


@pytest.mark.parametrize("inclusive", [True, False])
def test_choices_read_together_are_as_if_read_alone(runs, inclusive):
    experiment = load([runs])
    choices = [[row] for row in range(5)] * 8 + [[1, 4], [0, 2]]
    together = process_profiles(experiment, choices, inclusive=inclusive)
    for rows, found in zip(choices, together, strict=True):
        alone = reading.process_profile(experiment, rows, inclusive=inclusive)
        np.testing.assert_allclose(found.of_repetitions(), alone.of_repetitions(), rtol=1e-12)
    names = [experiment.tree.path(row) for row in range(5)]
    own = dict(zip(["main", "main/solve", "main/solve/MPI_Wait", "main/other",
                    "main/other/solve"], times(P, 1), strict=True))  # fmt: skip
    for name, found in zip(names, together, strict=False):
        below = [v for path, v in own.items() if path == name or path.startswith(f"{name}/")]
        expected = sum(below) if inclusive else own[name]
        np.testing.assert_allclose(found.values[0].values, expected)


def test_a_store_alone_has_no_values_of_ranks(run, runs, tmp_path):
    store = tmp_path / "kept.cpm"
    assert run("fit", runs, "-o", store).status == 0
    shown = parts(page_of(run("report", store, "--target", "64")))
    assert len(shown) == 5
    shutil.rmtree(runs)
    page = page_of(run("report", store, "--target", "64"))
    assert not parts(page)
    assert "The values of single ranks are not shown: " in page
    assert "the profile is not there" in page


def test_groups_of_processes_and_tables_have_a_sentence(run, runs, tmp_path):
    page = page_of(run("report", runs, "--target", "64", "--split-ranks", "rank == 0"))
    assert "not shown: the values of single processes are not split into groups." in page
    table = tmp_path / "t.csv"
    table.write_text("callpath,p,time\n" + "".join(f"main,{p},{p}\n" for p in (1, 2, 4, 8, 16)))
    page = page_of(run("report", table, "--target", "64"))
    assert "the profile has no values of single processes" in page
    assert not parts(page)


def test_one_profile_has_the_values_of_its_ranks(run, runs):
    shown = parts(page_of(run("report", runs / "app.p16.r1")))
    assert len(shown) == 5
    assert f"1 of 16 ranks is outlying: {SLOW}." in shown[0]


def many(count):
    """Return values of many processes; every 1000th is far above the others."""
    draw = np.random.default_rng(1)
    values = np.exp(0.01 * draw.standard_normal(count))
    values[::1000] *= 5
    ranks, ones = np.arange(count), np.ones(count, np.intp)
    each = ProcessValues(
        Metric("time", "s", "time"), ranks, values, ones, values, values, Placement.unknown(count)
    )
    return ProcessProfile(None, np.array([0]), False, each.metric, {"p": count}, (0,), (each,), {})


@cells("count", [2, 199, 200, 201, 100_000, 1_000_003])
def test_the_size_does_not_grow_with_the_number_of_processes(count):
    profile = many(count)
    part = processes_part(profile, key="x")
    assert len(part.encode()) < 12_000
    drawn = sorted([*heights(part), *heights(part, '"rank outlying"')])
    assert len(drawn) <= BARS
    each = -(-count // BARS)
    assert len(drawn) == -(-count // each)
    assert (f"each bar is the maximum of {each} ranks" in part) == (each > 1)
    if count >= 100_000:
        assert f"{count // 1000 + (count % 1000 > 0)} of {count} ranks are outlying" in part
        assert part.count("l-3 5h6z") >= 100  # a bar with an outlying rank has a mark


def test_a_call_path_without_values_is_an_error_of_its_own(runs):
    experiment = load([runs])
    found = process_profiles(experiment, [[0], []])
    assert isinstance(found[0], ProcessProfile)
    assert isinstance(found[1], DataError)
