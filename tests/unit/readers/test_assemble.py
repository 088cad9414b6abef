from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, InputError, UsageError
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Extent, Metric, Reduction
from callpath_modeler.readers.assemble import ReadOptions, assemble
from callpath_modeler.readers.run_cases import RunSelection
from synthetic import TIME, VISITS, FakeMean, FakeReader, FakeSource, call_tree, registry

PATHS = ["main", "main/f", "main/g"]
BAD = InputError("it is cut short", hint="measure again")


@pytest.fixture
def reader():
    return FakeReader()


def profile(p, *, paths=PATHS, time=None, **others):
    time = [1.0, 2.0 * p, 3.0][: len(paths)] if time is None else time
    return FakeSource(call_tree(paths), {TIME: time}, Extent(p), **others)


def series(reader, directory, points=(2, 4, 8)):
    return [reader.add(directory, f"app.p{p}", profile(p)) for p in points]


def codes(experiment):
    return [finding.code for finding in experiment.findings]


def test_profiles_become_one_experiment_in_order_of_scale(reader, tmp_path):
    files = series(reader, tmp_path, (8, 2, 4))
    made = assemble(files, registry(reader), ReadOptions())
    assert made.points("p").tolist() == [2, 4, 8]
    assert made.values("time")[1].tolist() == [4, 8, 16]
    assert made.findings == ()
    assert made.name == "app"
    assert [run.reader for run in made.runs] == ["fake"] * 3


def test_values_of_an_experiment_cannot_be_written(reader, tmp_path):
    made = assemble(series(reader, tmp_path), registry(reader), ReadOptions())
    with pytest.raises(ValueError, match="read-only"):
        made.values("time")[0, 0] = 1.0


def test_a_bad_profile_among_good_ones_is_left_out_by_name(reader, tmp_path):
    files = [*series(reader, tmp_path), reader.add(tmp_path, "app.p16", BAD)]
    made = assemble(files, registry(reader), ReadOptions())
    assert len(made.runs) == 3
    (finding,) = made.findings
    assert finding.code == "CPM101"
    assert finding.subject.endswith("app.p16.fake")
    assert finding.message == "it is cut short"


def test_a_missing_or_unknown_file_among_good_ones_is_left_out_by_name(reader, tmp_path):
    files = series(reader, tmp_path)
    gone = reader.add(tmp_path, "app.p16", profile(16))
    gone.path.unlink()
    made = assemble([*files, gone], registry(reader), ReadOptions())
    assert codes(made) == ["CPM101"]


def test_strict_makes_the_bad_profile_an_error(reader, tmp_path):
    files = [*series(reader, tmp_path), reader.add(tmp_path, "app.p16", BAD)]
    with pytest.raises(InputError, match="cut short") as caught:
        assemble(files, registry(reader), ReadOptions(strict=True))
    assert caught.value.hint == "measure again"


def test_bad_profiles_alone_are_an_error_that_counts_the_others(reader, tmp_path):
    files = [reader.add(tmp_path, f"app.p{p}", BAD) for p in (1, 2, 3)]
    with pytest.raises(InputError, match="and 2 more"):
        assemble(files, registry(reader), ReadOptions())


def test_a_profile_given_twice_counts_once_even_through_a_link(reader, tmp_path):
    files = series(reader, tmp_path)
    link = reader.add(tmp_path, "link.p2", profile(2))
    link.path.unlink()
    link.path.symlink_to(files[0].path)
    made = assemble([*files, files[1], link], registry(reader), ReadOptions())
    assert len(made.runs) == 3
    assert codes(made) == ["CPM122", "CPM122"]


def test_profiles_of_several_tools_are_a_data_error(reader, tmp_path):
    other = FakeReader("other", ".other")
    files = [*series(reader, tmp_path), other.add(tmp_path, "app.p16", profile(16))]
    with pytest.raises(DataError, match="several tools in one series: fake, other"):
        assemble(files, registry(reader, other), ReadOptions())


