"""The longest thread of each process, and the sums over its threads."""

from __future__ import annotations

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.readers.reductions import Columns, Fold, Reducer
from callpath_modeler.studies.loading import LoadOptions
from cpmodel_tau import TauReader
from hybrid_timelines import FORMATS, Timeline
from tau_writer import write

PROCESSES = np.array([0, 0, 0, 1, 2, 2])


def longest(totals):
    return Columns.of(PROCESSES).with_longest(np.array(totals, float)).longest.tolist()


def test_the_longest_thread_may_be_any():
    assert longest([1, 3, 2, 1, 5, 7]) == [1, 3, 5]


def test_of_equal_threads_the_first_one_counts():
    assert longest([2, 2, 2, 1, 0, 0]) == [0, 3, 4]
    assert longest([1, 2, 2, 1, 0, 0]) == [1, 3, 4]


def test_samples_and_clocks_do_not_replace_the_first_thread():
    assert longest([99, 100, 100, 1, 97, 100]) == [0, 3, 5]


def test_unknown_totals_are_no_long_ones():
    assert longest([np.nan, 1, np.nan, np.nan, np.nan, np.nan]) == [1, 3, 4]


def test_processes_keep_their_longest_threads_if_some_are_chosen():
    columns = Columns.of(PROCESSES).with_longest(np.array([1.0, 3, 2, 1, 5, 7]))
    some = columns.of_processes(np.array([True, False, True]))
    block = np.arange(6.0)[np.newaxis]
    assert some.fold(block, Fold.LONGEST).tolist() == [[1.0, 5.0]]
    assert some.fold(block, Fold.SUM).tolist() == [[3.0, 9.0]]


def test_a_fold_needs_the_longest_threads():
    with pytest.raises(ValueError, match="is not known"):
        Columns.of(PROCESSES).fold(np.zeros((1, 6)), Fold.LONGEST)


def test_call_paths_of_other_threads_are_counted():
    columns = Columns.of(PROCESSES).with_longest(np.array([3.0, 1, 1, 1, 5, 4]))
    reducer = Reducer(4, columns, Fold.LONGEST, Reduction.MEAN)
    block = np.array(
        [[3.0, 0, 0, 1, 5, 0], [0, 1, 0, 0, 0, 2], [0, 0, 0, 0, 0, 0], [0, 0, np.nan, 0, 0, 4]]
    )
    reducer.add(np.arange(4), block)
    assert reducer.values.tolist() == [3.0, 0.0, 0.0, 0.0]
    assert reducer.noticed.others == {1: 2.0, 3: 4.0}


@pytest.mark.parametrize("name", FORMATS)
def test_all_threads_have_a_metric_of_their_own(name, tmp_path):
    if name == "otf2":
        pytest.importorskip("otf2")
    threads = {4: 1, 8: 3, 16: 3}
    for p, count in threads.items():
        FORMATS[name](tmp_path / f"app.p{p}.r1", [Timeline([2.0] * count, 1.0, True)] * p)
    time = cpm.load([tmp_path]).metric(None).name
    sums = f"{time} of all threads"
    found = cpm.load([tmp_path], LoadOptions(read=ReadOptions(metrics=(sums,))))
    # In the first run, the only thread of a process is all its threads.
    assert np.nansum(found.columns[sums].exclusive, axis=0) == pytest.approx([3.0, 9.0, 9.0])
    assert found.columns[sums].total == pytest.approx([3.0, 9.0, 9.0])
    assert np.nansum(found.columns[time].exclusive, axis=0) == pytest.approx([3.0, 3.0, 3.0])
    assert found.columns[sums].run_time is None
    # In OTF2 and HPCToolkit, the contexts of the workers are separate, and so on.
    messages = {each.message for each in found.findings if each.code == "CPM173"}
    assert len(messages) == (0 if name == "otf2" else 1)
    assert all(each.startswith(f"{time}: 1 call path, the longest ") for each in messages)
    assert all(each.endswith("solve with 67 % of the run time") for each in messages)


def test_waiting_of_workers_is_no_finding(tmp_path):
    FORMATS["tau"](tmp_path / "app.p1", [Timeline([2.0, 0.0], 1.0, True)])
    assert "CPM173" not in {each.code for each in cpm.load([tmp_path]).findings}


def test_a_flat_profile_has_the_elapsed_time_of_its_first_thread(tmp_path):
    master = [
        (".TAU application", 1, 10.0, 10e6, "TAU_DEFAULT"),
        ("main", 1, 4e6, 9999990.0, "TAU_USER"),
        ("parallel fork/join [OpenMP]", 10, 5990.0, 5999990.0, "OpenMP"),
        ("for (loop body) [OpenMP]", 10, 5994000.0, 5994000.0, "OpenMP"),
    ]
    worker = [
        (".TAU application", 1, 4e6, 10e6, "TAU_DEFAULT"),
        ("parallel begin/end [OpenMP]", 10, 1e4, 6e6, "OpenMP"),
        ("for (loop body) [OpenMP]", 10, 5.99e6, 5.99e6, "OpenMP"),
    ]
    threads = {(0, 0, 0): master, (0, 0, 1): worker, (0, 0, 2): worker}
    with TauReader().open(write(tmp_path / "run", threads)) as profile:
        found = profile.reduce("time", Reduction.MEAN)
        assert found.run_time == found.total == pytest.approx(10.0)
        assert found.exclusive.sum() == pytest.approx(10.0)
        sums = profile.reduce("time of all threads", Reduction.MEAN)
        assert sums.total == pytest.approx(30.0)
        assert np.isnan(sums.run_time)


def test_subtrees_of_workers_have_factors_of_efficiency(tmp_path):
    for p in (4, 8):
        timelines = [Timeline([2.0, 1.0], 1.0, False)] * p
        FORMATS["tau"](tmp_path / f"app.p{p}", timelines)
    found = cpm.Study(tmp_path).efficiency().efficiency
    assert "solve" in [found.name(k) for k in range(len(found.rows))]