def test_profiles_of_several_tools_are_one_error_however_they_were_reduced(reader, tmp_path):
    other = FakeReader("other", ".other")
    reduced = FakeMean(call_tree(PATHS), {TIME: [1.0, 2.0, 3.0]}, Extent(16))
    own, others = series(reader, tmp_path), [other.add(tmp_path, "app.p16", reduced)]
    for files in ([*own, *others], [*others, *own]):
        with pytest.raises(DataError, match="several tools in one series: fake, other"):
            assemble(files, registry(reader, other), ReadOptions())


def test_values_that_nobody_can_measure_are_missing_and_counted(reader, tmp_path):
    files = series(reader, tmp_path)
    files.append(reader.add(tmp_path, "app.p16", profile(16, time=[1.0, 1e200, 3.0])))
    made = assemble(files, registry(reader), ReadOptions())
    assert np.flatnonzero(np.isnan(made.values("time")[:, 3])).tolist() == [1]
    assert made.columns["time"].total[3] == 4.0
    (finding,) = (found for found in made.findings if found.code == "CPM117")
    assert finding.message == "time: 1 value beyond 1e+100"


def test_values_of_one_metric_in_several_units_are_a_data_error(reader, tmp_path):
    def measured(p, unit):
        values = {Metric("time", unit): [1.0, 2.0, 3.0]}
        return reader.add(tmp_path, f"app.p{p}", FakeSource(call_tree(PATHS), values, Extent(p)))

    files = [measured(2, "s"), measured(4, ""), measured(8, "ticks")]
    with pytest.raises(DataError, match=r"s in \S+app\.p2\.fake, ticks in \S+app\.p8\.fake"):
        assemble(files, registry(reader), ReadOptions(metrics=("time",)))
    assert len(assemble(files[:2], registry(reader), ReadOptions(metrics=("time",))).runs) == 2


def test_a_post_processed_profile_among_plain_ones_is_a_data_error(reader, tmp_path):
    files = series(reader, tmp_path)
    summary = profile(16, derived=[Metric("comp", "s")])
    files.append(reader.add(tmp_path, "app.p16", summary))
    with pytest.raises(DataError, match=r"app\.p16\.fake: a post-processed"):
        assemble(files, registry(reader), ReadOptions())


def test_a_profile_of_another_program_is_refused_and_can_be_left_out(reader, tmp_path):
    stranger = profile(16, paths=["snap", "snap/sweep", "snap/solve"])
    stranger.metadata = {"program": "snap"}
    files = [*series(reader, tmp_path), reader.add(tmp_path, "app.p16", stranger)]
    with pytest.raises(UsageError, match="2 programs"):
        assemble(files, registry(reader), ReadOptions())
    select = RunSelection("program!=snap").by_metadata
    assert len(assemble(files, registry(reader), ReadOptions(), select=select).runs) == 3


def test_call_paths_that_come_and_go_are_kept_and_counted(reader, tmp_path):
    files = series(reader, tmp_path)
    files.append(reader.add(tmp_path, "app.p16", profile(16, paths=["main", "main/f", "main/h"])))
    made = assemble(files, registry(reader), ReadOptions())
    table = made.values("time")
    assert len(made.tree) == 4
    assert np.isnan(table).sum() == 1 + 3
    finding = next(f for f in made.findings if f.code == "CPM113")
    assert finding.count == 2


def test_siblings_of_one_name_are_added_and_counted(reader, tmp_path):
    files = series(reader, tmp_path)
    twice = profile(16, paths=["main", "main/f", "main/f", "main/g"], time=[1, 2, 3, 4])
    files.append(reader.add(tmp_path, "app.p16", twice))
    made = assemble(files, registry(reader), ReadOptions())
    assert made.values("time")[:, 3].tolist() == [1, 5, 4]
    finding = next(f for f in made.findings if f.code == "CPM112")
    assert finding.count == 1
    assert finding.subject.endswith("app.p16.fake")


def test_what_a_reader_noticed_is_handed_on(reader, tmp_path):
    noticed = [Finding("CPM103", "app.p16", "rows are cut off")]
    files = [
        *series(reader, tmp_path),
        reader.add(tmp_path, "app.p16", profile(16, noticed=noticed)),
    ]
    assert codes(assemble(files, registry(reader), ReadOptions())) == ["CPM103"]


def test_repetitions_are_numbered_anew_within_their_point(reader, tmp_path):
    files = [
        reader.add(tmp_path, f"app.p2.r{r}", profile(2, time=[r, 0, 0]), repetition=r)
        for r in (9, 3, 7)
    ]
    made = assemble([*files, *series(reader, tmp_path)], registry(reader), ReadOptions())
    at_2 = [run for run in made.runs if run.parameters["p"] == 2]
    assert [run.repetition for run in at_2] == [1, 2, 3, 4]
    assert [run.source.rpartition(".r")[2] for run in at_2[1:]] == ["3.fake", "7.fake", "9.fake"]


def test_a_metric_that_was_asked_for_brings_the_run_time_along(reader, tmp_path):
    both = [
        FakeSource(call_tree(PATHS), {VISITS: [1, 2, 3], TIME: [1, 1, 1]}, Extent(p))
        for p in (2, 4)
    ]
    files = [reader.add(tmp_path, f"app.p{k}", one) for k, one in enumerate(both)]
    known = registry(reader)
    assert list(assemble(files, known, ReadOptions()).columns) == ["time"]
    assert set(assemble(files, known, ReadOptions(metrics=("visits",))).columns) == {
        "visits",
        "time",
    }
    assert set(assemble(files, known, ReadOptions(metrics=None)).columns) == {"visits", "time"}


def test_an_unknown_metric_is_a_usage_error_and_an_unreadable_one_a_data_error(reader, tmp_path):
    files = [
        reader.add(tmp_path, f"app.p{p}", profile(p, derived=[Metric("comp", "s")])) for p in (2, 4)
    ]
    with pytest.raises(UsageError, match="'tim'") as caught:
        assemble(files, registry(reader), ReadOptions(metrics=("tim",)))
    assert "'time'" in caught.value.hint
    with pytest.raises(DataError, match="cannot be read: derived"):
        assemble(files, registry(reader), ReadOptions(metrics=("comp",)))


def test_a_metric_that_some_runs_lack_is_missing_there_and_said(reader, tmp_path):
    files = series(reader, tmp_path)
    more = FakeSource(call_tree(PATHS), {TIME: [1, 1, 1], VISITS: [1, 2, 3]}, Extent(16))
    files.append(reader.add(tmp_path, "app.p16", more))
    made = assemble(files, registry(reader), ReadOptions(metrics=None))
    assert np.isnan(made.values("visits")[:, :3]).all()
    assert codes(made).count("CPM119") == 3


def test_a_ratio_of_processes_has_no_unit_and_does_not_add_up(reader, tmp_path):
    made = assemble(
        series(reader, tmp_path), registry(reader), ReadOptions(locations=Reduction.IMBALANCE)
    )
    metric = made.metric("time")
    assert (metric.unit, metric.additive) == ("1", False)
    assert np.isnan(made.columns["time"].total).all()


def test_the_user_may_tell_how_the_problem_grows(reader, tmp_path):
    made = assemble(series(reader, tmp_path), registry(reader), ReadOptions(scaling=Scaling.STRONG))
    assert made.scaling is Scaling.STRONG
    assert made.scaling_reason == "as told"


def test_progress_counts_from_none_to_all(reader, tmp_path):
    seen = []
    assemble(series(reader, tmp_path), registry(reader), ReadOptions(), lambda *at: seen.append(at))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_without_files_there_is_nothing_to_read(reader):
    with pytest.raises(InputError, match="no profiles"):
        assemble([], registry(reader), ReadOptions())
